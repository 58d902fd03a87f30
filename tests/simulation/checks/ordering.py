"""``OrderingCheck``: the events of one listener and their order (guarantees 2, 3, 4, 5 and 6).

The check follows a listener through a history with the objects that it must hold after each event.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NoReturn

from aioinformer._core.objects.kube_object import ObjectKey
from tests.simulation.checks.oracle import Oracle, Rewinds
from tests.simulation.checks.violation import Violation
from tests.simulation.filters import passes, shown
from tests.simulation.records import EventDelivered, Joined, ListenerSample, Sample, State, Version


class OrderingCheck:
    """The events of one listener."""

    def __init__(
        self,
        joined: Joined,
        delivered: Sequence[EventDelivered],
        oracle: Oracle,
        rewinds: Rewinds,
        *,
        scopes: Collection[str] | None = None,
    ) -> None:
        """Create the check of the events that a listener received since it ``joined``.

        ``scopes`` are the namespaces, of several, that the first state of its informer must have.
        """
        self._scoped = scopes is not None
        self._needed = scopes or ()
        self.name = joined.listener.name
        self.held: dict[ObjectKey, Version] = {}
        """The objects that the listener knows from its events."""
        self._passing = joined.listener.passing
        self._changes = joined.listener.changes
        self._joined = joined
        self.delivered = list(delivered)
        """The events, in order."""
        self._oracle = oracle
        self._rewinds = rewinds
        self._steps_back: dict[ObjectKey, int] = {}
        self._last: dict[ObjectKey, EventDelivered] = {}
        self._initial: dict[tuple[ObjectKey, str], int] = {}
        self._found = self.selected(joined.cached or {})

    def selected(self, state: State) -> State:
        """Return the part of a state that passes the listener's filter."""
        if not self._passing:
            return state
        return {key: each for key, each in state.items() if self._passes(key, each)}

    def _passes(self, key: ObjectKey, version: Version) -> bool:
        write = self._oracle.stored.get((key, version))
        return write is None or passes(self._passing, write)

    def judge(self) -> None:
        """Follow the listener through the history.

        Raises:
            Violation: an event may not be delivered, or not in this order.
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
            self._broken(promise, "an object that the listener holds already is added", event)
        self._check_existed(event)
        if event.note == "initial":
            self._initially(event)
        elif self._was_skipped(event):
            self._broken(
                5, "an object that was cached at the joining was not delivered as initial", event
            )
        self._check_version(event)
        self.held[event.key] = event.version

    def _updated(self, event: EventDelivered) -> None:
        held = self.held.get(event.key)
        if held is None or not self.stands_for(event.key, held, event.old):
            self._broken(
                2,
                f"the update doesn't start from the state that the listener holds ({held})",
                event,
            )
        if held.uid != event.version.uid:
            self._broken(2, "an update leads from one object to another", event)
        if event.note == "resync":
            if event.version != event.old:
                self._broken(2, "a resync delivers a new state", event)
            self.held[event.key] = event.version
            return
        if self._changes and not event.merged and self._shows_the_same(event):
            self._broken(2, "a change that doesn't pass the filter is delivered", event)
        if event.version == held and not self._rewinds.moved:
            self._broken(4, "an unchanged object is delivered", event)
        self._check_existed(event)
        self._check_version(event)
        self.held[event.key] = event.version

    def _deleted(self, event: EventDelivered) -> None:
        held = self.held.pop(event.key, None)
        if held is None or held.uid != event.version.uid:
            self._broken(2, f"an object that the listener doesn't hold is deleted ({held})", event)
        if event.note == "filtered":
            self._filtered(event, held)
        elif event.note == "scope_removed":
            self._initial.pop((event.key, held.uid), None)
            if not self._oracle.was_closed(event.key.namespace, before=event.order):
                self._broken(2, "the namespace of the object is still read", event)
        elif not self._oracle.left(event.key, held, before=event.order):
            self._broken(2, "an object that the server still has is deleted", event)
        if event.note == "deleted":
            sent = self._oracle.was_sent(event.key, event.version, before=event.order)
            if not sent:
                self._broken(4, "an object that vanished is delivered as deleted", event)
        # A deletion that was merged with the update before shows the state of that update.
        undelivered = event.version != held and not (event.merged or self._changes)
        if event.note == "vanished" and undelivered:
            self._broken(
                4, "an object that vanished is shown in a state that was not delivered", event
            )
        if event.version.number < held.number:
            self._step_back(event)

    def _filtered(self, event: EventDelivered, held: Version) -> None:
        """Check a deletion by the filter: as in client-go, with the last state that passed."""
        self._check_existed(event)
        rewound = self._rewinds.by(event.order) > 0
        for write in self._oracle.states[event.key, held.uid]:
            later = write.version > event.version.number or rewound
            if later and write.order < event.order and not passes(self._passing, write):
                return
        self._broken(2, "an object that passes the filter is deleted as if it didn't", event)

    def stands_for(self, key: ObjectKey, held: Version | None, other: Version | None) -> bool:
        """Return True if a listener that holds one version needn't receive the other.

        The versions are the same, or no change between them passes the listener's filter.
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
            self._broken(2, "the server never held this state in the selection", event)
        if not self._passes(event.key, event.version):
            self._broken(2, "an object that doesn't pass the filter is delivered", event)

    def _check_version(self, event: EventDelivered) -> None:
        last = self._last.get(event.key)
        if last is None or self._is_other_content(event, last.version):
            return
        # A namespace that is added again is a new one, and its selector may be another one.
        if last.note == "scope_removed" or (self._scoped and event.note == "initial"):
            return
        if event.version.number <= last.version.number:
            # Also after a deletion: an object that is created again has a later version.
            self._step_back(event)

    def _is_other_content(self, event: EventDelivered, before: Version) -> bool:
        """Return True if the server showed other content under the same resourceVersion."""
        shown = self._oracle.stored.get((event.key, event.version))
        same = event.version.number == before.number and event.version.value != before.value
        return same and shown is not None and shown.number > 0

    def _step_back(self, event: EventDelivered) -> None:
        """Check a step back, which is allowed once for each announced rewind of the server."""
        steps = self._steps_back[event.key] = self._steps_back.get(event.key, 0) + 1
        if steps > self._rewinds.by(event.order):
            self._broken(2, "the version goes back", event)

    # -- promise 5 ----------------------------------------------------------------------------

    def _initially(self, event: EventDelivered) -> None:
        which, namespace = (event.key, event.version.uid), event.key.namespace
        before, self._initial[which] = self._initial.get(which), event.order
        if before is not None and not self._oracle.was_closed(
            namespace, since=before, before=event.order
        ):
            self._broken(5, "an initial object is delivered twice", event)
        found = self._joined.cached
        # A namespace that is read later, or again, wasn't cached in this form at the joining.
        joined = self._joined.order
        again = self._oracle.was_opened(namespace, since=joined, before=event.order)
        unknown = event.version if self._scoped else None
        if not again and found is not None and found.get(event.key, unknown) != event.version:
            self._broken(
                5, f"the cache held another state at the joining ({found.get(event.key)})", event
            )

    def _was_skipped(self, event: EventDelivered) -> bool:
        """Return True if this is the first event of an object that was cached at the joining."""
        found = self._found.get(event.key)
        if found is None or found.uid != event.version.uid:
            return False
        if (event.key, found.uid) in self._initial:
            return False
        return not self._oracle.left(event.key, found, before=event.order)

    # -- promise 3 ----------------------------------------------------------------------------

    def _check_cache_leads(self, event: EventDelivered) -> None:
        """Check that the cache shows the delivered state or a later one."""
        cached = event.cached
        if self._rewinds.undone(self._oracle.made(event.key, event.version), event.order):
            return  # the cache is ahead: it shows the restored state
        if event.note == "scope_removed":
            return  # the cache may show the namespace again, if that was added again
        if event.what == "deleted":
            if (
                cached is not None
                and cached.number <= event.version.number
                and (cached.uid == event.version.uid)
            ):
                self._broken(
                    3, f"an object that is still cached ({cached}) is delivered as deleted", event
                )
            return
        if cached is None:
            if not self._oracle.left(event.key, event.version, before=event.order):
                self._broken(3, "the cache doesn't show the delivered object", event)
        elif cached.number < event.version.number:
            self._broken(3, f"the cache is behind ({cached})", event)

    # -- promise 6 ----------------------------------------------------------------------------

    def judge_latch(self, sample: Sample, sample_listener: ListenerSample) -> None:
        """Check the first sample in which the listener is synced.

        Raises:
            Violation: some of the initial objects had not been handled.
        """
        if sample.order > self._rewinds.lost:
            return
        if not sample.synced:
            self._broken_at(6, "a listener is synced before its informer", sample)
        initial_events = [
            event
            for event in self.delivered
            if event.note == "initial" and self._is_of_first_state(event, sample)
        ]
        if late := [event for event in initial_events if not 0 < event.returned < sample.order]:
            self._broken_at(
                6,
                "the listener is synced, but a handler has not returned from an initial object",
                sample,
                late[0],
            )
        done = {(event.key, event.version.uid) for event in initial_events}
        for key, found in self._found.items():
            if (key, found.uid) in done:
                continue
            if not self._oracle.left(key, found, before=sample.order):
                self._broken_at(
                    6, f"the listener is synced, but did not receive {key}", sample, sample_listener
                )

    def _is_of_first_state(self, event: EventDelivered, sample: Sample) -> bool:
        """Return True unless the event is of a namespace that was read later, or again."""
        if not self._scoped:
            return True
        namespace, until = event.key.namespace, max(event.order, sample.order)
        cached, joined = self._joined.cached, self._joined.order
        if cached is None:
            closed = self._oracle.was_closed(namespace, before=until)
            return namespace in self._needed and not closed
        again = self._oracle.was_opened(namespace, since=joined, before=until)
        return event.key in cached and not again

    # -- evidence -----------------------------------------------------------------------------

    def _broken(self, promise: int, what: str, event: EventDelivered) -> NoReturn:
        before = self._last.get(event.key)
        exits = self._oracle.exits.get((event.key, event.version.uid), [])
        evidence = [each for each in (self._joined, before, event, *exits[-1:]) if each is not None]
        raise Violation(promise, f"{self.name}: {what}", *evidence, time=event.time, key=event.key)

    def _broken_at(self, promise: int, what: str, sample: Sample, *more: object) -> NoReturn:
        evidence = [self._joined, sample, *more]
        raise Violation(promise, f"{self.name}: {what}", *evidence, time=sample.time)

    def __repr__(self) -> str:
        return (
            f"<OrderingCheck of {self.name} delivered={len(self.delivered)} held={len(self.held)}>"
        )
