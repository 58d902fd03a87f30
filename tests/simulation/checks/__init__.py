"""Checks that hold the records of a history to the guarantees of the library."""
