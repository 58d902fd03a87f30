"""What one listener may be told, and in which order: promises 2, 3, 4, 5 and 6.

Follows a listener through a history with what it must hold after each event. Whether what it holds
at the end is right is ``promises``'s business, how it was called ``calls``'.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from aioinformer._core.objects.kube_object import ObjectKey
from tests.simulation.checks.oracle import Oracle, Rewinds
from tests.simulation.checks.violation import Violation
from tests.simulation.listeners import passes, shown
from tests.simulation.records import (
    EventDelivered,
    Joined,
    ListenerSample,
    Sample,
    State,
    Version,
)


class OrderingCheck:
    """One listener's part of a history."""

    def __init__(
        self, joined: Joined, delivered: Sequence[EventDelivered], oracle: Oracle, rewinds: Rewinds
    ) -> None:
        """Take up what a listener was told since it ``joined``."""
        self.name = joined.listener.name
        self.held: dict[ObjectKey, Version] = {}
        """What it holds, after what it was told."""
        self._passing = joined.listener.passing
        self._changes = joined.listener.changes
        self._joined = joined
        self.delivered = list(delivered)
        """What it was told."""
        self._oracle = oracle
        self._rewinds = rewinds
        self._steps_back: dict[ObjectKey, int] = {}
        self._last: dict[ObjectKey, EventDelivered] = {}
        self._initial: set[tuple[ObjectKey, str]] = set()
        self._found = self.selected(joined.cached or {})

    def selected(self, state: State) -> State:
        """What of a state it is to hear of."""
        if not self._passing:
            return state
        return {key: each for key, each in state.items() if self._passes(key, each)}

    def _passes(self, key: ObjectKey, version: Version) -> bool:
        write = self._oracle.stored.get((key, version))
        return write is None or passes(self._passing, write)

    def judge(self) -> None:
        """Follow it through the history.

        Raises:
            Violation: it was told what it may not be told.
        """
        for event in self.delivered:
            if event.order > self._rewinds.lost:
                return
            match event.what:
                case "added":
                    self._added(event)
                case "updated":
                    self._updated(event)
                case "deleted":
                    self._deleted(event)
            self._check_cache_leads(event)
            self._last[event.key] = event

    # -- one event ----------------------------------------------------------------------------

    def _added(self, event: EventDelivered) -> None:
        if event.key in self.held:
            promise = 5 if event.note == "initial" else 2
            self._broken(promise, "what it holds already is added", event)
        self._check_existed(event)
        if event.note == "initial":
            self._initially(event)
        elif self._was_skipped(event):
            self._broken(5, "what was cached when it joined was not told as initial", event)
        self._check_version(event)
        self.held[event.key] = event.version

    def _updated(self, event: EventDelivered) -> None:
        held = self.held.get(event.key)
        if held is None or not self.stands_for(event.key, held, event.old):
            self._broken(2, f"the update doesn't start from what it holds ({held})", event)
        if held.uid != event.version.uid:
            self._broken(2, "an update leads from one object to another", event)
        if event.note == "resync":
            if event.version != event.old:
                self._broken(2, "a resync tells something new", event)
            self.held[event.key] = event.version
            return
        if self._changes and not event.merged and self._shows_the_same(event):
            self._broken(2, "a change that its filter doesn't pass is told", event)
        if event.version == held and not self._rewinds.moved:
            self._broken(4, "it is told what has not changed", event)
        self._check_existed(event)
        self._check_version(event)
        self.held[event.key] = event.version

    def _deleted(self, event: EventDelivered) -> None:
        held = self.held.pop(event.key, None)
        if held is None or held.uid != event.version.uid:
            self._broken(2, f"what it doesn't hold is deleted ({held})", event)
        if event.note == "filtered":
            self._filtered(event, held)
        elif not self._oracle.left(event.key, held, before=event.order):
            self._broken(2, "what the server still has is deleted", event)
        # Merged with the update before it, a deletion shows the state that it would have told.
        untold = event.version != held and not (event.merged or self._changes)
        if event.note == "vanished" and untold:
            self._broken(4, "what vanished is shown in a state that was not told", event)
        if event.version.number < held.number:
            self._step_back(event)

    def _filtered(self, event: EventDelivered, held: Version) -> None:
        """As in client-go, what ceases to pass is deleted, as it was when it passed."""
        self._check_existed(event)
        rewound = self._rewinds.by(event.order) > 0
        for write in self._oracle.states[event.key, held.uid]:
            later = write.version > event.version.number or rewound
            if later and write.order < event.order and not passes(self._passing, write):
                return
        self._broken(2, "what passes its filter is deleted as if it didn't", event)

    def stands_for(self, key: ObjectKey, held: Version | None, other: Version | None) -> bool:
        """Whether who holds the one may be taken to hold the other: it is the same, or there was
        no change in between that it is to hear of.
        """
        if held == other or not self._changes or held is None or other is None:
            return held == other
        writes = [self._oracle.stored.get((key, each)) for each in (held, other)]
        known = {shown(self._changes, each) for each in writes if each is not None}
        return held.uid == other.uid and len(known) < 2

    def _shows_the_same(self, event: EventDelivered) -> bool:
        return self.stands_for(event.key, event.old, event.version)

    def _check_existed(self, event: EventDelivered) -> None:
        if (event.key, event.version) not in self._oracle.stored:
            self._broken(2, "the server never held this in its selection", event)
        if not self._passes(event.key, event.version):
            self._broken(2, "what doesn't pass its filter is told", event)

    def _check_version(self, event: EventDelivered) -> None:
        last = self._last.get(event.key)
        if last is not None and event.version.number <= last.version.number:
            # After a deletion too: what comes back comes in a later state.
            self._step_back(event)

    def _step_back(self, event: EventDelivered) -> None:
        """Allowed once for each time that the server was announced to have gone back."""
        steps = self._steps_back[event.key] = self._steps_back.get(event.key, 0) + 1
        if steps > self._rewinds.by(event.order):
            self._broken(2, "it goes back in time", event)

    # -- promise 5 ----------------------------------------------------------------------------

    def _initially(self, event: EventDelivered) -> None:
        which = (event.key, event.version.uid)
        if which in self._initial:
            self._broken(5, "it is told twice of what it found", event)
        self._initial.add(which)
        found = self._joined.cached
        if found is not None and found.get(event.key) != event.version:
            self._broken(5, f"what it found was another state ({found.get(event.key)})", event)

    def _was_skipped(self, event: EventDelivered) -> bool:
        """Whether this is the first word of an object that was cached when it joined."""
        found = self._found.get(event.key)
        if found is None or found.uid != event.version.uid:
            return False
        if (event.key, found.uid) in self._initial:
            return False
        return not self._oracle.left(event.key, found, before=event.order)

    # -- promise 3 ----------------------------------------------------------------------------

    def _check_cache_leads(self, event: EventDelivered) -> None:
        """The cache shows what is told, or something later."""
        cached = event.cached
        if self._rewinds.undone(self._oracle.made(event.key, event.version), event.order):
            return  # the cache is ahead: it shows the state that the server has gone back to
        if event.what == "deleted":
            if (
                cached is not None
                and cached.number <= event.version.number
                and (cached.uid == event.version.uid)
            ):
                self._broken(3, f"what is still cached ({cached}) is told to be gone", event)
            return
        if cached is None:
            if not self._oracle.left(event.key, event.version, before=event.order):
                self._broken(3, "the cache doesn't show what is told", event)
        elif cached.number < event.version.number:
            self._broken(3, f"the cache is behind ({cached})", event)

    # -- promise 6 ----------------------------------------------------------------------------

    def judge_latch(self, sample: Sample, sample_listener: ListenerSample) -> None:
        """The moment when it was first seen to be synced.

        Raises:
            Violation: not everything that it found had been dealt with.
        """
        if sample.order > self._rewinds.lost:
            return
        if not sample.synced:
            self._broken_at(6, "a listener is synced before its informer", sample)
        found_and_told = [event for event in self.delivered if event.note == "initial"]
        if late := [event for event in found_and_told if not 0 < event.returned < sample.order]:
            self._broken_at(6, "it is synced, but not through with what it found", sample, late[0])
        done = {(event.key, event.version.uid) for event in found_and_told}
        for key, found in self._found.items():
            if (key, found.uid) in done:
                continue
            if not self._oracle.left(key, found, before=sample.order):
                self._broken_at(
                    6, f"it is synced, but has not dealt with {key}", sample, sample_listener
                )

    # -- evidence -----------------------------------------------------------------------------

    def _broken(self, promise: int, what: str, event: EventDelivered) -> NoReturn:
        before = self._last.get(event.key)
        exits = self._oracle.exits.get((event.key, event.version.uid), [])
        evidence = [each for each in (self._joined, before, event, *exits[-1:]) if each is not None]
        raise Violation(
            promise, f"{self.name}: {what}", time=event.time, key=event.key, evidence=evidence
        )

    def _broken_at(self, promise: int, what: str, sample: Sample, *more: object) -> NoReturn:
        evidence = [self._joined, sample, *more]
        raise Violation(promise, f"{self.name}: {what}", time=sample.time, evidence=evidence)

    def __repr__(self) -> str:
        return f"<Hearing of {self.name} told={len(self.delivered)} held={len(self.held)}>"
