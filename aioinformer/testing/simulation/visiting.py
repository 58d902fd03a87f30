"""A visit: a factory is entered, has one informer and one handler for a while, and is left."""

from __future__ import annotations

import asyncio

from aioinformer._core.objects.kube_object import Deleted, Event, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer._runtime.informer.factory import SharedInformerFactory
from aioinformer.errors import ShutdownIncomplete
from aioinformer.testing.simulation.departures import Visited
from aioinformer.testing.simulation.history import History
from aioinformer.testing.simulation.line import Entrance
from aioinformer.testing.simulation.network import Network
from aioinformer.testing.simulation.plan import Visit
from aioinformer.testing.simulation.records import State, Version
from aioinformer.testing.simulation.tempers import HandlerBroke

__all__ = ["visit"]


class _Visitor:
    """Its handler: knows what it was told."""

    def __init__(self, step: Visit, history: History) -> None:
        self.__qualname__ = step.name
        self.held: dict[ObjectKey, Version] = {}
        self.late = 0
        self.over = False
        self.broke = ""
        self.broke_at = 0.0
        self._heard = 0
        self._step = step
        self._history = history

    async def __call__(self, event: Event) -> None:
        self.late += self.over
        await asyncio.sleep(self._step.delay)
        self._heard += 1
        if self._heard == self._step.fails:
            self.broke, self.broke_at = f"at {event.obj.key}", self._history.clock()
            raise HandlerBroke(self.broke)
        if isinstance(event, Deleted):
            self.held.pop(event.obj.key, None)
        else:
            self.held[event.obj.key] = self._history.version_of(event.obj)


async def visit(
    step: Visit, factory: type[SharedInformerFactory], network: Network, resource: Resource
) -> None:
    """Visit, and write down what was heard when it was over."""
    history = network.history
    visitor, incomplete, raised = _Visitor(step, history), "", ""
    cached: State = {}
    left_at, order = 0.0, 0
    try:
        async with (
            factory(Entrance(network, step.name), namespace="db") as informers,
            informers.use(resource) as informer,
        ):
            informer.add_handler(visitor, drain=step.drains, fail_fast=step.fails > 0)
            await asyncio.sleep(step.lasting)
            lister = informer.lister.unsynced
            cached = {obj.key: history.version_of(obj) for obj in lister}
            order, left_at = history.stamp()
    except ShutdownIncomplete as error:
        incomplete = str(error)
    except HandlerBroke as error:
        raised = str(error)
    visitor.over = True
    held, lasted = dict(visitor.held), history.clock() - max(left_at, visitor.broke_at)
    _, now = history.stamp()
    await asyncio.sleep(1.0)
    late = visitor.late
    history.visited.append(
        Visited(
            order,
            now,
            step.name,
            cached,
            held,
            late,
            lasted,
            incomplete,
            visitor.broke,
            raised,
        )
    )
