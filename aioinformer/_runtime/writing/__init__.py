"""Writes to the API server, independent of the HTTP library."""
