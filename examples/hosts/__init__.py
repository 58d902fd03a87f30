"""Informers in programs of every kind: a screen each, to copy."""
