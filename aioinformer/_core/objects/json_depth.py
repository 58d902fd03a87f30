"""The decoding of JSON that is nested deeper than a decoder can go.

Go reads 10,000 levels; msgspec about a thousand (as many as Go with Python 3.13), also of the parts
that it skips. An informer must not stop because of one object that can't be opened. The cache needs
four fields of its metadata, so the deep parts are cut out of a copy, which is decoded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TypeVar

T = TypeVar("T")

MAX_DEPTH = 100
"""The levels that are kept. Metadata has five, and in managedFields as many more as the object."""

MAX_SHALLOW = 32
"""The deep objects whose upper levels are kept. Cutting takes 0.2 s for the largest object that a
server stores, and selectors and indexes read an object again and again."""

# Strings are tokens, so that the brackets in them aren't counted.
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)
_OPENING, _CLOSING = b"[{", b"]}"


def decode_nested(decode: Callable[[bytes | memoryview], T], data: bytes | memoryview) -> T:
    """Decode ``data``, without its deep parts if they are nested too deeply.

    Cutting takes a second for 5 MB, in one step. Only objects made for the purpose are so large and
    so deep.
    """
    try:
        return decode(data)
    except RecursionError:
        return decode(truncate_depth(bytes(data)))


def truncate_depth(data: bytes) -> bytes:
    """Return ``data`` with a ``0`` in place of every part that is deeper than ``MAX_DEPTH``.

    A part that doesn't end stays unchanged.
    """
    pieces: list[bytes] = []
    kept = 0
    for start, end in iter_containers(data, MAX_DEPTH + 1):
        pieces += data[kept:start], b"0"
        kept = end
    return b"".join((*pieces, data[kept:]))


upper_levels = lru_cache(maxsize=MAX_SHALLOW)(truncate_depth)
"""``truncate_depth`` for the bytes of a cached object."""


def iter_containers(data: bytes, level: int = 2) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each object and array at a level of the outermost object."""
    depth = start = 0
    for token in _TOKEN.finditer(data):
        byte = data[token.start()]
        if byte in _OPENING:
            depth += 1
            if depth == level:
                start = token.start()
        elif byte in _CLOSING:
            if depth == level:
                yield start, token.end()
            depth -= 1
