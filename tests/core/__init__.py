"""The sans-I/O core: a file for each module, and one for all of them together."""
