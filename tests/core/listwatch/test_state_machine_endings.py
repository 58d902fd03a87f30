"""The ends of requests as the state machine classifies and reports them."""

from __future__ import annotations

import pytest

from aioinformer._core.listwatch.confirmation import CONFIRMING_WATCH_SECONDS
from aioinformer._core.listwatch.liveness import DEADLINE_GRACE
from aioinformer._core.listwatch.outcomes import Outcome, RequestEnd
from aioinformer._core.listwatch.reflector_requests import ListRequest, Start, WatchRequest
from aioinformer._core.listwatch.server_profile import MAX_BOOKMARK_INTERVAL, ServerProfile
from aioinformer._core.listwatch.state_machine import (
    MISSED_CHANGES_WINDOW,
    SILENCE_SECONDS,
    ListWatchState,
)
from aioinformer._core.listwatch.transitions import TRANSITIONS, Phase
from aioinformer.errors import ConnectionLost, RequestTimedOut, TransportError
from tests.core.builders import make_server_error
from tests.core.list_watch_states import (
    advance,
    freshness_check_state,
    listing_state,
    sent,
    watching_state,
    watchlist_state,
)

OPENED = 100.0
"""The time at which the watches of these tests begin."""


def open_watch(state: ListWatchState, profile: ServerProfile | None = None) -> ListWatchState:
    """Return the state machine after the response to its watch or WatchList has begun."""
    if profile is not None:
        state.profile = profile
    assert isinstance(state.request, WatchRequest)
    state.open_watch(state.request, OPENED)
    return state


def check_reported(
    end: RequestEnd, outcome: Outcome, kind: type[TransportError], text: str
) -> None:
    assert end.outcome is outcome
    assert isinstance(end.error, kind)
    assert str(end.error) == text
    assert end.error.phase == "watch"
    assert not end.known


# -- watches that the server ends ------------------------------------------------------------------


def test_the_usual_end_of_a_watch_is_not_reported() -> None:
    state = open_watch(watching_state())
    assert state.finish_watch(OPENED + 10.0) == RequestEnd(Outcome.ENDED)
    state.record_watch_data("11", now=OPENED, changed=True)
    assert state.finish_watch(OPENED + 2.0) == RequestEnd(Outcome.ENDED)


def test_the_end_of_a_watch_leads_to_a_check_where_the_server_has_shown_no_version() -> None:
    state = open_watch(watching_state())
    state.record_watch_data("11", now=OPENED + 200.0, changed=True)
    state.record_watch_data("", now=OPENED + 400.0)  # neither a change nor a bookmark
    ended = OPENED + 200.0 + SILENCE_SECONDS
    advance(state, state.finish_watch(ended - 1.0), now=ended - 1.0)
    assert sent(state.request) == WatchRequest("11", 450)

    state.open_watch(WatchRequest("11", 450), ended - 1.0)
    end = state.finish_watch(ended + 20.0)
    assert end == RequestEnd(Outcome.SILENT_WATCH), "the silence lasts since the watch before"
    advance(state, end, now=ended + 20.0)
    assert sent(state.request) == ListRequest("", 1, freshness_check=True)
    advance(state, state.finish_page("11", ""), now=ended + 20.0)

    state.open_watch(WatchRequest("11", 450), ended + 20.0)
    assert state.finish_watch(ended + 300.0) == RequestEnd(Outcome.ENDED), "the check showed one"


@pytest.mark.parametrize("bookmark", [True, False])
def test_a_watch_that_has_shown_a_version_needs_no_check(bookmark: bool) -> None:
    state = open_watch(watching_state())
    state.record_watch_data("11", now=OPENED + 440.0, changed=not bookmark, bookmark=bookmark)
    assert state.finish_watch(OPENED + 450.0) == RequestEnd(Outcome.ENDED)


@pytest.mark.parametrize(
    ("lasted", "outcome"),
    [(0.5, Outcome.EMPTY_WATCH), (3.0, Outcome.SHORT_WATCH), (12.0, Outcome.ENDED)],
)
def test_a_watchlist_that_ends_before_its_mark_is_reported(lasted: float, outcome: Outcome) -> None:
    end = open_watch(watchlist_state()).finish_watch(OPENED + lasted)
    text = f"the WatchList ended after {lasted:.1f} s, before its initial list was complete"
    check_reported(end, outcome, ConnectionLost, text)


def test_a_changed_object_before_the_end_mark_does_not_make_a_watchlist_complete() -> None:
    state = open_watch(watchlist_state())
    state.record_watch_data("", now=OPENED, changed=True)
    assert state.finish_watch(OPENED + 5.0).outcome is Outcome.SHORT_WATCH


def test_a_confirming_watch_may_be_as_short_as_it_was_requested() -> None:
    state = ListWatchState()
    state.begin(Start(resume_from="10", restored=True), now=0.0, jitter=0.5)
    advance(state, state.finish_page("10", ""))
    assert sent(state.request) == WatchRequest("10", CONFIRMING_WATCH_SECONDS)
    open_watch(state)
    assert state.finish_watch(OPENED + 2.9).outcome is Outcome.SHORT_WATCH
    assert state.finish_watch(OPENED + 3.0) == RequestEnd(Outcome.ENDED)


# -- watches that the watchdog ends ----------------------------------------------------------------


def test_a_watch_that_outlives_its_time_is_a_broken_connection() -> None:
    state = open_watch(watching_state())
    assert sent(state.request) == WatchRequest("10", 450)
    end = state.finish_idle_watch(OPENED + 450 + DEADLINE_GRACE)
    text = "the watch did not end after its 450 s; replacing it"
    check_reported(end, Outcome.CONNECTION_LOST, RequestTimedOut, text)


def test_a_watch_without_data_is_reported_where_bookmarks_are_due() -> None:
    state = open_watch(watching_state(), ServerProfile(bookmark_interval=60.0))
    end = state.finish_idle_watch(OPENED + 75.0)
    text = (
        "the watch received no data for 75 s (idle timeout), "
        "longer than the interval of bookmarks; replacing it"
    )
    check_reported(end, Outcome.IDLE_TIMEOUT, RequestTimedOut, text)


def test_a_watch_without_data_is_not_reported_where_bookmarks_are_rare() -> None:
    profile = ServerProfile(bookmark_interval=MAX_BOOKMARK_INTERVAL)
    state = open_watch(watching_state(), profile)
    assert state.finish_idle_watch(OPENED + 290.0) == RequestEnd(Outcome.IDLE_TIMEOUT)


# -- the profile of the server ---------------------------------------------------------------------


def test_the_idle_timeout_of_a_watchlist_is_that_of_an_initial_list_up_to_its_mark() -> None:
    state = watchlist_state()
    assert isinstance(state.request, WatchRequest)
    idle_timeout = state.open_watch(state.request, OPENED)
    assert (idle_timeout.initial_list_complete, idle_timeout.timeout) == (False, 30.0)
    state.complete_initial_list("10", OPENED + 5.0)
    assert (idle_timeout.initial_list_complete, idle_timeout.timeout) == (True, 75.0)

    state = watching_state()
    assert isinstance(state.request, WatchRequest)
    assert state.open_watch(state.request, OPENED).initial_list_complete


def test_only_bookmarks_change_the_interval_of_bookmarks() -> None:
    state = open_watch(watching_state())
    state.record_watch_data("11", now=OPENED + 70.0)
    state.record_watch_data("12", now=OPENED + 80.0, changed=True)
    assert state.profile.bookmark_interval is None
    state.record_watch_data("13", now=OPENED + 90.0, bookmark=True)
    assert state.profile.bookmark_interval == 90.0


def test_data_without_a_change_is_no_change() -> None:
    state = open_watch(watching_state())
    state.record_watch_data("11", now=OPENED)
    assert state.finish_watch(OPENED + 5.0).outcome is Outcome.SHORT_WATCH


@pytest.mark.parametrize(
    ("after", "interval"), [(MISSED_CHANGES_WINDOW - 0.1, 60.0), (MISSED_CHANGES_WINDOW, 120.0)]
)
def test_changes_right_after_an_idle_watch_show_that_its_connection_was_dead(
    after: float, interval: float
) -> None:
    state = freshness_check_state()
    state.profile.bookmark_interval = 60.0
    state.profile.record_idle_timeout()
    advance(state, state.finish_page("12", ""))
    open_watch(state)
    state.record_watch_data("", now=OPENED + after, changed=True)
    state.record_watch_data("", now=OPENED + 1.0, changed=True)
    assert state.profile.bookmark_interval == interval


@pytest.mark.parametrize(
    ("outcome", "interval"),
    [
        ("10", 120.0),
        ("11", 60.0),
        (Outcome.ACCESS_DENIED, 120.0),
        (Outcome.SERVER_ERROR, 120.0),
        (Outcome.THROTTLED, 120.0),
        (Outcome.CONNECTION_LOST, 60.0),
        (Outcome.UNREACHABLE, 60.0),
        (Outcome.REWOUND, 60.0),
    ],
)
def test_the_freshness_check_shows_if_an_idle_server_had_a_bookmark_to_send(
    outcome: Outcome | str, interval: float
) -> None:
    state = open_watch(watching_state(), ServerProfile(bookmark_interval=60.0))
    advance(state, state.finish_idle_watch(OPENED + 75.0))
    advance(state, state.finish_page(outcome, "") if isinstance(outcome, str) else outcome)
    assert state.profile.bookmark_interval == interval


def test_the_data_of_a_watch_puts_its_idle_timeout_off() -> None:
    state = open_watch(watching_state(), ServerProfile(bookmark_interval=60.0))
    assert isinstance(state.request, WatchRequest)
    idle_timeout = state.open_watch(state.request, OPENED)
    state.record_watch_data("", now=OPENED + 20.0)
    assert idle_timeout.deadline == OPENED + 95.0


# -- failures and malformed states -----------------------------------------------------------------


@pytest.mark.client_go(39)
def test_a_server_without_watchlists_is_recognized_by_its_error() -> None:
    error = make_server_error(422, "Invalid")
    assert watchlist_state().finish_failed(error, opened=False) == RequestEnd(
        Outcome.WATCHLIST_UNSUPPORTED, error
    )
    for state in (listing_state(), watching_state()):
        assert state.finish_failed(error, opened=False).outcome is Outcome.BAD_REQUEST


def test_rejected_watches_are_reported_once() -> None:
    state, error = watching_state(), make_server_error(403, "Forbidden")
    first = state.finish_failed(error, opened=False)
    assert first == RequestEnd(Outcome.WATCH_REFUSED, error, known=False)
    again = state.finish_failed(error, opened=False)
    assert again == RequestEnd(Outcome.WATCH_REFUSED, error, known=True)


# -- the beginning ---------------------------------------------------------------------------------


def test_a_state_that_is_read_again_is_at_least_as_new_as_the_last_one() -> None:
    state = ListWatchState()
    assert state.begin(Start(not_older_than="10"), now=0.0, jitter=0.5) == ListRequest("10", 0)
    assert (state.resource_version, state.version_went_back) == ("10", False)
    assert not state.watches


def test_a_watch_resumes_behind_a_known_state() -> None:
    state = ListWatchState()
    assert state.begin(Start(resume_from="10"), now=0.0, jitter=0.5) == WatchRequest("10", 450)
    assert state.watches
    assert not state.confirmation.pending


def test_the_first_read_is_a_consistent_one_if_the_newest_state_is_requested() -> None:
    state = ListWatchState()
    assert state.begin(Start(newest=True), now=0.0, jitter=0.5) == ListRequest("", 500)


def test_the_check_of_a_restored_state_remembers_the_version_of_the_server() -> None:
    state = ListWatchState()
    state.begin(Start(resume_from="10", restored=True), now=0.0, jitter=0.5)
    assert state.finish_page("12", "") == RequestEnd(Outcome.COMPLETE)
    assert (state.confirmation.server_version, state.resource_version) == ("12", "10")


def test_a_check_that_shows_an_older_server_is_no_confirmation() -> None:
    state = ListWatchState()
    state.begin(Start(resume_from="10", restored=True), now=0.0, jitter=0.5)
    assert state.finish_page("9", "") == RequestEnd(Outcome.REWOUND)
    assert state.confirmation.server_version == ""


@pytest.mark.parametrize("outcome", [Outcome.UNREACHABLE, Outcome.UNAUTHORIZED])
def test_a_scheduled_request_names_the_row_that_led_to_it(outcome: Outcome) -> None:
    state = listing_state()
    step = advance(state, outcome)
    assert step.transition is TRANSITIONS[Phase.LIST][outcome]
    assert step.until_answer is (outcome is Outcome.UNREACHABLE)
    assert step.delay == 0.8


@pytest.mark.parametrize(
    ("lasted", "outcome", "text"),
    [
        (0.9, Outcome.EMPTY_WATCH, "the watch ended at once without a change"),
        (1.0, Outcome.SHORT_WATCH, "the watch ended after 1.0 s without a change"),
        (9.9, Outcome.SHORT_WATCH, "the watch ended after 9.9 s without a change"),
    ],
)
def test_a_watch_that_ends_early_without_a_change_is_reported(
    lasted: float, outcome: Outcome, text: str
) -> None:
    end = open_watch(watching_state()).finish_watch(OPENED + lasted)
    check_reported(end, outcome, ConnectionLost, text)


def test_a_watchlist_without_an_end_mark_is_reported() -> None:
    end = open_watch(watchlist_state()).finish_idle_watch(OPENED + 30.0)
    text = "the WatchList had no end mark after 30 s; using lists instead"
    check_reported(end, Outcome.WATCHLIST_TIMEOUT, RequestTimedOut, text)
