"""Informers that record samples, problems, transitions, and the numbers of their mailboxes.

The informer is the library's own. The probes add what is not public: the length of the queue, and
the pending batches of each mailbox. A subclass with a planted bug in the place of a class here
shows that the checks notice the bug: ``make_state``, ``make_reflector`` and ``make_mailbox`` create
the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from aioinformer._core.cache.delta_fifo import DeltaFIFO
from aioinformer._core.codec.shape import Converter, Shape, Transform
from aioinformer._core.delivery.mailbox import Mailbox, Overflow
from aioinformer._core.delivery.replay import EventMap
from aioinformer._core.instrumentation import NoMetrics
from aioinformer._core.listwatch.backoff import Backoff
from aioinformer._core.listwatch.idle_timeout import LivenessPolicy
from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.state_machine import ListWatchState, ScheduledRequest
from aioinformer._core.objects.kube_object import Event, KubeObject, ObjectKey
from aioinformer._core.selectors.event_filter import EventFilter
from aioinformer._runtime.informer.informer import SharedInformer
from aioinformer._runtime.reflector.delta_queue import DeltaQueue
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher
from aioinformer._runtime.reflector.reflector import Reflector
from aioinformer._runtime.reporting.error_hook import Problem
from aioinformer._runtime.reporting.reporter import InformerReporter
from tests.simulation.plan import DROPPED, SHIFT, InformerSpec, Transforms
from tests.simulation.records import (
    History,
    ListenerSample,
    ProblemReported,
    Request,
    Sample,
    Transition,
)


def replace_attribute(part: object, name: str, value: object) -> None:
    """Replace an attribute of a part of the library.

    An attribute that the library no longer has is an error: a planted bug would have no effect.
    """
    getattr(part, name)
    setattr(part, name, value)


class ObservedState(ListWatchState):
    """A state machine that records each transition."""

    def __init__(
        self,
        spec: InformerSpec,
        history: History,
        *,
        backoff: Backoff | None = None,
        liveness: LivenessPolicy | None = None,
    ) -> None:
        """Create the state machine of an informer of ``spec``."""
        super().__init__(
            backoff=backoff,
            page_size=spec.page_size,
            watch_list=spec.watch_list,
            discovery=True,
            liveness=liveness,
        )
        self._name = spec.name
        self._history = history

    def advance(
        self, outcome: Outcome, *, now: float, jitter: float, retry_after: float | None = None
    ) -> ScheduledRequest:
        """Record and return the transition after a request."""
        phase, known, bookmark_interval = (
            self.phase,
            self.resource_version,
            self.profile.bookmark_interval,
        )
        step = super().advance(outcome, now=now, jitter=jitter, retry_after=retry_after)
        history = self._history
        asked = next(each for each in reversed(history.of(Request)) if each.informer == self._name)
        history.add(
            Transition, self._name, phase, outcome, step.delay, asked, known, bookmark_interval
        )
        return step


class ObservedReflector(Reflector):
    """A reflector with an observed state machine."""

    def __init__(
        self,
        source: ListerWatcher,
        queue: DeltaQueue,
        state: ObservedState,
        *,
        known: Callable[[KubeObject], KubeObject],
        reports: InformerReporter,
        keep: Converter | None = None,
    ) -> None:
        """Create a reflector whose requests ``state`` decides."""
        super().__init__(source, queue, known=known, reports=reports, keep=keep)
        self._state = state


class CountedFailures(NoMetrics):
    """Metrics that count failures."""

    def __init__(self, history: History) -> None:
        """Create metrics that count in ``history``."""
        self._history = history

    def failed(self, informer: str, phase: str, error: str) -> None:
        """Count one failure."""
        self._history.counted[informer, phase, error] += 1


INDEX = "node"
_SAMPLES_PER_INDEX = 4
"""One sample in so many has the index in it."""


class NodeRejected(ValueError):
    """The error of a raising index function and of a transform that rejects objects."""


class Observable(Protocol):
    """A listener that can be sampled."""

    def sample_listener(self) -> ListenerSample | None:
        """Return the numbers of the listener; ``None`` while it is not registered."""
        ...


class ObservedMailbox(Mailbox):
    """A mailbox that shows its batches, and reports arrivals and its overflow."""

    on_event: Callable[[], None] | None = None
    """Called when live events have arrived."""
    on_overflow: Callable[[], None] | None = None
    """Called when the mailbox has ended because of its overflow."""
    twice: bool = False
    """True if the mailbox received the changes of a list while those of another were pending."""

    def __init__(self, **options: Any) -> None:
        """Create a mailbox, with the options of ``Mailbox``."""
        super().__init__(**options)
        self._merged_events: dict[int, Event] = {}

    def put(self, events: Sequence[Event], at: float = 0.0) -> bool:
        """Queue live events."""
        came = super().put(events, at)
        if came and self.on_event is not None:
            self.on_event()
        return came

    def put_relist(
        self, batches: Sequence[Sequence[Event]], at: float = 0.0, *, initial: bool = False
    ) -> None:
        """Queue the changes of a list."""
        self.twice = self.twice or self.relist_pending
        super().put_relist(batches, at, initial=initial)

    def _next_coalesced(self) -> Event | None:
        event = super()._next_coalesced()
        if event is not None:
            self._merged_events[id(event)] = (
                event  # a reference, so that no other event has this id
            )
        return event

    def was_merged(self, event: Event) -> bool:
        """Return True, once, if others may have been merged into this event."""
        return self._merged_events.pop(id(event), None) is not None

    def clear(self) -> Iterator[None]:
        """Discard all pending events."""
        if self.overflowed and self.on_overflow is not None:
            self.on_overflow()
            self.on_overflow = None
        return super().clear()

    @property
    def batches(self) -> int:
        """The number of pending batches beside live events: replays, diffs, resyncs, marks."""
        return self._live.uncounted + (self._initial is not None) + (self._resync is not None)

    @property
    def dropping(self) -> bool:
        """True if some pending events will be discarded, because their objects are deleted."""
        return bool(self._unseen)


class ObservedInformer(SharedInformer):
    """An informer of a history."""

    def __init__(self, source: ListerWatcher, spec: InformerSpec, history: History) -> None:
        """Create an informer of ``spec`` that records in ``history``."""
        super().__init__(
            source,
            name=spec.name,
            namespace=spec.namespace,
            shape=Shape.of(transform=_TRANSFORMS[spec.transform]),
            indexers={INDEX: _rejecting if spec.raising_index else _node},
            resync=spec.resync,
            metrics=CountedFailures(history),
            on_error=self._record_problem,
        )
        self._reflector = self.make_reflector(source, self.make_state(spec, history))
        replace_attribute(self._listeners, "make_mailbox", self._make_mailbox)
        self._queue.fifo = DeltaFIFO(self._indexer, high_mark=spec.high_mark)
        self.spec = spec
        self.listeners: list[Observable] = []
        self.newest_mailbox: ObservedMailbox | None = None
        """The mailbox of the listener that joined last."""
        self._history = history

    def make_state(self, spec: InformerSpec, history: History) -> ObservedState:
        """Create the state machine, which decides what to request next."""
        return ObservedState(spec, history)

    def make_reflector(self, source: ListerWatcher, state: ObservedState) -> Reflector:
        """Create the reflector, which feeds the queue."""
        return ObservedReflector(
            source,
            self._queue,
            state,
            known=self._indexer.deduplicate,
            reports=self._reporter,
            keep=self._converter,
        )

    def _record_problem(self, problem: Problem) -> None:
        """Record a problem. This is the error hook."""
        said = f"{type(problem.error).__name__}: {problem.error}"
        self._history.add(ProblemReported, problem.informer, problem.phase, problem.cause, said)

    def _make_mailbox(
        self, limit: int, overflow: Overflow, event_filter: EventFilter | None = None
    ) -> Mailbox:
        each = None if event_filter is None else event_filter.apply
        self.newest_mailbox = self.make_mailbox(limit, overflow, each)
        return self.newest_mailbox

    def make_mailbox(
        self, limit: int, overflow: Overflow, each: EventMap | None
    ) -> ObservedMailbox:
        """Create the mailbox of a listener; ``each`` is the filter."""
        holds = self._indexer.holds
        return ObservedMailbox(limit=limit, overflow=overflow, holds=holds, event_map=each)

    def sample(self) -> None:
        """Record the state that the informer shows now, unless everything is being ended."""
        if self._history.over:
            return
        health = self.health
        lister, version_of = self.lister.unsynced, self._history.version_of
        with_index = len(self._history.of(Sample)) % _SAMPLES_PER_INDEX == 0
        self._history.add(
            Sample,
            self.name,
            self.synced,
            health.resource_version,
            {obj.key: version_of(obj) for obj in lister},
            self._keys_by_index_value() if with_index else None,
            frozenset(health.rejected),
            health.state,
            f"{type(health.error).__name__}: {health.error}" if health.error else "",
            health.retry_in,
            health.blocked_by,
            health.rewinds,
            len(self._queue.fifo),
            tuple(filter(None, (each.sample_listener() for each in self.listeners))),
        )

    def _keys_by_index_value(self) -> dict[str, frozenset[ObjectKey]]:
        lister = self.lister.unsynced
        values = sorted(lister.index_values(INDEX))
        return {
            value: frozenset(obj.key for obj in lister.by_index(INDEX, value)) for value in values
        }


def _node(obj: KubeObject) -> str:
    name: str = obj["spec"]["nodeName"]
    return name


def _rejecting(obj: KubeObject) -> str:
    name = _node(obj)
    if name == "node-x":
        raise NodeRejected(name)
    return name


def _cutting(obj: KubeObject) -> Mapping[str, Any] | None:
    if _node(obj) == DROPPED:
        return None
    spec = obj["spec"]
    return {**obj, "spec": {**spec, "value": spec["value"] + SHIFT}}


def _strict(obj: KubeObject) -> KubeObject:
    _rejecting(obj)
    return obj


_TRANSFORMS: dict[Transforms, Transform | None] = {"": None, "cuts": _cutting, "refuses": _strict}
