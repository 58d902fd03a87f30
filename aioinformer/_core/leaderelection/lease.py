"""What a Lease says of an election, and how it is written: records in, bodies out.

A Lease (coordination.k8s.io/v1) is an object like any other; its ``spec`` names who holds it, for
how long, since when, and how many times it has changed hands. Its times are the holder's own
clock: they are told to people and compared for equality, never with a clock (client-go's
``LeaderElector`` says why). Whatever else is in the object (labels, annotations, ``strategy`` and
``preferredHolder`` of coordinated election, fields of the future) stays as it is.

Who may take it, and when, is ``machine``'s.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from aioinformer._core.codec.status_decoder import one_line
from aioinformer._core.objects.kube_object import ObjectKey

__all__ = [
    "GROUP",
    "Fencing",
    "LeaseRecord",
    "build_lease",
    "format_micro_time",
    "resource_version",
    "update_lease",
]

GROUP = "coordination.k8s.io"
API_VERSION = f"{GROUP}/v1"

MAX_INT32 = 2**31 - 1
"""The numbers of a Lease are int32. A server that doesn't see to that may send any."""


@dataclass(frozen=True, slots=True, order=True)
class Fencing:
    """One term of one leader. A later term is greater.

    To keep out a leader of the past, whatever is written to remembers the greatest that it has
    seen, and refuses what is less. No two terms of a Lease have the same, unless somebody deletes
    the Lease, with which the count is lost.
    """

    transitions: int
    """How many times the Lease has changed hands: its ``leaseTransitions``."""
    holder: str
    """The leader's identity."""

    def __str__(self) -> str:
        return f"{self.transitions}/{self.holder}"


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """What a Lease says of who holds it."""

    holder: str
    """An identity; empty if it was released."""
    duration: float
    """Seconds without a change after which others may take it; 0 if it doesn't say."""
    transitions: int
    acquired: str
    """When its holder took it, by its holder's clock, as it is written there."""
    renewed: str
    """When its holder wrote it last, likewise."""

    @classmethod
    def of(cls, lease: Mapping[str, Any]) -> LeaseRecord:
        """The record of a Lease. What is missing, or of another type, counts as empty or 0."""
        spec = _mapping(lease.get("spec"))
        return cls(
            str(spec.get("holderIdentity") or ""),
            _number(spec.get("leaseDurationSeconds")),
            int(_number(spec.get("leaseTransitions"))),
            str(spec.get("acquireTime") or ""),
            str(spec.get("renewTime") or ""),
        )

    def is_same_write(self, other: LeaseRecord) -> bool:
        """Whether ``other`` is what came of writing this.

        By the time of writing, to the microsecond, and by whom. Not by the rest: somebody may have
        changed how long it lasts, and it is still the same term.
        """
        return (self.holder, self.transitions, self.renewed) == (
            other.holder,
            other.transitions,
            other.renewed,
        )

    def other_holder(self, identity: str) -> str:
        """Who has ended the term of ``identity`` with this, in words."""
        if not self.holder:
            return "it was released by somebody else"
        if self.holder == identity:
            return f"somebody else writes to it as {identity}"
        return f"{one_line(self.holder)} holds it"


def resource_version(lease: Mapping[str, Any]) -> str:
    """The resourceVersion of a Lease."""
    return str(_mapping(lease.get("metadata")).get("resourceVersion") or "")


def build_lease(key: ObjectKey, record: LeaseRecord) -> dict[str, Any]:
    """A Lease to be created."""
    metadata = {"name": key.name} | ({"namespace": key.namespace} if key.namespace else {})
    head = {"apiVersion": API_VERSION, "kind": "Lease"}
    return head | {"metadata": metadata, "spec": _spec_fields(record)}


def update_lease(lease: Mapping[str, Any], record: LeaseRecord) -> dict[str, Any]:
    """A Lease as it was read, with another record: an update that fails if it was changed since."""
    return {**lease, "spec": {**_mapping(lease.get("spec")), **_spec_fields(record)}}


def format_micro_time(moment: dt.datetime) -> str:
    """A time as Kubernetes' MicroTime writes it: ``2006-01-02T15:04:05.000000Z``."""
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
