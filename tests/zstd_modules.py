"""A Python without zstd, for the tests of what is done there."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from aioinformer._core.compression.zstd import find_zstd

__all__ = ["without_zstd"]


@contextmanager
def without_zstd() -> Generator[None]:
    """Hide the installed zstd, that of Python included."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("compression.zstd", "zstandard"):
            patch.setitem(sys.modules, name, None)
        find_zstd.cache_clear()
        yield
    find_zstd.cache_clear()
