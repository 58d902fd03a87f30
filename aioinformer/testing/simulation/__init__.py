"""A program, such as a controller, in hours of faults, in virtual time, from a seed.

    simulate(program, seeds=range(100))

runs ``program`` once for each seed. A seed decides which faults happen when, the order of
callbacks, and jitter, so that the same seed is the same history. If the program raises, the report
has the few faults that are needed and the call that repeats the failure.

    runner    ``simulate``: one history for each seed; shrinks and reports a failure
    schedule  the faults of a history, as values, drawn from its seed
    loop      ``SimulatedLoop`` and ``run``: an event loop in which time is a number and a seed
              decides the order of callbacks; of use alone for programs that do no I/O
    shrink    leaves out of a failing case what the failure doesn't need
"""

from aioinformer.testing.simulation.loop import Order as Order
from aioinformer.testing.simulation.loop import SimulatedLoop as SimulatedLoop
from aioinformer.testing.simulation.loop import Stuck as Stuck
from aioinformer.testing.simulation.loop import run as run
from aioinformer.testing.simulation.runner import Program as Program
from aioinformer.testing.simulation.runner import Simulation as Simulation
from aioinformer.testing.simulation.runner import SimulationFailed as SimulationFailed
from aioinformer.testing.simulation.runner import simulate as simulate
from aioinformer.testing.simulation.schedule import FAULT_KINDS as FAULT_KINDS
from aioinformer.testing.simulation.schedule import FaultKind as FaultKind
from aioinformer.testing.simulation.schedule import ScheduledFault as ScheduledFault

__all__ = [
    "FAULT_KINDS",
    "FaultKind",
    "Order",
    "Program",
    "ScheduledFault",
    "SimulatedLoop",
    "Simulation",
    "SimulationFailed",
    "Stuck",
    "run",
    "simulate",
]
