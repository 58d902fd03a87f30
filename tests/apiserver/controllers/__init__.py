"""Controllers, elections and writes on the real API server."""
