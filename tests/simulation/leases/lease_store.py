"""A server with Leases only: compare-and-swap, and a log of every state in order."""

from __future__ import annotations

import enum
from typing import Any, TypeAlias

from aioinformer.leaderelection.state.election import CreateLease, Election, ReadLease, UpdateLease


class Refusal(enum.Enum):
    """The reason why a request was not carried out."""

    NOT_FOUND = "not found"
    CONFLICT = "conflict"
    UNAVAILABLE = "unavailable"


Answer: TypeAlias = dict[str, Any] | Refusal | None
"""A Lease, or a refusal. ``None`` says nothing about what was done."""

LeaseRequest: TypeAlias = ReadLease | CreateLease | UpdateLease
"""The requests of an election."""


class LeaseStore:
    """The Leases of one namespace."""

    def __init__(self) -> None:
        self.log: list[tuple[str, dict[str, Any] | None]] = []
        """Each accepted change: the name of the Lease, and the Lease; ``None`` if deleted."""
        self._leases: dict[str, dict[str, Any]] = {}

    def get(self, name: str) -> dict[str, Any] | Refusal:
        """Return a Lease."""
        return self._leases.get(name, Refusal.NOT_FOUND)

    def put(self, body: dict[str, Any], *, creates: bool) -> dict[str, Any] | Refusal:
        """Create a Lease, or replace the one with the resourceVersion in the body."""
        name = body["metadata"]["name"]
        seen = self._leases.get(name)
        if creates != (seen is None):
            return Refusal.CONFLICT if creates else Refusal.NOT_FOUND
        if seen is not None and _version(seen) != _version(body):
            return Refusal.CONFLICT
        version = str(len(self.log) + 1)
        uid = version if seen is None else seen["metadata"]["uid"]
        lease = body | {"metadata": body["metadata"] | {"resourceVersion": version, "uid": uid}}
        self._leases[name] = lease
        self.log.append((name, lease))
        return lease

    def carry_out(self, request: LeaseRequest, name: str) -> Answer:
        """Carry out a request of an election for the Lease of this name."""
        if isinstance(request, ReadLease):
            return self.get(name)
        return self.put(request.body, creates=isinstance(request, CreateLease))

    def delete(self, name: str, version: str) -> Refusal | None:
        """Delete a Lease unless it was changed since."""
        seen = self._leases.get(name)
        if seen is None or _version(seen) != version:
            return Refusal.CONFLICT
        del self._leases[name]
        self.log.append((name, None))
        return None


def _version(lease: dict[str, Any]) -> str:
    return str(lease["metadata"].get("resourceVersion", ""))


def record_answer(
    election: Election, request: LeaseRequest, answer: Answer, now: float, jitter: float
) -> None:
    """Have an election record the answer to its request, or that there was none."""
    reads = isinstance(request, ReadLease)
    if isinstance(answer, dict):
        record = election.record_read if reads else election.record_write
        record(answer, now, jitter)
    elif reads and answer is Refusal.NOT_FOUND:
        election.record_read(None, now, jitter)
    else:
        election.record_failure(now, jitter)
