"""What the page is told of the informers themselves: health, numbers, what went wrong last.

It goes to every client once a second, and is written once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from aioinformer import KubeObject, Problem, SharedInformer
from aioinformer.errors import ServerError

__all__ = ["News", "Problems", "Tally"]

AGAIN = 0.5
"""Seconds for which what was written is good enough."""


class Tally:
    """A handler that counts what changes. What was there at first doesn't count."""

    def __init__(self) -> None:
        """Nothing heard yet."""
        self.added = self.updated = self.deleted = 0

    def on_add(self, obj: KubeObject, /, *, initial: bool) -> None:
        """Count a new object."""
        self.added += not initial

    def on_update(self, old: KubeObject, new: KubeObject, /, *, resync: bool) -> None:
        """Count a change."""
        self.updated += not resync

    def on_delete(self, obj: KubeObject, /, *, reason: str) -> None:
        """Count a deletion."""
        self.deleted += 1

    def __repr__(self) -> str:
        return f"<Tally {self.added} added {self.updated} updated {self.deleted} deleted>"


class Problems:
    """The error hook: what went wrong last, which health forgets once it works again."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Nothing went wrong yet; ``clock`` gives monotonic seconds."""
        self.count = 0
        self._clock = clock
        self._last: tuple[Problem, float] | None = None

    def note(self, problem: Problem) -> None:
        """Remember it; for ``on_error=``."""
        self.count += 1
        self._last = problem, self._clock()

    def last(self) -> dict[str, Any] | None:
        """The last one, and how many seconds ago that was."""
        if self._last is None:
            return None
        problem, at = self._last
        return {
            "informer": problem.informer,
            "phase": problem.phase,
            "cause": problem.cause,
            "said": str(problem.error),
            "ago": round(self._clock() - at, 1),
        }


@dataclass(slots=True, kw_only=True)
class News:
    """What there is to tell."""

    informers: Mapping[str, SharedInformer]
    tallies: Mapping[str, Tally]
    problems: Problems
    server: str
    embedded: bool
    clients: Callable[[], int]
    clock: Callable[[], float]
    _frame: bytes = b""
    _written: float = float("-inf")

    def frame(self) -> bytes:
        """All of it, as a frame of an event stream."""
        now = self.clock()
        if now - self._written >= AGAIN:
            self._written = now
            self._frame = b"event: health\ndata: " + msgspec.json.encode(self.facts()) + b"\n\n"
        return self._frame

    def facts(self) -> dict[str, Any]:
        """All of it."""
        return {
            "server": self.server,
            "embedded": self.embedded,
            "clients": self.clients(),
            "problems": self.problems.count,
            "problem": self.problems.last(),
            "informers": [self._informer(name) for name in self.informers],
        }

    def _informer(self, name: str) -> dict[str, Any]:
        informer, tally = self.informers[name], self.tallies[name]
        health = informer.health
        return {
            "of": name,
            "kind": informer.resource.kind,
            "namespaced": informer.resource.namespaced,
            "state": health.state,
            "since": round(health.since, 1),
            "synced": health.synced,
            "objects": health.objects,
            "version": health.resource_version,
            "fresh": None if health.fresh is None else round(health.fresh, 1),
            "error": None if health.error is None else str(health.error),
            "answered": isinstance(health.error, ServerError),
            "retry_in": None if health.retry_in is None else round(health.retry_in, 1),
            "told": {"added": tally.added, "updated": tally.updated, "deleted": tally.deleted},
        }
