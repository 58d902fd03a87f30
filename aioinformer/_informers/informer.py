"""The shared informer: one reflector, one cache, many listeners.

``SharedInformer`` documents and checks what programs pass, and hands it to ``InformerPipeline``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Generic, overload

from typing_extensions import TypeVar, Unpack

from aioinformer._core.arguments import suggest_keywords
from aioinformer._core.cache.lister import Lister
from aioinformer._core.cache.store import Indexers, IndexFunction, check_indexers
from aioinformer._core.codec.shape import Shape
from aioinformer._core.delivery.mailbox import LIMIT
from aioinformer._core.delivery.overflow import Overflow, OverflowName
from aioinformer._core.listwatch.server_profile import ServerProfile
from aioinformer._core.missing_names import LISTER_HINTS, declare_missing
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.resources import versioned_name
from aioinformer._core.objects.stored import NeedsJson
from aioinformer._core.objects.view import EventView, ObjectView
from aioinformer._informers.features import make_features
from aioinformer._informers.options import InformerKeywords, InformerOptions
from aioinformer._runtime.delivery.handlers import Handler, OnAdd, OnDelete, OnUpdate
from aioinformer._runtime.delivery.options import HandlerOptions, ListenerOptions
from aioinformer._runtime.delivery.registration import Registration
from aioinformer._runtime.informer.cache_reader import ObjectTest, start_scan
from aioinformer._runtime.informer.feature import DepartureGuard, Selection, find_feature
from aioinformer._runtime.informer.pipeline import InformerPipeline
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher
from aioinformer.errors import UsageError

if TYPE_CHECKING:  # for programs that use these features, and for types
    from aioinformer._core.cache.memory import CacheMemory
    from aioinformer._core.cache.query import FieldChoice, LabelChoice
    from aioinformer._core.selectors.event_filter import Filter
    from aioinformer._core.selectors.object_conditions import PresentCondition
    from aioinformer._core.selectors.predicates import ObjectPredicate
    from aioinformer._runtime.delivery.listener import ListenerPosition
    from aioinformer._runtime.delivery.streams import EventStream
    from aioinformer._runtime.reporting.health import Health
    from aioinformer._runtime.writing.resource_writer import WriterSource
    from aioinformer.cachefile.durable_position import DurableSince
    from aioinformer.namespaces.feature import NamespacesFeature
    from aioinformer.namespaces.state.scopes import Scope
    from aioinformer.verification.state.verification import Verification

T = TypeVar("T", default=KubeObject)
F = TypeVar("F")
R = TypeVar("R", bound=Awaitable[None] | None)


class SharedInformer(Generic[T]):
    """Caches one resource in one scope, and delivers its changes to listeners.

    Per object and listener: ``Added``, ``Updated``..., ``Deleted``, in the server's order. An
    object that is re-created under the same name is deleted and added, never updated. When a
    listener gets an event, the cache shows that state or a later one. The order between listeners
    is not promised, nor is it that a listener gets every state in between after a relist.

    All waits raise ``NotRunning`` if the informer has ended (``wait_synced`` before the sync), and
    ``UsageError`` in a handler of this informer that has ``overflow="block"``, or, without a
    timeout, if the informer was not started five seconds after the wait began. The wait can be
    repeated.
    """

    def __init__(
        self,
        source: ListerWatcher,
        *,
        name: str = "",
        namespace: str | None = None,
        shape: Shape[T] | None = None,
        indexers: Indexers[T] | None = None,
        managed_fields: bool = False,
        profile: ServerProfile | None = None,
        label: str = "",
        client: WriterSource | None = None,
        options: InformerOptions | None = None,
        namespaces: NamespacesFeature | None = None,
        **keywords: Unpack[InformerKeywords],
    ) -> None:
        """Make an informer. A factory makes and runs informers; alone, await ``run``.

        Args:
            source: lists and watches the resource in one scope.
            name: for logs and errors; the resource's name by default.
            namespace: the only namespace that ``source`` serves; ``None`` if there may be several.
            shape: how objects are stored and converted, for example ``Shape.of(model=Pod)``;
                ``KubeObject``s by default.
            indexers: index functions by index name.
            managed_fields: True to keep ``metadata.managedFields`` of objects.
            profile: the server's learned behaviour for the resource, which informers can share.
            label: the informer's name in metrics; ``name`` by default.
            client: makes writers for the controllers of this informer.
            options: the other options; ``keywords`` take the place of single ones.
            namespaces: reads several namespaces, each with a source of its own.

        Raises:
            TypeError: a keyword is no option, or ``on_error`` is no plain function.
            ValueError: a number is out of range.
        """
        options = (options or InformerOptions()).merge(keywords)
        shape = shape or Shape()
        self._namespaces = namespaces
        self.name = name or versioned_name(source.resource)
        self.resource = source.resource
        self.client = client
        """The client of the informer's factory, through which controllers write by default."""
        reporter = options.make_reporter(self.name, label=label, resource=str(self.resource))
        self._pipeline: InformerPipeline[T] = InformerPipeline(
            source,
            shape,
            reporter,
            options,
            namespace=namespace,
            indexers=indexers,
            managed_fields=managed_fields,
            profile=profile,
            features=(*filter(None, (namespaces,)), *make_features(options, options.features)),
        )
        self.keeps_bodies = shape.is_whole  # True: cached as the server sends objects
        self.report_blocking = options.report_blocking  # for controllers of this informer
        self._listeners, self.reader = self._pipeline.listeners, self._pipeline.reader
        indexer = self._indexer = self._pipeline.indexer
        self._view: ObjectView[T] | None = indexer.view
        self.lister = Lister[T](indexer, self.resource, namespace=namespace, start_scan=start_scan)
        """Reads the cache; all of it but ``scan`` can be used from any thread."""

    @suggest_keywords
    def add_handler(
        self,
        handler: Handler[T],
        *,
        limit: int = LIMIT,
        overflow: Overflow | OverflowName = "coalesce",
        concurrency: int = 1,
        resync: float | None = None,
        filter: Filter[T] | None = None,
        timeout: float | None = None,
        run_in_thread: bool = False,
        drain: bool = False,
        fail_fast: bool = False,
        name: str | None = None,
        durable: str | None = None,
        durable_since: DurableSince = "everything",
    ) -> Registration:
        """Register ``handler``: call it with the cached objects, then with their changes.

        Args:
            handler: an object with any of ``on_add(obj, *, initial)``, ``on_update(old, new, *,
                resync)``, ``on_delete(obj, *, reason)``, or a function of one event. A handler that
                isn't async runs in the event loop and must be quick.
            limit: live events that may be pending for the handler.
            overflow: the rule for further events. ``"coalesce"``: pending events of one object are
                merged. ``"block"``: the watch isn't read until the handler catches up. ``"error"``:
                the handler is ended.
            concurrency: calls at once, for different objects. Calls for one object never overlap.
            resync: seconds between two resyncs, which deliver the cached state again as
                ``Updated(resync=True)``; 0 for never; ``None`` for the informer's period.
            filter: a predicate, or a function that returns true for objects to deliver. An object
                that stops matching is delivered as ``Deleted(reason="filtered")``, one that starts
                matching as ``Added``. An object at which the filter raises counts as matching.
            timeout: seconds after which a call is cancelled. A thread can't be cancelled.
            run_in_thread: True to call the handler in ``concurrency`` threads of its own: it may
                block, and must not be async. A thread that hangs is abandoned in the end.
            drain: True to finish the pending events, within ``shutdown_timeout``, at the end. A
                durable handler always does.
            fail_fast: True to end informer and factory with the exception of a call that fails.
            name: the handler's name in logs and health; that of the function or class by default.
            durable: the handler's name in the cache file: after a restart it receives the changes
                since it last returned. A durable handler is added before the informer runs.
            durable_since: ``"everything"`` or ``"now"``: the beginning for a new durable name.

        Raises:
            NotRunning: the informer has ended.
            TypeError: ``handler`` or ``filter`` can't be one, an async handler is to run in a
                thread, or ``limit`` or ``concurrency`` is no integer.
            ValueError: a number is out of range.
            UsageError: ``filter`` reads JSON, which ``model=`` doesn't keep; or the handler can't
                be durable, for the reason in the error.
        """
        options = HandlerOptions(
            limit=limit,
            overflow=overflow,
            resync=resync,
            filter=filter,
            name=name,
            concurrency=concurrency,
            timeout=timeout,
            run_in_thread=run_in_thread,
            drain=drain,
            fail_fast=fail_fast,
            position=self._position(durable, durable_since),
        )
        return self._listeners.add_handler(handler, options)

    def on_add(self, function: OnAdd[T, R]) -> OnAdd[T, R]:
        """Register ``function(obj, *, initial)`` for each new object, as a handler of its own; a
        decorator. Raises a TypeError if ``function`` is no function of these arguments.
        """
        self._listeners.add_method("on_add", function)
        return function

    def on_update(self, function: OnUpdate[T, R]) -> OnUpdate[T, R]:
        """Register ``function(old, new, *, resync)`` for each change; a decorator."""
        self._listeners.add_method("on_update", function)
        return function

    def on_delete(self, function: OnDelete[T, R]) -> OnDelete[T, R]:
        """Register ``function(obj, *, reason)`` for each deleted object; a decorator."""
        self._listeners.add_method("on_delete", function)
        return function

    @suggest_keywords
    def events(
        self,
        *,
        limit: int = LIMIT,
        overflow: Overflow | OverflowName = "coalesce",
        resync: float | None = None,
        filter: Filter[T] | None = None,
        durable: str | None = None,
        durable_since: DurableSince = "everything",
    ) -> EventStream[T]:
        """Return a stream of the objects that are cached when it is entered, and their changes.

        Arguments and errors are those of ``add_handler``. With ``overflow="error"`` the stream
        raises ``ListenerOverflow``; with ``durable`` the next iteration or ``done()`` acknowledges
        an event.
        """
        options = ListenerOptions(
            limit=limit,
            overflow=overflow,
            resync=resync,
            filter=filter,
            position=self._position(durable, durable_since),
        )
        return self._listeners.make_stream(self, options)

    def _position(self, durable: str | None, since: DurableSince) -> ListenerPosition | None:
        if durable is None and since == "everything":
            return None
        from aioinformer.cachefile.checkpointer import Checkpointer
        from aioinformer.cachefile.durable_position import DurablePosition, check_durable

        check_durable(durable, since)
        if durable is None:
            return None
        if (feature := find_feature(self._pipeline.features, Checkpointer)) is None:
            raise UsageError(
                f"durable={durable!r} needs a cache file: make the factory with "
                'cache=CacheFile("pods.db")'
            )
        return DurablePosition(durable, since, feature.add_durable)

    @asynccontextmanager
    async def snapshot_and_events(
        self,
        *,
        timeout: float | None = None,
        limit: int = LIMIT,
        overflow: Overflow | OverflowName = "coalesce",
        resync: float | None = None,
    ) -> AsyncGenerator[tuple[Mapping[ObjectKey, T], EventStream[T]]]:
        """Give the cached objects and a stream of their changes, with no gap or repetition between.

        The snapshot doesn't change: ``async with pods.snapshot_and_events() as (objects, events)``.
        Arguments are those of ``events``.

        Raises:
            SyncTimeout: the initial list was not complete within ``timeout`` seconds.
        """
        await self.wait_synced(timeout)
        options = ListenerOptions(limit=limit, overflow=overflow, resync=resync)
        async with self._listeners.make_stream(self, options, replay=False) as events:
            yield self.reader.snapshot(), events  # entering the stream has not waited

    @property
    def registrations(self) -> tuple[Registration, ...]:
        """The handlers that have not been removed."""
        return self._listeners.registrations

    @property
    def unfinished(self) -> tuple[Registration, ...]:
        """The handlers whose task has not ended, including removed handlers."""
        return self._listeners.unfinished

    @property
    def synced(self) -> bool:
        """True once the initial list was applied, and from then on."""
        return self._indexer.state.synced

    async def wait_synced(self, timeout: float | None = None) -> None:
        """Wait for ``synced``, for ``timeout`` seconds at most; ``None`` for no limit.

        Raises:
            SyncTimeout: not synced within that time; the error says why.
        """
        await self.reader.wait_synced(timeout)

    def check_bytes(self, what: str, instead: str = "") -> None:
        """Raise ``UsageError``, which names ``what``, if ``model=`` keeps no JSON of objects."""
        if self._view is not None:
            advice = f"use convert= in place of model= for the informer of {self.name}{instead}"
            self._view.require_json(what, advice)

    def check_listener(self, event_filter: Filter[Any] | None) -> None:
        """Raise as ``add_handler`` would for a handler with this filter."""
        self._listeners.check_listener(event_filter)

    def stored(self, key: ObjectKey) -> KubeObject | None:
        """Return the cached object as stored, without ``convert=``; ``None`` if there is none."""
        return self._indexer.state.objects.get(key)

    def find_feature(self, kind: type[F]) -> F | None:
        """Return the feature of a class or runtime protocol; ``None`` if there is none."""
        return find_feature(self._pipeline.features, kind)

    def make_event_view(self) -> EventView[T] | None:
        """Return what shows one listener's events as programs see them; ``None`` if as stored."""
        return None if self._view is None else EventView(self._view)

    def rejection(self, key: ObjectKey) -> Exception | None:
        """Return the error for which the cache lacks the newest version of an object, if it does:
        its ``transform=`` or an index function raised.
        """
        return self._indexer.rejection(key)

    def observe_rejections(self, observer: Callable[[ObjectKey], None]) -> Callable[[], None]:
        """Call ``observer`` with the key of each object whose newest version is rejected, now and
        from now on. Return the function that ends this.
        """
        observers = self._pipeline.pump.rejection_observers
        observers[observer] = None
        for key in list(self._indexer.rejected):
            observer(key)
        return lambda: observers.pop(observer, None)

    def exclusion(self, obj: KubeObject) -> str:
        """Return what certainly keeps an object of the server out of the cache: a requirement of a
        selector, a namespace or the shard; empty if nothing does.
        """
        return self._pipeline.exclusion(obj)

    def add_guard(self, guard: DepartureGuard) -> None:
        """Let ``guard`` check what an object may leave, now and before each namespace is added, and
        receive what ``transform=`` drops. A guard that is equal to an earlier one is not added.
        """
        self._pipeline.add_guard(guard)

    @property
    def selection(self) -> Selection:
        """The namespaces, the selectors and the shard of the objects; ``None`` for all."""
        return self._pipeline.selection

    async def add_index(self, name: str, function: IndexFunction[T] | NeedsJson) -> None:
        """Add an index at any time. The index can be read once it is complete.

        The index is built in steps, while the cache goes on changing. Adding an index function
        again is no error. A cancelled build leaves nothing behind.

        Raises:
            IndexFailed: the function raised. The index doesn't exist, and nothing else changed.
            UsageError: the name is taken by another function, or it reads JSON that isn't kept.
        """
        await self.reader.add_index(name, function)

    @suggest_keywords
    async def wait_for(self, obj: Mapping[str, Any], *, timeout: float | None = None) -> T | None:
        """Wait until the cache shows a written object: ``await pods.wait_for(answer, timeout=5)``.

        The wait ends when the cache holds the object, by uid, in that version or a later one; or
        when the cache has applied everything up to that version and doesn't hold the object, which
        was deleted, rejected (``health.rejected``) or isn't selected. In the second case the server
        proves the version with the next bookmark, up to a minute later. An informer that polls,
        since the server refuses watches, lists at once and every 5 s meanwhile. Returns the cached
        object, in an earlier version if the written one was rejected; or ``None``.

        Args:
            obj: the server's answer to a write, as a dict or any mapping, or a ``KubeObject``.
            timeout: seconds; ``None`` for no limit.

        Raises:
            CacheWaitTimeout: not within that time; the error contains the informer's health.
            NotComparable: the resourceVersion is no number, and isn't the cached one.
            ModelMismatch: ``convert=`` raised at the cached object.
            UsageError: ``obj`` has no name, uid or resourceVersion, or isn't of this informer.
        """
        return self.reader.convert(await self.reader.wait_for(obj, timeout))

    @overload
    async def wait_until(
        self,
        key: ObjectKey | str,
        predicate: PresentCondition | ObjectPredicate,
        *,
        timeout: float | None = None,
    ) -> T: ...
    @overload
    async def wait_until(
        self, key: ObjectKey | str, predicate: ObjectTest[T], *, timeout: float | None = None
    ) -> T | None: ...
    @suggest_keywords
    async def wait_until(
        self, key: ObjectKey | str, predicate: ObjectTest[T], *, timeout: float | None = None
    ) -> T | None:
        """Wait until the cached object of that key passes ``predicate``, and return it.

        For example ``await pods.wait_until("web-0", condition_true("Ready"), timeout=60)``. The
        predicate is called at once and after changes of the object, in the caller's task: a state
        that lasts for less than a turn of the event loop can be missed. ``None`` is returned if
        absence has passed.

        Args:
            key: as for ``lister.get``.
            predicate: a condition of ``aioinformer.conditions``; a predicate such as
                ``where(...)``, which an absent object doesn't pass; or a function of the cached
                object or ``None``. An exception of the function is raised to the caller.
            timeout: seconds; ``None`` for no limit.

        Raises:
            CacheWaitTimeout: not within that time; the error contains the informer's health, and
                how far the object came.
            ModelMismatch: ``convert=`` raised at a state to pass to the predicate.
            TypeError: the predicate is async, or no function.
            UsageError: as for ``lister.get``; or it reads JSON, which ``model=`` doesn't keep.
        """
        found = await self.reader.wait_until(self.lister.key(key), predicate, timeout)
        return self.reader.convert(found)

    @suggest_keywords
    async def wait_until_all(
        self,
        predicate: ObjectTest[T],
        *,
        namespace: str | None = None,
        labels: LabelChoice = None,
        fields: FieldChoice = None,
        at_least: int = 0,
        timeout: float | None = None,
    ) -> int:
        """Wait until all selected objects pass ``predicate`` at one moment; return their number.

        For example ``await pods.wait_until_all(condition_true("Ready"), at_least=3, timeout=60)``,
        or ``wait_until_all(deleted, labels="app=shop")`` until none is left. At least ``at_least``
        objects must exist; with 0, an empty cache is enough. The predicate is as for
        ``wait_until``, called for each object and after its changes; the selection is that of
        ``lister.list``.

        Raises:
            CacheWaitTimeout: not within ``timeout`` seconds; the error names objects that did not
                pass.
            InvalidSelector: ``labels`` or ``fields`` don't parse.
            UsageError: as for ``wait_until``, and so a ``ModelMismatch`` and ``TypeError``.
        """
        from aioinformer._core.cache.query import Query  # rarely needed

        query = Query.of(namespace=namespace, labels=labels, fields=fields, view=self._view)
        return await self.reader.wait_until_all(predicate, query, at_least, timeout)

    async def verify(
        self, *, contents: bool = True, repair: bool = False, timeout: float | None = None
    ) -> Verification:
        """Compare the cache with a full list of exactly the version that the cache shows now. The
        result is true if there is no difference. A namespace that leaves meanwhile is left out.

        Args:
            contents: True to compare the content of objects, too, which a server can change without
                a version; False to compare only which objects exist in which versions.
            repair: True to put the server's objects into the cache where it differs, except for
                objects that have changed meanwhile. Listeners receive the repairs as events; an
                object that the server lacks is deleted for the reason "vanished".
            timeout: seconds; ``None`` for no limit.

        Raises:
            NotSynced: the initial list isn't complete yet.
            CacheWaitTimeout: not within that time.
            FetchError: the request failed; ``Expired`` if the server had discarded every version.
        """
        from aioinformer.verification.feature import verify_informer  # for its users alone

        return await verify_informer(
            self._pipeline, contents=contents, repair=repair, timeout=timeout
        )

    @property
    def namespaces(self) -> tuple[str, ...] | None:
        """The namespaces that an informer with ``namespaces=`` reads; ``None`` for any other."""
        return None if self._namespaces is None else self._namespaces.scopes.namespaces

    def _changeable_namespaces(self) -> NamespacesFeature:
        self._pipeline.check_running()
        if self._namespaces is None:
            raise UsageError(
                f"the informer of {self.name} was made without namespaces=, and can't change what "
                "it reads; request one with namespaces=[...]"
            )
        return self._namespaces

    def add_namespace(self, namespace: str, scope: Scope | None = None) -> None:
        """Read one more namespace. Its objects are delivered as ``Added(initial=True)``.

        An informer that is synced stays so. All users of a shared informer see the namespace.

        Args:
            namespace: the name. The namespace need not exist yet.
            scope: the selectors, and whether the namespace is optional; by default the ``labels=``
                and ``fields=`` of the informer.

        Raises:
            NotRunning: the informer has ended.
            TypeError: an argument has the wrong type.
            UsageError: the namespace is read already, or ``namespaces=`` names none to change; or
                ``scope`` has selectors that an object can leave, and a user of this informer relies
                on objects that stay until they are deleted.
            ValueError: ``namespace`` can't be the name of one.
        """
        self._changeable_namespaces().add(namespace, scope)

    def remove_namespace(self, namespace: str) -> None:
        """Stop reading a namespace. Its objects become ``Deleted(reason="scope_removed")``.

        Raises:
            NotRunning: the informer has ended.
            UsageError: the namespace isn't read; or as for ``add_namespace``.
        """
        self._changeable_namespaces().remove(namespace)

    @property
    def health(self) -> Health:
        """The informer's state, its last error, and how far the cache is."""
        return self._pipeline.status.health()

    def memory(self) -> CacheMemory:
        """Return an estimate of the memory that the informer takes; it costs microseconds."""
        return self._pipeline.status.memory()

    async def run(self, *, on_fatal: Callable[[Exception], None] | None = None) -> None:
        """List, watch, cache and deliver until cancelled, and until the calls in flight have ended.

        An informer runs once; otherwise ``UsageError`` is raised. ``on_fatal`` is called with the
        error that ends the informer, before calls in flight end.
        """
        await self._pipeline.run(on_fatal)

    def __repr__(self) -> str:
        listeners, objects = len(self._pipeline.pump.listeners), len(self._indexer.state.objects)
        state = f"{self.health.state} synced={self.synced} objects={objects} listeners={listeners}"
        return f"<SharedInformer {self.name} {state}>"


def add_indexers(informer: SharedInformer[Any], indexers: Indexers[Any] | None) -> None:
    """Add indexes at once, before anything is cached; for factories."""
    informer._indexer.add_indexers(check_indexers(indexers))  # pyright: ignore[reportPrivateUsage] - of this module


declare_missing(SharedInformer, LISTER_HINTS)
