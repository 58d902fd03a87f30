"""The content of a group's Leases: the record of a member, and the assignment.

The spec of a member's Lease is what a ``LeaderElector`` writes, so that tools show the holder and
its age. The group adds annotations. The group's own Lease names the member that assigns as its
holder, and carries the members of the assignment.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self, cast

from aioinformer._core.objects.kube_object import ObjectKey
from aioinformer.leaderelection.state.election import RELEASED_SECONDS
from aioinformer.leaderelection.state.lease import (
    API_VERSION,
    GROUP_LABEL,
    LeaseRecord,
    resource_version,
)
from aioinformer.sharding.state.ranges import ShardKey
from aioinformer.sharding.state.shard_sets import format_shards, parse_shards

LAYOUT = "aioinformer/shard-layout"
HELD = "aioinformer/shards-held"
WRITE = "aioinformer/shard-write"
LEAVING = "aioinformer/shard-leaving"
EPOCH = "aioinformer/shard-epoch"
MEMBERS = "aioinformer/shard-members"


@dataclass(frozen=True, slots=True)
class GroupLayout:
    """The division of objects into shards, which must be the same on all members."""

    count: int
    by: ShardKey = "uid"

    def __str__(self) -> str:
        return f"{self.count}/{self.by}"


@dataclass(frozen=True, slots=True)
class MemberRecord:
    """A member's Lease as it was seen."""

    lease: LeaseRecord
    layout: str
    held: frozenset[int] | None
    """The shards that the member works on; ``None`` if they can't be read, which counts as all."""
    incarnation: str
    """A text that another process of the same identity doesn't have."""
    write: int
    """Grows by one with each write of a process."""
    leaving: bool

    @classmethod
    def of(cls, lease: Mapping[str, Any], count: int) -> Self:
        """Return the record of a Lease in a group of ``count`` shards."""
        notes = _annotations(lease)
        incarnation, _, number = notes.get(WRITE, "").rpartition("/")
        try:
            held: frozenset[int] | None = parse_shards(notes.get(HELD, ""), count)
        except ValueError:
            held = None
        return cls(
            LeaseRecord.of(lease),
            notes.get(LAYOUT, ""),
            held,
            incarnation,
            int(number) if number.isdecimal() else 0,
            notes.get(LEAVING) == "true",
        )

    @property
    def identity(self) -> str:
        """The member's identity; empty if the Lease was released."""
        return self.lease.holder

    def stamp(self, body: Mapping[str, Any], group: str) -> dict[str, Any]:
        """Return the body of this member's Lease with the group's label and annotations."""
        notes = {
            LAYOUT: self.layout,
            HELD: format_shards(self.held or ()),
            WRITE: f"{self.incarnation}/{self.write}",
            LEAVING: "true" if self.leaving else "false",
        }
        return _with_metadata(body, group, notes)


@dataclass(frozen=True, slots=True)
class GroupAssignment:
    """The members among which the shards are divided, as the group's Lease states them."""

    epoch: int
    """The number of the assignment: each new one has a greater number."""
    layout: str
    members: tuple[str, ...]
    """The identities, sorted."""
    leader: str
    """The identity of the member that wrote it."""

    @classmethod
    def of(cls, lease: Mapping[str, Any]) -> Self:
        """Return the assignment in a group's Lease. Unreadable parts are empty or 0, to be
        replaced.
        """
        notes = _annotations(lease)
        epoch = notes.get(EPOCH, "")
        return cls(
            int(epoch) if epoch.isdecimal() and len(epoch) < 19 else 0,
            notes.get(LAYOUT, ""),
            _read_members(notes.get(MEMBERS, "")),
            LeaseRecord.of(lease).holder,
        )

    def build(self, key: ObjectKey, seen: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the group's Lease with this assignment, to replace ``seen`` or to create."""
        notes = {
            EPOCH: str(self.epoch),
            LAYOUT: self.layout,
            MEMBERS: json.dumps(self.members, separators=(",", ":")),
        }
        if seen is None:
            metadata = {"name": key.name} | ({"namespace": key.namespace} if key.namespace else {})
            seen = {"apiVersion": API_VERSION, "kind": "Lease", "metadata": metadata}
        body = _with_metadata(seen, key.name, notes)
        # The resourceVersion that was seen stays in the metadata and makes the server check it.
        return body | {"spec": _mapping(seen.get("spec")) | {"holderIdentity": self.leader}}


def release_lease(lease: Mapping[str, Any], group: str) -> dict[str, Any]:
    """Return a member's Lease as it was seen, without holder and shards."""
    body = _with_metadata(lease, group, {HELD: ""})
    spec = _mapping(lease.get("spec")) | {
        "holderIdentity": "",
        "leaseDurationSeconds": RELEASED_SECONDS,
    }
    return body | {"spec": spec}


def lease_identity(lease: Mapping[str, Any]) -> tuple[str, str]:
    """Return the uid and the resourceVersion of a Lease, the preconditions of its deletion."""
    return str(_mapping(lease.get("metadata")).get("uid") or ""), resource_version(lease)


def _read_members(text: str) -> tuple[str, ...]:
    try:
        members: object = json.loads(text) if text else []
    except (ValueError, RecursionError):
        return ()
    if not isinstance(members, list):
        return ()
    return tuple(sorted(str(name) for name in cast("Iterable[object]", members)))


def _with_metadata(body: Mapping[str, Any], group: str, notes: dict[str, str]) -> dict[str, Any]:
    metadata = _mapping(body.get("metadata"))
    labels = _mapping(metadata.get("labels")) | {GROUP_LABEL: group}
    annotations = _mapping(metadata.get("annotations")) | notes
    return {**body, "metadata": metadata | {"labels": labels, "annotations": annotations}}


def _annotations(lease: Mapping[str, Any]) -> dict[str, str]:
    notes = _mapping(_mapping(lease.get("metadata")).get("annotations"))
    return {name: str(value) for name, value in notes.items()}


def _mapping(value: object) -> dict[str, Any]:
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}
