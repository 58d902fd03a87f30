"""The transition table, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest

from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.polling import POLL_INTERVAL
from aioinformer._core.listwatch.state_machine import ListWatchState
from aioinformer._core.listwatch.transitions import (
    TRANSITIONS,
    WATCH_ONLY_TRANSITIONS,
    Phase,
)
from aioinformer.errors import Status, server_error
from tests.core.list_watch_states import (
    DISCOVERY,
    STATES_BY_PHASE,
    WATCHLIST_PREFIX,
    advance,
    summarize,
    watching_state,
)

Waits = Literal["never", "after a skip", "again", "always", "polls"]


@dataclass(frozen=True)
class Row:
    """The request after an outcome: a list (rv, limit, token) or a watch (rv), and the wait."""

    phase: Phase
    outcome: Outcome
    then: tuple[str, int, str] | str
    waits: Waits

    def __str__(self) -> str:
        return f"{self.phase.name}-{self.outcome.name}"


ROWS = [
    # The first WatchList is asked for at the newest version; a list after it, at "0".
    Row(Phase.WATCHLIST, Outcome.EXPIRED, WATCHLIST_PREFIX, "after a skip"),
    Row(Phase.WATCHLIST, Outcome.VERSION_TOO_LARGE, WATCHLIST_PREFIX, "after a skip"),
    Row(Phase.WATCHLIST, Outcome.THROTTLED, WATCHLIST_PREFIX, "always"),
    Row(Phase.WATCHLIST, Outcome.UNREACHABLE, WATCHLIST_PREFIX, "always"),
    Row(Phase.WATCHLIST, Outcome.CONNECTION_LOST, WATCHLIST_PREFIX, "always"),
    Row(Phase.WATCHLIST, Outcome.ACCESS_DENIED, ("0", 500, ""), "after a skip"),
    Row(Phase.WATCHLIST, Outcome.METHOD_NOT_ALLOWED, ("0", 500, ""), "after a skip"),
    Row(Phase.WATCHLIST, Outcome.UNAUTHORIZED, WATCHLIST_PREFIX, "always"),
    Row(Phase.WATCHLIST, Outcome.NOT_FOUND, ("0", 500, ""), "after a skip"),
    Row(Phase.WATCHLIST, Outcome.SERVER_ERROR, WATCHLIST_PREFIX, "always"),
    Row(Phase.WATCHLIST, Outcome.PROTOCOL_ERROR, WATCHLIST_PREFIX, "always"),
    Row(Phase.WATCHLIST, Outcome.ENDED, WATCHLIST_PREFIX, "always"),
    Row(Phase.WATCHLIST, Outcome.SHORT_WATCH, WATCHLIST_PREFIX, "always"),
    Row(Phase.WATCHLIST, Outcome.EMPTY_WATCH, WATCHLIST_PREFIX, "always"),
    Row(Phase.WATCHLIST, Outcome.WATCHLIST_UNSUPPORTED, ("0", 500, ""), "after a skip"),
    Row(Phase.WATCHLIST, Outcome.BAD_REQUEST, ("0", 500, ""), "after a skip"),
    Row(Phase.WATCHLIST, Outcome.ERROR_EVENT, ("0", 500, ""), "after a skip"),
    Row(Phase.WATCHLIST, Outcome.WATCHLIST_TIMEOUT, ("0", 500, ""), "after a skip"),
    # The first list is asked for at "0", 500 items a page.
    Row(Phase.LIST, Outcome.MORE, ("0", 500, "t2"), "never"),
    Row(Phase.LIST, Outcome.COMPLETE, "20", "never"),
    Row(Phase.LIST, Outcome.POLLED, ("20", 0, ""), "polls"),
    Row(Phase.LIST, Outcome.REWOUND, ("", 50, ""), "after a skip"),
    Row(Phase.LIST, Outcome.EXPIRED, ("", 500, ""), "after a skip"),
    Row(Phase.LIST, Outcome.VERSION_TOO_LARGE, ("", 500, ""), "after a skip"),
    Row(Phase.LIST, Outcome.THROTTLED, ("0", 500, ""), "always"),
    Row(Phase.LIST, Outcome.UNREACHABLE, ("0", 500, ""), "always"),
    Row(Phase.LIST, Outcome.CONNECTION_LOST, ("0", 500, ""), "always"),
    Row(Phase.LIST, Outcome.ACCESS_DENIED, ("0", 500, ""), "always"),
    Row(Phase.LIST, Outcome.METHOD_NOT_ALLOWED, ("0", 500, ""), "always"),
    Row(Phase.LIST, Outcome.UNAUTHORIZED, ("0", 500, ""), "always"),
    Row(Phase.LIST, Outcome.NOT_FOUND, ("0", 500, ""), "always"),
    Row(Phase.LIST, Outcome.SERVER_ERROR, ("0", 500, ""), "always"),
    Row(Phase.LIST, Outcome.BAD_REQUEST, ("0", 500, ""), "always"),
    Row(Phase.LIST, Outcome.PROTOCOL_ERROR, ("0", 500, ""), "always"),
    # Its second page has the token t1.
    Row(Phase.PAGE, Outcome.MORE, ("0", 500, "t2"), "never"),
    Row(Phase.PAGE, Outcome.COMPLETE, "10", "never"),
    Row(Phase.PAGE, Outcome.POLLED, ("20", 0, ""), "polls"),
    Row(Phase.PAGE, Outcome.REWOUND, ("", 50, ""), "after a skip"),
    Row(Phase.PAGE, Outcome.EXPIRED, ("0", 0, ""), "after a skip"),
    Row(Phase.PAGE, Outcome.VERSION_TOO_LARGE, ("", 500, ""), "after a skip"),
    Row(Phase.PAGE, Outcome.THROTTLED, ("0", 500, "t1"), "always"),
    Row(Phase.PAGE, Outcome.UNREACHABLE, ("0", 500, "t1"), "always"),
    Row(Phase.PAGE, Outcome.CONNECTION_LOST, ("0", 500, "t1"), "always"),
    Row(Phase.PAGE, Outcome.ACCESS_DENIED, ("0", 500, ""), "always"),
    Row(Phase.PAGE, Outcome.METHOD_NOT_ALLOWED, ("0", 500, ""), "always"),
    Row(Phase.PAGE, Outcome.UNAUTHORIZED, ("0", 500, ""), "always"),
    Row(Phase.PAGE, Outcome.NOT_FOUND, ("0", 500, ""), "always"),
    Row(Phase.PAGE, Outcome.SERVER_ERROR, ("0", 500, "t1"), "always"),
    Row(Phase.PAGE, Outcome.BAD_REQUEST, ("0", 500, ""), "always"),
    Row(Phase.PAGE, Outcome.PROTOCOL_ERROR, ("0", 500, ""), "always"),
    # The watch starts at 10; a list at 10 has no limit.
    Row(Phase.WATCH, Outcome.ENDED, "10", "never"),
    Row(Phase.WATCH, Outcome.SILENT_WATCH, ("", 1, ""), "never"),
    Row(Phase.WATCH, Outcome.SHORT_WATCH, "10", "again"),
    Row(Phase.WATCH, Outcome.EMPTY_WATCH, "10", "always"),
    Row(Phase.WATCH, Outcome.IDLE_TIMEOUT, ("", 1, ""), "never"),
    Row(Phase.WATCH, Outcome.EXPIRED, ("10", 0, ""), "after a skip"),
    Row(Phase.WATCH, Outcome.VERSION_TOO_LARGE, ("", 500, ""), "after a skip"),
    Row(Phase.WATCH, Outcome.THROTTLED, "10", "always"),
    Row(Phase.WATCH, Outcome.UNREACHABLE, ("", 1, ""), "always"),
    Row(Phase.WATCH, Outcome.CONNECTION_LOST, "10", "always"),
    Row(Phase.WATCH, Outcome.ACCESS_DENIED, ("10", 0, ""), "after a skip"),
    Row(Phase.WATCH, Outcome.METHOD_NOT_ALLOWED, ("10", 0, ""), "after a skip"),
    Row(Phase.WATCH, Outcome.WATCH_REFUSED, ("10", 0, ""), "polls"),
    Row(Phase.WATCH, Outcome.UNAUTHORIZED, "10", "always"),
    Row(Phase.WATCH, Outcome.SERVER_ERROR, "10", "always"),
    Row(Phase.WATCH, Outcome.NOT_FOUND, ("10", 0, ""), "after a skip"),
    Row(Phase.WATCH, Outcome.BAD_REQUEST, ("10", 0, ""), "always"),
    Row(Phase.WATCH, Outcome.ERROR_EVENT, ("10", 0, ""), "always"),
    Row(Phase.WATCH, Outcome.PROTOCOL_ERROR, ("10", 0, ""), "always"),
    # The freshness check follows a watch from 10 that had an idle timeout.
    Row(Phase.FRESHNESS_CHECK, Outcome.COMPLETE, "10", "never"),
    Row(Phase.FRESHNESS_CHECK, Outcome.REWOUND, ("", 500, ""), "never"),
    Row(Phase.FRESHNESS_CHECK, Outcome.EXPIRED, "10", "always"),
    Row(Phase.FRESHNESS_CHECK, Outcome.VERSION_TOO_LARGE, "10", "always"),
    Row(Phase.FRESHNESS_CHECK, Outcome.THROTTLED, "10", "always"),
    Row(Phase.FRESHNESS_CHECK, Outcome.UNREACHABLE, ("", 1, ""), "always"),
    Row(Phase.FRESHNESS_CHECK, Outcome.CONNECTION_LOST, "10", "always"),
    Row(Phase.FRESHNESS_CHECK, Outcome.ACCESS_DENIED, "10", "always"),
    Row(Phase.FRESHNESS_CHECK, Outcome.METHOD_NOT_ALLOWED, "10", "always"),
    Row(Phase.FRESHNESS_CHECK, Outcome.UNAUTHORIZED, "10", "always"),
    Row(Phase.FRESHNESS_CHECK, Outcome.NOT_FOUND, "10", "always"),
    Row(Phase.FRESHNESS_CHECK, Outcome.SERVER_ERROR, "10", "always"),
    Row(Phase.FRESHNESS_CHECK, Outcome.BAD_REQUEST, "10", "always"),
    Row(Phase.FRESHNESS_CHECK, Outcome.PROTOCOL_ERROR, "10", "always"),
    # The look comes behind a first list that was answered with 404.
    Row(Phase.DISCOVERY, Outcome.SERVED, ("0", 500, ""), "always"),
    Row(Phase.DISCOVERY, Outcome.APPEARED, ("", 500, ""), "never"),
    Row(Phase.DISCOVERY, Outcome.API_VERSION_CHANGED, ("0", 500, ""), "always"),
    Row(Phase.DISCOVERY, Outcome.NOT_SERVED, DISCOVERY, "always"),
    Row(Phase.DISCOVERY, Outcome.EXPIRED, ("0", 500, ""), "always"),
    Row(Phase.DISCOVERY, Outcome.VERSION_TOO_LARGE, ("0", 500, ""), "always"),
    Row(Phase.DISCOVERY, Outcome.THROTTLED, ("0", 500, ""), "always"),
    Row(Phase.DISCOVERY, Outcome.UNREACHABLE, ("0", 500, ""), "always"),
    Row(Phase.DISCOVERY, Outcome.ACCESS_DENIED, ("0", 500, ""), "always"),
    Row(Phase.DISCOVERY, Outcome.METHOD_NOT_ALLOWED, ("0", 500, ""), "always"),
    Row(Phase.DISCOVERY, Outcome.UNAUTHORIZED, ("0", 500, ""), "always"),
    Row(Phase.DISCOVERY, Outcome.NOT_FOUND, ("0", 500, ""), "always"),
    Row(Phase.DISCOVERY, Outcome.SERVER_ERROR, ("0", 500, ""), "always"),
    Row(Phase.DISCOVERY, Outcome.BAD_REQUEST, ("0", 500, ""), "always"),
    Row(Phase.DISCOVERY, Outcome.PROTOCOL_ERROR, ("0", 500, ""), "always"),
]

EVERY_ROW = pytest.mark.parametrize("row", ROWS, ids=str)


def older(phase: Phase) -> ListWatchState:
    """Return a state that knows version 10, whose next answer will be older."""
    if phase is Phase.FRESHNESS_CHECK:
        return STATES_BY_PHASE[phase]()
    state = watching_state("10", page_size=50)
    advance(state, Outcome.ERROR_EVENT)
    state.backoff.failures = 0
    if phase is Phase.PAGE:
        advance(state, state.finish_page("9", "t1"))
    return state


def at(row: Row, *, failures: int = 0, skipped: bool = False) -> tuple[ListWatchState, Outcome]:
    """Return a state in the row's phase, its backoff at ``failures``, and the outcome."""
    state = older(row.phase) if row.outcome is Outcome.REWOUND else STATES_BY_PHASE[row.phase]()
    for _ in range(failures):
        state.backoff.next(0.0, 0.0)
    if skipped:
        state.backoff.skip(0.0)
    match row.outcome:
        case Outcome.MORE:
            return state, state.finish_page("20", "t2").outcome
        case Outcome.COMPLETE:
            return state, state.finish_page("20", "").outcome
        case Outcome.POLLED:
            return polled(row.phase)
        case Outcome.REWOUND:
            return state, state.finish_page("9", "").outcome
        case _:
            return state, row.outcome


def polled(phase: Phase) -> tuple[ListWatchState, Outcome]:
    """Return a state whose watches were refused twice, and the outcome of a list after that."""
    state, refusal = watching_state("10"), server_error(Status(403, "Forbidden"))
    for _ in range(2):
        assert state.finish_failed(refusal, opened=False).outcome is Outcome.WATCH_REFUSED
    advance(state, Outcome.WATCH_REFUSED)
    if phase is Phase.PAGE:
        advance(state, state.finish_page("20", "t1"))
    return state, state.finish_page("20", "").outcome


# -- the table -----------------------------------------------------------------------------------


def test_there_is_a_row_for_each_outcome_of_each_phase() -> None:
    every = {(phase, outcome) for phase, rules in TRANSITIONS.items() for outcome in rules}

    assert {(row.phase, row.outcome) for row in ROWS} == every
    assert len(ROWS) == len(every)
    assert {outcome for _, outcome in every} == set(Outcome)


@EVERY_ROW
def test_each_row_leads_to_its_next_request(row: Row) -> None:
    state, outcome = at(row)
    assert state.phase is row.phase

    step = advance(state, outcome)

    assert outcome is row.outcome
    assert summarize(step.request) == row.then
    assert step.request is state.request


@EVERY_ROW
def test_each_row_waits_as_stated(row: Row) -> None:
    alone = advance(*at(row)).delay
    again = advance(*at(row, failures=1)).delay
    skipped = advance(*at(row, skipped=True)).delay

    assert (alone > 0, again > 0, skipped > 0) == {
        "never": (False, False, False),
        "after a skip": (False, False, True),
        "again": (False, False, False),  # whatever failed before: only after another of its kind
        "always": (True, True, True),
        "polls": (True, True, True),
    }[row.waits]


@EVERY_ROW
def test_retry_after_is_the_least_wait_of_a_failure(row: Row) -> None:
    state, outcome = at(row)
    asked = advance(state, outcome, retry_after=77.0).delay
    state, outcome = at(row, failures=6)
    longer = advance(state, outcome, retry_after=0.5).delay

    if row.waits == "polls":
        assert asked == longer == POLL_INTERVAL, "a server that refuses watches is not busy"
        return
    assert asked == (0.0 if row.waits in ("never", "again") else 77.0)
    grown = 3.0 if outcome is Outcome.THROTTLED else 30.0  # a busy server says how long to wait
    assert longer == (0.0 if row.waits in ("never", "again") else grown)


@pytest.mark.parametrize("phase", list(Phase))
def test_an_outcome_that_the_phase_can_not_have_is_a_mistake(phase: Phase) -> None:
    for outcome in set(Outcome) - set(TRANSITIONS[phase]):
        with pytest.raises(KeyError):
            advance(STATES_BY_PHASE[phase](), outcome)


@pytest.mark.parametrize("outcome", [Outcome.SERVER_ERROR, Outcome.ERROR_EVENT])
def test_a_state_machine_without_lists_repeats_a_watch_that_the_server_fails_to_serve(
    outcome: Outcome,
) -> None:
    state = ListWatchState(transitions=WATCH_ONLY_TRANSITIONS)
    state.begin(now=0.0, jitter=0.5, resume_from="10")

    steps = [advance(state, outcome) for _ in range(10)]

    assert {summarize(step.request) for step in steps} == {"10"}
    assert all(step.delay > 0 for step in steps)
