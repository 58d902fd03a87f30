"""What the demo's listeners keep of the events that they hear: totals, a rate, the latest few.

``EventCounter`` is a handler, ``RecentEvents`` is filled from a stream, and ``EventRate`` makes a speed out of a
total. None of them knows a terminal or a clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from aioinformer import Added, Deleted, DeleteReason, Event, KubeObject, ObjectKey, Updated

__all__ = ["EventCounter", "EventRate", "EventSummary", "RecentEvents", "event_type"]


def event_type(event: Event) -> str:
    """An event's type in the API's words: ADDED, MODIFIED, DELETED."""
    match event:
        case Added():
            return "ADDED"
        case Updated():
            return "MODIFIED"
        case Deleted():
            return "DELETED"


class EventCounter:
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
        self.restarts += max(0, _restart_count(new) - _restart_count(old))
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
        return f"<EventCounter {self.added} added {self.updated} updated {self.deleted} deleted>"


class EventSummary(NamedTuple):
    """An event as people read it."""

    at: float
    """Seconds since the beginning."""
    type: str
    key: str
    detail: str


class RecentEvents:
    """The latest events, newest first."""

    def __init__(self, limit: int = 100) -> None:
        """Nothing seen yet; ``limit`` events are remembered."""
        self._latest: deque[EventSummary] = deque(maxlen=limit)

    def add(self, event: Event, at: float) -> None:
        """Remember an event."""
        sighting = EventSummary(at, event_type(event), str(event.obj.key), _describe_event(event))
        self._latest.appendleft(sighting)

    def latest(self) -> Iterable[EventSummary]:
        """What is remembered."""
        return tuple(self._latest)


class EventRate:
    """A speed out of a total that grows, in buckets of half a second."""

    BUCKET_SECONDS = 0.5
    """Seconds: short enough to see an interruption, long enough for a steady number."""
    SMOOTHED_BUCKETS = 4
    """Buckets whose mean is the speed: two seconds."""

    def __init__(self, now: float, total: int, limit: int = 400) -> None:
        """Begin to measure, at ``now`` seconds of any clock; ``limit`` buckets are remembered."""
        self._due = now + self.BUCKET_SECONDS
        self._total = total
        self._buckets: deque[int] = deque(maxlen=limit)

    def sample(self, now: float, total: int) -> None:
        """The total is this, now. To be called some times a second."""
        if now < self._due:
            return
        elapsed = 1 + int(
            (now - self._due) / self.BUCKET_SECONDS
        )  # more than one if the caller was late
        self._buckets.append(total - self._total)
        self._buckets.extend([0] * (elapsed - 1))
        self._due += elapsed * self.BUCKET_SECONDS
        self._total = total

    @property
    def per_second(self) -> float:
        """Events a second, of late."""
        recent = list(self._buckets)[-self.SMOOTHED_BUCKETS :]
        return sum(recent) / (len(recent) * self.BUCKET_SECONDS) if recent else 0.0

    @property
    def history(self) -> tuple[int, ...]:
        """Events in each bucket, the oldest first."""
        return tuple(self._buckets)


# -- reading pods ------------------------------------------------------------------------------


def _describe_event(event: Event) -> str:
    """What happened to a pod, in a few words."""
    match event:
        case Added(obj, initial):
            return "was there" if initial else _phase(obj)
        case Updated(old, new):
            return _describe_change(old, new)
        case Deleted(obj, reason):
            return f"{_phase(obj)}, vanished" if reason == "vanished" else _phase(obj)


def _describe_change(old: KubeObject, new: KubeObject) -> str:
    before, after, node = _phase(old), _phase(new), _node_name(new)
    if before != after:
        return f"{after} on {node}"
    if node != _node_name(old):
        return f"placed on {node}"
    if _restart_count(new) > _restart_count(old):
        return f"restarted, {_restart_count(new)} times now"
    return "ready" if _is_ready(new) else "not ready"


def _phase(pod: KubeObject) -> str:
    return str(_status(pod).get("phase", ""))


def _node_name(pod: KubeObject) -> str:
    return str(pod["spec"].get("nodeName", ""))


def _restart_count(pod: KubeObject) -> int:
    containers = _status(pod).get("containerStatuses", ())
    return sum(int(container["restartCount"]) for container in containers)


def _is_ready(pod: KubeObject) -> bool:
    conditions = _status(pod).get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _status(pod: KubeObject) -> Mapping[str, Any]:
    status: Mapping[str, Any] = pod.get("status", {})
    return status
