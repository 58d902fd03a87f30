"""The record in a Lease (coordination.k8s.io/v1): read from the object, and written into a body.

The times are of the holder's clock, shown to people and compared for equality, never with a clock.
Everything else in the object (labels, annotations, ``strategy`` and ``preferredHolder`` of
coordinated election, future fields) is left unchanged.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from aioinformer._core.objects.kube_object import ObjectKey
from aioinformer.errors.texts import one_line

GROUP = "coordination.k8s.io"
API_VERSION = f"{GROUP}/v1"

GROUP_LABEL = "aioinformer/shard-group"
"""The label of all Leases of a shard group, which no election may use; its value is the group's
name."""

MAX_INT32 = 2**31 - 1
"""The numbers of a Lease are int32. A server that doesn't validate them may return larger ones."""


@dataclass(frozen=True, slots=True, order=True)
class Fencing:
    """The number of one leader's term. A later term compares greater.

    To reject writes of an earlier leader, the written side remembers the greatest number that it
    has seen and rejects smaller ones. No two terms of a Lease have the same number, unless the
    Lease is deleted, which resets the count.
    """

    transitions: int
    """The number of times that the Lease changed hands: its ``leaseTransitions``."""
    holder: str

    def __str__(self) -> str:
        return f"{self.transitions}/{self.holder}"


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """The part of a Lease's spec that is about its holder."""

    holder: str
    """The holder's identity; empty if the Lease was released."""
    duration: float
    """Seconds without a change after which others may take the Lease; 0 if it is missing."""
    transitions: int
    acquired: str
    """The time at which the holder took the Lease, by the holder's clock, as the text in the Lease.
    """
    renewed: str
    """The time of the holder's last write, likewise."""

    @classmethod
    def of(cls, lease: Mapping[str, Any]) -> LeaseRecord:
        """Return the record of a Lease. A missing or mistyped field counts as empty or 0."""
        spec = _mapping(lease.get("spec"))
        return cls(
            str(spec.get("holderIdentity") or ""),  # missing or null in a released Lease
            _number(spec.get("leaseDurationSeconds")),
            int(_number(spec.get("leaseTransitions"))),
            str(spec.get("acquireTime") or ""),
            str(spec.get("renewTime") or ""),
        )

    def is_same_write(self, other: LeaseRecord) -> bool:
        """Return True if ``other`` is the result of writing this record, except for the duration,
        which another program may have changed.
        """
        return (self.holder, self.transitions, self.renewed) == (
            other.holder,
            other.transitions,
            other.renewed,
        )

    def other_holder(self, identity: str) -> str:
        """Describe in words which holder ended the term of ``identity`` with this record."""
        if not self.holder:
            return "another program released it"
        if self.holder == identity:
            return f"another program writes to it as {identity}"
        return f"{one_line(self.holder)} holds it"


def group_of_lease(lease: Mapping[str, Any]) -> str:
    """Return the name of the shard group whose Lease this is; empty for any other Lease."""
    return str(_mapping(_mapping(lease.get("metadata")).get("labels")).get(GROUP_LABEL) or "")


def resource_version(lease: Mapping[str, Any]) -> str:
    """Return the resourceVersion of a Lease."""
    return str(_mapping(lease.get("metadata")).get("resourceVersion") or "")


def build_lease(key: ObjectKey, record: LeaseRecord) -> dict[str, Any]:
    """Return the body of a Lease to create."""
    metadata = {"name": key.name} | ({"namespace": key.namespace} if key.namespace else {})
    head = {"apiVersion": API_VERSION, "kind": "Lease"}
    return head | {"metadata": metadata, "spec": _spec_fields(record)}


def update_lease(lease: Mapping[str, Any], record: LeaseRecord) -> dict[str, Any]:
    """Return a Lease as it was read with another record. Updating fails if it was changed since."""
    # The resourceVersion that was read stays in the metadata and makes the server check it.
    return {**lease, "spec": {**_mapping(lease.get("spec")), **_spec_fields(record)}}


def format_micro_time(moment: dt.datetime) -> str:
    """Return a time in the form of Kubernetes' MicroTime: ``2006-01-02T15:04:05.000000Z``."""
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _spec_fields(record: LeaseRecord) -> dict[str, Any]:
    return {
        "holderIdentity": record.holder,
        "leaseDurationSeconds": int(record.duration),
        "acquireTime": record.acquired,
        "renewTime": record.renewed,
        "leaseTransitions": record.transitions,
    }


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _number(value: object) -> float:
    return max(-MAX_INT32, min(value, MAX_INT32)) if isinstance(value, int | float) else 0
