"""Pairs of features in seeded histories of faults: each feature with each other one.

features  the table of features, and which pairs are drawn, exclude each other, or fail today
history   one history: a program with some features, its lives, the writes, and what must hold
replica   one replica of that program: informer, listeners, controller, group, operator
checks    what one listener, and one reconciler, may be called with
threads   threads whose calls take virtual time
table     the table of the guide to contributing: ``python -m tests.simulation.pairs``
"""
