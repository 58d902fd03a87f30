"""What to say of a history that failed: the seed, the least that still fails, how to repeat it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aioinformer.testing.simulation.examination import REAL, examine
from aioinformer.testing.simulation.plan import Plan
from aioinformer.testing.simulation.shrink import BUDGET, shrink
from aioinformer.testing.simulation.violation import Violation
from aioinformer.testing.simulation.world import Parts

__all__ = ["command", "explain", "parse_ranges", "ranges", "shrunk"]


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
        "PYTHONHASHSEED=0 python -m aioinformer.testing.simulation "
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
