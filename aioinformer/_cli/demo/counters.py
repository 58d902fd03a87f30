"""What the demo's listeners keep of the events that they hear: totals, a rate, the latest few.

``Tally`` is a handler, ``Ticker`` is filled from a stream, and ``Rate`` makes a speed out of a
total. None of them knows a terminal or a clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from aioinformer import Added, Deleted, DeleteReason, Event, KubeObject, ObjectKey, Updated

__all__ = ["Rate", "Sighting", "Tally", "Ticker", "type_of"]


def type_of(event: Event) -> str:
    """An event's type in the API's words: ADDED, MODIFIED, DELETED."""
    match event:
        case Added():
            return "ADDED"
        case Updated():
            return "MODIFIED"
        case Deleted():
            return "DELETED"


class Tally:
    """A handler that counts, and builds its own picture of the world from what it is told."""

    def __init__(self) -> None:
        """Nothing heard yet."""
        self.added = 0
        self.updated = 0
        self.deleted = 0
        self.vanished = 0
        """Of the deleted: those that a fresh list no longer had."""
        self.restarts = 0
        """Containers that were started once more."""
        self.versions: dict[ObjectKey, str] = {}
        """The resourceVersion of each object that is there, as told."""

    def on_add(self, obj: KubeObject, /, *, initial: bool) -> None:
        """Count an object, part of the initial state or not."""
        del initial
        self.added += 1
        self.versions[obj.key] = obj.resource_version

    def on_update(self, old: KubeObject, new: KubeObject, /, *, resync: bool) -> None:
        """Count a change."""
        del resync
        self.updated += 1
        self.restarts += max(0, _restarts(new) - _restarts(old))
        self.versions[new.key] = new.resource_version

    def on_delete(self, obj: KubeObject, /, *, reason: DeleteReason) -> None:
        """Count a deletion."""
        self.deleted += 1
        self.vanished += reason == "vanished"
        del self.versions[obj.key]

    @property
    def total(self) -> int:
        """Events heard."""
        return self.added + self.updated + self.deleted

    def __repr__(self) -> str:
        return f"<Tally {self.added} added {self.updated} updated {self.deleted} deleted>"


class Sighting(NamedTuple):
    """An event as people read it."""

    at: float
    """Seconds since the beginning."""
    type: str
    key: str
    detail: str


class Ticker:
    """The latest events, newest first."""

    def __init__(self, kept: int = 100) -> None:
        """Nothing seen yet; ``kept`` events are remembered."""
        self._latest: deque[Sighting] = deque(maxlen=kept)

    def see(self, event: Event, at: float) -> None:
        """Remember an event."""
        sighting = Sighting(at, type_of(event), str(event.obj.key), _detail(event))
        self._latest.appendleft(sighting)

    def latest(self) -> Iterable[Sighting]:
        """What is remembered."""
        return tuple(self._latest)


class Rate:
    """A speed out of a total that grows, in buckets of half a second."""

    BUCKET = 0.5
    """Seconds: short enough to see an interruption, long enough for a steady number."""
    SMOOTHED = 4
    """Buckets whose mean is the speed: two seconds."""

    def __init__(self, now: float, total: int, kept: int = 400) -> None:
        """Begin to measure, at ``now`` seconds of any clock; ``kept`` buckets are remembered."""
        self._due = now + self.BUCKET
        self._total = total
        self._buckets: deque[int] = deque(maxlen=kept)

    def sample(self, now: float, total: int) -> None:
        """The total is this, now. To be called some times a second."""
        if now < self._due:
            return
        elapsed = 1 + int((now - self._due) / self.BUCKET)  # more than one if the caller was late
        self._buckets.append(total - self._total)
        self._buckets.extend([0] * (elapsed - 1))
        self._due += elapsed * self.BUCKET
        self._total = total

    @property
    def per_second(self) -> float:
        """Events a second, of late."""
        recent = list(self._buckets)[-self.SMOOTHED :]
        return sum(recent) / (len(recent) * self.BUCKET) if recent else 0.0

    @property
    def history(self) -> tuple[int, ...]:
        """Events in each bucket, the oldest first."""
        return tuple(self._buckets)


# -- reading pods ------------------------------------------------------------------------------


def _detail(event: Event) -> str:
    """What happened to a pod, in a few words."""
    match event:
        case Added(obj, initial):
            return "was there" if initial else _phase(obj)
        case Updated(old, new):
            return _change(old, new)
        case Deleted(obj, reason):
            return f"{_phase(obj)}, vanished" if reason == "vanished" else _phase(obj)


def _change(old: KubeObject, new: KubeObject) -> str:
    before, after, node = _phase(old), _phase(new), _node(new)
    if before != after:
        return f"{after} on {node}"
    if node != _node(old):
        return f"placed on {node}"
    if _restarts(new) > _restarts(old):
        return f"restarted, {_restarts(new)} times now"
    return "ready" if _ready(new) else "not ready"


def _phase(pod: KubeObject) -> str:
    return str(_status(pod).get("phase", ""))


def _node(pod: KubeObject) -> str:
    return str(pod["spec"].get("nodeName", ""))


def _restarts(pod: KubeObject) -> int:
    containers = _status(pod).get("containerStatuses", ())
    return sum(int(container["restartCount"]) for container in containers)


def _ready(pod: KubeObject) -> bool:
    conditions = _status(pod).get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _status(pod: KubeObject) -> Mapping[str, Any]:
    status: Mapping[str, Any] = pod.get("status", {})
    return status
