"""``aioinformer wait``: wait until one object has reached a state."""
