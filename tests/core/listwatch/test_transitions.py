"""The transition table, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import pytest

from aioinformer._core.listwatch.backoff import FIRST_PAUSE
from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.polling import POLL_INTERVAL
from aioinformer._core.listwatch.reflector_requests import Start
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

Then: TypeAlias = tuple[str, int, str] | str
"""A request: a list (rv, limit, token), or a watch (rv)."""
Waits = Literal["never", "after a skip", "spaced", "always", "polls"]


@dataclass(frozen=True)
class Row:
    """The request after an outcome, and the wait."""

    phase: Phase
    outcome: Outcome
    then: Then
    waits: Waits

    def __str__(self) -> str:
        return f"{self.phase.name}-{self.outcome.name}"


FIRST_LIST, WHOLE_LIST, CONSISTENT = ("0", 500, ""), ("10", 0, ""), ("", 500, "")
CHECK = ("", 1, "")

USUAL: dict[Phase, Then] = {
    Phase.WATCHLIST: WATCHLIST_PREFIX,  # the first one is requested at the newest version
    Phase.LIST: FIRST_LIST,  # the first one: at "0", 500 items a page
    Phase.PAGE: FIRST_LIST,  # its second page has the token t1
    Phase.WATCH: "10",  # the watch starts at 10; a list at 10 has no limit
    Phase.FRESHNESS_CHECK: "10",  # follows a watch from 10 that had an idle timeout
    Phase.DISCOVERY: FIRST_LIST,  # follows a first list that was answered with 404
}
"""The request after most outcomes of a phase. It always waits."""

OTHERS: dict[Phase, dict[str, tuple[Then, Waits]]] = {
    Phase.WATCHLIST: {
        **dict.fromkeys(("EXPIRED", "VERSION_TOO_LARGE"), (WATCHLIST_PREFIX, "after a skip")),
        **dict.fromkeys(
            ("ACCESS_DENIED", "METHOD_NOT_ALLOWED", "NOT_FOUND", "BAD_REQUEST"),
            (FIRST_LIST, "after a skip"),
        ),
        **dict.fromkeys(
            ("WATCHLIST_UNSUPPORTED", "ERROR_EVENT", "WATCHLIST_TIMEOUT"),
            (FIRST_LIST, "after a skip"),
        ),
    },
    Phase.LIST: {
        "MORE": (("0", 500, "t2"), "never"),
        "COMPLETE": ("20", "never"),
        "POLLED": (("20", 0, ""), "polls"),
        "REWOUND": (("", 50, ""), "after a skip"),
        **dict.fromkeys(("EXPIRED", "VERSION_TOO_LARGE"), (CONSISTENT, "after a skip")),
    },
    Phase.PAGE: {
        "MORE": (("0", 500, "t2"), "never"),
        "COMPLETE": ("10", "never"),
        "POLLED": (("20", 0, ""), "polls"),
        "REWOUND": (("", 50, ""), "after a skip"),
        "EXPIRED": (("0", 0, ""), "after a skip"),
        "VERSION_TOO_LARGE": (CONSISTENT, "after a skip"),
        **dict.fromkeys(
            ("THROTTLED", "UNAVAILABLE", "UNREACHABLE", "CONNECTION_LOST", "SERVER_ERROR"),
            (("0", 500, "t1"), "always"),
        ),
    },
    Phase.WATCH: {
        "ENDED": ("10", "never"),
        "SHORT_WATCH": ("10", "spaced"),
        "CONNECTION_LOST": (CHECK, "spaced"),
        "LOST_AT_ONCE": (CHECK, "always"),
        **dict.fromkeys(("SILENT_WATCH", "IDLE_TIMEOUT"), (CHECK, "never")),
        "UNREACHABLE": (CHECK, "always"),
        "VERSION_TOO_LARGE": (CONSISTENT, "after a skip"),
        **dict.fromkeys(
            ("EXPIRED", "ACCESS_DENIED", "METHOD_NOT_ALLOWED", "NOT_FOUND"),
            (WHOLE_LIST, "after a skip"),
        ),
        "WATCH_REFUSED": (WHOLE_LIST, "polls"),
        **dict.fromkeys(("BAD_REQUEST", "ERROR_EVENT", "PROTOCOL_ERROR"), (WHOLE_LIST, "always")),
    },
    Phase.FRESHNESS_CHECK: {
        **dict.fromkeys(("COMPLETE", "ALIVE"), ("10", "never")),
        "REWOUND": (CONSISTENT, "never"),
        "UNREACHABLE": (CHECK, "always"),
    },
    Phase.DISCOVERY: {"APPEARED": (CONSISTENT, "never"), "NOT_SERVED": (DISCOVERY, "always")},
}
"""The other requests, and the waits before them."""

ROWS = [
    Row(phase, outcome, *OTHERS[phase].get(outcome.name, (USUAL[phase], "always")))
    for phase, rules in TRANSITIONS.items()
    for outcome in rules
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


def test_each_outcome_ends_a_request_of_some_phase() -> None:
    assert {row.outcome for row in ROWS} == set(Outcome)


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

    if row.waits == "spaced":
        assert alone == 0.0
        assert again == skipped == FIRST_PAUSE, "since the beginning of the watch"
        assert advance(*at(row, failures=1), now=FIRST_PAUSE).delay == 0.0
        return
    assert (alone > 0, again > 0, skipped > 0) == {
        "never": (False, False, False),
        "after a skip": (False, False, True),
        "always": (True, True, True),
        "polls": (True, True, True),
    }[row.waits]


@EVERY_ROW
def test_retry_after_is_the_least_wait_of_a_failure(row: Row) -> None:
    state, outcome = at(row)
    now = 10.0 if row.waits == "spaced" else 0.0
    asked = advance(state, outcome, now=now, retry_after=77.0).delay
    state, outcome = at(row, failures=6)
    longer = advance(state, outcome, now=now, retry_after=0.5).delay

    if row.waits == "polls":
        assert asked == longer == POLL_INTERVAL, "a server that refuses watches is not busy"
        return
    assert asked == (0.0 if row.waits in ("never", "spaced") else 77.0)
    # A busy server says how long to wait.
    grown = 3.0 if outcome in (Outcome.THROTTLED, Outcome.UNAVAILABLE) else 30.0
    grown = 0.5 if row.waits == "after a skip" else grown
    assert longer == (0.0 if row.waits in ("never", "spaced") else grown)


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
    state.begin(Start(resume_from="10"), now=0.0, jitter=0.5)

    steps = [advance(state, outcome) for _ in range(10)]

    assert {summarize(step.request) for step in steps} == {"10"}
    assert all(step.delay > 0 for step in steps)
