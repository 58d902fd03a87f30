"""Shards of a resource, and groups that share them, on the real API server."""
