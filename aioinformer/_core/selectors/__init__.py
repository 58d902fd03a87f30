"""Selectors, paths and predicates: the choice of objects, fields and changes.

Listers and the embedded server match with the same code. Two spellings of one selector are rendered
in one canonical form, so that both share an informer.
"""
