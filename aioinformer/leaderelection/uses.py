"""The Leases that elections and shard groups of this program use at this moment.

An election and a group that share a Lease both stand still, so the second of them is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from weakref import WeakSet

from aioinformer._runtime.writing.resource_writer import ResourceWriter, origin_of
from aioinformer.errors import UsageError


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class LeaseUse:
    """The use of Leases by one candidate, or one member of a group."""

    leases: ResourceWriter
    key: str
    """The key of the Lease; of a group, that of the group's Lease."""
    contains: Callable[[str], bool] | None = None
    """For a group: returns True for the keys of its Leases. ``None`` for an election."""

    def begin(self) -> None:
        """Count from now on. Raises ``UsageError`` if the others include a use of another kind."""
        with _lock:
            for other in _uses:
                self._check(other)
                other._check(self)
            _uses.add(self)

    def end(self) -> None:
        """Count no more."""
        with _lock:
            _uses.discard(self)

    def _check(self, election: LeaseUse) -> None:
        if self.contains is None or election.contains or not self.contains(election.key):
            return
        origin = origin_of(self.leases)
        if origin is not None and origin == origin_of(election.leases):
            raise UsageError(
                f"the election {election.key} uses a Lease of the shard group {self.key}: with one "
                "Lease for both, neither works. Give one of them another name"
            )


_uses: WeakSet[LeaseUse] = WeakSet()
_lock = Lock()
