"""``Cluster.settled``: waits until programs have reacted to everything that the cluster holds.

A test changes the cluster and then wants to look at the effect. A fixed time is too short on a
loaded machine and too long on any other. So the test waits until nothing is left to be done.

The newest version is the measure: the cluster sends a bookmark to the open watches, as etcd's
progress notifications do, and an informer whose cache has applied that version knows everything.
This works over HTTP too, for informers with selectors, and while faults delay the watches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any, Protocol, TypeAlias

from aioinformer._operator.operator import Operator
from aioinformer._runtime.controllers.controller import Controller
from aioinformer._runtime.informer.factory import SharedInformerFactory
from aioinformer._runtime.informer.informer import SharedInformer
from aioinformer._runtime.tasks.sync_timeout import sync_timeout
from aioinformer.errors import NotRunning, UsageError

__all__ = ["Program", "WatchedCluster", "wait_settled"]

Program: TypeAlias = Operator | Controller | SharedInformerFactory
"""A program that a cluster waits for."""

CHECK_INTERVAL = 0.005
"""Seconds until the second check. The state of a program is that of many tasks, which no single
event announces."""
CHECK_INTERVAL_GROWTH = 1.1
MAX_CHECK_INTERVAL = 0.1
"""The checks of a long wait are rarer: a key may wait for its retry for minutes."""


class WatchedCluster(Protocol):
    """The cluster whose changes the programs watch."""

    @property
    def resource_version(self) -> int:
        """The newest resourceVersion."""
        ...

    def send_bookmarks(self) -> None:
        """Send a bookmark of the newest version to the open watches."""
        ...


async def wait_settled(
    cluster: WatchedCluster, programs: Iterable[Program], timeout: float | None
) -> None:
    """Wait until no program has anything to do. ``Cluster.settled`` documents arguments and errors.

    Raises:
        SyncTimeout: not within ``timeout`` seconds.
        NotRunning: a program has ended.
        UsageError: there is no program.
    """
    waited_for = list(programs)
    if not waited_for:
        raise UsageError(
            "settled() needs the programs to wait for: pass an Operator, Controllers or a "
            "SharedInformerFactory, or run the operator by the fixture run_operator"
        )
    unsettled: dict[str, str] = {}
    interval = CHECK_INTERVAL
    async with sync_timeout(timeout, lambda: unsettled):
        while unsettled := dict(_unsettled(cluster, waited_for)):
            cluster.send_bookmarks()
            await asyncio.sleep(interval)
            interval = min(interval * CHECK_INTERVAL_GROWTH, MAX_CHECK_INTERVAL)


def _unsettled(cluster: WatchedCluster, programs: Iterable[Program]) -> Iterator[tuple[str, str]]:
    """Yield the name and the work of each part that isn't idle, all at one moment."""
    for program in programs:
        if isinstance(program, Operator):
            yield from _operator_work(program)
        for informer in _informers_of(program):
            yield from _informer_work(informer, cluster.resource_version)
        for controller in _controllers_of(program):
            yield from _controller_work(controller)


def _informers_of(program: Program) -> Iterable[SharedInformer[Any]]:
    return program if isinstance(program, SharedInformerFactory) else program.informers


def _controllers_of(program: Program) -> tuple[Controller, ...]:
    if isinstance(program, Operator):
        return program.controllers
    return (program,) if isinstance(program, Controller) else ()


def _operator_work(operator: Operator) -> Iterator[tuple[str, str]]:
    health = operator.health
    if health.state in ("stopped", "failed", "new"):
        raise NotRunning(f"{operator!r} doesn't run: {health}") from health.error
    # A replica that waits has nothing to do only if another one leads.
    if health.state != "running" and not (health.state == "waiting" and health.leader):
        yield repr(operator), str(health)
    if queued := operator.events.statistics().queued:
        yield repr(operator.events), f"{queued} Events are not sent yet"


def _informer_work(informer: SharedInformer[Any], version: int) -> Iterator[tuple[str, str]]:
    applied = informer.lister.resource_version
    if not informer.synced or not applied.isdecimal() or int(applied) < version:
        yield informer.name, f"{informer.health}, while the cluster is at {version}"
    for each in informer.registrations:
        pending = each.statistics().pending
        if pending or not each.synced:
            yield each.name, f"{pending} events of {informer.name} are pending"


def _controller_work(controller: Controller) -> Iterator[tuple[str, str]]:
    health = controller.health
    if health.state in ("stopped", "failed"):
        raise NotRunning(f"{controller!r} has ended: {health}") from health.error
    queue = health.queue
    retried = [each for each in health.failing if each.retry_in != float("inf")]
    if health.state != "running" or queue.normal or queue.low or queue.processing or retried:
        yield controller.name, str(health)
