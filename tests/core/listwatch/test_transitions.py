"""What follows when a request has ended: the table, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest

from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.state_machine import Cursor
from aioinformer._core.listwatch.transitions import RULES, UNFIT, Phase
from tests.core.cursors import AT, LOOKUP, STREAMED, ended, plain, watching

Waits = Literal["never", "if again", "again", "always"]


@dataclass(frozen=True)
class Row:
    """What follows an outcome: a list (rv, limit, token) or a watch (rv), after a wait or not."""

    phase: Phase
    outcome: Outcome
    then: tuple[str, int, str] | str
    waits: Waits

    def __str__(self) -> str:
        return f"{self.phase.name}-{self.outcome.name}"


ROWS = [
    # The first WatchList is asked for at the newest version; a list after it, at "0".
    Row(Phase.STREAM, Outcome.EXPIRED, STREAMED, "if again"),
    Row(Phase.STREAM, Outcome.AHEAD, STREAMED, "if again"),
    Row(Phase.STREAM, Outcome.BUSY, STREAMED, "always"),
    Row(Phase.STREAM, Outcome.UNREACHABLE, STREAMED, "always"),
    Row(Phase.STREAM, Outcome.SEVERED, STREAMED, "always"),
    Row(Phase.STREAM, Outcome.DENIED, STREAMED, "always"),
    Row(Phase.STREAM, Outcome.MISSING, STREAMED, "always"),
    Row(Phase.STREAM, Outcome.FAILED, STREAMED, "always"),
    Row(Phase.STREAM, Outcome.BROKEN, STREAMED, "always"),
    Row(Phase.STREAM, Outcome.ENDED, STREAMED, "always"),
    Row(Phase.STREAM, Outcome.BRIEF, STREAMED, "always"),
    Row(Phase.STREAM, Outcome.UNSERVED, STREAMED, "always"),
    Row(Phase.STREAM, Outcome.REJECTED, ("0", 500, ""), "if again"),
    Row(Phase.STREAM, Outcome.ERRED, ("0", 500, ""), "if again"),
    Row(Phase.STREAM, Outcome.OVERDUE, ("0", 500, ""), "if again"),
    # The first list is asked for at "0", 500 items a page.
    Row(Phase.LIST, Outcome.MORE, ("0", 500, "t2"), "never"),
    Row(Phase.LIST, Outcome.COMPLETE, "20", "never"),
    Row(Phase.LIST, Outcome.REWOUND, ("", 50, ""), "if again"),
    Row(Phase.LIST, Outcome.EXPIRED, ("", 500, ""), "if again"),
    Row(Phase.LIST, Outcome.AHEAD, ("", 500, ""), "if again"),
    Row(Phase.LIST, Outcome.BUSY, ("0", 500, ""), "always"),
    Row(Phase.LIST, Outcome.UNREACHABLE, ("0", 500, ""), "always"),
    Row(Phase.LIST, Outcome.SEVERED, ("0", 500, ""), "always"),
    Row(Phase.LIST, Outcome.DENIED, ("0", 500, ""), "always"),
    Row(Phase.LIST, Outcome.MISSING, ("0", 500, ""), "always"),
    Row(Phase.LIST, Outcome.FAILED, ("0", 500, ""), "always"),
    Row(Phase.LIST, Outcome.REJECTED, ("0", 500, ""), "always"),
    Row(Phase.LIST, Outcome.BROKEN, ("0", 500, ""), "always"),
    # Its second page has the token t1.
    Row(Phase.PAGE, Outcome.MORE, ("0", 500, "t2"), "never"),
    Row(Phase.PAGE, Outcome.COMPLETE, "10", "never"),
    Row(Phase.PAGE, Outcome.REWOUND, ("", 50, ""), "if again"),
    Row(Phase.PAGE, Outcome.EXPIRED, ("0", 0, ""), "if again"),
    Row(Phase.PAGE, Outcome.AHEAD, ("", 500, ""), "if again"),
    Row(Phase.PAGE, Outcome.BUSY, ("0", 500, "t1"), "always"),
    Row(Phase.PAGE, Outcome.UNREACHABLE, ("0", 500, "t1"), "always"),
    Row(Phase.PAGE, Outcome.SEVERED, ("0", 500, "t1"), "always"),
    Row(Phase.PAGE, Outcome.DENIED, ("0", 500, ""), "always"),
    Row(Phase.PAGE, Outcome.MISSING, ("0", 500, ""), "always"),
    Row(Phase.PAGE, Outcome.FAILED, ("0", 500, "t1"), "always"),
    Row(Phase.PAGE, Outcome.REJECTED, ("0", 500, ""), "always"),
    Row(Phase.PAGE, Outcome.BROKEN, ("0", 500, ""), "always"),
    # The watch starts at 10; a list at 10 has no limit.
    Row(Phase.WATCH, Outcome.ENDED, "10", "never"),
    Row(Phase.WATCH, Outcome.BRIEF, "10", "again"),
    Row(Phase.WATCH, Outcome.UNSERVED, "10", "always"),
    Row(Phase.WATCH, Outcome.SILENT, ("", 1, ""), "never"),
    Row(Phase.WATCH, Outcome.EXPIRED, ("10", 0, ""), "if again"),
    Row(Phase.WATCH, Outcome.AHEAD, ("", 500, ""), "if again"),
    Row(Phase.WATCH, Outcome.BUSY, "10", "always"),
    Row(Phase.WATCH, Outcome.UNREACHABLE, "10", "always"),
    Row(Phase.WATCH, Outcome.SEVERED, "10", "always"),
    Row(Phase.WATCH, Outcome.DENIED, "10", "always"),
    Row(Phase.WATCH, Outcome.FAILED, "10", "always"),
    Row(Phase.WATCH, Outcome.MISSING, ("10", 0, ""), "always"),
    Row(Phase.WATCH, Outcome.REJECTED, ("10", 0, ""), "always"),
    Row(Phase.WATCH, Outcome.ERRED, ("10", 0, ""), "always"),
    Row(Phase.WATCH, Outcome.BROKEN, ("10", 0, ""), "always"),
    # The probe comes behind a watch from 10 that was silent.
    Row(Phase.PROBE, Outcome.COMPLETE, "10", "never"),
    Row(Phase.PROBE, Outcome.REWOUND, ("", 500, ""), "never"),
    Row(Phase.PROBE, Outcome.EXPIRED, "10", "always"),
    Row(Phase.PROBE, Outcome.AHEAD, "10", "always"),
    Row(Phase.PROBE, Outcome.BUSY, "10", "always"),
    Row(Phase.PROBE, Outcome.UNREACHABLE, "10", "always"),
    Row(Phase.PROBE, Outcome.SEVERED, "10", "always"),
    Row(Phase.PROBE, Outcome.DENIED, "10", "always"),
    Row(Phase.PROBE, Outcome.MISSING, "10", "always"),
    Row(Phase.PROBE, Outcome.FAILED, "10", "always"),
    Row(Phase.PROBE, Outcome.REJECTED, "10", "always"),
    Row(Phase.PROBE, Outcome.BROKEN, "10", "always"),
    # The look comes behind a first list that was answered with 404.
    Row(Phase.LOOKUP, Outcome.SERVED, ("0", 500, ""), "always"),
    Row(Phase.LOOKUP, Outcome.APPEARED, ("", 500, ""), "never"),
    Row(Phase.LOOKUP, Outcome.MOVED, ("0", 500, ""), "always"),
    Row(Phase.LOOKUP, Outcome.ABSENT, LOOKUP, "always"),
    Row(Phase.LOOKUP, Outcome.EXPIRED, ("0", 500, ""), "always"),
    Row(Phase.LOOKUP, Outcome.AHEAD, ("0", 500, ""), "always"),
    Row(Phase.LOOKUP, Outcome.BUSY, ("0", 500, ""), "always"),
    Row(Phase.LOOKUP, Outcome.UNREACHABLE, ("0", 500, ""), "always"),
    Row(Phase.LOOKUP, Outcome.DENIED, ("0", 500, ""), "always"),
    Row(Phase.LOOKUP, Outcome.MISSING, ("0", 500, ""), "always"),
    Row(Phase.LOOKUP, Outcome.FAILED, ("0", 500, ""), "always"),
    Row(Phase.LOOKUP, Outcome.REJECTED, ("0", 500, ""), "always"),
    Row(Phase.LOOKUP, Outcome.BROKEN, ("0", 500, ""), "always"),
]

EVERY_ROW = pytest.mark.parametrize("row", ROWS, ids=str)


def older(phase: Phase) -> Cursor:
    """A cursor that knows version 10, whose next answer will be older."""
    if phase is Phase.PROBE:
        return AT[phase]()
    cursor = watching("10", page_size=50)
    ended(cursor, Outcome.ERRED)
    cursor.backoff.failures = 0
    if phase is Phase.PAGE:
        ended(cursor, cursor.page("9", "t1"))
    return cursor


def at(row: Row, *, failures: int = 0) -> tuple[Cursor, Outcome]:
    """A cursor in the row's phase, its backoff at ``failures``, and the outcome."""
    cursor = older(row.phase) if row.outcome is Outcome.REWOUND else AT[row.phase]()
    for _ in range(failures):
        cursor.backoff.next(0.0, 0.0)
    match row.outcome:
        case Outcome.MORE:
            return cursor, cursor.page("20", "t2")
        case Outcome.COMPLETE:
            return cursor, cursor.page("20", "")
        case Outcome.REWOUND:
            return cursor, cursor.page("9", "")
        case _:
            return cursor, row.outcome


# -- the table -----------------------------------------------------------------------------------


def test_there_is_a_row_for_each_outcome_of_each_phase() -> None:
    every = {(phase, outcome) for phase, rules in RULES.items() for outcome in rules}

    assert {(row.phase, row.outcome) for row in ROWS} == every
    assert len(ROWS) == len(every)
    assert {outcome for _, outcome in every} == set(Outcome)
    assert all(outcomes <= RULES[phase].keys() for phase, outcomes in UNFIT.items())


@EVERY_ROW
def test_what_follows(row: Row) -> None:
    cursor, outcome = at(row)
    assert cursor.phase is row.phase

    step = ended(cursor, outcome)

    assert outcome is row.outcome
    assert plain(step.request) == row.then
    assert step.request is cursor.request


@EVERY_ROW
def test_whether_it_waits_first(row: Row) -> None:
    alone = ended(*at(row)).delay
    again = ended(*at(row, failures=1)).delay

    assert (alone > 0, again > 0) == {
        "never": (False, False),
        "if again": (False, True),
        "again": (False, False),  # whatever failed before: only after another of its kind
        "always": (True, True),
    }[row.waits]


@EVERY_ROW
def test_retry_after_is_the_least_wait_of_a_failure(row: Row) -> None:
    cursor, outcome = at(row)
    asked = ended(cursor, outcome, retry_after=77.0).delay
    cursor, outcome = at(row, failures=6)
    longer = ended(cursor, outcome, retry_after=0.5).delay

    assert asked == (0.0 if row.waits in ("never", "again") else 77.0)
    assert longer == (0.0 if row.waits in ("never", "again") else 30.0)


@pytest.mark.parametrize("phase", list(Phase))
def test_an_outcome_that_the_phase_can_not_have_is_a_mistake(phase: Phase) -> None:
    for outcome in set(Outcome) - set(RULES[phase]):
        with pytest.raises(KeyError):
            ended(AT[phase](), outcome)
