"""Selectors, paths and predicates: the choice of objects, fields and changes.

    requirements    one condition on a label, and the syntax of label keys and values
    label_parser    label selectors from text (``app=web,tier in (a,b),!canary``) and mappings
    selectors       ``LabelSelector`` and ``FieldSelector``: parse, render, match
    paths           paths such as ``spec.nodeName``
    projections     ``field`` and ``fields``: read a few paths without decoding the whole body
    predicates      ``where``, ``changed``, ``labelled``: conditions on objects and changes
    scopes          the namespaces of one informer, and the selectors in each
    conditions      ``condition_true``, ``rollout_complete``: conditions that waits are about
    event_filter    the filter of one listener, applied to events

Listers and the embedded server match with the same code. Two spellings of one selector are rendered
in one canonical form, so that both share an informer.
"""
