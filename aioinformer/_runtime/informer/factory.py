"""The factory: the lifetime of the informers that it hands out.

How they are asked for is ``hosting``'s, how tasks are owned and ended ``supervisor``'s; what an
informer is made of is ``informer``'s.

Handing out informers: one for each (resource, scope, selectors, shape), to whoever asks.

An informer that is asked for while its factory runs starts at once; one that is only used goes with
its last user. When all of them start and end is ``factory``'s.

What a factory holds: informers, who needs them, and the tasks that run them.

An informer that was asked for with ``informer()`` stays until the end; one that is only used goes
with its last user. Which informers are the same one is ``identity``'s to say, when all of them
start and end the factory's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar, overload

from msgspec import Struct

from aioinformer._core.cache.store import Indexers
from aioinformer._core.codec.shape import Shape, Transform
from aioinformer._core.instrumentation import Metrics, Tracing
from aioinformer._core.listwatch.backoff import BackoffPolicy
from aioinformer._core.listwatch.idle_timeout import LivenessPolicy
from aioinformer._core.listwatch.server_profile import ServerProfile
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.resources import Resource
from aioinformer._core.selectors.label_parser import LabelMapping
from aioinformer._runtime.delivery.registration import drain_handlers
from aioinformer._runtime.informer.informer import SharedInformer
from aioinformer._runtime.informer.informer_key import InformerKey
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher
from aioinformer._runtime.reporting.reporter import OnError, check_hook
from aioinformer._runtime.tasks.supervisor import Supervisor
from aioinformer.errors import FetchError, NotRunning, ShutdownIncomplete, SyncTimeout

__all__ = [
    "ALL_NAMESPACES",
    "InformerEntry",
    "InformerRegistry",
    "SharedInformerFactory",
    "Source",
    "wait_all_synced",
]


class InformerEntry(Struct, eq=False):
    """An informer and who needs it."""

    informer: SharedInformer[Any]
    task: asyncio.Task[None] | None = None
    users: int = 0
    pinned: bool = False
    """Whether it was asked for with ``informer()``, and so stays until the end."""

    @property
    def in_use(self) -> bool:
        """Whether anybody needs it."""
        return self.pinned or self.users > 0

    @property
    def unfinished(self) -> tuple[str, ...]:
        """The names of its handlers that have not ended."""
        return tuple(each.unfinished_work for each in self.informer.unfinished)

    def start(self, supervisor: Supervisor) -> None:
        """Run it, if there is somebody to run it."""
        if supervisor.running:
            self.task = supervisor.spawn(
                self.informer.run(failed=supervisor.fail),
                name=f"informer of {self.informer.name}",
            )

    async def stop(self, timeout: float) -> tuple[str, ...]:
        """Stop it: first let handlers finish that are to drain, then cancel.

        Args:
            timeout: seconds for each of the two.

        Returns:
            The names of what was still running then.
        """
        if self.task is None:
            return ()
        left = await drain_handlers(self.informer.unfinished, timeout)
        self.task.cancel()
        await asyncio.wait({self.task}, timeout=timeout)
        if self.task.done():
            return left
        names = self.unfinished or (self.task.get_name(),)
        self.give_up()
        return names

    def give_up(self) -> None:
        """Wait no more for threads that don't return."""
        for each in self.informer.unfinished:
            each.give_up()


async def wait_all_synced(
    informers: Callable[[], Sequence[SharedInformer[Any]]], timeout: float | None
) -> None:
    """Wait until every informer's cache holds its first full state.

    Args:
        informers: those that there are; more may come and some may go meanwhile.
        timeout: seconds.

    Raises:
        SyncTimeout: not within that time; it says which informers, and why.
        NotRunning: an informer ended before, and is still held.
    """
    try:
        async with asyncio.timeout(timeout):
            while waiting := [informer for informer in informers() if not informer.synced]:
                try:
                    await waiting[0].wait_synced()
                except NotRunning:
                    if waiting[0] in informers():  # else its last user has left, and nobody waits
                        raise
    except TimeoutError:
        unsynced = {each.name: str(each.health) for each in informers() if not each.synced}
        raise SyncTimeout(timeout or 0.0, unsynced) from None


log = logging.getLogger("aioinformer.factory")

M = TypeVar("M")

ALL_NAMESPACES = ""
"""As ``namespace``: every namespace, also where the factory has one of its own."""


class Source(Protocol):
    """Where informers list and watch: a ``Client``, or a cluster in memory."""

    def lister_watcher(
        self, resource: Resource, *, namespace: str | None, labels: str, fields: str
    ) -> ListerWatcher:
        """The list and the watch of one resource in one scope."""
        ...


class InformerRegistry:
    """The half of a factory that programs ask for informers."""

    def __init__(
        self,
        source: Source,
        create_informer: Callable[..., SharedInformer[Any]],
        *,
        namespace: str | None,
        shutdown_timeout: float,
    ) -> None:
        """No informers yet.

        Args:
            source: where they list and watch.
            create_informer: makes one.
            namespace: their scope unless they name another; ``None`` for all.
            shutdown_timeout: seconds that one may take to stop.
        """
        self._source = source
        self._create_informer = create_informer
        self._namespace = namespace or None
        self._server_profiles: dict[Resource, ServerProfile] = {}
        self._shutdown_timeout = shutdown_timeout
        self._entries: dict[InformerKey, InformerEntry] = {}
        self._supervisor = Supervisor("informer factory")

    @overload
    def informer(
        self,
        resource: str | Resource,
        *,
        namespace: str | None = None,
        labels: str | LabelMapping = "",
        fields: str | Mapping[str, str] = "",
        indexers: Indexers | None = None,
        managed_fields: bool = False,
        transform: Transform | None = None,
    ) -> SharedInformer: ...
    @overload
    def informer(
        self,
        resource: str | Resource,
        *,
        namespace: str | None = None,
        labels: str | LabelMapping = "",
        fields: str | Mapping[str, str] = "",
        indexers: Indexers[M] | None = None,
        managed_fields: bool = False,
        model: type[M],
        transform: Transform | None = None,
    ) -> SharedInformer[M]: ...
    @overload
    def informer(
        self,
        resource: str | Resource,
        *,
        namespace: str | None = None,
        labels: str | LabelMapping = "",
        fields: str | Mapping[str, str] = "",
        indexers: Indexers[M] | None = None,
        managed_fields: bool = False,
        convert: Callable[[KubeObject], M],
        transform: Transform | None = None,
    ) -> SharedInformer[M]: ...
    def informer(
        self,
        resource: str | Resource,
        *,
        namespace: str | None = None,
        labels: str | LabelMapping = "",
        fields: str | Mapping[str, str] = "",
        indexers: Indexers[Any] | None = None,
        managed_fields: bool = False,
        model: type[Any] | None = None,
        convert: Callable[[KubeObject], Any] | None = None,
        transform: Transform | None = None,
    ) -> SharedInformer[Any]:
        """The informer of a resource: the one that there is, or a new one. No network is used.

        Args:
            resource: the name of a built-in resource in any of its forms, or a ``Resource``.
            namespace: its scope; ``None`` for the factory's, ``ALL_NAMESPACES`` for all.
            labels: a label selector, applied by the server.
            fields: a field selector, applied by the server.
            indexers: index functions by index name, added to those that it has.
            managed_fields: whether objects keep ``metadata.managedFields``.
            model: what to build of each object as it is read, instead of keeping its JSON; see
                ``Shape.of``. Another model is another informer.
            convert: what makes of an object what programs see, when they look; see ``Shape.of``.
            transform: replaces or drops objects before anything else sees them; see ``Transform``.

        Raises:
            UnknownResource: no built-in resource has that name.
            InvalidSelector: a selector doesn't parse.
            NotRunning: the factory has ended.
            UsageError: ``model`` and ``convert`` are both given, ``model`` can't be one, or an
                index function reads JSON that isn't kept.
        """
        shape = Shape.checked(model, convert, transform)
        identity = self._make_key(resource, namespace, labels, fields, managed_fields, shape)
        holding = self._get_or_create(identity, indexers)
        holding.pinned = True
        return holding.informer

    @overload
    def use(
        self,
        resource: str | Resource,
        *,
        namespace: str | None = None,
        labels: str | LabelMapping = "",
        fields: str | Mapping[str, str] = "",
        indexers: Indexers | None = None,
        managed_fields: bool = False,
        transform: Transform | None = None,
    ) -> AbstractAsyncContextManager[SharedInformer]: ...
    @overload
    def use(
        self,
        resource: str | Resource,
        *,
        namespace: str | None = None,
        labels: str | LabelMapping = "",
        fields: str | Mapping[str, str] = "",
        indexers: Indexers[M] | None = None,
        managed_fields: bool = False,
        model: type[M],
        transform: Transform | None = None,
    ) -> AbstractAsyncContextManager[SharedInformer[M]]: ...
    @overload
    def use(
        self,
        resource: str | Resource,
        *,
        namespace: str | None = None,
        labels: str | LabelMapping = "",
        fields: str | Mapping[str, str] = "",
        indexers: Indexers[M] | None = None,
        managed_fields: bool = False,
        convert: Callable[[KubeObject], M],
        transform: Transform | None = None,
    ) -> AbstractAsyncContextManager[SharedInformer[M]]: ...
    def use(
        self,
        resource: str | Resource,
        *,
        namespace: str | None = None,
        labels: str | LabelMapping = "",
        fields: str | Mapping[str, str] = "",
        indexers: Indexers[Any] | None = None,
        managed_fields: bool = False,
        model: type[Any] | None = None,
        convert: Callable[[KubeObject], Any] | None = None,
        transform: Transform | None = None,
    ) -> AbstractAsyncContextManager[SharedInformer[Any]]:
        """An informer for as long as it is needed: the last one out stops it.

        One that was asked for with ``informer()`` stays. Arguments and errors are the same, but
        that indexes are built where there are objects already; one that can't be is
        ``IndexFailed``. All of them are raised on entering.
        """
        return self._use(
            lambda: self._make_key(
                *(resource, namespace, labels, fields, managed_fields),
                Shape.checked(model, convert, transform),
            ),
            indexers or {},
        )

    @asynccontextmanager
    async def _use(
        self, make_key: Callable[[], InformerKey], indexers: Indexers[Any]
    ) -> AsyncGenerator[SharedInformer[Any]]:
        holding = self._get_or_create(make_key(), {})
        holding.users += 1
        try:
            for name, function in indexers.items():
                await holding.informer.add_index(name, function)
            yield holding.informer
        except BaseException:
            await self._release(holding, failed=True)
            raise
        else:
            await self._release(holding, failed=False)

    def _make_key(
        self,
        resource: str | Resource,
        namespace: str | None,
        labels: str | LabelMapping,
        fields: str | Mapping[str, str],
        managed_fields: bool,
        shape: Shape[Any],
    ) -> InformerKey:
        self._supervisor.check_usable()
        return InformerKey.of(
            resource,
            namespace=self._namespace if namespace is None else namespace,
            labels=labels,
            fields=fields,
            managed_fields=managed_fields,
            shape=shape,
        )

    def _get_or_create(self, key: InformerKey, indexers: Indexers[Any] | None) -> InformerEntry:
        holding = self._entries.get(key)
        if holding is None:
            holding = self._entries[key] = InformerEntry(self._new_informer(key, indexers))
            holding.start(self._supervisor)
        else:
            holding.informer.add_indexers(indexers or {})
        return holding

    def _new_informer(
        self, key: InformerKey, indexers: Indexers[Any] | None
    ) -> SharedInformer[Any]:
        source = self._source.lister_watcher(
            key.resource,
            namespace=key.namespace,
            labels=key.labels,
            fields=key.fields,
        )
        return self._create_informer(
            source,
            name=str(key),
            label=key.label,
            namespace=key.namespace,
            shape=key.shape,
            indexers=indexers,
            habits=self._server_profiles.setdefault(key.resource, ServerProfile()),
            managed_fields=key.managed_fields,
        )

    async def _release(self, entry: InformerEntry, *, failed: bool) -> None:
        """One user less; without any, the informer is stopped."""
        entry.users -= 1
        if entry.in_use:
            return
        self._entries = {key: each for key, each in self._entries.items() if each is not entry}
        if left := await entry.stop(self._shutdown_timeout):
            incomplete = ShutdownIncomplete(left, waited=self._shutdown_timeout)
            if not failed:
                raise incomplete
            log.error("%s", incomplete)

    def __iter__(self) -> Iterator[SharedInformer]:
        return iter([holding.informer for holding in self._entries.values()])


SHUTDOWN_TIMEOUT = 10.0
"""Seconds that leaving waits for handlers to finish what is pending, for those with ``drain=True``,
and to honour their cancellation."""

CANCEL_GRACE = 1.0
"""Seconds to honour it where draining has taken all of the time."""


class SharedInformerFactory(InformerRegistry):
    """Makes informers, shares them, runs them. ``async with``, or await ``run``."""

    def __init__(
        self,
        source: Source,
        *,
        namespace: str | None = None,
        resync: float = 0.0,
        verify_every: float = 0.0,
        backoff: BackoffPolicy | None = None,
        liveness: LivenessPolicy | None = None,
        watch_list: bool = True,
        metrics: Metrics | None = None,
        tracing: Tracing | None = None,
        on_error: OnError | None = None,
        fail_fast: tuple[type[FetchError], ...] = (),
        shutdown_timeout: float = SHUTDOWN_TIMEOUT,
    ) -> None:
        """Make a factory with no informers.

        Args:
            source: a ``Client``, for example.
            namespace: the scope of its informers unless they name another; ``None`` for all.
            resync: seconds between two resyncs of each informer; 0 for never.
            verify_every: seconds between two comparisons of each cache with the server; 0 for
                never. See ``SharedInformer``.
            backoff: how long informers wait after failures.
            liveness: how long they bear the silence of a watch.
            watch_list: whether they get the state by a WatchList where the server can do that,
                rather than by a list.
            metrics: what they feed with numbers; see ``aioinformer.adapters.prometheus``.
            tracing: what makes spans of what they do; see ``aioinformer.adapters.opentelemetry``.
            on_error: is told of every ``Problem``, in the event loop: it must be quick.
            fail_fast: errors of requests, ``Forbidden`` for example, that end the factory instead
                of being tried again: its body is cancelled, and they are raised there.
            shutdown_timeout: seconds that leaving waits for handlers: for those with
                ``drain=True`` to finish what is pending, and for all to honour their cancellation.
                What is still running then is logged by name and is ``ShutdownIncomplete``. A
                thread is left to itself; a task that swallows its cancellation keeps
                ``asyncio.run`` waiting behind the factory's end.

        Raises:
            TypeError: ``source`` or ``on_error`` is none, or ``metrics`` or ``tracing`` a class.
        """
        if not hasattr(source, "lister_watcher"):
            raise TypeError(
                f"a factory takes a Client, or another source of informers, not {source!r}"
            )
        check_hook(on_error)
        for name, given in (("metrics", metrics), ("tracing", tracing)):
            if isinstance(given, type):
                raise TypeError(f"{name} is an object: pass {given.__name__}(), not the class")
        make = partial(
            SharedInformer,
            resync=resync,
            verify_every=verify_every,
            backoff=backoff,
            liveness=liveness,
            watch_list=watch_list,
            metrics=metrics,
            tracing=tracing,
            on_error=on_error,
            fail_fast=fail_fast,
        )
        super().__init__(source, make, namespace=namespace, shutdown_timeout=shutdown_timeout)

    async def wait_synced(self, timeout: float | None = None) -> None:
        """Wait until every informer's cache holds its first full state.

        Args:
            timeout: seconds.

        Raises:
            SyncTimeout: not within that time; it says which informers, and why.
            NotRunning: an informer ended before.
        """
        await wait_all_synced(lambda: list(self), timeout)

    # -- lifetime ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run the informers until this is cancelled, and leave them as ``async with`` does.

        For programs with a task group of their own. What goes wrong is raised as itself.

        Raises:
            UsageError: the factory was started before.
        """
        async with self:
            await asyncio.get_running_loop().create_future()

    async def __aenter__(self) -> Self:
        await self._supervisor.enter(self._start_all)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._shutdown_timeout
        undrained: tuple[str, ...] = ()
        try:
            if self._supervisor.running:  # who fails drops what is pending
                unfinished = [each for informer in self for each in informer.unfinished]
                undrained = await drain_handlers(unfinished, self._shutdown_timeout)
        finally:
            timeout = max(deadline - clock(), min(CANCEL_GRACE, self._shutdown_timeout))
            try:
                await self._supervisor.leave(
                    error, timeout=timeout, running_names=self._unfinished_names
                )
            finally:
                for holding in self._entries.values():
                    holding.give_up()
        if undrained and error is None:
            raise ShutdownIncomplete(undrained, waited=self._shutdown_timeout)

    def _start_all(self) -> None:
        for holding in self._entries.values():
            holding.start(self._supervisor)

    def _unfinished_names(self) -> tuple[str, ...]:
        return tuple(name for each in self._entries.values() for name in each.unfinished)

    def __repr__(self) -> str:
        synced = sum(informer.synced for informer in self)
        return (
            f"<SharedInformerFactory {self._supervisor.state} informers={len(self._entries)} "
            f"synced={synced}>"
        )
