"""A program, such as a controller, in hours of faults, in virtual time, from a seed.

    simulate(program, seeds=range(100))

runs ``program`` once for each seed, which decides the faults, the order of callbacks, and jitter:
the same seed is the same history. If the program raises, the report has the few faults that are
needed and the call that repeats the failure.

Example::

    from aioinformer.testing.simulation import (
        FAULT_KINDS, FaultKind, Order, Program, ScheduledFault, SimulatedLoop, Simulation,
        SimulationFailed, Stuck, run, simulate,
    )

    async def follow_pods(simulation: Simulation) -> None:
        simulation.cluster.create("pods", {"metadata": {"name": "web-0"}})
        async with SharedInformerFactory(simulation.source) as informers:
            pods = informers.informer("pods")
            await simulation.settled()
            assert [pod.name for pod in pods.lister] == ["web-0"]

    program: Program = follow_pods
    chosen: list[FaultKind] = [each for each in FAULT_KINDS if each != "forbid"]
    simulate(program, seeds=range(2), kinds=chosen, duration=60)

    async def wrong(simulation: Simulation) -> None:
        assert simulation.seed == 1, "always with seed 0"

    try:
        simulate(wrong, seeds=[0])
    except SimulationFailed as error:
        print(error)  # the seed, the faults that are needed, the call that repeats the failure

    async def waits_for_ever() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        await loop.create_future()

    order: Order = "fifo"
    try:
        run(waits_for_ever(), seed=0, order=order)
    except Stuck as error:
        print(error)

    print(ScheduledFault(at=1.5, kind="latency", lasting=10.0))
"""

from aioinformer.testing.simulation.loop import Order as Order
from aioinformer.testing.simulation.loop import SimulatedLoop as SimulatedLoop
from aioinformer.testing.simulation.loop import Stuck as Stuck
from aioinformer.testing.simulation.loop import run as run
from aioinformer.testing.simulation.schedule import FAULT_KINDS as FAULT_KINDS
from aioinformer.testing.simulation.schedule import FaultKind as FaultKind
from aioinformer.testing.simulation.schedule import ScheduledFault as ScheduledFault
from aioinformer.testing.simulation.simulation import Program as Program
from aioinformer.testing.simulation.simulation import Simulation as Simulation
from aioinformer.testing.simulation.simulation import SimulationFailed as SimulationFailed
from aioinformer.testing.simulation.simulation import simulate as simulate

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
