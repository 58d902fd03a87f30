"""Leases of a group, as a server returns them."""

from __future__ import annotations

import datetime as dt
from typing import Any

from aioinformer import ObjectKey
from aioinformer.leaderelection.state.election import (
    CreateLease,
    ElectionTimes,
    ReadLease,
    UpdateLease,
)
from aioinformer.leaderelection.state.lease import LeaseRecord, build_lease
from aioinformer.shardgroup.state.member import GroupMember
from aioinformer.shardgroup.state.records import GroupAssignment, GroupLayout, MemberRecord

KEY = ObjectKey("web", "shop")
LAYOUT = GroupLayout(8)
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def member_lease(
    identity: str,
    held: set[int] | None = None,
    *,
    renewed: str = "1",
    write: int = 1,
    leaving: bool = False,
    layout: GroupLayout = LAYOUT,
    released: bool = False,
) -> dict[str, Any]:
    """Return the Lease of a member."""
    lease = LeaseRecord("" if released else identity, 15, 0, "0", renewed)
    record = MemberRecord(lease, str(layout), frozenset(held or ()), "other", write, leaving)
    body = build_lease(ObjectKey("web", f"shop.{identity}"), lease)
    stamped = record.stamp(body, KEY.name)
    stamped["metadata"] |= {"resourceVersion": renewed, "uid": f"uid of {identity}"}
    return stamped


def group_lease(
    *members: str, epoch: int = 1, leader: str = "", layout: GroupLayout = LAYOUT
) -> dict[str, Any]:
    """Return the group's Lease."""
    assignment = GroupAssignment(epoch, str(layout), members, leader or min(members))
    body = assignment.build(KEY, None)
    body["metadata"]["resourceVersion"] = f"group-{epoch}"
    return body


class StoredMember:
    """A member whose own Lease is stored and seen at once."""

    def __init__(self, identity: str = "a", layout: GroupLayout = LAYOUT) -> None:
        self.member = GroupMember(
            KEY, identity=identity, incarnation="this", layout=layout, times=ElectionTimes()
        )
        self.lease: dict[str, Any] | None = None
        self.version = 0

    def join(self, now: float) -> None:
        """Acquire the member's Lease."""
        self.member.election.seek(now)
        self.renew(now)

    def renew(self, now: float, *, seen: bool = True) -> None:
        """Carry out the requests that are due; ``seen`` if the cache shows the Lease at once."""
        election = self.member.election
        while True:
            match election.step(now, START + dt.timedelta(seconds=now)):
                case ReadLease():
                    election.record_read(self.lease, now, 0.0)
                case CreateLease(body) | UpdateLease(body):
                    self._store(self.member.stamp(body, now))
                    assert self.lease is not None
                    election.record_write(self.lease, now, 0.0)
                case _:
                    break
        if seen:
            self.see(now)

    def see(self, now: float) -> None:
        """Let the cache show the own Lease."""
        self.member.observe(self.member.key.name, self.lease, now)

    def _store(self, body: dict[str, Any]) -> None:
        self.version += 1
        self.lease = body | {
            "metadata": body["metadata"] | {"resourceVersion": f"own-{self.version}", "uid": "own"}
        }
