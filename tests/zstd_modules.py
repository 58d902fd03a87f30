"""A Python without zstd, for the tests of what is done there."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from aioinformer._core.compression.zstd import MODULE, find_zstd

__all__ = ["without_zstd"]


@contextmanager
def without_zstd() -> Generator[None]:
    """Hide the installed zstd, that of Python included."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, MODULE, None)
        find_zstd.cache_clear()
        yield
    find_zstd.cache_clear()
