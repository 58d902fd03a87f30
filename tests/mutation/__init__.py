"""Mutation tests of modules of the core: ``python -m tests.mutation codec.line_splitter ...``.

mutmut changes one expression at a time and runs the tests of the module. A change that no test
notices survives: a test is missing, or the change alters nothing that a caller can see.
"""
