"""Informers and reads on the real API server."""
