"""The peers of the library."""
