"""The terminal: output, styles, the screen, and the process."""
