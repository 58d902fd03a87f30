"""JSON that is nested deeper than a decoder can go, read all the same as far as it matters.

Go reads 10,000 levels, msgspec about a thousand, of what it skips over too. A custom resource
without a schema may hold as many as somebody likes to write into it, and an informer must not stop
for the one object that nobody can open. What is cached needs four fields of its metadata; the
depths are cut out of a copy, and that is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

__all__ = ["decode_nested", "truncate_depth"]

T = TypeVar("T")

MAX_DEPTH = 100
"""Levels that stay. Metadata has five, and as many more in managedFields as the object itself."""

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)
_OPENING, _CLOSING = b"[{", b"]}"


def decode_nested(decode: Callable[[bytes], T], data: bytes | memoryview) -> T:
    """What ``decode`` makes of ``data``, or else of what is left without its depths.

    It takes a second for 5 MB, in one step: none but objects that are written for the purpose.
    """
    try:
        return decode(bytes(data))
    except RecursionError:
        return decode(truncate_depth(bytes(data)))


def truncate_depth(data: bytes) -> bytes:
    """``data`` with a ``0`` for whatever is deeper than ``MAX_DEPTH``.

    Brackets in there are counted and not matched. What doesn't end is left as it is.
    """
    kept: list[bytes] = []
    depth = start = 0
    for token in _TOKEN.finditer(data):
        sign = data[token.start()]
        if sign in _OPENING:
            depth += 1
            if depth == MAX_DEPTH + 1:
                kept += data[start : token.start()], b"0"
        elif sign in _CLOSING:
            if depth == MAX_DEPTH + 1:
                start = token.end()
            depth -= 1
    return data if depth > MAX_DEPTH else b"".join((*kept, data[start:]))
