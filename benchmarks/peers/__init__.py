"""What the library is compared with."""
