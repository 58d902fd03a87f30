"""Informers in programs of several kinds: one screen each, to copy."""
