"""The compression of stored objects by zstd: of Python 3.14, or of the package ``zstandard``.

Without either, objects are stored as they are. A stored body tells by its first bytes if it is
compressed, so that a file may contain both forms.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from aioinformer._core.compression.zstd import MAGIC, find_zstd

__all__ = ["MAGIC", "Codec", "CompressionMissing", "load_codec"]

LEVEL = 1
"""The level of compression: the fastest one makes a pod a third of its size."""


class CompressionMissing(Exception):
    """A stored object is compressed, and this Python can't decompress it."""


class Codec(NamedTuple):
    """The functions that compress and decompress one body."""

    compress: Callable[[bytes], bytes]
    decompress: Callable[[bytes], bytes]


def _keep(body: bytes) -> bytes:
    return body


def _decompress_nothing(body: bytes) -> bytes:
    if body.startswith(MAGIC):
        raise CompressionMissing
    return body


@cache
def load_codec() -> Codec:
    """Return the functions of the installed zstd; without zstd, functions that keep a body."""
    module = find_zstd()
    return Codec(_keep, _decompress_nothing) if module is None else _make_codec(module)


def _make_codec(module: Any) -> Codec:
    """Return the functions of ``compression.zstd`` or ``zstandard``, which have the same names."""

    def compress(body: bytes) -> bytes:
        compressed: bytes = module.compress(body, LEVEL)
        return compressed

    def decompress(body: bytes) -> bytes:
        whole: bytes = module.decompress(body) if body.startswith(MAGIC) else body
        return whole

    return Codec(compress, decompress)
