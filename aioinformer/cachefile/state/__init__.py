"""The content of a cache file: the identities that must match, and the changes to write."""
