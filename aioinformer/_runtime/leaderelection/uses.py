"""The Leases that elections and shard groups of this program use at this moment.

An election and a group that share a Lease both stand still, so the second of them is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from weakref import WeakSet

from aioinformer._runtime.writing.resource_writer import NamesOrigin, ResourceWriter
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
                if self._excludes(other) or other._excludes(self):
                    raise UsageError(
                        f"an election and a shard group of this program use the Lease {self.key}: "
                        "with one Lease for both, neither works. Give one of them another name"
                    )
            _uses.add(self)

    def end(self) -> None:
        """Count no more."""
        with _lock:
            _uses.discard(self)

    def _excludes(self, election: LeaseUse) -> bool:
        if self.contains is None or election.contains is not None:
            return False
        origin = _origin_of(self.leases)
        same = origin is not None and origin == _origin_of(election.leases)
        return same and self.contains(election.key)


def _origin_of(leases: ResourceWriter) -> object:
    return leases.origin if isinstance(leases, NamesOrigin) else None


_uses: WeakSet[LeaseUse] = WeakSet()
_lock = Lock()
