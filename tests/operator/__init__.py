"""Tests of the operator: controllers as a whole program."""
