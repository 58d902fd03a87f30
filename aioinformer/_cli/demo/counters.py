"""Totals, a rate and the latest few of the events that the demo's listeners receive."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from aioinformer import Added, Deleted, DeleteReason, Event, KubeObject, ObjectKey, Updated
from aioinformer._cli.terminal.style import event_type


class EventCounter:
    """A handler that counts events and records the version of each object from the events."""

    def __init__(self) -> None:
        self.added = 0
        self.updated = 0
        self.deleted = 0
        self.restarts = 0
        """Restarts of containers."""
        self.versions: dict[ObjectKey, str] = {}
        """The resourceVersion of each existing object, from the events delivered so far."""

    def on_add(self, obj: KubeObject, /, *, initial: bool) -> None:
        del initial
        self.added += 1
        self.versions[obj.key] = obj.resource_version

    def on_update(self, old: KubeObject, new: KubeObject, /, *, resync: bool) -> None:
        del resync
        self.updated += 1
        self.restarts += max(0, _restart_count(new) - _restart_count(old))
        self.versions[new.key] = new.resource_version

    def on_delete(self, obj: KubeObject, /, *, reason: DeleteReason) -> None:
        del reason
        self.deleted += 1
        del self.versions[obj.key]

    @property
    def total(self) -> int:
        return self.added + self.updated + self.deleted

    def __repr__(self) -> str:
        return f"<EventCounter {self.added} added {self.updated} updated {self.deleted} deleted>"


class EventSummary(NamedTuple):
    at: float
    """Seconds since the start of the demo."""
    type: str
    key: str
    detail: str


class RecentEvents:
    """The latest ``limit`` events, newest first."""

    def __init__(self, limit: int = 100) -> None:
        self._latest: deque[EventSummary] = deque(maxlen=limit)

    def add(self, event: Event, at: float) -> None:
        """Add an event, received ``at`` seconds after the start of the demo."""
        summary = EventSummary(at, event_type(event), str(event.obj.key), _describe_event(event))
        self._latest.appendleft(summary)

    def latest(self) -> Iterable[EventSummary]:
        return tuple(self._latest)


class EventRate:
    """The rate of a growing total, in buckets of half a second."""

    BUCKET_SECONDS = 0.5
    """Short enough to show an interruption, long enough for a steady rate."""
    SMOOTHED_BUCKETS = 4
    """Buckets whose mean is the rate: two seconds."""

    def __init__(self, now: float, total: int, limit: int = 400) -> None:
        """Start at ``now`` seconds of any clock with ``total``, and keep ``limit`` buckets."""
        self._due = now + self.BUCKET_SECONDS
        self._total = total
        self._buckets: deque[int] = deque(maxlen=limit)

    def sample(self, now: float, total: int) -> None:
        """Record ``total`` at the time ``now``. Call this several times a second."""
        if now < self._due:
            return
        # The elapsed time is more than one bucket if the caller was late.
        elapsed = 1 + int((now - self._due) / self.BUCKET_SECONDS)
        self._buckets.append(total - self._total)
        self._buckets.extend([0] * (elapsed - 1))
        self._due += elapsed * self.BUCKET_SECONDS
        self._total = total

    @property
    def per_second(self) -> float:
        recent = list(self._buckets)[-self.SMOOTHED_BUCKETS :]
        return sum(recent) / (len(recent) * self.BUCKET_SECONDS) if recent else 0.0

    @property
    def history(self) -> tuple[int, ...]:
        return tuple(self._buckets)


# -- reading pods ------------------------------------------------------------------------------


def _describe_event(event: Event) -> str:
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
