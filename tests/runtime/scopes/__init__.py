"""Informers of several namespaces."""
