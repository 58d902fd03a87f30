"""Probes of informers: samples, problems, transitions, and the numbers of their mailboxes.

The informer is the library's own. Its error hook, metrics, health and statistics are recorded. Four
things are not public, and ``observe`` looks at the calls of one method for each: the transition
after a request, the creation of a mailbox, the arrival of events in a mailbox, and its overflow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from operator import is_
from typing import Any, ParamSpec, Protocol, TypeVar, cast

from aioinformer._core.cache.delta_fifo import DeltaFIFO
from aioinformer._core.codec.shape import Shape, Transform
from aioinformer._core.delivery.mailbox import Mailbox
from aioinformer._core.delivery.overflow import Overflow
from aioinformer._core.instrumentation import Metrics
from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.state_machine import ListWatchState
from aioinformer._core.listwatch.transitions import ScheduledRequest
from aioinformer._core.objects.kube_object import Deleted, Event, KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource, find_built_in
from aioinformer._core.selectors.event_filter import EventFilter
from aioinformer._core.selectors.predicates import labelled
from aioinformer._informers.informer import SharedInformer
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher
from aioinformer._runtime.reflector.reflector import Reflector
from aioinformer._runtime.reporting.health import Health, ScopeHealth
from aioinformer._runtime.reporting.problem import Problem
from aioinformer.namespaces.feature import NamespacesFeature
from aioinformer.namespaces.scoped_source import FollowedNamespaces, ScopedSource
from aioinformer.namespaces.state.scopes import Scope
from tests.simulation.network import Network, RecordingSource, connection_of
from tests.simulation.plan import (
    DROPPED,
    FOLLOWED_TEAM,
    NAMESPACE_INFORMER,
    SHIFT,
    InformerSpec,
    ScopeSpec,
    Transforms,
)
from tests.simulation.records import (
    History,
    ListenerSample,
    ProblemReported,
    Request,
    Sample,
    ScopeClosed,
    ScopeOpened,
    State,
    Transition,
)

P = ParamSpec("P")
R = TypeVar("R")


def replace_attribute(part: object, name: str, value: object) -> None:
    """Replace an attribute of a part of the library.

    An attribute that the library no longer has is an error: a planted bug would have no effect.
    """
    getattr(part, name)
    setattr(part, name, value)


def observe(
    part: object, method: Callable[P, R], around: Callable[[Callable[P, R]], Callable[P, R]]
) -> None:
    """Have one object of the library call ``around(method)`` in the place of its ``method``."""
    replace_attribute(part, getattr(method, "__name__", ""), around(method))


class CountedFailures(Metrics):
    """Metrics that count failures."""

    def __init__(self, history: History) -> None:
        """Create metrics that count in ``history``."""
        self._history = history

    def failed(self, informer: str, phase: str, error: str) -> None:
        """Count one failure."""
        self._history.counted[informer, phase, error] += 1


FOLLOWED = labelled(f"team={FOLLOWED_TEAM}")
"""The namespaces that an informer follows."""
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


class MailboxProbe:
    """Shows the batches of a mailbox, and reports arrivals and its overflow."""

    def __init__(self, mailbox: Mailbox) -> None:
        """Observe a mailbox that is new."""
        self.mailbox = mailbox
        self.on_event: Callable[[], None] | None = None
        """Called when live events have arrived."""
        self.on_overflow: Callable[[], None] | None = None
        """Called when the mailbox has ended because of its overflow."""
        self.twice = False
        """True if the mailbox received the changes of a list while those of another were
        pending."""
        self._merged_events: dict[int, Event] = {}
        observe(mailbox, mailbox.put, self._around_put)
        observe(mailbox, mailbox.put_relist, self._before_relist)
        observe(mailbox, mailbox.clear, self._before_clear)
        observe(mailbox, mailbox._next_coalesced, self._around_next_coalesced)  # pyright: ignore[reportPrivateUsage]

    def _around_put(self, put: Callable[P, bool]) -> Callable[P, bool]:
        def observed(*args: P.args, **options: P.kwargs) -> bool:
            came = put(*args, **options)
            if came and self.on_event is not None:
                self.on_event()
            return came

        return observed

    def _before_relist(self, put_relist: Callable[P, None]) -> Callable[P, None]:
        def observed(*args: P.args, **options: P.kwargs) -> None:
            self.twice = self.twice or self.mailbox.relist_pending
            put_relist(*args, **options)

        return observed

    def _before_clear(self, clear: Callable[P, Iterator[None]]) -> Callable[P, Iterator[None]]:
        def observed(*args: P.args, **options: P.kwargs) -> Iterator[None]:
            if self.mailbox.overflowed and self.on_overflow is not None:
                self.on_overflow()
                self.on_overflow = None
            return clear(*args, **options)

        return observed

    def _around_next_coalesced(self, pop: Callable[P, Event | None]) -> Callable[P, Event | None]:
        def observed(*args: P.args, **options: P.kwargs) -> Event | None:
            event = pop(*args, **options)
            if event is not None:  # a reference, so that no other event has this id
                self._merged_events[id(event)] = event
            return event

        return observed

    def was_merged(self, event: Event) -> bool:
        """Return True, once, if others may have been merged into this event."""
        return self._merged_events.pop(id(event), None) is not None

    @property
    def batches(self) -> int:
        """The number of pending batches beside live events: replays, diffs, resyncs, marks."""
        box = self.mailbox
        return box.recent.uncounted + (box._initial is not None) + (box._resync is not None)  # pyright: ignore[reportPrivateUsage]

    @property
    def dropping(self) -> bool:
        """True if some pending events will be discarded, because their objects are deleted.

        The mailbox notes such an object when the initial state comes to it. Before, the deletion
        itself shows that: it is pending behind an initial state that still has the object.
        """
        box = self.mailbox
        return bool(box._unseen.objects) or (box._initial is not None and self._has_deletions())  # pyright: ignore[reportPrivateUsage]

    def _has_deletions(self) -> bool:
        """Return True if a deletion is pending, in the open batch or in the queue."""
        recent = self.mailbox.recent
        batches = (copy(recent.rest), *(events for events, _, _ in recent.queue))
        return any(isinstance(each, Deleted) for events in batches for each in events)


class InformerProbe:
    """An informer of a history, and the records of it."""

    def __init__(self, network: Network, resource: Resource, spec: InformerSpec) -> None:
        """Create an informer of ``spec``, which is recorded in the history of ``network``."""
        self.spec = spec
        self.listeners: list[Observable] = []
        self.newest_mailbox: MailboxProbe | None = None
        """The mailbox of the listener that joined last."""
        self._network, self._resource = network, resource
        self._history = history = network.history
        self._apps = {each.namespace: each.app for each in spec.scopes}
        """The selections that the plan wants in the namespaces."""
        self._namespaces = self._make_namespace_informer() if spec.follows else None
        self._scopes: dict[str, InformerSpec] = {}
        """The namespaces that are read now, as they are recorded."""
        self._opened = Counter[str]()
        self._sampled: tuple[list[KubeObject], State] = [], {}
        self.informer = SharedInformer(
            self._open(spec),
            namespaces=self._make_namespaces(),
            name=spec.name,
            namespace=spec.namespace,
            shape=Shape.of(transform=_TRANSFORMS[spec.transform]),
            indexers={INDEX: _rejecting if spec.raising_index else _node},
            resync=spec.resync,
            page_size=spec.page_size,
            watch_list=spec.watch_list,
            metrics=CountedFailures(history),
            on_error=self._record_problem,
        )
        self._pipeline = cast("Any", self.informer)._pipeline
        self._pipeline.queue.fifo = DeltaFIFO(high_mark=spec.high_mark)
        if spec.scoped:
            scopes = cast("Any", self.informer)._namespaces.scopes
            make = self._around_make(scopes._make_reflector)
            replace_attribute(scopes, "_make_reflector", make)
            observe(scopes, scopes.remove, self._around_remove)
        else:
            self._record_transitions(spec.name, self._pipeline.reflectors._reflector._state)
        replace_attribute(self._pipeline.listeners, "make_mailbox", self._make_mailbox)

    # -- scopes -------------------------------------------------------------------------------

    def _make_namespaces(self) -> NamespacesFeature | None:
        spec = self.spec
        if not spec.scoped:
            return None
        if self._namespaces is not None:
            scope = Scope(labels=_labels(spec.app))
            followed = FollowedNamespaces(self._namespaces, FOLLOWED, scope)
            source = ScopedSource(self._resource, self._open_scope, followed=followed)
        else:
            scopes = {each.namespace: scope_of(each) for each in spec.scopes}
            source = ScopedSource(self._resource, self._open_scope, scopes)
        return NamespacesFeature(source)

    def _open(self, reader: InformerSpec) -> ListerWatcher:
        return RecordingSource(self._network, reader.name).lister_watcher(
            self._resource, namespace=reader.namespace, labels=_labels(reader.app)
        )

    def _make_namespace_informer(self) -> SharedInformer:
        """Make the informer of the namespaces that this informer follows."""
        source = RecordingSource(self._network, NAMESPACE_INFORMER)
        informer = SharedInformer(
            source.lister_watcher(find_built_in("namespaces")),
            name=NAMESPACE_INFORMER,
            page_size=self.spec.page_size,
            watch_list=self.spec.watch_list,
            on_error=self._record_problem,
        )
        state = cast("Any", informer)._pipeline.reflectors._reflector._state
        self._record_transitions(NAMESPACE_INFORMER, state)
        return informer

    @property
    def informers(self) -> list[SharedInformer]:
        """The informer, and before it that of the namespaces that it follows."""
        return [*([] if self._namespaces is None else [self._namespaces]), self.informer]

    def _open_scope(self, namespace: str, scope: Scope) -> ListerWatcher:
        """Open the list and watch of a namespace, and record the selection of the plan."""
        self._opened[namespace] += 1
        reader = self._reader(namespace, self._apps.get(namespace, self.spec.app))
        self._history.add(ScopeOpened, reader.name, reader)
        self._scopes[namespace] = reader
        return self._open(replace(reader, app=scope.label_selector.partition("=")[2]))

    def _reader(self, namespace: str, app: str) -> InformerSpec:
        """Return the informer that a namespace is recorded as: each time with a name of its own."""
        number = self._opened[namespace]
        name = f"{self.spec.name} ({namespace})" + (f" #{number}" if number > 1 else "")
        return replace(self.spec, name=name, namespace=namespace, app=app, scopes=(), follows=False)

    def add_scope(self, scope: ScopeSpec) -> None:
        """Read a namespace, unless it is read."""
        if scope.namespace not in (self.informer.namespaces or ()):
            self._apps[scope.namespace] = scope.app
            self.informer.add_namespace(scope.namespace, scope_of(scope))

    def remove_scope(self, namespace: str) -> None:
        """Read a namespace no longer, if it is read."""
        if namespace in (self.informer.namespaces or ()):
            self.informer.remove_namespace(namespace)

    def _around_remove(self, remove: Callable[[str], None]) -> Callable[[str], None]:
        def observed(namespace: str) -> None:
            remove(namespace)
            reader = self._scopes.pop(namespace, None) or self._reader(namespace, "")
            self._history.add(ScopeClosed, reader.name, reader)

        return observed

    def _around_make(self, make: Callable[P, Reflector]) -> Callable[P, Reflector]:
        def observed(*args: P.args, **options: P.kwargs) -> Reflector:
            reflector: Any = make(*args, **options)
            self._record_transitions(reflector.source.name, reflector._state)
            return reflector  # type: ignore[no-any-return]

        return observed

    # -- recording ----------------------------------------------------------------------------

    def _record_transitions(self, name: str, state: ListWatchState) -> None:
        history = self._history

        def around(advance: Callable[P, ScheduledRequest]) -> Callable[P, ScheduledRequest]:
            def observed(*args: P.args, **options: P.kwargs) -> ScheduledRequest:
                phase, known = state.phase, state.resource_version
                profile = state.profile
                learned = profile.bookmark_interval, profile.rarely_sends_bookmarks
                step = advance(*args, **options)
                asked = next(
                    each for each in reversed(history.of(Request)) if each.informer == name
                )
                [outcome] = (each for each in args if isinstance(each, Outcome))
                history.add(Transition, name, phase, outcome, step.delay, asked, known, *learned)
                return step

            return observed

        observe(state, state.advance, around)

    def _record_problem(self, problem: Problem) -> None:
        """Record a problem. This is the error hook."""
        said = f"{type(problem.error).__name__}: {problem.error}"
        names = {connection_of(each.name): each.name for each in self._scopes.values()}
        name = names.get(problem.informer, problem.informer)
        self._history.add(ProblemReported, name, problem.phase, problem.cause, said)

    def _make_mailbox(
        self, limit: int, overflow: Overflow, event_filter: EventFilter | None = None
    ) -> Mailbox:
        each = None if event_filter is None else event_filter.apply
        holds = self._pipeline.indexer.holds
        made = Mailbox(limit=limit, overflow=overflow, holds=holds, event_map=each)
        self.newest_mailbox = MailboxProbe(made)
        return made

    def sample(self) -> None:
        """Record the state that the informer shows now, unless everything is being ended."""
        if self._history.over:
            return
        informer = self.informer
        health = informer.health
        with_index = len(self._history.of(Sample)) % _SAMPLES_PER_INDEX == 0
        self._history.add(
            Sample,
            informer.name,
            informer.synced,
            health.resource_version,
            self._state(list(informer.lister.unsynced)),
            self._keys_by_index_value() if with_index else None,
            frozenset(health.rejected),
            health.state,
            _describe(health.error),
            health.retry_in,
            health.blocked_by,
            health.rewinds,
            len(self._pipeline.queue.fifo),
            tuple(filter(None, (each.sample_listener() for each in self.listeners))),
        )
        for scope in health.scopes:
            self._sample_scope(scope, health)

    def _state(self, objects: list[KubeObject]) -> State:
        """Return the versions of the cached objects: the same state if these have not changed."""
        before, state = self._sampled
        if len(before) != len(objects) or not all(map(is_, before, objects)):
            state = {obj.key: self._history.version_of(obj) for obj in objects}
            self._sampled = objects, state
        return state

    def _sample_scope(self, scope: ScopeHealth, health: Health) -> None:
        """Record the state of one namespace, unless objects of its past are still cached."""
        name, version_of = scope.namespace, self._history.version_of
        reader, part = self._scopes.get(name), self._pipeline.indexer.part(name)
        if reader is None or self._pipeline.indexer._removals[name]:
            return
        objects: dict[ObjectKey, KubeObject] = part.state.objects if part is not None else {}
        self._history.add(
            Sample,
            reader.name,
            scope.synced,
            scope.resource_version,
            {key: version_of(obj) for key, obj in objects.items()},
            None,
            frozenset(each for each in health.rejected if each.startswith(f"{name}/")),
            scope.state,
            _describe(scope.error),
            scope.retry_in,
            health.blocked_by,
            scope.rewinds,
        )

    def _keys_by_index_value(self) -> dict[str, frozenset[ObjectKey]]:
        lister = self.informer.lister.unsynced
        values = sorted(lister.index_values(INDEX))
        return {
            value: frozenset(obj.key for obj in lister.by_index(INDEX, value)) for value in values
        }

    def __repr__(self) -> str:
        return f"<InformerProbe of {self.informer!r}>"


def scope_of(spec: ScopeSpec) -> Scope:
    """Return the library's form of a scope."""
    return Scope(labels=_labels(spec.app), optional=spec.optional)


def _labels(app: str) -> str:
    return f"app={app}" if app else ""


def _describe(error: Exception | None) -> str:
    return f"{type(error).__name__}: {error}" if error else ""


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
