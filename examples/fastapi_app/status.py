"""The status of the informers for the page: health, numbers, the latest problem.

Every client receives the status once a second. The text is encoded once for all clients.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from aioinformer import KubeObject, Problem, SharedInformer
from aioinformer.errors import ServerError

__all__ = ["ChangeCounter", "Problems", "StatusReport"]

REUSE_SECONDS = 0.5
"""Seconds for which an encoded status is sent again."""


class ChangeCounter:
    """A handler that counts changes, without the initial list and resyncs."""

    def __init__(self) -> None:
        """Start with all counts at 0."""
        self.added = self.updated = self.deleted = 0

    def on_add(self, obj: KubeObject, /, *, initial: bool) -> None:
        """Count a new object."""
        self.added += not initial

    def on_update(self, old: KubeObject, new: KubeObject, /, *, resync: bool) -> None:
        """Count an update."""
        self.updated += not resync

    def on_delete(self, obj: KubeObject, /, *, reason: str) -> None:
        """Count a deletion."""
        self.deleted += 1

    def __repr__(self) -> str:
        return f"<ChangeCounter {self.added} added {self.updated} updated {self.deleted} deleted>"


class Problems:
    """The error hook: keeps the latest problem, also after the informer has recovered."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Start without a problem; ``clock`` returns monotonic seconds."""
        self.count = 0
        self._clock = clock
        self._last: tuple[Problem, float] | None = None

    def add(self, problem: Problem) -> None:
        """Keep ``problem`` as the latest; for ``on_error=``."""
        self.count += 1
        self._last = problem, self._clock()

    def last(self) -> dict[str, Any] | None:
        """Return the latest problem, with the seconds since then."""
        if self._last is None:
            return None
        problem, at = self._last
        return {
            "informer": problem.informer,
            "phase": problem.phase,
            "cause": problem.cause,
            "message": str(problem.error),
            "ago": round(self._clock() - at, 1),
        }


@dataclass(slots=True, kw_only=True)
class StatusReport:
    """The status of the service and its informers."""

    informers: Mapping[str, SharedInformer]
    counters: Mapping[str, ChangeCounter]
    problems: Problems
    server: str
    embedded: bool
    clients: Callable[[], int]
    clock: Callable[[], float]
    _frame: bytes = b""
    _encoded_at: float = float("-inf")

    def frame(self) -> bytes:
        """Return the status as a frame of an event stream."""
        now = self.clock()
        if now - self._encoded_at >= REUSE_SECONDS:
            self._encoded_at = now
            self._frame = b"event: health\ndata: " + msgspec.json.encode(self.facts()) + b"\n\n"
        return self._frame

    def facts(self) -> dict[str, Any]:
        """Return the status as a dict."""
        return {
            "server": self.server,
            "embedded": self.embedded,
            "clients": self.clients(),
            "problems": self.problems.count,
            "problem": self.problems.last(),
            "informers": [self._informer(name) for name in self.informers],
        }

    def _informer(self, name: str) -> dict[str, Any]:
        informer, counter = self.informers[name], self.counters[name]
        health = informer.health
        return {
            "of": name,
            "kind": informer.resource.kind,
            "namespaced": informer.resource.namespaced,
            "state": health.state,
            "since": round(health.since, 1),
            "synced": health.synced,
            "objects": health.objects,
            "memory": informer.memory().total,
            "version": health.resource_version,
            "fresh": None if health.fresh is None else round(health.fresh, 1),
            "error": None if health.error is None else str(health.error),
            "answered": isinstance(health.error, ServerError),
            "status": health.error.status.code if isinstance(health.error, ServerError) else None,
            "retry_in": None if health.retry_in is None else round(health.retry_in, 1),
            "changes": {
                "added": counter.added,
                "updated": counter.updated,
                "deleted": counter.deleted,
            },
        }
