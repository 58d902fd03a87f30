"""One run of an operator: connections, informers, terms of leadership, and the shutdown.

Everything runs inside one task, so that a failure of any part ends the whole operator in order. A
replica that leads finishes its runs when it is stopped; the task of another is cancelled.
Controllers with ``shards=`` run beside the task that waits for the lease or leads.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol

from aioinformer._client.client import Client
from aioinformer._core.objects.resources import find_built_in
from aioinformer._informers.factory import SharedInformerFactory
from aioinformer._informers.informer import SharedInformer
from aioinformer._runtime.reflector.lister_watcher import Source
from aioinformer._runtime.reporting.error_hook import Outage
from aioinformer._runtime.reporting.error_texts import describe_error
from aioinformer._runtime.writing.resource_writer import WriterSource
from aioinformer.controllers.controller import Controller
from aioinformer.errors import FetchError, LeadershipLost, ShutdownIncomplete, UsageError
from aioinformer.eventrecorder.event_recorder import EventRecorder
from aioinformer.leaderelection.elector import LeaderElector
from aioinformer.operator.builder import ControllerBuilder, Discovers
from aioinformer.operator.health import OperatorHealth
from aioinformer.operator.options import OperatorOptions

if TYPE_CHECKING:  # for operators with groups alone
    from aioinformer.shardgroup.group import ShardGroup

log = logging.getLogger("aioinformer.operator")

RESOLVE_DELAY = 1.0
MAX_RESOLVE_DELAY = 30.0
"""Seconds between two questions for resources: doubled each time, up to the second number."""


class OperatorClient(Source, WriterSource, Discovers, Protocol):
    """The API server as an operator needs it: a ``Client``, or a cluster in memory."""


class OperatorRun:
    """The only run of an operator."""

    def __init__(
        self,
        client: OperatorClient,
        informers: SharedInformerFactory,
        events: EventRecorder,
        options: OperatorOptions,
        *,
        health: Callable[[], OperatorHealth],
    ) -> None:
        self.controllers: tuple[Controller, ...] = ()
        self.groups: tuple[ShardGroup, ...] = ()
        self.elector: LeaderElector | None = None
        self.port: int | None = None
        self.stopping = False
        self.started = asyncio.Event()
        """Set when all resources are known; by the operator, also when the run has ended."""
        self._client = client
        self._informers = informers
        self._events = events
        self._options = options
        self._health = health
        self._task: asyncio.Task[None] | None = None
        self._candidate: asyncio.Task[None] | None = None
        """Waits for the lease and leads, beside the controllers with ``shards=``."""
        self._leads = False
        self._unfinished: list[str] = []

    async def run(self, builders: Sequence[ControllerBuilder]) -> None:
        """Run the controllers until ``stop``, a cancellation or a failure."""
        _check_election(builders, self._options)
        if self.stopping:
            return
        self.groups = tuple(dict.fromkeys(each.shards for each in builders if each.shards))
        task = self._task = asyncio.create_task(
            self._run(builders), name=f"operator {self._options.name}"
        )
        cancelled: asyncio.CancelledError | None = None
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError as error:
                cancelled = error
                task.cancel()
        log.info("%s has stopped", self._options.name)
        if cancelled is not None:
            raise cancelled
        if not (task.cancelled() and self.stopping):
            task.result()

    def stop(self) -> None:
        """Finish the current runs and end. Without a current run, end at once."""
        if self.stopping:
            return
        self.stopping = True
        for each in self.controllers:
            each.stop()
        task = self._candidate if self.controllers else self._task
        if task is not None and not self._leads:
            task.cancel()

    async def _run(self, builders: Sequence[ControllerBuilder]) -> None:
        async with AsyncExitStack() as stack:
            if self._options.port is not None:
                await stack.enter_async_context(self._serving(self._options.port))
            if isinstance(self._client, Client) and self._client.state == "new":
                await stack.enter_async_context(self._client)
            for group in self.groups:
                if group.health.state == "idle":  # else the program has entered the group itself
                    await stack.enter_async_context(group)
            # Ended before the groups are left, since a shard is given away by its last reader.
            await stack.enter_async_context(self._informers)
            await stack.enter_async_context(self._events)
            await self._resolve(builders)
            _check_builders(builders)
            self.started.set()
            await self._run_all(builders)
        if self._unfinished:
            waited = self._options.shutdown_timeout
            raise ShutdownIncomplete(tuple(self._unfinished), waited=waited)

    async def _resolve(self, builders: Sequence[ControllerBuilder]) -> None:
        """Find the resources that only the server knows. Ask for ever, as informers do: a server
        that restarts must not end its operators.
        """
        delay, name = RESOLVE_DELAY, self._options.name
        for each in builders:
            outage = Outage(log)
            while True:
                try:
                    await each.resolve(self._client)
                    outage.end("%s: the server names the resource of %s", name, each.name)
                    break
                except FetchError as error:
                    outage.begin()
                    log.warning(
                        "%s can't ask the server for the resource of %s, next attempt in "
                        "%.0f s: %s",
                        *(name, each.name, delay, describe_error(error)),
                    )
                await asyncio.sleep(delay)
                delay = min(2 * delay, MAX_RESOLVE_DELAY)

    @asynccontextmanager
    async def _serving(self, port: int) -> AsyncGenerator[None]:
        # Imported for operators with a port only, since aiohttp's server takes long to load.
        from aioinformer.operator.probe_server import ProbeServer

        server = ProbeServer(self.list_informers, self._health, self._options.metrics)
        async with server.serving(self._options.host, port) as self.port:
            log.info("%s serves probes on port %d", self._options.name, self.port)
            yield
        self.port = None

    def list_informers(self) -> list[SharedInformer[Any]]:
        """Return the informers of the operator and of the groups."""
        factories = (self._informers, *(group.informers for group in self.groups))
        return [informer for factory in factories for informer in factory]

    async def _run_all(self, builders: Sequence[ControllerBuilder]) -> None:
        sharded = [each for each in builders if each.shards is not None]
        others = [each for each in builders if each.shards is None]
        if not sharded:
            await self._lead(others)
            return
        try:
            async with asyncio.TaskGroup() as group:
                if others:
                    name = f"candidate of {self._options.name}"
                    self._candidate = group.create_task(self._lead(others), name=name)
                # The gate of each controller checks the shard before a write is sent.
                await self._run_controllers(sharded, self._client)
        except ExceptionGroup as failed:
            error = failed.exceptions[0]
            raise error from error.__cause__

    async def _lead(self, builders: Sequence[ControllerBuilder]) -> None:
        """Run the controllers: in each term of leadership, or once if there is no election."""
        options = self._options
        if options.leader_election is None:
            await self._run_term(builders, self._client)
            return
        elector = self.elector = LeaderElector(
            self._client.api(find_built_in("leases")),
            options.leader_election,
            identity=options.identity,
            lease_duration=options.lease_duration,
            renew_deadline=options.renew_deadline,
            retry_period=options.retry_period,
            metrics=options.metrics,
            on_error=options.on_error,
        )
        while not self.stopping:
            try:
                async with elector.leading():
                    log.info("%s leads %s", options.identity, options.leader_election)
                    # After a pause of the process in which another replica began to lead, no
                    # write is sent.
                    await self._run_term(builders, elector.guarded_client(self._client))
                log.info("%s has released %s", options.identity, options.leader_election)
            except LeadershipLost as lost:
                log.warning("%s; this replica waits for the lease again", lost)

    async def _run_term(self, builders: Sequence[ControllerBuilder], client: WriterSource) -> None:
        self._leads = True
        try:
            await self._run_controllers(builders, client)
        finally:
            self._leads = False

    async def _run_controllers(
        self, builders: Sequence[ControllerBuilder], client: WriterSource
    ) -> None:
        """Run controllers together. The first failure cancels the others and is raised."""
        built = tuple(each.build(client, self._events, self._options) for each in builders)
        self.controllers += built
        try:
            async with asyncio.TaskGroup() as group:
                for each in built:
                    group.create_task(_run_controller(each, self._unfinished), name=f"{each!r}")
        except ExceptionGroup as failed:
            error = failed.exceptions[0]
            raise error from error.__cause__
        finally:
            self.controllers = tuple(each for each in self.controllers if each not in built)


def _check_election(builders: Sequence[ControllerBuilder], options: OperatorOptions) -> None:
    """Raise if a controller would run on several replicas, or an election elects for nothing."""
    divided = [each.name for each in builders if each.shards is not None]
    whole = [each.name for each in builders if each.shards is None]
    if divided and whole and options.leader_election is None:
        raise UsageError(
            f"the controller {divided[0]} has shards=, so that the operator has several replicas, "
            f"and each of them would reconcile all objects of the controller {whole[0]}: pass "
            f"shards= for {whole[0]} too, or leader_election= for the operator, which runs the "
            "controllers without shards= on one replica"
        )
    if divided and not whole and options.leader_election is not None:
        raise UsageError(
            f"all controllers of {options.name} have shards= and run on each replica, so that "
            "there is nothing to lead: leave leader_election= out"
        )


def _check_builders(builders: Sequence[ControllerBuilder]) -> None:
    """Raise if two controllers have one name, or one finalizer for the same objects, as after one
    resource was named in two ways.
    """
    names = [each.name for each in builders]
    for number, (name, builder) in enumerate(zip(names, builders, strict=True)):
        if name in names[:number]:
            raise UsageError(f"the operator has two controllers called {name}; pass another name=")
        builder.check_finalizer(builders[:number])


async def _run_controller(controller: Controller, unfinished: list[str]) -> None:
    """Run one controller; collect the names of its unfinished runs, while the others may finish."""
    try:
        await controller.run()
    except ShutdownIncomplete as incomplete:
        unfinished.extend(incomplete.left)
