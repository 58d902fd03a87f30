"""The state of a shard group, from one list of its Leases.

A single list doesn't show for how long a Lease has not changed. So, for people alone, the age of a
renewal is computed from the time that the member wrote, by the clock of this machine.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from aioinformer.shardgroup.state.records import GroupAssignment, GroupLayout, MemberRecord
from aioinformer.shardgroup.state.rendezvous import shard_owners
from aioinformer.sharding.state.shard import MAX_SHARDS
from aioinformer.sharding.state.shard_sets import format_shards


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberReport:
    identity: str
    state: str
    """``member``, ``leaving``, ``expired``; or ``absent``: assigned, but without a Lease."""
    renewed: float | None
    """Seconds since the renewal, by the clocks of the member and of this machine."""
    held: int
    assigned: int
    shards: str
    """The shards that the member's Lease names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReport:
    group: str
    namespace: str
    count: int
    """Virtual shards."""
    by: str
    epoch: int
    leader: str
    unclaimed: str
    """The shards that no live member's Lease names."""
    contested: str
    """The shards that more than one live member's Lease names: while one of them waits."""
    members: tuple[MemberReport, ...]

    @property
    def ok(self) -> bool:
        return not self.unclaimed and not self.contested


def read_group(
    name: str, namespace: str, leases: Iterable[Mapping[str, Any]], now: dt.datetime
) -> GroupReport | None:
    """Return the state of a group; ``None`` if its Lease is not among those with its label."""
    found = {str(lease["metadata"]["name"]): lease for lease in leases}
    if name not in found:
        return None
    assignment = GroupAssignment.of(found.pop(name))
    layout = _read_layout(assignment.layout)
    owners = Counter(shard_owners(assignment.members, layout.count))
    members = [
        _read_member(lease_name.removeprefix(f"{name}."), record, owners, now)
        for lease_name, lease in sorted(found.items())
        if (record := MemberRecord.of(lease, layout.count)).identity
    ]
    known = {member.identity for member in members}
    members += [
        MemberReport(
            identity=identity,
            state="absent",
            renewed=None,
            held=0,
            assigned=owners[identity],
            shards="",
        )
        for identity in assignment.members
        if identity not in known
    ]
    live = {member.identity for member in members if member.state in ("member", "leaving")}
    claims = Counter(
        shard
        for lease in found.values()
        if (record := MemberRecord.of(lease, layout.count)).identity in live
        for shard in record.held or ()
    )
    return GroupReport(
        group=name,
        namespace=namespace,
        count=layout.count,
        by=layout.by,
        epoch=assignment.epoch,
        leader=assignment.leader,
        unclaimed=format_shards(set(range(layout.count)) - claims.keys()),
        contested=format_shards(shard for shard, owners in claims.items() if owners > 1),
        members=tuple(sorted(members, key=lambda member: member.identity)),
    )


def _read_layout(text: str) -> GroupLayout:
    number, _, by = text.partition("/")
    count = int(number) if number.isdecimal() and len(number) < 9 else 0
    # Of more shards than a group can have, the owners aren't computed.
    return GroupLayout(count if count <= MAX_SHARDS else 0, "uid" if by == "uid" else "namespace")


def _read_member(
    identity: str, record: MemberRecord, owners: Mapping[str, int], now: dt.datetime
) -> MemberReport:
    renewed = _age(record.lease.renewed, now)
    if renewed is not None and renewed > record.lease.duration:
        state = "expired"
    else:
        state = "leaving" if record.leaving else "member"
    return MemberReport(
        identity=identity,
        state=state,
        renewed=renewed,
        held=len(record.held or ()),
        assigned=owners.get(identity, 0),
        shards=format_shards(record.held or ()),
    )


def _age(renewed: str, now: dt.datetime) -> float | None:
    try:
        moment = dt.datetime.fromisoformat(renewed)
    except ValueError:
        return None
    return None if moment.tzinfo is None else (now - moment).total_seconds()
