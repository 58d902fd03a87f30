"""The namespaces of one informer, with a reflector for each.

Each namespace has its own list-watch state, resourceVersion, backoff, health and rewinds. All feed
one queue, and so one cache and one set of listeners. A namespace that is refused neither stops nor
empties another one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from msgspec import Struct, structs

from aioinformer._core.objects.deltas import Bookmark, Confirmed, Delta, Replaced, StateEntry
from aioinformer._runtime.informer.reflectors import RunReflector, ScopePart, with_excluded
from aioinformer._runtime.reflector.delta_queue import DeltaQueue
from aioinformer._runtime.reflector.reflector import Reflector
from aioinformer._runtime.reporting.health import Health, InformerState, ScopeHealth
from aioinformer._runtime.reporting.reflector_status import ReflectorStatus
from aioinformer._runtime.tasks.task_group import StrictTaskGroup
from aioinformer.errors import FetchError, Forbidden, NotFound, Unauthorized, UsageError
from aioinformer.namespaces.namespace_follower import NamespaceFollower, StartTurn
from aioinformer.namespaces.scoped_source import ScopedSource
from aioinformer.namespaces.state.partitions import PartitionedIndexer
from aioinformer.namespaces.state.scopes import Scope

_REFUSALS = (Unauthorized, Forbidden, NotFound)

_WORST_FIRST: tuple[InformerState, ...] = (
    "waiting",
    "absent",
    "new",
    "listing",
    "polling",
    "watching",
    "stopped",  # while the informer ends
)

_NOT_STARTED = ReflectorStatus()


class ScopeQueue:
    """The end of a shared DeltaQueue that the reflector of one namespace feeds.

    Whole states and bookmarks carry the namespace as their scope; changes have it in their key.
    """

    def __init__(self, queue: DeltaQueue, namespace: str) -> None:
        self._queue = queue
        self._namespace = namespace
        self.closed = False
        """True once the namespace was removed. Nothing is queued any more."""

    def feed(self, entries: Sequence[Delta | Bookmark]) -> bool:
        if self.closed:
            return False
        return self._queue.feed(
            [
                Bookmark(each.resource_version, each.ends_initial, self._namespace)
                if isinstance(each, Bookmark)
                else each
                for each in entries
            ]
        )

    def put(self, entry: StateEntry) -> None:
        if self.closed:
            return
        if isinstance(entry, Replaced | Confirmed):
            entry = structs.replace(entry, scope=self._namespace)
        self._queue.put(entry)

    def remove(self) -> None:
        """Queue the removal of the namespace's objects, and nothing after it."""
        self.put(Replaced((), "", "scope_removed"))
        self.closed = True

    async def room(self) -> None:
        await self._queue.room()

    def __repr__(self) -> str:
        return f"<ScopeQueue of {self._namespace} {self._queue!r}>"


class _ScopeReader(Struct, eq=False):
    scope: Scope
    queue: ScopeQueue
    reflector: Reflector | None = None
    """Made when it is started: making hundreds of reflectors takes a tenth of a second."""
    task: asyncio.Task[None] | None = None

    @property
    def status(self) -> ReflectorStatus:
        return _NOT_STARTED if self.reflector is None else self.reflector.status


class ScopeSet:
    """The namespaces of one informer. Namespaces can be added and removed at any time."""

    def __init__(
        self,
        name: str,
        source: ScopedSource,
        queue: DeltaQueue,
        indexer: PartitionedIndexer,
        *,
        make_reflector: Callable[[str, Scope, ScopeQueue], Reflector],
        update_synced: Callable[[], None],
        run: RunReflector,
    ) -> None:
        """Make the set with the namespaces that ``source`` begins with.

        ``update_synced`` is called when the cache may be synced without another list.
        """
        self._run = run
        self._name = name
        self._resource = source.resource
        self._queue = queue
        self._indexer = indexer
        self._make_reflector = make_reflector
        self._update_synced = update_synced
        self._readers: dict[str, _ScopeReader] = {}
        self._group: StrictTaskGroup | None = None
        self._followed = source.followed
        self._known = self._followed is None
        """True once all namespaces of the first state are known."""
        for namespace, scope in source.scopes.items():
            self.add(namespace, scope)

    # -- namespaces ----------------------------------------------------------------------------

    @property
    def namespaces(self) -> tuple[str, ...]:
        return tuple(sorted(self._readers))

    def check_changeable(self) -> None:
        """Raise ``UsageError`` if the set follows namespaces, and a program can't change it."""
        if self._followed is not None:
            raise UsageError(
                f"the informer of {self._name} follows the namespaces that match "
                f"{self._followed.predicate!r}; change the labels of namespaces instead"
            )

    def add(self, namespace: str, scope: Scope) -> None:
        """Begin to read a namespace.

        Raises:
            UsageError: the namespace is read already.
            ValueError: ``namespace`` can't be the name of one.
        """
        if namespace in self._readers:
            raise UsageError(
                f"the informer of {self._name} reads the namespace {namespace!r} already; "
                "remove the namespace before you add it with another Scope"
            )
        self._resource.path(namespace)  # raises the ValueError of the docstring
        self._indexer.add_scope(namespace)
        queue = ScopeQueue(self._queue, namespace)
        self._readers[namespace] = reader = _ScopeReader(scope, queue)
        if self._group is not None:
            self._start(namespace, reader, self._group)

    def remove(self, namespace: str) -> None:
        """Remove a namespace and its objects; raise ``UsageError`` if it isn't read."""
        reader = self._readers.pop(namespace, None)
        if reader is None:
            read = ", ".join(self.namespaces) or "none"
            raise UsageError(
                f"the informer of {self._name} doesn't read the namespace {namespace!r}; "
                f"its namespaces: {read}"
            )
        if self._group is not None and reader.task is not None:
            self._group.cancel(reader.task)
        self._indexer.remove_scope(namespace)
        # Behind all that was read of the namespace, so that no change of it comes afterwards.
        reader.queue.remove()
        self._update_synced()

    def complete(self) -> None:
        """Record that all namespaces of the first state were added."""
        self._known = True
        self._indexer.complete()
        self._update_synced()

    # -- running -------------------------------------------------------------------------------

    def start(self, group: StrictTaskGroup) -> None:
        self._group = group
        group.start(self._start_all(group), name=f"start of {self._name}")
        if self._followed is None:
            self.complete()
        else:
            follower = NamespaceFollower(self._followed, self)
            group.start(follower.run(), name=f"namespaces of {self._name}")

    async def _start_all(self, group: StrictTaskGroup) -> None:
        """Start the reflectors one after the other, a few in each turn of the loop."""
        turn = StartTurn()
        for namespace, reader in tuple(self._readers.items()):
            if reader.task is None and not reader.queue.closed:
                self._start(namespace, reader, group)
                await turn.count_start()

    def _start(self, namespace: str, reader: _ScopeReader, group: StrictTaskGroup) -> None:
        reflector = self._make_reflector(namespace, reader.scope, reader.queue)
        if reader.scope.optional:
            reflector.reporter.on_request_failed = partial(self._skip_if_refused, namespace, reader)
        reader.reflector = reflector
        name = f"reflector of {self._name} in {namespace}"
        reader.task = group.start(self._run_to_end(reflector, reader.queue, namespace), name=name)

    async def _run_to_end(self, reflector: Reflector, queue: ScopeQueue, namespace: str) -> None:
        """Run a reflector, and end its reports: it may end before its informer."""
        try:
            await self._run(reflector, queue, namespace)
        finally:
            reflector.reporter.on_request_failed = None  # it refers to this set and the reflector
            reflector.reporter.close()
            reflector.reporter.status.set_state("stopped")

    def _skip_if_refused(
        self, namespace: str, reader: _ScopeReader, error: FetchError, delay: float
    ) -> None:
        # Without a delay another request follows at once, which may be permitted.
        if delay and isinstance(error, _REFUSALS) and not reader.queue.closed:
            self._indexer.skip_scope(namespace)
            self._update_synced()

    def close(self) -> None:
        """Forget the ended tasks, whose exceptions refer to this set."""
        self._group = None
        for reader in self._readers.values():
            reader.task = None

    # -- status --------------------------------------------------------------------------------

    @property
    def fresh(self) -> float | None:
        """Seconds since the server last proved that each namespace is up to date.

        ``None`` before the first proof for one of them. Optional namespaces may lack one.
        """
        proofs = [
            reader.status.fresh
            for reader in tuple(self._readers.values())
            if not (reader.scope.optional and reader.status.fresh is None)
        ]
        known = [fresh for fresh in proofs if fresh is not None]
        return max(known) if known and len(known) == len(proofs) else None

    def parts(self) -> Sequence[ScopePart]:
        return [
            ScopePart.of(reader.reflector, part, partial(self._has_left, name, reader))
            for name, reader in self._readers.items()
            if reader.reflector is not None
            and (part := self._indexer.part(name)) is not None
            and not self._indexer.is_removing(name)
            and part.state.synced
        ]

    def _has_left(self, namespace: str, reader: _ScopeReader) -> bool:
        return self._readers.get(namespace) is not reader

    def find(self, namespace: str) -> Reflector | None:
        reader = self._readers.get(namespace)
        return None if reader is None else reader.reflector

    def _scope_health(self, namespace: str, reader: _ScopeReader) -> ScopeHealth:
        status, part, reflector = reader.status, self._indexer.part(namespace), reader.reflector
        return ScopeHealth(
            namespace=namespace,
            optional=reader.scope.optional,
            state=status.state,
            since=status.since,
            error=status.error,
            retry_in=status.retry_in,
            synced=part is not None and part.state.synced,
            resource_version="" if part is None else part.state.resource_version,
            fresh=status.fresh,
            strategy="list" if reflector is None else reflector.strategy,
            rewinds=0 if reflector is None else reflector.reporter.rewinds,
        )

    def summarize(self, health: Health) -> Health:
        """Return the informer's health with the state of the namespaces in it."""
        scopes = tuple(
            self._scope_health(name, reader) for name, reader in sorted(self._readers.items())
        )
        health = replace(
            health,
            scopes=scopes,
            fresh=self.fresh,
            rewinds=sum(each.rewinds for each in scopes),
            strategy=_common_strategy(scopes),
        )
        readers = tuple(self._readers.values())
        started = [each.reflector for each in readers if each.reflector is not None]
        cuts = [each.status.watches_cut_after for each in started]
        cut_after = min((each for each in cuts if each is not None), default=None)
        health = replace(with_excluded(health, started), watches_cut_after=cut_after)
        if health.state in ("stopped", "failed") or self._group is None:
            return health
        if not self._known and self._followed is not None:
            found = self._followed.informer.health
            return replace(
                health,
                state=found.state,
                since=found.since,
                error=found.error,
                retry_in=found.retry_in,
            )
        return _with_worst(health, scopes)

    def __repr__(self) -> str:
        return f"<ScopeSet of {self._name} namespaces={len(self._readers)}>"


def _common_strategy(scopes: Sequence[ScopeHealth]) -> Literal["watchlist", "list"]:
    """Return ``watchlist`` if all namespaces are read by WatchLists."""
    watched = bool(scopes) and all(each.strategy == "watchlist" for each in scopes)
    return "watchlist" if watched else "list"


def _with_worst(health: Health, scopes: Sequence[ScopeHealth]) -> Health:
    """Return ``health`` with the state and the error of the namespace that needs attention most.

    An optional namespace needs none. If all are optional, those count that could be read once.
    """
    required = [each for each in scopes if not each.optional]
    needed = required or [each for each in scopes if each.synced] or scopes
    worst = min(needed, key=lambda each: _WORST_FIRST.index(each.state), default=None)
    if worst is None:
        return replace(health, state="watching")
    error = next((each.error for each in needed if each.error is not None), None)
    retries = [each.retry_in for each in needed if each.retry_in is not None]
    return replace(
        health,
        state=worst.state,
        since=worst.since,
        error=worst.error or error,
        retry_in=min(retries, default=None),
    )
