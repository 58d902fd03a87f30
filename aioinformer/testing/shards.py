"""``shardSelector``: one part of a resource's objects, by the hash of a metadata field (KEP-5866).

    shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')

A selector is one such range or several, joined by ``||``; recordings 54, 65 and 66. The texts of
refusals are those of apiserver's ``sharding/parser.go``, which parses CEL; what can't be read here
at all gets a plainer text than CEL's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from aioinformer.errors import ServerError, Status, server_error
from aioinformer.testing.encoding import Stored

__all__ = ["ShardSelector"]

END = 1 << 64
_FIELDS = ("object.metadata.uid", "object.metadata.namespace")
_CALL = re.compile(
    r"""\s*shardRange\(\s*([\w.]+)\s*,\s*['"]([^'"]*)['"]\s*,\s*['"]([^'"]*)['"]\s*\)\s*"""
)


@dataclass(frozen=True, slots=True)
class ShardSelector:
    """Ranges of hashes of one field."""

    field: str = ""
    ranges: tuple[tuple[int, int], ...] = ()
    """Each with its start, and the end that it doesn't hold. None at all: everything."""

    @classmethod
    def parse(cls, text: str) -> ShardSelector:
        """The selector that a request means; an empty text selects everything.

        Raises:
            ServerFailure: it doesn't parse: 500, not 400 (recording 66).
        """
        if not text.strip():
            return cls()
        calls = [_call(part) for part in text.split("||")]
        fields = [field for field, _ in calls]
        for field in fields:
            if field != fields[0]:
                raise _bad(
                    f'all shard ranges must use the same field, got "{fields[0]}" and "{field}"'
                )
        return cls(fields[0], tuple(limits for _, limits in calls))

    def matches(self, stored: Stored) -> bool:
        """Whether an object is in one of the ranges."""
        if not self.ranges:
            return True
        value = stored.uid if self.field.endswith("uid") else stored.namespace
        hashed = _hash(value)
        return any(start <= hashed < end for start, end in self.ranges)

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __str__(self) -> str:
        return " || ".join(
            f"shardRange({self.field}, '0x{start:016x}', '0x{end:016x}')"
            for start, end in self.ranges
        )


def _call(text: str) -> tuple[str, tuple[int, int]]:
    found = _CALL.fullmatch(text)
    if found is None:
        raise _bad(f"expected shardRange() call or || operator, got {text.strip()!r}")
    field, first, last = found.groups()
    if field not in _FIELDS:
        raise _bad(f'unsupported field path "{field}"; supported: {", ".join(_FIELDS)}')
    start, end = _limit(first, "hexStart"), _limit(last, "hexEnd")
    if start >= end:
        raise _bad(f"shard range start {first} must be less than end {last}")
    return field, (start, end)


def _limit(text: str, name: str) -> int:
    if not text.startswith("0x"):
        raise _bad(f"{name} must have '0x' prefix, got \"{text}\"")
    if not re.fullmatch("0x[0-9a-f]{16}", text) and text != f"0x{END:x}":
        raise _bad(f'{name} must be a 0x-prefixed 16-digit hex value, got "{text}"')
    return int(text, 16)


def _bad(why: str) -> ServerError:
    return server_error(Status(500, "", f"invalid shard selector: {why}"))


def _hash(value: str) -> int:
    """FNV-1a with 64 bits (apimachinery's ``sharding.HashField``)."""
    hashed = 0xCBF29CE484222325
    for byte in value.encode():
        hashed = (hashed ^ byte) * 0x100000001B3 % END
    return hashed
