"""The factory: one informer for each (resource, scope, selectors, shape), and their lifetime.

How tasks are owned and ended is ``supervisor``'s; what an informer is made of is ``informer``'s.
An informer that is asked for while the factory runs starts at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from types import TracebackType
from typing import Protocol, Self

from aioinformer._core.backoff import BackoffPolicy
from aioinformer._core.habits import Habits
from aioinformer._core.liveness import LivenessPolicy
from aioinformer._core.metrics import Metrics
from aioinformer._core.resources import Resource
from aioinformer._core.store import IndexFunction
from aioinformer._runtime.holdings import Holding, all_synced
from aioinformer._runtime.identity import Identity
from aioinformer._runtime.informer import SharedInformer
from aioinformer._runtime.registration import drained
from aioinformer._runtime.reports import OnError, check_hook
from aioinformer._runtime.sources import ListerWatcher
from aioinformer._runtime.supervisor import Supervisor
from aioinformer.errors import FetchError, ShutdownIncomplete

__all__ = ["ALL_NAMESPACES", "SharedInformerFactory", "Source"]

log = logging.getLogger("aioinformer.factory")

ALL_NAMESPACES = ""
"""As ``namespace``: every namespace, also where the factory has one of its own."""

LEAVING = 10.0
"""Seconds that leaving waits for handlers to finish what is pending, for those with ``drain=True``,
and to honour their cancellation."""

GRACE = 1.0
"""Seconds to honour it where draining has taken all of the time."""


class Source(Protocol):
    """Where informers list and watch: a ``Client``, or a cluster in memory."""

    def lister_watcher(
        self, resource: Resource, *, namespace: str | None, labels: str, fields: str
    ) -> ListerWatcher:
        """The list and the watch of one resource in one scope."""
        ...


class SharedInformerFactory:
    """Makes informers, shares them, runs them. ``async with``, or await ``run``."""

    def __init__(
        self,
        source: Source,
        *,
        namespace: str | None = None,
        resync: float = 0.0,
        backoff: BackoffPolicy | None = None,
        liveness: LivenessPolicy | None = None,
        watch_list: bool = True,
        metrics: Metrics | None = None,
        on_error: OnError | None = None,
        fail_fast: tuple[type[FetchError], ...] = (),
        shutdown_timeout: float = LEAVING,
    ) -> None:
        """Make a factory with no informers.

        Args:
            source: a ``Client``, for example.
            namespace: the scope of its informers unless they name another; ``None`` for all.
            resync: seconds between two resyncs of each informer; 0 for never.
            backoff: how long informers wait after failures.
            liveness: how long they bear the silence of a watch.
            watch_list: whether they get the state by a WatchList where the server can do that,
                rather than by a list.
            metrics: what they feed with numbers; see ``aioinformer.adapters.prometheus``.
            on_error: is told of every ``Problem``, in the event loop: it must be quick.
            fail_fast: errors of requests, ``Forbidden`` for example, that end the factory instead
                of being tried again: its body is cancelled, and they are raised there.
            shutdown_timeout: seconds that leaving waits for handlers: for those with
                ``drain=True`` to finish what is pending, and for all to honour their cancellation.
                What is still running then is logged by name and is ``ShutdownIncomplete``. A
                thread is left to itself; a task that swallows its cancellation keeps
                ``asyncio.run`` waiting behind the factory's end.

        Raises:
            TypeError: ``source`` or ``on_error`` is none.
        """
        if not hasattr(source, "lister_watcher"):
            raise TypeError(
                f"a factory takes a Client, or another source of informers, not {source!r}"
            )
        check_hook(on_error)
        self._source = source
        self._namespace = namespace or None
        self._informer = partial(
            SharedInformer,
            resync=resync,
            backoff=backoff,
            liveness=liveness,
            watch_list=watch_list,
            metrics=metrics,
            on_error=on_error,
            fail_fast=fail_fast,
        )
        self._habits: dict[Resource, Habits] = {}
        self._shutdown_timeout = shutdown_timeout
        self._holdings: dict[Identity, Holding] = {}
        self._supervisor = Supervisor("informer factory")

    # -- informers -----------------------------------------------------------------------------

    def informer(
        self,
        resource: str | Resource,
        *,
        namespace: str | None = None,
        labels: str | Mapping[str, str] = "",
        fields: str | Mapping[str, str] = "",
        indexers: Mapping[str, IndexFunction] | None = None,
        managed_fields: bool = False,
    ) -> SharedInformer:
        """The informer of a resource: the one that there is, or a new one. No network is used.

        Args:
            resource: the name of a built-in resource in any of its forms, or a ``Resource``.
            namespace: its scope; ``None`` for the factory's, ``ALL_NAMESPACES`` for all.
            labels: a label selector, applied by the server.
            fields: a field selector, applied by the server.
            indexers: index functions by index name, added to those that it has.
            managed_fields: whether objects keep ``metadata.managedFields``.

        Raises:
            UnknownResource: no built-in resource has that name.
            InvalidSelector: a selector doesn't parse.
            NotRunning: the factory has ended.
        """
        holding = self._holding(resource, namespace, labels, fields, indexers, managed_fields)
        holding.kept = True
        return holding.informer

    @asynccontextmanager
    async def use(
        self,
        resource: str | Resource,
        *,
        namespace: str | None = None,
        labels: str | Mapping[str, str] = "",
        fields: str | Mapping[str, str] = "",
        indexers: Mapping[str, IndexFunction] | None = None,
        managed_fields: bool = False,
    ) -> AsyncGenerator[SharedInformer]:
        """An informer for as long as it is needed: the last one out stops it.

        One that was asked for with ``informer()`` stays. Arguments and errors are the same, but
        that indexes are built where there are objects already; one that can't be is
        ``IndexFailed``.
        """
        holding = self._holding(resource, namespace, labels, fields, {}, managed_fields)
        holding.users += 1
        try:
            for name, function in (indexers or {}).items():
                await holding.informer.add_index(name, function)
            yield holding.informer
        except BaseException:
            await self._release(holding, failed=True)
            raise
        else:
            await self._release(holding, failed=False)

    def _holding(
        self,
        resource: str | Resource,
        namespace: str | None,
        labels: str | Mapping[str, str],
        fields: str | Mapping[str, str],
        indexers: Mapping[str, IndexFunction] | None,
        managed_fields: bool,
    ) -> Holding:
        self._supervisor.check_usable()
        identity = Identity.of(
            resource,
            namespace=self._namespace if namespace is None else namespace,
            labels=labels,
            fields=fields,
            managed_fields=managed_fields,
        )
        holding = self._holdings.get(identity)
        if holding is None:
            holding = self._holdings[identity] = Holding(self._make(identity, indexers))
            holding.start(self._supervisor)
        else:
            holding.informer.add_indexers(indexers or {})
        return holding

    def _make(
        self, identity: Identity, indexers: Mapping[str, IndexFunction] | None
    ) -> SharedInformer:
        source = self._source.lister_watcher(
            identity.resource,
            namespace=identity.namespace,
            labels=identity.labels,
            fields=identity.fields,
        )
        return self._informer(
            source,
            name=str(identity),
            label=identity.label,
            namespace=identity.namespace,
            indexers=indexers,
            habits=self._habits.setdefault(identity.resource, Habits()),
            managed_fields=identity.managed_fields,
        )

    async def _release(self, holding: Holding, *, failed: bool) -> None:
        """One user less; without any, the informer is stopped."""
        holding.users -= 1
        if holding.needed:
            return
        self._holdings = {key: each for key, each in self._holdings.items() if each is not holding}
        if left := await holding.stop(self._shutdown_timeout):
            incomplete = ShutdownIncomplete(left, waited=self._shutdown_timeout)
            if not failed:
                raise incomplete
            log.error("%s", incomplete)

    def __iter__(self) -> Iterator[SharedInformer]:
        return iter([holding.informer for holding in self._holdings.values()])

    async def wait_synced(self, timeout: float | None = None) -> None:
        """Wait until every informer's cache holds its first full state.

        Args:
            timeout: seconds.

        Raises:
            SyncTimeout: not within that time; it says which informers, and why.
            NotRunning: an informer ended before.
        """
        await all_synced(lambda: list(self), timeout)

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
                undrained = await drained(unfinished, self._shutdown_timeout)
        finally:
            timeout = max(deadline - clock(), min(GRACE, self._shutdown_timeout))
            try:
                await self._supervisor.leave(error, timeout=timeout, names=self._running)
            finally:
                for holding in self._holdings.values():
                    holding.give_up()
        if undrained and error is None:
            raise ShutdownIncomplete(undrained, waited=self._shutdown_timeout)

    def _start_all(self) -> None:
        for holding in self._holdings.values():
            holding.start(self._supervisor)

    def _running(self) -> tuple[str, ...]:
        return tuple(name for each in self._holdings.values() for name in each.unfinished)

    def __repr__(self) -> str:
        synced = sum(informer.synced for informer in self)
        return (
            f"<SharedInformerFactory {self._supervisor.state} informers={len(self._holdings)} "
            f"synced={synced}>"
        )
