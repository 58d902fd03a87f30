"""Fuzzing of everything that parses bytes of others: hostile input must end in a named error.

``targets`` has a parser and its oracle for each kind of input. The default run feeds seeds, their
random mutations and the corpus of earlier findings to them. ``python -m tests.fuzzing TARGET`` runs
a coverage-guided fuzzer, which writes what fails into the corpus.
"""
