"""The elected member's decision to write a new assignment.

The holder of the group's Lease assigns as long as it is a live member, and otherwise the live
member with the least name takes the group's Lease over. So that Lease is written only when its
members change, and needs no renewal. Two members that both believe to be elected do no harm: the
write is a compare-and-swap, the assignment is computed from the live members alone, and the shards
are fenced by the Leases of the members.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from aioinformer._core.objects.kube_object import ObjectKey
from aioinformer.leaderelection.state.lease import resource_version
from aioinformer.shardgroup.state.group_view import GroupView
from aioinformer.shardgroup.state.records import (
    GroupAssignment,
    GroupLayout,
    lease_identity,
    release_lease,
)

NEVER = float("inf")

STALE_DURATIONS = 4.0
"""Lease durations after which a released Lease is deleted: every other member has seen it."""


@dataclass(frozen=True, slots=True)
class AssignmentWrite:
    """Create or update the group's Lease; the answer isn't needed."""

    body: dict[str, Any]
    creates: bool


@dataclass(frozen=True, slots=True)
class StaleLease:
    """The Lease of a member that died or left, to release or to delete unless it has changed since.

    An expired Lease is released at once, so that a member that joins later, and can't know for how
    long the Lease hasn't changed, need not wait until it expires.
    """

    name: str
    uid: str
    version: str
    release: dict[str, Any] | None
    """The body that releases the Lease; ``None`` if it is to be deleted."""


class AssignmentPlanner:
    """Compare the live members with the assignment."""

    def __init__(
        self, key: ObjectKey, identity: str, layout: GroupLayout, *, retry_period: float
    ) -> None:
        self._key = key
        self._identity = identity
        self._layout = layout
        self._retry_period = retry_period
        self._joins_since = NEVER
        self._tried_version: str = ""
        self._retry_at = -NEVER
        self._epoch = 0
        self._tried_stale = ("", "")
        self._stale_retry_at = -NEVER
        self.next_at = NEVER
        """The time at which ``plan`` may return a write although nothing was observed."""

    def is_leader(self, view: GroupView) -> bool:
        """Return True if this live member is the one that assigns."""
        if view.assignment is not None:
            leader = view.assignment.leader
            if leader == self._identity:
                return True
            live = list(view.live_members())
            if any(record.identity == leader for record in live):
                return False
            # Members of the assigned layout assign as long as there are some.
            assigned = view.assignment.layout
            if assigned != str(self._layout) and any(record.layout == assigned for record in live):
                return False
        return self._identity <= min(self._candidates(view), default=self._identity)

    def plan(self, view: GroupView, now: float, *, leaving: bool) -> AssignmentWrite | None:
        """Return the write that is due. ``leaving``: this member gives all its shards away."""
        self.next_at = NEVER
        if view.assignment is not None:
            self._epoch = max(self._epoch, view.assignment.epoch)
        if not self.is_leader(view):
            return None
        members = self._next_members(view, leaving=leaving)
        if not self._is_due(view.assignment, members, now):
            return None
        version = _version(view.assignment_lease)
        if version == self._tried_version and now < self._retry_at:
            self.next_at = self._retry_at  # its own write isn't in the cache yet
            return None
        self._tried_version, self._retry_at = version, now + self._retry_period
        self.next_at = self._retry_at
        wanted = GroupAssignment(self._epoch + 1, str(self._layout), members, self._identity)
        body = wanted.build(self._key, view.assignment_lease)
        return AssignmentWrite(body, creates=view.assignment_lease is None)

    def find_stale(self, view: GroupView, now: float, lease_duration: float) -> StaleLease | None:
        """Return a Lease of a member that died, or that left long ago."""
        if not self.is_leader(view):
            return None
        limit = now - STALE_DURATIONS * lease_duration
        for name, seen in view.others.items():
            expired = bool(seen.record.identity)
            if seen.exists and not seen.live and (expired or seen.since < limit):
                uid, version = lease_identity(seen.lease)
                if (name, version) == self._tried_stale and now < self._stale_retry_at:
                    continue  # its own write isn't in the cache yet
                self._tried_stale = (name, version)
                self._stale_retry_at = now + self._retry_period
                release = release_lease(seen.lease, self._key.name) if expired else None
                return StaleLease(name, uid, version, release)
        return None

    def _candidates(self, view: GroupView) -> Iterator[str]:
        layout = str(self._layout)
        return (record.identity for record in view.live_members() if record.layout == layout)

    def _next_members(self, view: GroupView, *, leaving: bool) -> tuple[str, ...]:
        layout = str(self._layout)
        members = {
            record.identity
            for record in view.live_members()
            if record.layout == layout and not record.leaving
        }
        return tuple(sorted(members if leaving else members | {self._identity}))

    def _is_due(
        self, current: GroupAssignment | None, members: tuple[str, ...], now: float
    ) -> bool:
        if current is None or current.layout != str(self._layout):
            return True
        if current.members == members:
            self._joins_since = NEVER
            return False
        if not set(current.members) <= set(members):
            return True
        # Members that join together, as in a rollout, are assigned together: a shard moves once.
        self._joins_since = min(self._joins_since, now)
        self.next_at = self._joins_since + self._retry_period / 2
        return now >= self.next_at

    def __repr__(self) -> str:
        return f"<AssignmentPlanner of {self._key} by {self._identity} epoch={self._epoch}>"


def _version(lease: Mapping[str, object] | None) -> str:
    return "" if lease is None else resource_version(lease)
