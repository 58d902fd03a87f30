"""Who leads, as plain state: a file for each module."""
