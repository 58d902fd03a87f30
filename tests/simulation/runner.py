"""Run one history from end to end: carry out a plan in virtual time, judge it, report a failure.

``rows_taken`` counts the rows of the reflector's transition table that histories have taken. A row
that no history takes is one that no fault here leads to, or that no server leads to.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.transitions import TRANSITIONS, Phase
from aioinformer.testing.simulation.loop import Stuck, run
from aioinformer.testing.simulation.shrink import BUDGET, shrink
from aioinformer.testing.simulation.simulation import recorded_logs
from tests.simulation.checks.promises import judge
from tests.simulation.checks.violation import Violation
from tests.simulation.plan import Plan
from tests.simulation.records import History, Logged, Transition
from tests.simulation.world import World


def simulate(plan: Plan) -> History:
    """Carry out ``plan`` and return what happened. Nothing is judged.

    Raises:
        Stuck: the history doesn't end.
    """
    history = History(plan)

    def record_log(record: logging.LogRecord) -> None:
        # A reflector logs without a warning the failures that some servers always answer with.
        if record.levelno >= logging.WARNING or record.name == "aioinformer.reflector":
            history.add(Logged, record.levelname, record.getMessage())

    async def live() -> None:
        history.clock = asyncio.get_running_loop().time
        await World(plan, history).live()

    with recorded_logs(record_log, level=logging.INFO):
        run(live(), seed=plan.seed, cost=plan.cost)
    return history


def judged(plan: Plan) -> tuple[Violation | None, History | None]:
    """Carry out ``plan`` and return the first violation, if there is one.

    The history is the second value; ``None`` if it doesn't end.
    """
    try:
        history = simulate(plan)
    except Stuck as stuck:
        return Violation(9, str(stuck), time=plan.ends), None
    try:
        judge(history)
    except Violation as violation:
        return violation, history
    return None, history


def examine(plan: Plan) -> Violation | None:
    """Carry out ``plan`` and return the first violation, if there is one."""
    return judged(plan)[0]


def first_violation(plans: Iterable[Plan]) -> Violation | None:
    """Return the violation of the first plan that has one."""
    return next(filter(None, map(examine, plans)), None)


# -- reports -----------------------------------------------------------------------------------


def shrunk(plan: Plan, violation: Violation, *, budget: int = BUDGET) -> list[int]:
    """Return the indexes of the steps that are needed to break the same promise."""

    def fails(kept: Sequence[int]) -> bool:
        found = examine(plan.keep(kept))
        return found is not None and found.promise == violation.promise

    every = list(range(len(plan.steps)))
    until = [index for index in every if plan.steps[index].at <= violation.time]
    start = until if len(until) < len(every) and fails(until) else every
    return shrink(start, fails, budget=budget)


def explain(plan: Plan, violation: Violation, *, budget: int = BUDGET) -> str:
    """Return a report of a failure: the steps that are needed and the command that repeats it.

    Args:
        plan: the plan that was carried out.
        violation: the violation that was found.
        budget: the number of histories that may be tried to make the plan smaller.
    """
    kept = shrunk(plan, violation, budget=budget)
    least = plan.keep(kept)
    again = examine(least) or violation
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
    """Return the command that repeats a history, byte for byte."""
    return (
        "PYTHONHASHSEED=0 python -m tests.simulation "
        f"--seed {plan.seed} --keep {ranges(kept) or 'none'} --trace"
    )


def ranges(indexes: Iterable[int]) -> str:
    """Return numbers as text: ``0-3,7``."""
    runs: list[tuple[int, int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][1] == index - 1:
            runs[-1] = (runs[-1][0], index)
        else:
            runs.append((index, index))
    return ",".join(f"{low}-{high}" if low < high else str(low) for low, high in runs)


def parse_ranges(text: str) -> list[int]:
    """Return the numbers that ``ranges`` wrote.

    Raises:
        ValueError: the text is not of that form.
    """
    numbers: list[int] = []
    for part in text.split(",") if text != "none" else []:
        low, _, high = part.partition("-")
        numbers += range(int(low), int(high or low) + 1)
    return numbers


# -- coverage ----------------------------------------------------------------------------------

Row: TypeAlias = tuple[Phase, Outcome]
"""The phase of a request, and its outcome."""

ROWS: frozenset[Row] = frozenset(
    (phase, each) for phase, rules in TRANSITIONS.items() for each in rules
)
"""All rows of the table."""


def rows_taken(histories: Iterable[History]) -> Counter[Row]:
    """Count how often each row was taken."""
    return Counter(each.row for history in histories for each in history.of(Transition))


def show_rows(counts: Counter[Row]) -> str:
    """Return the table with its counts, one line for each phase."""
    return "\n".join(
        f"{phase.name:16}"
        + " ".join(f"{each.name}={counts[phase, each]}" for each in TRANSITIONS[phase])
        for phase in TRANSITIONS
    )
