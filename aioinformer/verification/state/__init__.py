"""Rules of the comparison of a cache with the server."""
