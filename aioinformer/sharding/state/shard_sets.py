"""Sets of shards as the text of an annotation, with ranges: ``0-3,7``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


def format_shards(shards: Iterable[int]) -> str:
    """Return shards as ascending ranges; an empty text for no shards."""
    ranges: list[list[int]] = []
    for shard in sorted(set(shards)):
        if ranges and ranges[-1][1] == shard - 1:
            ranges[-1][1] = shard
        else:
            ranges.append([shard, shard])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


@lru_cache(maxsize=4096)  # a renewal repeats the text of the renewal before
def parse_shards(text: str, count: int) -> frozenset[int]:
    """Return the shards that a text names; raise a ``ValueError`` for one beyond ``count``, or
    another form.
    """
    shards: set[int] = set()
    for part in text.split(",") if text else ():
        found = _RANGE.fullmatch(part)
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, -1)
        if not first <= last < count:
            raise ValueError(f"{part!r} is no range of the shards 0 to {count - 1}")
        shards.update(range(first, last + 1))
    return frozenset(shards)
