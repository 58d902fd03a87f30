"""Writes to the API server, independent of the HTTP library.

resource_writer ──▶ retry (repeats a change)
"""
