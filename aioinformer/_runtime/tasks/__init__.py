"""Tasks and the event loop: the ground of the runtime."""
