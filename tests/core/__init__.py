"""The sans-I/O core: its modules, and all of them together."""
