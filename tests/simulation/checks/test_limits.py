"""The budget of requests, on requests that are made up."""

from __future__ import annotations

import pytest

from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.requests import Verb
from aioinformer._core.listwatch.transitions import Phase
from tests.simulation.checks.limits import judge_politeness
from tests.simulation.checks.violation import Violation
from tests.simulation.plan import InformerSpec, Plan
from tests.simulation.records import History, Request, Transition

PROBED = (Phase.FRESHNESS_CHECK, Outcome.REWOUND)
"""A row that another kind of request follows at once."""


def history(asked: list[float], *rows: tuple[Phase, Outcome], lasting: float = 0.0) -> History:
    """Return requests at these times, which end with ``rows`` in turn after ``lasting`` seconds."""
    made = History(Plan(seed=0, informers=(InformerSpec(name="web"),), steps=()))
    for order, time in enumerate(asked):
        phase, outcome = rows[order % len(rows)]
        kind: Verb = "watchlist" if phase is Phase.WATCHLIST else "watch"
        ended = time + lasting
        request = Request(2 * order, time, "web", kind, "", ended=ended)
        made.of(Request).append(request)
        made.of(Transition).append(
            Transition(2 * order + 1, ended, "web", phase, outcome, 0.0, request, "1", None)
        )
    return made


def test_five_requests_may_follow_failures_in_ten_seconds() -> None:
    judge_politeness(history([0, 1, 2, 3, 4, 5], PROBED))


def test_six_requests_after_failures_in_ten_seconds_are_a_violation() -> None:
    with pytest.raises(Violation, match="more than 5 requests follow failures in 10 s") as caught:
        judge_politeness(history([0, 1, 2, 3, 4, 5, 6], PROBED))
    assert caught.value.promise == 11


def test_after_two_minutes_three_a_minute_are_enough() -> None:
    judge_politeness(history([20.0 * number for number in range(30)], PROBED))
    with pytest.raises(Violation, match="more than 3 requests follow failures in 60 s"):
        judge_politeness(history([12.0 * number for number in range(30)], PROBED))


def test_requests_that_last_for_some_seconds_are_not_limited() -> None:
    judge_politeness(history([12.0 * number for number in range(30)], PROBED, lasting=6.0))


def test_watches_that_are_cut_short_begin_twenty_seconds_apart() -> None:
    brief = (Phase.WATCH, Outcome.SHORT_WATCH)
    judge_politeness(history([0, 3, *range(23, 323, 20)], brief, lasting=3.0))
    with pytest.raises(Violation, match="a watch that was cut short allows it after 20"):
        judge_politeness(history([0, 3, 13], brief, lasting=3.0))


def test_a_fallback_to_lists_without_a_reason_is_a_violation() -> None:
    denied = history(
        [0, 10], (Phase.WATCHLIST, Outcome.UNAUTHORIZED), (Phase.LIST, Outcome.COMPLETE)
    )
    denied.of(Request)[1].kind = "list"
    with pytest.raises(Violation, match="lists are used instead of WatchLists"):
        judge_politeness(denied)


def test_a_watch_list_during_a_fallback_is_a_violation() -> None:
    with pytest.raises(Violation, match="a WatchList is requested again"):
        judge_politeness(history([0, 100], (Phase.WATCHLIST, Outcome.WATCHLIST_TIMEOUT)))
