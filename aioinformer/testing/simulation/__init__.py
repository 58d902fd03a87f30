"""Hours of faults in seconds, from a seed, and judged.

    python -m aioinformer.testing.simulation --seed 7

    loop        an asyncio event loop in which time is a number and order is a seed's
    plan        what will happen in one history; ``workload`` draws one from a seed, ``writing``
                what is written in it, ``attending`` who listens
    examination one history, end to end
    world       carries a plan out, with ``observed`` informers over the ``line`` of each through
                a ``network`` that breaks its ``connection``, and factories that are ``visiting``
    participant a listener: called, with one of the ``tempers``, or ``reading``; ``passing`` is its
                filter
    history     what happened, as ``records`` and ``departures`` in order; its trace is the same
                for the same seed
    promises    holds a history to what the library promises (``hearing``, ``calls``,
                ``repetition``, ``endings``, ``manners``, ``patience``, ``rewinds``, ``truth``)
    coverage    which rows of the reflector's table histories have taken
    shrink      leaves out what a failure doesn't need; ``report`` says how to repeat it

The loop is of use alone: ``run(main(), seed=7)`` runs any program that does no I/O of its own, with
its timers at once and its callbacks in an order that the seed decides.
"""

from aioinformer.testing.simulation.examination import examine as examine
from aioinformer.testing.simulation.examination import simulate as simulate
from aioinformer.testing.simulation.history import History as History
from aioinformer.testing.simulation.loop import Order as Order
from aioinformer.testing.simulation.loop import SimulatedLoop as SimulatedLoop
from aioinformer.testing.simulation.loop import Stuck as Stuck
from aioinformer.testing.simulation.loop import run as run
from aioinformer.testing.simulation.plan import Plan as Plan
from aioinformer.testing.simulation.promises import judge as judge
from aioinformer.testing.simulation.report import explain as explain
from aioinformer.testing.simulation.violation import Violation as Violation
from aioinformer.testing.simulation.workload import draw as draw
from aioinformer.testing.simulation.world import Parts as Parts

__all__ = [
    "History",
    "Order",
    "Parts",
    "Plan",
    "SimulatedLoop",
    "Stuck",
    "Violation",
    "draw",
    "examine",
    "explain",
    "judge",
    "run",
    "simulate",
]
