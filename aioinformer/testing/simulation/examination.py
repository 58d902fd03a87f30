"""One history, end to end: carry out a plan in simulated time, and judge what happened."""

from __future__ import annotations

import asyncio

from aioinformer.testing.simulation import loop as simulated
from aioinformer.testing.simulation.history import History
from aioinformer.testing.simulation.plan import Plan
from aioinformer.testing.simulation.promises import Violation, judge
from aioinformer.testing.simulation.world import LogRecorder, Parts, World

__all__ = ["REAL", "examine", "simulate"]

REAL = Parts()
"""The library's own."""


def simulate(plan: Plan, parts: Parts = REAL) -> History:
    """What happens when ``plan`` is carried out. Nothing is judged.

    Raises:
        Stuck: it doesn't come to an end.
    """
    history = History(plan)
    with LogRecorder(history):
        simulated.run(_live(plan, history, parts), seed=plan.seed, cost=plan.cost)
    return history


async def _live(plan: Plan, history: History, parts: Parts) -> None:
    history.clock = asyncio.get_running_loop().time
    await World(plan, history, parts).live()


def examine(plan: Plan, parts: Parts = REAL) -> Violation | None:
    """Carry out ``plan``; the first promise that was broken, if one was."""
    try:
        judge(simulate(plan, parts))
    except Violation as violation:
        return violation
    except simulated.Stuck as stuck:
        return Violation(9, str(stuck), time=plan.ends)
    return None
