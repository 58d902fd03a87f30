"""Faults, load and recovery on the real API server."""
