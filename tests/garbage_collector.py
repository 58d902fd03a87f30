"""The dicts that the garbage collector of this Python visits.

Up to Python 3.13 a collection passes over a dict that refers to no other container. Python 3.14
tracks each dict, so that a full collection visits the entries of a cache.
"""

from __future__ import annotations

import sys

import pytest

DICTS_ARE_UNTRACKED = sys.version_info < (3, 14)
"""True if the collector doesn't visit a dict of objects that it doesn't track."""

needs_untracked_dicts = pytest.mark.skipif(
    not DICTS_ARE_UNTRACKED, reason="Python 3.14 and newer track each dict"
)
