"""Objects as they are cached, and the deltas and events that carry them."""
