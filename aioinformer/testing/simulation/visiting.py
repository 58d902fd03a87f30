"""A visit: a factory is entered, has one informer and one handler for a while, and is left."""

from __future__ import annotations

import asyncio

from aioinformer._core.objects import Deleted, Event, ObjectKey
from aioinformer._core.resources import Resource
from aioinformer._runtime.factory import SharedInformerFactory
from aioinformer.errors import ShutdownIncomplete
from aioinformer.testing.simulation.departures import Visited
from aioinformer.testing.simulation.history import History
from aioinformer.testing.simulation.line import Entrance
from aioinformer.testing.simulation.network import Network
from aioinformer.testing.simulation.plan import Visit
from aioinformer.testing.simulation.records import State, Version

__all__ = ["visit"]


class _Visitor:
    """Its handler: knows what it was told."""

    def __init__(self, name: str, delay: float, history: History) -> None:
        self.__qualname__ = name
        self.held: dict[ObjectKey, Version] = {}
        self.late = 0
        self.over = False
        self._delay = delay
        self._history = history

    async def __call__(self, event: Event) -> None:
        self.late += self.over
        await asyncio.sleep(self._delay)
        if isinstance(event, Deleted):
            self.held.pop(event.obj.key, None)
        else:
            self.held[event.obj.key] = self._history.version_of(event.obj)


async def visit(
    step: Visit, factory: type[SharedInformerFactory], network: Network, resource: Resource
) -> None:
    """Visit, and write down what was heard when it was over."""
    history = network.history
    visitor, incomplete = _Visitor(step.name, step.delay, history), ""
    cached: State = {}
    left_at, order = 0.0, 0
    try:
        async with (
            factory(Entrance(network, step.name), namespace="db") as informers,
            informers.use(resource) as informer,
        ):
            informer.add_handler(visitor, drain=step.drains)
            await asyncio.sleep(step.lasting)
            lister = informer.lister.unsynced
            cached = {obj.key: history.version_of(obj) for obj in lister}
            order, left_at = history.stamp()
    except ShutdownIncomplete as error:
        incomplete = str(error)
    visitor.over = True
    held, lasted = dict(visitor.held), history.clock() - left_at
    _, now = history.stamp()
    await asyncio.sleep(1.0)
    late = visitor.late
    history.visited.append(Visited(order, now, step.name, cached, held, late, lasted, incomplete))
