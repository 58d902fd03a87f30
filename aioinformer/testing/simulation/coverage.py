"""Which rows of the reflector's table histories have taken, and how often.

A row that no history takes is one that no fault here leads to, or that no server does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypeAlias

from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.transitions import TRANSITIONS, Phase
from aioinformer.testing.simulation.history import History

__all__ = ["ROWS", "Row", "rows_taken", "show_rows"]

Row: TypeAlias = tuple[Phase, Outcome]
"""What was asked, and how that ended."""

ROWS: frozenset[Row] = frozenset(
    (phase, each) for phase, rules in TRANSITIONS.items() for each in rules
)
"""All there are."""


def rows_taken(histories: Iterable[History]) -> Counter[Row]:
    """How often each row was taken."""
    return Counter(taken.row for history in histories for taken in history.taken)


def show_rows(taken: Counter[Row]) -> str:
    """The table with its counts, a line a phase."""
    return "\n".join(
        f"{phase.name:10}"
        + " ".join(f"{each.name}={taken[phase, each]}" for each in TRANSITIONS[phase])
        for phase in TRANSITIONS
    )
