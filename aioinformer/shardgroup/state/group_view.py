"""``GroupView``: the Leases of a group as one member sees them, and the members that are live.

A member sees the Leases through a cache that may be late by any time. Two rules make a late cache
safe:

- A member is dead if its record hasn't changed for its duration *up to the freshness* of the cache,
  not up to now. The freshness is the time at which this member sent its own newest write that the
  cache contains. Everything that the server accepted before that write is in the cache as well, so
  a renewal that the cache lacks was sent later.
- A Lease that was deleted without having been released counts until it would have expired.

The times in the Leases are never compared with a clock: see ``aioinformer.leaderelection.state``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from aioinformer._core.quantities import quantity
from aioinformer.shardgroup.state.records import (
    GroupAssignment,
    GroupLayout,
    MemberRecord,
)

NEVER = float("inf")


@dataclass(slots=True)
class SeenMember:
    """Another member's Lease."""

    record: MemberRecord
    since: float
    """The time at which this record was seen first."""
    lease: Mapping[str, Any]
    exists: bool = True
    live: bool = True


class GroupView:
    """The Leases of a group as one member knows them."""

    def __init__(self, layout: GroupLayout, own_name: str, *, lease_duration: float) -> None:
        self._layout = layout
        self._own_name = own_name
        self._lease_duration = lease_duration
        self.others: dict[str, SeenMember] = {}
        """The Leases of the other members, by name."""
        self.own: MemberRecord | None = None
        self.assignment: GroupAssignment | None = None
        self.assignment_lease: Mapping[str, Any] | None = None
        """The group's Lease, which carries the assignment."""
        self.fresh_at = -NEVER
        """Everything that the server accepted before this time is known."""

    def observe_assignment(self, lease: Mapping[str, Any] | None) -> bool:
        """Take the group's Lease as the cache has it. Return True if the assignment changed."""
        before, self.assignment_lease = self.assignment, lease
        self.assignment = None if lease is None else GroupAssignment.of(lease)
        return self.assignment != before

    def observe_member(self, name: str, lease: Mapping[str, Any] | None, now: float) -> bool:
        """Take the Lease of a member; ``None``: deleted. Return True if more than its renewal
        changed.
        """
        record = None if lease is None else MemberRecord.of(lease, self._layout.count)
        if name == self._own_name:
            self.own = record
            return True
        seen = self.others.get(name)
        if record is None or lease is None:
            if seen is not None:
                self._forget(name, seen)
            return False
        if seen is not None and seen.record == record and seen.exists:
            seen.lease = lease  # a label was changed, for example
            return False
        fresh = SeenMember(record, now, lease, live=bool(record.identity))
        self.others[name] = fresh
        return seen is None or not seen.live or _claim(seen.record) != _claim(record)

    def advance(self, fresh_at: float) -> list[SeenMember]:
        """Raise the freshness of the cache. Return the members that died by that."""
        if fresh_at <= self.fresh_at:
            return []
        self.fresh_at = fresh_at
        died = [
            seen for seen in self.others.values() if seen.live and self.expires_at(seen) <= fresh_at
        ]
        for seen in died:
            seen.live = False
        for name in [name for name, seen in self.others.items() if not (seen.live or seen.exists)]:
            del self.others[name]
        return died

    def expires_at(self, seen: SeenMember) -> float:
        """Return when a Lease expires if it isn't renewed."""
        duration = seen.record.lease.duration
        return seen.since + (duration if duration > 0 else self._lease_duration)

    @property
    def next_expiry(self) -> float:
        """The time at which the first Lease of another live member expires if it isn't renewed."""
        expiries = (self.expires_at(seen) for seen in self.others.values() if seen.live)
        return min(expiries, default=NEVER)

    def live_members(self) -> Iterator[MemberRecord]:
        """Return the records of the other live members."""
        return (seen.record for seen in self.others.values() if seen.live)

    def claimed(self) -> frozenset[int]:
        """Return the shards that other live members work on."""
        shards: set[int] = set()
        for record in self.live_members():
            shards |= self.held_by(record)
        return frozenset(shards)

    def held_by(self, record: MemberRecord) -> frozenset[int]:
        """Return the shards that a record claims: all, if it can't be read or has another layout,
        whose shards overlap those of this one.
        """
        if record.held is None or (record.held and record.layout != str(self._layout)):
            return frozenset(range(self._layout.count))
        return record.held

    def _forget(self, name: str, seen: SeenMember) -> None:
        if seen.live:
            seen.exists = False  # counts until it expires
        else:
            del self.others[name]

    def __repr__(self) -> str:
        return f"<GroupView of {quantity(len(self.others), 'other')}, {self.assignment!r}>"


def _claim(record: MemberRecord) -> tuple[object, ...]:
    """Return the part of a record that doesn't change by a renewal."""
    return record.identity, record.layout, record.held, record.leaving, record.incarnation
