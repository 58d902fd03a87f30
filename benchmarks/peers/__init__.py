"""The peers that the library is compared with."""
