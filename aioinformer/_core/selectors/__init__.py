"""Selectors, paths, predicates, and the conditions of ``wait_until``.

Listers and the embedded server match with the same code. Equal selectors get the same canonical
text, so that they share one informer.
"""
