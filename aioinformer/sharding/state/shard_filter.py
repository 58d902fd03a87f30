"""The check of received objects against the hashes of a shard.

A list proves by ``metadata.shardInfo`` that the server has selected its objects. A watch proves
nothing, and the server may have been upgraded or rolled back since the list: so each event of a
watch is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.json import decode

from aioinformer._core.objects.decode_errors import DECODE_ERRORS
from aioinformer._core.objects.deltas import Bookmark, Delta
from aioinformer._core.objects.object_key import Admit
from aioinformer.errors import ProtocolError
from aioinformer.sharding.state.ranges import HashRanges

MAX_RANGES = 32
"""The most ranges that a server is asked for. Each takes a hundred bytes of the URL, of which some
proxies accept 8 kB. With more ranges, a wider selector is sent, and the check drops the rest."""


class ShardFilter:
    """The ``ObjectFilter`` of the hashes that one reflector reads."""

    def __init__(self, ranges: HashRanges) -> None:
        self.ranges = ranges
        self.gained: HashRanges | None = None
        """The shards that were added since the last whole state; ``None`` for none."""
        self.read_ahead: list[tuple[HashRanges, str]] = []
        """Shards whose state is newer than the watch, and the version of that state. Empty once the
        watch has reached these versions."""
        self.cached: Callable[[str], tuple[HashRanges, HashRanges | None]] | None = None
        """Returns the hashes whose objects the cache holds as of a version, and those of a later
        one; ``None`` if ``ranges`` never change."""

    def admits(self, uid: str, namespace: str) -> bool:
        return self.ranges.has(uid, namespace)

    def of_cache(self, version: str) -> tuple[ShardFilter, Admit | None]:
        if self.cached is None:
            return self, None
        ranges, later = self.cached(version)
        return ShardFilter(ranges), None if later is None else later.has

    def drop_repeated(self, entries: Sequence[Delta | Bookmark]) -> Sequence[Delta | Bookmark]:
        """Drop the changes that the state of their shard contains already.

        A bookmark takes the place of a change at the end, so that its version isn't lost. Called
        for all changes of the watch in their order.
        """
        if not (self.read_ahead and entries):
            return entries
        kept = [each for each in entries if isinstance(each, Bookmark) or not self._repeats(each)]
        last = entries[-1]
        if isinstance(last, Delta) and (not kept or kept[-1] is not last):
            kept.append(Bookmark(last.obj.resource_version))
        return kept

    def _repeats(self, change: Delta) -> bool:
        obj = change.obj
        version = obj.resource_version
        ahead = self.read_ahead = [
            (ranges, known)
            for ranges, known in self.read_ahead
            # Numbers without leading zeros (KEP-5504) order by length, then by digits.
            if version.isdecimal() and (len(version), version) <= (len(known), known)
        ]
        return any(ranges.has(obj.uid, obj.key.namespace) for ranges, _ in ahead)

    def extend(self, ranges: HashRanges, gained: HashRanges, version: str) -> None:
        """Read the ``gained`` shards too: ``ranges`` in all from now on.

        The ``version`` of their state is a number that is not below the watch's.
        """
        self.ranges, self.gained = ranges, None
        self.read_ahead.append((gained, version))

    def narrow(self, ranges: HashRanges, gained: HashRanges | None) -> None:
        """Read ``ranges`` from now on; ``gained`` are those without a state yet."""
        self.ranges, self.gained = ranges, gained

    def complete_state(self) -> HashRanges | None:
        """Record that the whole state was read. Return the shards that were added since the last
        one.
        """
        gained, self.gained, self.read_ahead = self.gained, None, []
        return gained

    @property
    def requested(self) -> HashRanges:
        """The hashes of which the server is asked for the objects: ``ranges``, or wider ones if
        there are too many.
        """
        return self.ranges if self.ranges.count <= MAX_RANGES else self.ranges.covering(MAX_RANGES)

    @property
    def list_options(self) -> Mapping[str, str]:
        return {"shardSelector": self.requested.selector}

    def check_list(self, envelope: bytes) -> bool:
        """Return True if the server's ``shardInfo``, however spelled, names exactly ``ranges``. A
        text in another form proves nothing.

        Raises:
            ProtocolError: the server has applied another selector than the requested one.
        """
        try:
            applied = HashRanges.parse(decode(envelope)["metadata"]["shardInfo"]["selector"])
        except (*DECODE_ERRORS, LookupError, TypeError):  # no such text, or after the items
            return False
        if applied is not None and applied != self.requested:
            raise ProtocolError(
                "the server has applied another shard selector to the list than the requested one",
                phase="list",
            )
        return applied == self.ranges

    def __repr__(self) -> str:
        return f"<ShardFilter ranges={self.ranges.count}>"
