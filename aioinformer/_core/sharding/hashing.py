"""The hash by which an API server splits objects into shards.

The server hashes the value of one metadata field with 64-bit FNV-1a (apimachinery's
``sharding.HashField``, KEP-5866). The same function here gives the same split with a server that
has no shard selectors.
"""

from __future__ import annotations

__all__ = ["HASH_END", "hash_value"]

HASH_END = 1 << 64
"""The first number after all hashes."""

_OFFSET_BASIS = 0xCBF29CE484222325
_PRIME = 0x100000001B3
_MASK = HASH_END - 1


def hash_value(value: str) -> int:
    """Return the 64-bit FNV-1a hash of a text. An empty text has one, too.

    A uid takes about 2.5 µs.
    """
    hashed = _OFFSET_BASIS
    for byte in value.encode():
        hashed = (hashed ^ byte) * _PRIME & _MASK
    return hashed
