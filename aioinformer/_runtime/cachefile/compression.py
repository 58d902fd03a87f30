"""The compression of stored objects by zstd: of Python 3.14, or of the package ``zstandard``.

Without either, objects are stored as they are. A stored body tells by its first bytes if it is
compressed, so that a file may contain both forms.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

__all__ = ["Codec", "CompressionMissing", "load_codec"]

MAGIC = b"\x28\xb5\x2f\xfd"
"""The first bytes of a zstd frame (RFC 8878). JSON never begins with them."""

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
    for name in ("compression.zstd", "zstandard"):
        try:
            module: Any = import_module(name)
        except ImportError:
            continue
        return _make_codec(module)
    return Codec(_keep, _decompress_nothing)


def _make_codec(module: Any) -> Codec:
    """Return the functions of ``compression.zstd`` or ``zstandard``, which have the same names."""

    def compress(body: bytes) -> bytes:
        compressed: bytes = module.compress(body, LEVEL)
        return compressed

    def decompress(body: bytes) -> bytes:
        whole: bytes = module.decompress(body) if body.startswith(MAGIC) else body
        return whole

    return Codec(compress, decompress)
