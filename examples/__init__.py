"""Complete programs that use the library, to read, run and copy."""
