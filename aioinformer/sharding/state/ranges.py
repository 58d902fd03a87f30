"""``HashRanges``: the hashes of one or several shards, and the selector for a server.

A server evaluates such a selector by the gate ``ShardedListAndWatch`` (KEP-5866, alpha), and names
the selector in ``metadata.shardInfo`` of the list. A server without the gate ignores the parameter
and sends all objects. A watch doesn't show which of the two a server does.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, Self, TypeAlias

from aioinformer.sharding.state.hashing import HASH_END, hash_value

ShardKey: TypeAlias = Literal["uid", "namespace"]
"""The metadata field that is hashed. A server answers with an error to a selector of another field.
"""

MAX_KNOWN = 10_000
"""Namespaces whose answer is kept."""

_CALL = re.compile(
    r"""\s*shardRange\(\s*object\.metadata\.(uid|namespace)\s*,"""
    r"""\s*['"]0x([0-9a-f]+)['"]\s*,\s*['"]0x([0-9a-f]+)['"]\s*\)\s*"""
)


def shard_start(index: int, count: int) -> int:
    """Return the first hash of one of ``count`` shards. The shards differ by one hash at most."""
    return index * HASH_END // count


def shard_of(value: str, count: int) -> int:
    """Return the index of the shard, of ``count``, that has the hash of ``value``."""
    # The inverse of ``shard_start``: the greatest index whose first hash isn't greater.
    return ((hash_value(value) + 1) * count - 1) // HASH_END


@dataclass(frozen=True, slots=True)
class HashRanges:
    """Ranges of the hashes of one field: sorted, disjoint, none next to another."""

    by: ShardKey
    limits: tuple[int, ...]
    """The first hash of each range and the first hash after it, in turn."""
    _known: dict[str, bool] = field(
        default_factory=dict[str, bool], init=False, repr=False, compare=False
    )
    """The answers for namespaces, which are few."""

    @classmethod
    def of(cls, indexes: Iterable[int], count: int, by: ShardKey) -> Self:
        """Return the hashes of some of ``count`` shards. Adjacent shards become one range."""
        limits: list[int] = []
        for index in sorted(set(indexes)):
            start = shard_start(index, count)
            if limits and limits[-1] == start:
                limits.pop()
            else:
                limits.append(start)
            limits.append(shard_start(index + 1, count))
        return cls(by, tuple(limits))

    @classmethod
    def parse(cls, selector: str) -> Self | None:
        """Return the ranges of a server's selector; ``None`` if the text has another form."""
        pairs: list[tuple[int, int]] = []
        by: ShardKey | None = None
        for part in selector.split("||"):
            found = _CALL.fullmatch(part)
            if found is None or by not in (None, found[1]):
                return None
            by = "uid" if found[1] == "uid" else "namespace"
            pairs.append((int(found[2], 16), int(found[3], 16)))
        return None if by is None else cls(by, _merge(pairs))

    @property
    def count(self) -> int:
        return len(self.limits) // 2

    def covering(self, limit: int) -> HashRanges:
        """Return at most ``limit`` ranges that contain these: the smallest gaps are closed."""
        gaps = list(zip(self.limits[1:-1:2], self.limits[2::2], strict=True))
        closed = sorted(gaps, key=lambda gap: gap[1] - gap[0])[: max(0, self.count - limit)]
        dropped = {bound for gap in closed for bound in gap}
        return HashRanges(self.by, tuple(each for each in self.limits if each not in dropped))

    @property
    def selector(self) -> str:
        """The ``shardSelector`` that asks a server for these objects; empty for no ranges."""
        starts, ends = self.limits[::2], self.limits[1::2]
        return " || ".join(
            f"shardRange(object.metadata.{self.by}, '0x{start:016x}', '0x{end:016x}')"
            for start, end in zip(starts, ends, strict=True)
        )

    def has_hash(self, hashed: int) -> bool:
        # An odd number of limits is at or below a hash inside of a range.
        return bisect_right(self.limits, hashed) % 2 == 1

    def has(self, uid: str, namespace: str) -> bool:
        if self.by == "uid":
            return bisect_right(self.limits, hash_value(uid)) % 2 == 1
        known = self._known.get(namespace)
        if known is None:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()  # namespaces come and go; the answers take 2 µs each
            known = self._known[namespace] = self.has_hash(hash_value(namespace))
        return known

    __call__ = has
    """As an ``Admit``."""

    def __bool__(self) -> bool:
        return bool(self.limits)

    def __str__(self) -> str:
        return self.selector


def _merge(pairs: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    limits: list[int] = []
    for start, end in sorted(pairs):
        if limits and start <= limits[-1]:
            limits[-1] = max(limits[-1], end)
        else:
            limits += (start, end)
    return tuple(limits)
