"""``Cluster.settled``: waits until programs have reacted to everything that the cluster holds.

The newest version is the measure: the cluster sends a bookmark to the open watches, as etcd's
progress notifications do, and an informer whose cache has applied that version knows everything.
This works over HTTP too, for informers with selectors, and while faults delay the watches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from typing_extensions import TypeIs

from aioinformer._core.quantities import quantity
from aioinformer._informers.factory import SharedInformerFactory
from aioinformer._informers.informer import SharedInformer
from aioinformer._runtime.tasks.sync_timeout import sync_timeout
from aioinformer.errors import NotRunning, UsageError

if TYPE_CHECKING:  # for programs with controllers alone
    from aioinformer.controllers.controller import Controller
    from aioinformer.controllers.health import ControllerHealth
    from aioinformer.operator.operator import Operator

Program: TypeAlias = "Operator | Controller | SharedInformerFactory | SharedInformer[Any]"

CHECK_INTERVAL = 0.005
"""Seconds until the second check. No single event announces the state of many tasks."""
CHECK_INTERVAL_GROWTH = 1.1
MAX_CHECK_INTERVAL = 0.1
"""Seconds. The checks of a long wait are rarer: a key may wait for its retry for minutes."""
MAX_KEYS = 3
"""Keys of one controller that an error names."""


class WatchedCluster(Protocol):
    """The cluster whose changes the programs watch."""

    @property
    def resource_version(self) -> int: ...

    def send_bookmarks(self) -> None: ...


async def wait_settled(
    cluster: WatchedCluster, programs: Iterable[Program], timeout: float | None
) -> None:
    """Wait until no program has anything to do. ``Cluster.settled`` documents the errors."""
    waited_for = list(programs)
    if not waited_for:
        raise UsageError(
            "settled() needs the programs to wait for: pass an Operator, Controllers or a "
            "SharedInformerFactory, or run the operator by the fixture run_operator"
        )
    for program in waited_for:
        _check_program(program)
    unsettled: dict[str, str] = {}
    interval = CHECK_INTERVAL
    async with sync_timeout(timeout, lambda: unsettled, awaited="settled"):
        while unsettled := dict(_unsettled(cluster, waited_for)):
            cluster.send_bookmarks()
            await asyncio.sleep(interval)
            interval = min(interval * CHECK_INTERVAL_GROWTH, MAX_CHECK_INTERVAL)


def _unsettled(cluster: WatchedCluster, programs: Iterable[Program]) -> Iterator[tuple[str, str]]:
    """Yield the name and the work of each part that isn't idle, all at one moment."""
    for program in programs:
        # Controllers first: an error shows the first parts, and a run that hangs is the cause of
        # what follows, such as an informer that waits for its handlers.
        for controller in _controllers_of(program):
            yield from _controller_work(controller)
        if _is_operator(program):
            yield from _operator_work(program)
        for informer in _informers_of(program):
            yield from _informer_work(informer, cluster.resource_version)


def _check_program(program: object) -> None:
    known = isinstance(program, SharedInformerFactory | SharedInformer)
    if not (known or _is_operator(program) or _is_controller(program)):
        raise TypeError(
            "settled() takes Operators, Controllers, SharedInformerFactories and informers, "
            f"not {program!r}"
        )


def _is_operator(program: object) -> TypeIs[Operator]:
    return hasattr(program, "controllers") and not isinstance(program, type)


def _is_controller(program: object) -> TypeIs[Controller]:
    return hasattr(program, "trigger") and not isinstance(program, type)


def _informers_of(program: Program) -> Iterable[SharedInformer[Any]]:
    if isinstance(program, SharedInformer):
        return (program,)
    return program if isinstance(program, SharedInformerFactory) else program.informers


def _controllers_of(program: Program) -> tuple[Controller, ...]:
    if _is_operator(program):
        return program.controllers
    return (program,) if _is_controller(program) else ()


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
    if health.state != "running":
        yield controller.name, str(health)
    elif work := list(_key_work(health)):
        yield controller.name, ", ".join(work)


def _key_work(health: ControllerHealth) -> Iterator[str]:
    """Yield what the keys of a controller have to do now. Delayed keys have nothing to do."""
    for key, seconds in list(health.running.items())[:MAX_KEYS]:
        yield f"the run of {key} has lasted for {seconds:.1f} s"
    if len(health.running) > MAX_KEYS:
        yield f"{quantity(len(health.running) - MAX_KEYS, 'other run')} under way"
    retried = [each for each in health.failing if not each.permanent]
    yield from map(str, retried[:MAX_KEYS])
    if len(retried) > MAX_KEYS:
        yield f"{quantity(len(retried) - MAX_KEYS, 'other key')} failing"
    if queued := health.queue.normal + health.queue.low:
        yield f"{quantity(queued, 'key')} waiting for a worker"
    elif health.queue.processing and not health.running:
        # A worker waits until the caches show the last write of its key.
        yield f"{quantity(health.queue.processing, 'key')} waiting for the cache"
