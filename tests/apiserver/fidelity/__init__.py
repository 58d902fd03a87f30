"""The embedded server beside the real one: the same requests to both, and the same answers."""
