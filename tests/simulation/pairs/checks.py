"""The checks: what a listener may receive, and what a reconciler must have seen.

``View`` follows one listener (guarantees 1 to 3), across restarts if it is durable.
``Reconciles`` follows the runs of all replicas: never two of one object at once; the last run of
each object saw its last state; an object with the finalizer vanishes after its cleanup.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, NoReturn, TypeAlias

from aioinformer import Deleted, Event, KubeObject, ObjectKey, Problem, Updated
from aioinformer.errors import ModelMismatch
from tests.simulation.checks.violation import Violation
from tests.simulation.pairs.features import Thing, labels_of, passes


class Version(NamedTuple):
    """One state of one object."""

    uid: str
    number: int
    value: int


State: TypeAlias = dict[ObjectKey, Version]


def version_of(obj: KubeObject | Thing) -> Version:
    """Return the version of an object in any form."""
    if isinstance(obj, Thing):
        uid, number = obj.metadata.uid, obj.metadata.resource_version
    else:
        uid, number = obj.uid, obj.resource_version
    return Version(uid, int(number), int(labels_of(obj)["value"]))


def key_of(obj: KubeObject | Thing) -> ObjectKey:
    """Return the key of an object in any form."""
    if isinstance(obj, Thing):
        return ObjectKey(obj.metadata.namespace, obj.metadata.name)
    return obj.key


class View:
    """One listener: the objects that it holds by its events."""

    def __init__(
        self,
        name: str,
        *,
        filtered: bool,
        gaps: bool,
        trace: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Make a listener that holds nothing.

        Args:
            name: for violations.
            filtered: True if the listener has the filter ``passes``.
            gaps: True if states that can't be converted are missing among the events.
            trace: receives a line for each event.
        """
        self.name = name
        self.filtered = filtered
        self.held: State = {}
        self.cached: Callable[[ObjectKey], Version | None] = lambda _: None
        """Returns what the cache shows under a key now; ``None`` if it can't be read."""
        self._gaps = gaps
        self._trace = trace
        self._newest: dict[ObjectKey, int] = {}
        self._violation: Violation | None = None
        """The first one, since the library keeps what a handler raises to itself."""

    def __call__(self, event: Event[Any]) -> None:
        """Receive an event."""
        key = event.key
        self._trace(f"{self.name}: {event!r:.160}")
        held = self.held.get(key)
        if isinstance(event, Deleted):
            self._delete(key, held, event)
            return
        new = version_of(event.obj)
        if self.filtered and not passes(event.obj):
            self._broken(2, f"{new} doesn't pass the filter", key)
        if isinstance(event, Updated):
            self._update(key, held, version_of(event.old), new, resync=event.resync)
        else:
            if held is not None and not (self._gaps and held.uid == new.uid):
                self._broken(2, f"{new} is added, and {held} is held", key)
        if new.number < self._newest.get(key, 0):
            self._broken(2, f"{new} follows version {self._newest[key]}", key)
        self._newest[key] = new.number
        self.held[key] = new
        cached = self.cached(key)
        if cached is not None and cached.number < new.number:
            self._broken(3, f"{new} is delivered, and {cached} is cached", key)

    def _update(
        self, key: ObjectKey, held: Version | None, old: Version, new: Version, *, resync: bool
    ) -> None:
        if held is None or (held != old and not self._gaps):
            self._broken(2, f"an update leads from {old} to {new}, and {held} is held", key)
        if old.uid != new.uid:
            self._broken(2, f"an update leads from {old} to {new}", key)
        if new.number <= old.number and not resync:
            self._broken(2, f"an update leads from {old} back to {new}", key)

    def _delete(self, key: ObjectKey, held: Version | None, event: Deleted[Any]) -> None:
        if held is None and self._gaps:
            return  # the listener was not told of a state that can't be converted
        if held is None:
            self._broken(2, "an object is deleted that is not held", key)
        with suppress(ModelMismatch):  # no state can be converted, so the event has its key alone
            if version_of(event.obj).uid != held.uid:
                self._broken(2, f"{event.obj} is deleted, and {held} is held", key)
        del self.held[key]

    def judge(self, cached: State) -> None:
        """Compare what is held at the end with what is cached, and passes the filter.

        Raises:
            Violation: they differ, or an earlier event broke a promise.
        """
        if self._violation is not None:
            raise self._violation
        for key in sorted(self.held.keys() | cached.keys()):
            held, shown = self.held.get(key), cached.get(key)
            if held != shown:
                self._broken(1, f"{held} is held at the end, and {shown} is cached", key)

    def _broken(self, promise: int, what: str, key: ObjectKey) -> NoReturn:
        violation = Violation(promise, f"{self.name}: {what}", time=_now(), key=key)
        self._violation = self._violation or violation
        raise violation

    def __repr__(self) -> str:
        return f"<View {self.name} held={len(self.held)}>"


class Reconciles:
    """The runs of the reconcilers and cleanups of all replicas."""

    def __init__(self) -> None:
        self.last: dict[ObjectKey, tuple[str, Version | None]] = {}
        """The replica of the last run of each key that succeeded, and what it saw."""
        self.problems: list[Problem] = []
        """What the error hooks of the controllers were called with."""
        self.cleaned: set[str] = set()
        """The uids of the objects whose cleanup has succeeded."""
        self.owed: dict[str, ObjectKey] = {}
        """The objects that were deleted while they had the finalizer, by uid."""
        self.runs = 0
        self._running: set[tuple[ObjectKey, str]] = set()
        self._overlap: Violation | None = None

    @contextmanager
    def run(
        self, replica: str, key: ObjectKey, obj: KubeObject | Thing | None, *, cleanup: bool
    ) -> Generator[None]:
        """Record a run, which has succeeded unless the block raises."""
        seen = None if obj is None else version_of(obj)
        # The deletion of an object may be reconciled by another replica than its successor.
        which = key, replica if seen is None else seen.uid
        if which in self._running:
            self._overlap = Violation(2, f"{replica} runs twice at once", time=_now(), key=key)
        self._running.add(which)
        self.runs += 1
        try:
            yield
        finally:
            self._running.discard(which)
        before, _ = self.last.get(key, (replica, None))
        if seen is not None or before == replica:  # else the other one runs the successor
            self.last[key] = replica, seen
        if cleanup and seen is not None:
            self.cleaned.add(seen.uid)
        elif cleanup:  # the object has left the cache, with its namespace
            self.cleaned |= {uid for uid, owed in self.owed.items() if owed == key}

    def judge(self, present: State, every: State) -> None:
        """Check the end.

        Args:
            present: the objects that the controllers must have reconciled.
            every: all objects of the server.

        Raises:
            Violation: a run or a cleanup is missing, or two runs were at once.
        """
        if self._overlap is not None:
            raise self._overlap
        for key, version in sorted(present.items()):
            _, last = self.last.get(key, ("", None))
            if last is None or (last.uid, last.value) != (version.uid, version.value):
                what = f"the last run saw {last}, and the server has {version}"
                raise Violation(1, what, time=_now(), key=key)
        uids = {each.uid for each in every.values()}
        for uid, key in self.owed.items():
            if uid in uids:
                raise Violation(9, f"{uid} is Terminating for ever", time=_now(), key=key)
            if uid not in self.cleaned:
                raise Violation(1, f"{uid} vanished without cleanup", time=_now(), key=key)

    def __repr__(self) -> str:
        return f"<Reconciles runs={self.runs} running={len(self._running)}>"


def _now() -> float:
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return 0.0  # in a thread
