"""The reference of the public API, built from the docstrings."""
