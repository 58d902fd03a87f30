"""What one listener may be told, and in which order: promises 2, 3, 4, 5 and 6.

Follows a listener through a history with what it must hold after each event. Whether what it holds
at the end is right is ``promises``'s business, how it was called ``calls``'.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from aioinformer._core.objects.kube_object import ObjectKey
from tests.simulation.checks.oracle import Rewinds, Oracle
from tests.simulation.checks.violation import Violation
from tests.simulation.listeners import passes, shown
from tests.simulation.records import (
    Joined,
    ListenerSample,
    Sample,
    State,
    EventDelivered,
    Version,
)

__all__ = ["Hearing"]


class OrderingCheck:
    """One listener's part of a history."""

    def __init__(
        self, joined: Joined, told: Sequence[EventDelivered], oracle: Oracle, rewinds: Rewinds
    ) -> None:
        """Take up what a listener was told since it ``joined``."""
        self.name = joined.listener.name
        self.held: dict[ObjectKey, Version] = {}
        """What it holds, after what it was told."""
        self._passing = joined.listener.passing
        self._changes = joined.listener.changes
        self._joined = joined
        self.told = list(told)
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
        for told in self.told:
            if told.order > self._rewinds.lost:
                return
            match told.what:
                case "added":
                    self._added(told)
                case "updated":
                    self._updated(told)
                case "deleted":
                    self._deleted(told)
            self._leads(told)
            self._last[told.key] = told

    # -- one event ----------------------------------------------------------------------------

    def _added(self, told: EventDelivered) -> None:
        if told.key in self.held:
            promise = 5 if told.note == "initial" else 2
            self._broken(promise, "what it holds already is added", told)
        self._existed(told)
        if told.note == "initial":
            self._initially(told)
        elif self._was_skipped(told):
            self._broken(5, "what was cached when it joined was not told as initial", told)
        self._forward(told)
        self.held[told.key] = told.version

    def _updated(self, told: EventDelivered) -> None:
        held = self.held.get(told.key)
        if held is None or not self.stands_for(told.key, held, told.old):
            self._broken(2, f"the update doesn't start from what it holds ({held})", told)
        if held.uid != told.version.uid:
            self._broken(2, "an update leads from one object to another", told)
        if told.note == "resync":
            if told.version != told.old:
                self._broken(2, "a resync tells something new", told)
            self.held[told.key] = told.version
            return
        if self._changes and not told.merged and self._shows_the_same(told):
            self._broken(2, "a change that its filter doesn't pass is told", told)
        if told.version == held and not self._rewinds.moved:
            self._broken(4, "it is told what has not changed", told)
        self._existed(told)
        self._forward(told)
        self.held[told.key] = told.version

    def _deleted(self, told: EventDelivered) -> None:
        held = self.held.pop(told.key, None)
        if held is None or held.uid != told.version.uid:
            self._broken(2, f"what it doesn't hold is deleted ({held})", told)
        if told.note == "filtered":
            self._filtered(told, held)
        elif not self._oracle.left(told.key, held, before=told.order):
            self._broken(2, "what the server still has is deleted", told)
        # Merged with the update before it, a deletion shows the state that it would have told.
        untold = told.version != held and not (told.merged or self._changes)
        if told.note == "vanished" and untold:
            self._broken(4, "what vanished is shown in a state that was not told", told)
        if told.version.number < held.number:
            self._step_back(told)

    def _filtered(self, told: EventDelivered, held: Version) -> None:
        """As in client-go, what ceases to pass is deleted, as it was when it passed."""
        self._existed(told)
        rewound = self._rewinds.by(told.order) > 0
        for write in self._oracle.states[told.key, held.uid]:
            later = write.version > told.version.number or rewound
            if later and write.order < told.order and not passes(self._passing, write):
                return
        self._broken(2, "what passes its filter is deleted as if it didn't", told)

    def stands_for(self, key: ObjectKey, held: Version | None, other: Version | None) -> bool:
        """Whether who holds the one may be taken to hold the other: it is the same, or there was
        no change in between that it is to hear of.
        """
        if held == other or not self._changes or held is None or other is None:
            return held == other
        writes = [self._oracle.stored.get((key, each)) for each in (held, other)]
        known = {shown(self._changes, each) for each in writes if each is not None}
        return held.uid == other.uid and len(known) < 2

    def _shows_the_same(self, told: EventDelivered) -> bool:
        return self.stands_for(told.key, told.old, told.version)

    def _existed(self, told: EventDelivered) -> None:
        if (told.key, told.version) not in self._oracle.stored:
            self._broken(2, "the server never held this in its selection", told)
        if not self._passes(told.key, told.version):
            self._broken(2, "what doesn't pass its filter is told", told)

    def _forward(self, told: EventDelivered) -> None:
        last = self._last.get(told.key)
        if last is not None and told.version.number <= last.version.number:
            # After a deletion too: what comes back comes in a later state.
            self._step_back(told)

    def _step_back(self, told: EventDelivered) -> None:
        """Allowed once for each time that the server was announced to have gone back."""
        steps = self._steps_back[told.key] = self._steps_back.get(told.key, 0) + 1
        if steps > self._rewinds.by(told.order):
            self._broken(2, "it goes back in time", told)

    # -- promise 5 ----------------------------------------------------------------------------

    def _initially(self, told: EventDelivered) -> None:
        which = (told.key, told.version.uid)
        if which in self._initial:
            self._broken(5, "it is told twice of what it found", told)
        self._initial.add(which)
        found = self._joined.cached
        if found is not None and found.get(told.key) != told.version:
            self._broken(5, f"what it found was another state ({found.get(told.key)})", told)

    def _was_skipped(self, told: EventDelivered) -> bool:
        """Whether this is the first word of an object that was cached when it joined."""
        found = self._found.get(told.key)
        if found is None or found.uid != told.version.uid:
            return False
        if (told.key, found.uid) in self._initial:
            return False
        return not self._oracle.left(told.key, found, before=told.order)

    # -- promise 3 ----------------------------------------------------------------------------

    def _leads(self, told: EventDelivered) -> None:
        """The cache shows what is told, or something later."""
        cached = told.cached
        if self._rewinds.undone(self._oracle.made(told.key, told.version), told.order):
            return  # the cache is ahead: it shows the state that the server has gone back to
        if told.what == "deleted":
            if (
                cached is not None
                and cached.number <= told.version.number
                and (cached.uid == told.version.uid)
            ):
                self._broken(3, f"what is still cached ({cached}) is told to be gone", told)
            return
        if cached is None:
            if not self._oracle.left(told.key, told.version, before=told.order):
                self._broken(3, "the cache doesn't show what is told", told)
        elif cached.number < told.version.number:
            self._broken(3, f"the cache is behind ({cached})", told)

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
        found_and_told = [told for told in self.told if told.note == "initial"]
        if late := [told for told in found_and_told if not 0 < told.returned < sample.order]:
            self._broken_at(6, "it is synced, but not through with what it found", sample, late[0])
        done = {(told.key, told.version.uid) for told in found_and_told}
        for key, found in self._found.items():
            if (key, found.uid) in done:
                continue
            if not self._oracle.left(key, found, before=sample.order):
                self._broken_at(
                    6, f"it is synced, but has not dealt with {key}", sample, sample_listener
                )

    # -- evidence -----------------------------------------------------------------------------

    def _broken(self, promise: int, what: str, told: EventDelivered) -> NoReturn:
        before = self._last.get(told.key)
        exits = self._oracle.exits.get((told.key, told.version.uid), [])
        evidence = [each for each in (self._joined, before, told, *exits[-1:]) if each is not None]
        raise Violation(
            promise, f"{self.name}: {what}", time=told.time, key=told.key, evidence=evidence
        )

    def _broken_at(self, promise: int, what: str, sample: Sample, *more: object) -> NoReturn:
        evidence = [self._joined, sample, *more]
        raise Violation(promise, f"{self.name}: {what}", time=sample.time, evidence=evidence)

    def __repr__(self) -> str:
        return f"<Hearing of {self.name} told={len(self.told)} held={len(self.held)}>"
