"""Bytes of requests and responses, in the form of the real API server."""
