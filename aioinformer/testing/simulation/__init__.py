"""An asyncio event loop in virtual time, with a seeded order of callbacks.

    loop      ``SimulatedLoop`` and ``run``: time is a number, and a seed decides the order
    shrink    removes from a failing case what the failure doesn't need

``run(main(), seed=7)`` runs any program that does no I/O of its own. Its timers fire without
waiting, and its callbacks run in an order that the seed decides.
"""

from aioinformer.testing.simulation.loop import Order as Order
from aioinformer.testing.simulation.loop import SimulatedLoop as SimulatedLoop
from aioinformer.testing.simulation.loop import Stuck as Stuck
from aioinformer.testing.simulation.loop import run as run

__all__ = ["Order", "SimulatedLoop", "Stuck", "run"]
