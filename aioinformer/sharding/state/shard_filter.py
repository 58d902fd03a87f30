"""The check of received objects against the hashes of a shard.

A list proves by ``metadata.shardInfo`` that the server has selected its objects. A watch proves
nothing, and the server may have been upgraded or rolled back since the list: so each event of a
watch is checked.
"""

from __future__ import annotations

from typing import Literal

from aioinformer.sharding.state.ranges import HashRanges

MAX_RANGES = 32
"""The most ranges that a server is asked for. Each takes a hundred bytes of the URL, of which some
proxies accept 8 kB. With more ranges, a wider selector is sent, and the check drops the rest."""

FilteredBy = Literal["", "server", "client"]
"""The side that selects the objects of a shard; empty without a shard."""


class ShardFilter:
    """The hashes that one reflector reads, and what the server has sent."""

    def __init__(self, ranges: HashRanges) -> None:
        self.ranges = ranges
        self.gained: HashRanges | None = None
        """The shards that were added since the last whole state; ``None`` for none."""
        self.repeated = 0
        """Events that were dropped because a state contains them: those of shards that were gained
        at a later version than the watch's."""
        self.read_ahead: list[tuple[HashRanges, str]] = []
        """Shards whose state is newer than the watch, and the version of that state. Empty once the
        watch has reached these versions."""
        self.excluded = 0
        """The objects and events of other shards that have arrived and were dropped."""
        self._excluded_before = 0
        """The same number when the last read of the whole state began."""

    def excludes(self, uid: str, namespace: str) -> bool:
        """Return True and count an object with these metadata if it is of another shard."""
        if self.ranges.has(uid, namespace):
            return False
        self.excluded += 1
        return True

    def repeats(self, uid: str, namespace: str, version: str) -> bool:
        """Return True and count a change that the state of its shard contains already.

        Called while ``read_ahead`` isn't empty, for changes of the watch in their order.
        """
        ahead = self.read_ahead = [
            (ranges, known)
            for ranges, known in self.read_ahead
            # Numbers without leading zeros (KEP-5504) order by length, then by digits.
            if version.isdecimal() and (len(version), version) <= (len(known), known)
        ]
        if not any(ranges.has(uid, namespace) for ranges, _ in ahead):
            return False
        self.repeated += 1
        return True

    @property
    def dropped(self) -> int:
        return self.excluded + self.repeated

    def count_excluded(self, number: int) -> None:
        self.excluded += number

    def extend(self, ranges: HashRanges, gained: HashRanges, version: str) -> None:
        """Read the ``gained`` shards too: ``ranges`` in all from now on.

        The ``version`` of their state is a number that is not below the watch's.
        """
        self.ranges, self.gained = ranges, None
        self.read_ahead.append((gained, version))

    def narrow(self, ranges: HashRanges, gained: HashRanges | None) -> None:
        """Read ``ranges`` from now on; ``gained`` are those without a state yet."""
        self.ranges, self.gained = ranges, gained

    def take_gained(self) -> HashRanges | None:
        """Return the shards that were added since the last whole state, which is complete now."""
        gained, self.gained = self.gained, None
        return gained

    def begin_state(self) -> None:
        """Record that the whole state is read anew, perhaps by another server."""
        self._excluded_before = self.excluded
        self.read_ahead = []  # the objects of a WatchList are no changes

    @property
    def filtered_by(self) -> FilteredBy:
        """``"client"`` if the server has sent objects of other shards since the last read of the
        whole
        state began, else ``"server"``.
        """
        return "client" if self.excluded > self._excluded_before else "server"

    @property
    def requested(self) -> HashRanges:
        """The hashes of which the server is asked for the objects: ``ranges``, or wider ones if
        there
        are too many.
        """
        return self.ranges if self.ranges.count <= MAX_RANGES else self.ranges.covering(MAX_RANGES)

    def is_selector(self, echoed: str) -> bool:
        """Return True if the server's ``shardInfo``, however spelled, names exactly ``ranges``."""
        return bool(echoed) and (
            echoed == self.ranges.selector or HashRanges.parse(echoed) == self.ranges
        )

    def __repr__(self) -> str:
        return f"<ShardFilter ranges={self.ranges.count} excluded={self.excluded}>"
