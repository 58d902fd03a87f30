"""The factory: the lifetime of the informers that it hands out.

How they are asked for is ``hosting``'s, how tasks are owned and ended ``supervisor``'s; what an
informer is made of is ``informer``'s.
"""

from __future__ import annotations

import asyncio
from functools import partial
from types import TracebackType
from typing import Self

from aioinformer._core.backoff import BackoffPolicy
from aioinformer._core.liveness import LivenessPolicy
from aioinformer._core.metrics import Metrics
from aioinformer._core.tracing import Tracing
from aioinformer._runtime.holdings import all_synced
from aioinformer._runtime.hosting import ALL_NAMESPACES as ALL_NAMESPACES
from aioinformer._runtime.hosting import Hosting
from aioinformer._runtime.hosting import Source as Source
from aioinformer._runtime.informer import SharedInformer
from aioinformer._runtime.registration import drained
from aioinformer._runtime.reports import OnError, check_hook
from aioinformer.errors import FetchError, ShutdownIncomplete

__all__ = ["ALL_NAMESPACES", "SharedInformerFactory", "Source"]

LEAVING = 10.0
"""Seconds that leaving waits for handlers to finish what is pending, for those with ``drain=True``,
and to honour their cancellation."""

GRACE = 1.0
"""Seconds to honour it where draining has taken all of the time."""


class SharedInformerFactory(Hosting):
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
        shutdown_timeout: float = LEAVING,
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
