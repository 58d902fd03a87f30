"""The factory: one informer per resource, scope, selectors and shape; start and end of all."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from msgspec import Struct
from typing_extensions import Unpack

from aioinformer._core.arguments import check_seconds, suggest_keywords
from aioinformer._core.cache.store import Indexers, check_indexers
from aioinformer._core.codec.shape import Shape
from aioinformer._core.listwatch.server_profile import ServerProfile
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.resources import Resource
from aioinformer._informers.informer import SharedInformer, add_indexers
from aioinformer._informers.informer_key import InformerKey
from aioinformer._informers.options import (
    InformerKeywords,
    InformerOptions,
    InformerRequest,
    check_factory_options,
    chosen_options,
)
from aioinformer._runtime.delivery.registration import drain_handlers
from aioinformer._runtime.reflector.lister_watcher import Source, check_source
from aioinformer._runtime.tasks.supervisor import Supervisor
from aioinformer._runtime.tasks.sync_timeout import sync_timeout
from aioinformer.errors import NotRunning, ShutdownIncomplete, UsageError

if TYPE_CHECKING:  # for types alone
    from aioinformer._runtime.writing.resource_writer import WriterSource
    from aioinformer.namespaces.feature import NamespacesFeature

log = logging.getLogger("aioinformer.factory")

M = TypeVar("M")

ALL_NAMESPACES = ""
"""As ``namespace``: every namespace, also where the factory has a namespace of its own."""

SHUTDOWN_TIMEOUT = 10.0
"""Seconds that leaving a factory waits for handlers to drain, and to end when cancelled."""

CANCEL_GRACE = 1.0
"""Seconds for cancelled handlers to end where draining has taken all of the time."""


_RUNNING: dict[tuple[int, InformerKey], list[int]] = {}
"""The factory of each task that runs an informer, by the identity of its source and its key. A
running factory keeps its source, so that no other one has its identity."""


class InformerEntry(Struct, eq=False):
    """One informer of a factory, its task, and its users."""

    informer: SharedInformer[Any]
    options: InformerOptions
    task: asyncio.Task[None] | None = None
    users: int = 0
    needs: InformerEntry | None = None
    """The informer of namespaces that this informer follows, which counts this entry as a user."""
    pinned: bool = False
    """True if the informer was requested with ``informer()``, and so runs until the end."""

    @property
    def in_use(self) -> bool:
        return self.pinned or self.users > 0

    @property
    def unfinished(self) -> tuple[str, ...]:
        """The names and the state of the handlers that have not ended."""
        return tuple(each.unfinished_work for each in self.informer.unfinished)

    def check_overrides(self, overrides: Mapping[str, Any]) -> None:
        """Raise ``UsageError`` if an option of the shared informer has another value."""
        for name, value in overrides.items():
            current = getattr(self.options, name)
            if value != current:
                raise UsageError(
                    f"the informer of {self.informer.name} is shared and has {name}={current!r}; "
                    f"it can't have {name}={value!r} as well: pass the same value everywhere, or "
                    "none where the value doesn't matter"
                )

    def start(self, supervisor: Supervisor) -> None:
        """Run the informer, if the supervisor runs."""
        if supervisor.running:
            self.task = supervisor.spawn(
                self.informer.run(on_fatal=supervisor.fail),
                name=f"informer of {self.informer.name}",
            )

    async def stop(self, timeout: float) -> tuple[str, ...]:
        """Stop the informer: let handlers with ``drain=True`` finish, then cancel the task, each
        for at most ``timeout`` seconds. Return the names of the handlers that were still running at
        the end.
        """
        if self.task is None:
            return ()
        undrained = await drain_handlers(self.informer.unfinished, timeout)
        self.task.cancel()
        await asyncio.wait({self.task}, timeout=timeout)
        if self.task.done():
            return undrained
        names = self.unfinished or (self.task.get_name(),)
        self.give_up()
        return names

    def give_up(self) -> None:
        """Stop waiting for threads that don't return, and forget the ended task."""
        for each in self.informer.unfinished:
            each.give_up()
        if self.task is not None and self.task.done():
            self.task = None  # its exception refers to the factory's frames


class SharedInformerFactory:
    """Makes informers, shares them, runs them. ``async with``, or await ``run``."""

    def __init__(
        self,
        source: Source,
        *,
        namespace: str | None = None,
        shutdown_timeout: float = SHUTDOWN_TIMEOUT,
        **options: Unpack[InformerKeywords],
    ) -> None:
        """Make a factory with no informers.

        Args:
            source: a ``Client``, for example.
            namespace: the scope of informers that don't name another; ``None`` for all namespaces.
            shutdown_timeout: seconds that leaving waits for handlers: for those with ``drain=True``
                to finish their pending events, and for all to end after their cancellation.
                Handlers that still run then are logged by name and raised as
                ``ShutdownIncomplete``. A thread is abandoned; a task that ignores its cancellation
                keeps ``asyncio.run`` waiting after the factory's end.
            **options: the options of the informers; see ``InformerOptions`` for each.

        Raises:
            TypeError: ``source`` can't be one, or a keyword is no option or has a wrong type.
            ValueError: a number is out of range.
        """
        self._source = check_source(source)
        check_factory_options(options)
        self._options = InformerOptions().merge(options)
        self._namespace = namespace or None
        check_seconds("shutdown_timeout", shutdown_timeout, zero="no wait")
        self._shutdown_timeout = shutdown_timeout
        self._server_profiles: dict[Resource, ServerProfile] = {}
        self._entries: dict[InformerKey, InformerEntry] = {}
        self._supervisor = Supervisor("informer factory")

    # -- informers -------------------------------------------------------------------------------

    @overload
    def informer(
        self,
        resource: str | Resource,
        *,
        indexers: Indexers | None = None,
        **request: Unpack[InformerRequest],
    ) -> SharedInformer: ...
    @overload
    def informer(
        self,
        resource: str | Resource,
        *,
        indexers: Indexers[M] | None = None,
        model: type[M],
        **request: Unpack[InformerRequest],
    ) -> SharedInformer[M]: ...
    @overload
    def informer(
        self,
        resource: str | Resource,
        *,
        indexers: Indexers[M] | None = None,
        convert: Callable[[KubeObject], M],
        **request: Unpack[InformerRequest],
    ) -> SharedInformer[M]: ...
    @suggest_keywords
    def informer(
        self,
        resource: str | Resource,
        *,
        indexers: Indexers[Any] | None = None,
        model: type[Any] | None = None,
        convert: Callable[[KubeObject], Any] | None = None,
        **request: Unpack[InformerRequest],
    ) -> SharedInformer[Any]:
        """Return the informer of a resource: the existing one, or a new one. No network is used.

        An informer that is requested while the factory runs starts at once, and ends with the
        factory.

        Args:
            resource: the name of a built-in resource in any of its forms, or a ``Resource``.
            indexers: index functions by index name, added to the informer's.
            model: the type to build from each object as it is read, instead of keeping its JSON;
                see ``Shape.of``. All readers share the object: make it frozen, or never change it.
                Another model makes another informer.
            convert: makes what programs see of an object, at each access; see ``Shape.of``.
            **request: ``namespace``, ``namespaces``, ``labels``, ``fields``, ``managed_fields``,
                ``metadata_only`` and ``transform`` select the objects, and so the informer; see
                ``Shape.of``. The options of ``InformerOptions`` take the place of the factory's for
                this informer.

        Raises:
            UnknownResource: no built-in resource has that name.
            InvalidSelector: a selector doesn't parse.
            NotRunning: the factory has ended.
            UsageError: ``model`` and ``convert`` are both given, ``model`` can't be one, an index
                function reads JSON that isn't kept, or the informer exists with another value of an
                option.
        """
        key, overrides = self._resolve(resource, model, convert, request)
        entry = self._get_or_create(key, indexers, overrides)
        entry.pinned = True
        return entry.informer

    @overload
    def use(
        self,
        resource: str | Resource,
        *,
        indexers: Indexers | None = None,
        **request: Unpack[InformerRequest],
    ) -> AbstractAsyncContextManager[SharedInformer]: ...
    @overload
    def use(
        self,
        resource: str | Resource,
        *,
        indexers: Indexers[M] | None = None,
        model: type[M],
        **request: Unpack[InformerRequest],
    ) -> AbstractAsyncContextManager[SharedInformer[M]]: ...
    @overload
    def use(
        self,
        resource: str | Resource,
        *,
        indexers: Indexers[M] | None = None,
        convert: Callable[[KubeObject], M],
        **request: Unpack[InformerRequest],
    ) -> AbstractAsyncContextManager[SharedInformer[M]]: ...
    @suggest_keywords
    @asynccontextmanager
    async def use(
        self,
        resource: str | Resource,
        *,
        indexers: Indexers[Any] | None = None,
        model: type[Any] | None = None,
        convert: Callable[[KubeObject], Any] | None = None,
        **request: Unpack[InformerRequest],
    ) -> AsyncGenerator[SharedInformer[Any]]:
        """Give an informer for the length of a block: it stops when its last user leaves.

        An informer that was requested with ``informer()`` stays. Arguments and errors are those of
        ``informer``, and all errors are raised on entering. If objects are cached already, the
        indexes are built; an index that can't be built raises ``IndexFailed``.
        """
        key, overrides = self._resolve(resource, model, convert, request)
        entry = self._get_or_create(key, {}, overrides)
        entry.users += 1
        try:
            for name, function in check_indexers(indexers).items():
                await entry.informer.add_index(name, function)
            yield entry.informer
        except BaseException:
            await self._release(entry, failed=True)
            raise
        else:
            await self._release(entry, failed=False)

    def _resolve(
        self,
        resource: str | Resource,
        model: type[Any] | None,
        convert: Callable[[KubeObject], Any] | None,
        request: InformerRequest,
    ) -> tuple[InformerKey, Mapping[str, Any]]:
        """Return the key of the requested informer, and the options that the caller sets."""
        self._supervisor.check_usable()
        namespace, namespaces = request.get("namespace"), request.get("namespaces")
        if namespace is not None and namespaces is not None:
            raise UsageError("namespace= and namespaces= exclude each other; pass one of them")
        options = chosen_options(request)
        shard = self._options.merge(options).shard
        if shard is not None:
            from aioinformer.sharding.feature import is_whole  # for its users alone

            if is_whole(shard):
                shard = None
                if self._options.shard is None:
                    del options["shard"]  # all objects: the same informer as without a shard
        key = InformerKey.of(
            resource,
            namespaces=namespaces,
            shard=shard,
            namespace=self._namespace if namespace is None else namespace,
            labels=request.get("labels", ""),
            fields=request.get("fields", ""),
            managed_fields=request.get("managed_fields", False),
            shape=Shape.checked(
                model,
                convert,
                request.get("transform"),
                metadata_only=request.get("metadata_only", False),
            ),
        )
        return key, options

    def _get_or_create(
        self, key: InformerKey, indexers: Indexers[Any] | None, overrides: Mapping[str, Any]
    ) -> InformerEntry:
        entry = self._entries.get(key)
        if entry is None:
            options = self._options.merge(overrides)
            followed = self._follow_namespaces(key)
            informer = self._new_informer(key, indexers, options, followed)
            entry = self._entries[key] = InformerEntry(informer, options, needs=followed)
            if followed is not None:
                followed.users += 1
            self._start(key, entry)
        else:
            entry.check_overrides(overrides)
            add_indexers(entry.informer, indexers)
        return entry

    def _new_informer(
        self,
        key: InformerKey,
        indexers: Indexers[Any] | None,
        options: InformerOptions,
        followed: InformerEntry | None,
    ) -> SharedInformer[Any]:
        return SharedInformer(
            self._source.lister_watcher(
                key.resource, namespace=key.namespace, labels=key.labels, fields=key.fields
            ),
            name=str(key),
            label=key.label,
            namespace=key.namespace,
            shape=key.shape,
            indexers=indexers,
            profile=self._server_profiles.setdefault(key.resource, ServerProfile()),
            managed_fields=key.managed_fields,
            client=_writer_source(self._source),
            options=options,
            namespaces=self._read_namespaces(key, followed),
        )

    def _read_namespaces(
        self, key: InformerKey, followed: InformerEntry | None
    ) -> NamespacesFeature | None:
        if key.namespaces is None:
            return None
        from aioinformer.namespaces.feature import NamespacesFeature  # for its users alone
        from aioinformer.namespaces.scoped_source import ScopedSource

        informer = None if followed is None else followed.informer
        return NamespacesFeature(
            ScopedSource.of(self._source, key.resource, key.namespaces, informer)
        )

    def _follow_namespaces(self, key: InformerKey) -> InformerEntry | None:
        """Return the informer of namespaces that an informer needs to follow them."""
        if key.namespaces is None or key.namespaces.predicate is None:
            return None
        namespaces = InformerKey.of(
            "namespaces", namespace=None, labels="", fields="", managed_fields=False
        )
        # All Namespace objects are read, also if the informers read a shard of their resources.
        whole: dict[str, Any] = {}
        if self._options.shard is not None:
            from aioinformer.sharding.state.shard import Shard  # for informers of shards

            whole["shard"] = Shard(0, 1)
        return self._get_or_create(namespaces, {}, whole)

    async def _release(self, entry: InformerEntry, *, failed: bool) -> None:
        """Remove one user; stop the informer if nothing needs it any more."""
        entry.users -= 1
        if entry.in_use:
            return
        self._entries = {key: each for key, each in self._entries.items() if each is not entry}
        left = await entry.stop(self._shutdown_timeout)
        if entry.needs is not None:
            await self._release(entry.needs, failed=failed)
        if left:
            incomplete = ShutdownIncomplete(left, waited=self._shutdown_timeout)
            if not failed:
                raise incomplete
            log.error("%s", incomplete)  # the error of the block is the one to raise

    def __iter__(self) -> Iterator[SharedInformer]:
        return iter([entry.informer for entry in self._entries.values()])

    async def wait_synced(self, timeout: float | None = None) -> None:
        """Wait until the cache of every informer, also of those added meanwhile, holds its initial
        list.

        Raises:
            SyncTimeout: not within ``timeout`` seconds; the error says which informers, and why.
            NotRunning: an informer ended before, and is still in use.
            UsageError: the factory was not entered.
        """
        if not await self._supervisor.is_entered_soon():
            raise UsageError(
                "the factory was not entered, so its informers don't run: wait inside of "
                "'async with factory:', or while a task awaits factory.run()"
            )
        async with sync_timeout(timeout, self._unsynced_health):
            while waiting := [informer for informer in self if not informer.synced]:
                try:
                    await waiting[0].wait_synced()
                except NotRunning:
                    if waiting[0] in list(self):  # else its last user has left: nobody waits for it
                        raise

    def _unsynced_health(self) -> dict[str, str]:
        return {each.name: str(each.health) for each in self if not each.synced}

    # -- lifetime ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run the informers until cancelled, and leave them as ``async with`` does: for programs
        with a task group of their own. Errors are raised unwrapped; a second start is a
        ``UsageError``.
        """
        async with self:
            await asyncio.get_running_loop().create_future()

    async def __aenter__(self) -> Self:
        await self._supervisor.enter(self._start_all)
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._shutdown_timeout
        undrained: tuple[str, ...] = ()
        try:
            if self._supervisor.running:  # a factory that has failed discards pending events
                unfinished = [each for informer in self for each in informer.unfinished]
                undrained = await drain_handlers(unfinished, self._shutdown_timeout)
        finally:
            timeout = max(deadline - clock(), min(CANCEL_GRACE, self._shutdown_timeout))
            try:
                names = self._unfinished_names
                await self._supervisor.leave(error, timeout=timeout, running_names=names)
            finally:
                for entry in self._entries.values():
                    entry.give_up()
        if undrained and error is None:
            raise ShutdownIncomplete(undrained, waited=self._shutdown_timeout)

    def _start_all(self) -> None:
        for key, entry in self._entries.items():
            self._start(key, entry)

    def _start(self, key: InformerKey, entry: InformerEntry) -> None:
        """Run an informer, if the factory runs. Say if one other factory runs the same informer."""
        entry.start(self._supervisor)
        if entry.task is None:
            return
        of, own = (id(self._source), key), id(self)
        running = _RUNNING.setdefault(of, [])
        running.append(own)
        if len({*running}) == 2:  # and not for each further one
            log.info(
                "%s: 2 factories of one client run this informer, so that its objects are read "
                "and cached 2 times: share one factory",
                entry.informer.name,
            )

        def forget(_: object) -> None:
            running.remove(own)
            if not running:
                del _RUNNING[of]

        entry.task.add_done_callback(forget)

    def _unfinished_names(self) -> tuple[str, ...]:
        return tuple(name for each in self._entries.values() for name in each.unfinished)

    def __repr__(self) -> str:
        synced = sum(informer.synced for informer in self)
        return (
            f"<SharedInformerFactory {self._supervisor.state} informers={len(self._entries)} "
            f"synced={synced}>"
        )


def _writer_source(source: Any) -> WriterSource | None:
    return source if callable(getattr(source, "api", None)) else None
