"""One history, end to end: carry out a plan in simulated time, and judge what happened.

What to say of a history that failed: the seed, the least that still fails, how to repeat it.

Which rows of the reflector's table histories have taken, and how often.

A row that no history takes is one that no fault here leads to, or that no server does.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.transitions import TRANSITIONS, Phase
from aioinformer.testing.simulation import loop as simulated
from aioinformer.testing.simulation.shrink import BUDGET, shrink
from tests.simulation.checks.promises import judge
from tests.simulation.checks.violation import Violation
from tests.simulation.plan import Plan
from tests.simulation.records import History
from tests.simulation.world import LogRecorder, Parts, World

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


def shrunk(
    plan: Plan, violation: Violation, parts: Parts = REAL, *, budget: int = BUDGET
) -> list[int]:
    """The indexes of the steps without which the same promise isn't broken."""

    def fails(kept: Sequence[int]) -> bool:
        found = examine(plan.keep(kept), parts)
        return found is not None and found.promise == violation.promise

    every = list(range(len(plan.steps)))
    until = [index for index in every if plan.steps[index].at <= violation.time]
    return shrink(
        until if len(until) < len(every) and fails(until) else every, fails, budget=budget
    )


def explain(plan: Plan, violation: Violation, parts: Parts = REAL, *, budget: int = BUDGET) -> str:
    """Everything that somebody needs who has never seen this failure.

    Args:
        plan: what was carried out.
        violation: how it ended.
        parts: what it was made of.
        budget: how many histories may be tried to make it smaller.
    """
    kept = shrunk(plan, violation, parts, budget=budget)
    least = plan.keep(kept)
    again = examine(least, parts) or violation
    lines = [
        f"seed {plan.seed}: {violation}",
        f"{len(kept)} of {len(plan.steps)} steps are enough:",
        *(f"    {plan.steps[index]}" for index in kept),
        *(f"    {spec}" for spec in plan.informers),
        f"with these alone: {again}",
        "repeat it:",
        f"    {command(plan, kept)}",
    ]
    return "\n".join(lines)


def command(plan: Plan, kept: Iterable[int]) -> str:
    """One line that repeats a history, byte for byte."""
    return (
        "PYTHONHASHSEED=0 python -m tests.simulation "
        f"--seed {plan.seed} --keep {ranges(kept) or 'none'} --trace"
    )


def ranges(indexes: Iterable[int]) -> str:
    """Numbers as people write them: ``0-3,7``."""
    runs: list[tuple[int, int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][1] == index - 1:
            runs[-1] = (runs[-1][0], index)
        else:
            runs.append((index, index))
    return ",".join(f"{low}-{high}" if low < high else str(low) for low, high in runs)


def parse_ranges(text: str) -> list[int]:
    """The numbers that ``ranges`` wrote.

    Raises:
        ValueError: it is no such text.
    """
    numbers: list[int] = []
    for part in text.split(",") if text != "none" else []:
        low, _, high = part.partition("-")
        numbers += range(int(low), int(high or low) + 1)
    return numbers


Row: TypeAlias = tuple[Phase, Outcome]
"""What was asked, and how that ended."""

ROWS: frozenset[Row] = frozenset(
    (phase, each) for phase, rules in TRANSITIONS.items() for each in rules
)
"""All there are."""


def rows_taken(histories: Iterable[History]) -> Counter[Row]:
    """How often each row was taken."""
    return Counter(transition.row for history in histories for transition in history.transitions)


def show_rows(taken: Counter[Row]) -> str:
    """The table with its counts, a line a phase."""
    return "\n".join(
        f"{phase.name:16}"
        + " ".join(f"{each.name}={taken[phase, each]}" for each in TRANSITIONS[phase])
        for phase in TRANSITIONS
    )
