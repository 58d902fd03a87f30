"""Keys to be worked on: a file for each module."""
