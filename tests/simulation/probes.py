"""An informer that can be looked into; its listeners are ``listener``'s.

The informer is the library's own; what is added are looks at what is not public: how much waits in
the queue and in each mailbox. A subclass with a planted bug in the place of ``ObservedInformer``
shows what the checker is worth.

A reflector that writes down which rows of its table it takes.

The decisions are the library's own. ``make_state`` and ``make_reflector`` of an observed informer
are where a subclass with a planted bug goes in.
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
from tests.simulation.records import History, ListenerSample, ProblemReported, Sample, Transition


class ObservedState(ListWatchState):
    """A cursor that writes down which rows of its table are looked up."""

    def __init__(
        self, spec: InformerSpec, history: History, *, backoff: Backoff | None = None
    ) -> None:
        """Make the cursor of an informer of ``spec``."""
        super().__init__(
            backoff=backoff, page_size=spec.page_size, watch_list=spec.watch_list, discovery=True
        )
        self._name = spec.name
        self._history = history

    def advance(
        self, outcome: Outcome, *, now: float, jitter: float, retry_after: float | None = None
    ) -> ScheduledRequest:
        """The request under way ended so; what comes next."""
        phase, known, bookmark_interval = (
            self.phase,
            self.resource_version,
            self.profile.bookmark_interval,
        )
        step = super().advance(outcome, now=now, jitter=jitter, retry_after=retry_after)
        history = self._history
        asked = next(each for each in reversed(history.requests) if each.informer == self._name)
        order, time = history.stamp()
        history.transitions.append(
            Transition(
                order, time, self._name, phase, outcome, step.delay, asked, known, bookmark_interval
            )
        )
        return step


class ObservedReflector(Reflector):
    """A reflector with such a cursor."""

    def __init__(
        self,
        source: ListerWatcher,
        queue: DeltaQueue,
        cursor: ObservedState,
        *,
        known: Callable[[KubeObject], KubeObject],
        reports: InformerReporter,
        liveness: LivenessPolicy | None = None,
        keep: Converter | None = None,
    ) -> None:
        """Make a reflector that goes where ``cursor`` says."""
        super().__init__(source, queue, known=known, reports=reports, liveness=liveness, keep=keep)
        self._state = cursor


class CountedFailures(NoMetrics):
    """Counts the failures that metrics are told of."""

    def __init__(self, history: History) -> None:
        """Count them in ``history``."""
        self._history = history

    def failed(self, informer: str, phase: str, error: str) -> None:
        """One more."""
        self._history.counted[informer, phase, error] += 1


INDEX = "node"
_INDEX_LOOKS = 4
"""One sample in so many has the index in it."""


class NodeRejected(ValueError):
    """What a touchy index function raises, and a transform that refuses."""


class Present(Protocol):
    """A listener that can be looked at."""

    def sample_listener(self) -> ListenerSample | None:
        """Its numbers now; ``None`` while it isn't there."""
        ...


class ObservedMailbox(Mailbox):
    """A mailbox that says how many batches it holds, and when it overflows."""

    on_event: Callable[[], None] | None = None
    """Is called when something has come."""
    on_overflow: Callable[[], None] | None = None
    """Is called when it has ended since it was too full."""
    twice: bool = False
    """Whether it was given the changes of a list while it had those of another."""

    def __init__(self, **options: Any) -> None:
        """Make a mailbox, as ``Mailbox`` does."""
        super().__init__(**options)
        self._merged_events: dict[int, Event] = {}

    def put(self, events: Sequence[Event], at: float = 0.0) -> bool:
        """Live events have come."""
        came = super().put(events, at)
        if came and self.on_event is not None:
            self.on_event()
        return came

    def put_relist(
        self, batches: Sequence[Sequence[Event]], at: float = 0.0, *, initial: bool = False
    ) -> None:
        """The changes of a list have come."""
        self.twice = self.twice or self.relist_pending
        super().put_relist(batches, at, initial=initial)

    def _next_coalesced(self) -> Event | None:
        event = super()._next_coalesced()
        if event is not None:
            self._merged_events[id(event)] = event  # kept, so that its number is nobody else's
        return event

    def was_merged(self, event: Event) -> bool:
        """Whether this is one that others may have been merged into. Once for each."""
        return self._merged_events.pop(id(event), None) is not None

    def clear(self) -> Iterator[None]:
        """Drop everything that is pending."""
        if self.overflowed and self.on_overflow is not None:
            self.on_overflow()
            self.on_overflow = None
        return super().clear()

    @property
    def batches(self) -> int:
        """What isn't made of live events: replays, diffs of lists, resyncs, marks."""
        return self._live.uncounted + (self._initial is not None) + (self._resync is not None)

    @property
    def dropping(self) -> bool:
        """Whether some of what is pending will not be told, since it is of objects that went."""
        return bool(self._unseen)


class ObservedInformer(SharedInformer):
    """An informer of a history."""

    def __init__(self, source: ListerWatcher, spec: InformerSpec, history: History) -> None:
        """Make an informer of ``spec`` whose samples go to ``history``."""
        super().__init__(
            source,
            name=spec.name,
            namespace=spec.namespace,
            shape=Shape.of(transform=_TRANSFORMS[spec.transform]),
            indexers={INDEX: _refusing if spec.raising_index else _node},
            resync=spec.resync,
            metrics=CountedFailures(history),
            on_error=self._record_problem,
        )
        self._reflector = self.make_reflector(source, self.make_state(spec, history))
        vars(self._listeners)["make_mailbox"] = self._make_mailbox
        self._queue.fifo = DeltaFIFO(self._indexer, high_mark=spec.high_mark)
        self.spec = spec
        self.listeners: list[Present] = []
        self.newest_mailbox: ObservedMailbox | None = None
        """That of the listener that joined last."""
        self._history = history

    def make_state(self, spec: InformerSpec, history: History) -> ObservedState:
        """What decides what to ask for next."""
        return ObservedState(spec, history)

    def make_reflector(self, source: ListerWatcher, cursor: ObservedState) -> Reflector:
        """What feeds the queue."""
        return ObservedReflector(
            source,
            self._queue,
            cursor,
            known=self._indexer.deduplicate,
            reports=self._reporter,
            keep=self._converter,
        )

    def _record_problem(self, problem: Problem) -> None:
        """The error hook."""
        order, now = self._history.stamp()
        said = f"{type(problem.error).__name__}: {problem.error}"
        self._history.problems.append(
            ProblemReported(order, now, problem.informer, problem.phase, problem.cause, said)
        )

    def _make_mailbox(
        self, limit: int, overflow: Overflow, event_filter: EventFilter | None = None
    ) -> Mailbox:
        each = None if event_filter is None else event_filter.apply
        self.newest_mailbox = self.make_mailbox(limit, overflow, each)
        return self.newest_mailbox

    def make_mailbox(
        self, limit: int, overflow: Overflow, each: EventMap | None
    ) -> ObservedMailbox:
        """A mailbox for a listener; ``each`` is its filter."""
        holds = self._indexer.holds
        return ObservedMailbox(limit=limit, overflow=overflow, holds=holds, event_map=each)

    def sample(self) -> None:
        """Write down what it shows now, unless everything is being ended."""
        if self._history.over:
            return
        health = self.health
        order, now = self._history.stamp()
        lister, version_of = self.lister.unsynced, self._history.version_of
        with_index = len(self._history.samples) % _INDEX_LOOKS == 0
        self._history.samples.append(
            Sample(
                order,
                now,
                self.name,
                self.synced,
                health.resource_version,
                {obj.key: version_of(obj) for obj in lister},
                self._filed() if with_index else None,
                frozenset(health.rejected),
                health.state,
                f"{type(health.error).__name__}: {health.error}" if health.error else "",
                health.retry_in,
                health.blocked_by,
                health.rewinds,
                len(self._queue.fifo),
                tuple(filter(None, (each.sample_listener() for each in self.listeners))),
            )
        )

    def _filed(self) -> dict[str, frozenset[ObjectKey]]:
        lister = self.lister.unsynced
        values = sorted(lister.index_values(INDEX))
        return {
            value: frozenset(obj.key for obj in lister.by_index(INDEX, value)) for value in values
        }


def _node(obj: KubeObject) -> str:
    name: str = obj["spec"]["nodeName"]
    return name


def _refusing(obj: KubeObject) -> str:
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
    _refusing(obj)
    return obj


_TRANSFORMS: dict[Transforms, Transform | None] = {"": None, "cuts": _cutting, "refuses": _strict}
