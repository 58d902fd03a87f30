"""The list/watch state machine of one reflector."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioinformer._core.listwatch.backoff import (
    FIRST_PAUSE,
    LATER_PAUSE,
    SETTLING_TIME,
    Backoff,
)
from aioinformer._core.listwatch.outcomes import Outcome, RequestEnd
from aioinformer._core.listwatch.polling import POLL_INTERVAL
from aioinformer._core.listwatch.reflector_requests import (
    PAGE_SIZE,
    DiscoveryRequest,
    ListRequest,
    WatchRequest,
)
from aioinformer._core.listwatch.server_profile import (
    WATCHLIST_FAILED_PAUSE,
    WATCHLIST_UNSUPPORTED_PAUSE,
    ServerProfile,
)
from aioinformer._core.listwatch.state_machine import (
    MAX_CONSECUTIVE_FAILURES,
    SHORT_WATCH_SECONDS,
    WATCH_SECONDS,
    ListWatchState,
)
from aioinformer._core.listwatch.transitions import TRANSITIONS, Phase, ScheduledRequest
from aioinformer.errors import ConnectionLost, ProtocolError, Status, server_error
from tests.core import strategies
from tests.core.list_watch_states import (
    NO_JITTER,
    WATCHLIST_PREFIX,
    advance,
    discovery_state,
    freshness_check_state,
    listing_state,
    observe,
    paging_state,
    sent,
    summarize,
    watching_state,
    watchlist_state,
)

# -- lists ---------------------------------------------------------------------------------------


@pytest.mark.client_go(11)
def test_the_first_list_requests_any_version() -> None:
    """client-go: "0", from the server's cache."""
    state = ListWatchState()

    assert sent(state.request) == ListRequest("0", PAGE_SIZE)
    assert state.resource_version == ""


@pytest.mark.client_go(20, 22)
def test_a_later_list_requests_the_last_version_and_has_no_limit() -> None:
    """A limit would bypass the server's cache; an older state would go back in time."""
    state = watching_state("10")
    observe(state, "15")

    assert sent(advance(state, Outcome.PROTOCOL_ERROR).request) == ListRequest("15", 0)


@pytest.mark.client_go(23)
def test_a_consistent_list_is_requested_until_one_succeeds() -> None:
    """client-go's isLastSyncResourceVersionUnavailable."""
    state = watching_state("10")
    advance(state, Outcome.VERSION_TOO_LARGE)

    for outcome in (
        Outcome.UNREACHABLE,
        Outcome.SERVER_ERROR,
        Outcome.ACCESS_DENIED,
        Outcome.EXPIRED,
    ):
        assert sent(advance(state, outcome).request) == ListRequest("", PAGE_SIZE)
    advance(state, state.finish_page("5", ""))
    assert sent(state.request) == WatchRequest("5", 450), "the server was set back; so are we"
    assert sent(advance(state, Outcome.PROTOCOL_ERROR).request) == ListRequest("5", 0)


def test_a_page_does_not_count_as_success() -> None:
    state = watching_state("10")
    advance(state, Outcome.VERSION_TOO_LARGE)
    advance(state, state.finish_page("12", "t1"))

    assert sent(advance(state, Outcome.BAD_REQUEST).request) == ListRequest("", PAGE_SIZE)


def test_pages_follow_their_tokens() -> None:
    state = listing_state()
    tokens: list[str] = []
    for token in ("t1", "t2", "t3", ""):
        advance(state, state.finish_page("10", token))
        if isinstance(state.request, ListRequest):
            tokens.append(state.request.continue_token)

    assert tokens == ["t1", "t2", "t3"]
    assert state.phase is Phase.WATCH


@pytest.mark.client_go(24)
def test_an_expired_token_leads_to_the_whole_list_at_the_version_first_requested() -> None:
    """client-go's FullListIfExpired: pages that outlive their token would never end."""
    state = watching_state("10", page_size=50)
    advance(state, Outcome.PROTOCOL_ERROR)
    advance(state, state.finish_page("12", "t1"))

    assert sent(advance(state, Outcome.EXPIRED).request) == ListRequest("10", 0)


def test_an_expired_whole_list_is_followed_by_a_consistent_read() -> None:
    state = paging_state()
    advance(state, Outcome.EXPIRED)
    assert state.phase is Phase.LIST

    assert sent(advance(state, Outcome.EXPIRED).request) == ListRequest("", PAGE_SIZE)


@pytest.mark.client_go(21)
def test_a_list_from_zero_in_pages_means_that_the_server_has_no_cache() -> None:
    """client-go's paginatedResult: then a list without a limit would be one huge read."""
    state = paging_state()
    advance(state, state.finish_page("10", ""))

    for token in ("t1", "t2", "t3"):
        assert sent(advance(state, Outcome.PROTOCOL_ERROR).request) == ListRequest("10", PAGE_SIZE)
        advance(state, state.finish_page("10", token))
        advance(state, state.finish_page("10", ""))


def test_the_pages_of_a_consistent_list_do_not_show_that_the_server_has_no_cache() -> None:
    """Those are always cut."""
    state = watching_state("10")
    advance(state, Outcome.VERSION_TOO_LARGE)
    advance(state, state.finish_page("12", "t1"))
    advance(state, state.finish_page("12", ""))

    assert sent(advance(state, Outcome.PROTOCOL_ERROR).request) == ListRequest("12", 0)


@pytest.mark.client_go(19)
def test_a_configured_page_size_is_used_for_every_list() -> None:
    state = listing_state(page_size=50)
    assert sent(state.request) == ListRequest("0", 50)
    advance(state, state.finish_page("10", ""))

    assert sent(advance(state, Outcome.PROTOCOL_ERROR).request) == ListRequest("10", 50)
    assert sent(advance(state, Outcome.VERSION_TOO_LARGE).request) == ListRequest("", 50)


# -- watches -------------------------------------------------------------------------------------


def test_a_watch_starts_where_the_list_was_taken() -> None:
    state = paging_state()
    advance(state, state.finish_page("10", ""))

    assert sent(state.request) == WatchRequest("10", 450)
    assert state.resource_version == "10"


@pytest.mark.client_go(28)
def test_a_watch_resumes_at_the_version_of_the_last_event() -> None:
    state = watching_state("10")
    observe(state, "11")
    observe(state, "12")

    assert summarize(advance(state, Outcome.ENDED).request) == "12"
    advance(state, Outcome.CONNECTION_LOST)
    assert summarize(advance(state, state.finish_page("12", "")).request) == "12"


@pytest.mark.client_go(28)
def test_an_event_without_a_version_keeps_the_version() -> None:
    """client-go has no such guard, and would list at "0" next: back in time."""
    state = watching_state("10")
    observe(state, "11")
    observe(state, "")

    assert summarize(advance(state, Outcome.ENDED).request) == "11"


def test_an_event_with_an_older_version_keeps_the_version() -> None:
    state = watching_state("10")
    observe(state, "12")
    observe(state, "9")

    assert summarize(advance(state, Outcome.ENDED).request) == "12"


def test_versions_that_are_no_numbers_replace_each_other_in_any_order() -> None:
    state = watching_state("b-2")
    observe(state, "a-1")

    assert summarize(advance(state, Outcome.ENDED).request) == "a-1"


@pytest.mark.client_go(27)
@given(strategies.unit_floats)
@settings(deadline=None)
def test_a_watch_request_has_a_timeout_between_five_and_ten_minutes(jitter: float) -> None:
    state = watching_state()
    step = state.advance(Outcome.ENDED, now=0.0, jitter=jitter)

    assert isinstance(step.request, WatchRequest)
    assert WATCH_SECONDS == (300, 600)
    assert 300 <= step.request.timeout <= 600


@pytest.mark.client_go(27)
def test_watches_do_not_all_last_as_long() -> None:
    state = watching_state()
    requests = [
        state.advance(Outcome.ENDED, now=0.0, jitter=jitter).request for jitter in (0.0, 0.5, 0.99)
    ]

    assert list(map(sent, requests)) == [WatchRequest("10", seconds) for seconds in (300, 450, 597)]


@pytest.mark.client_go(7)
@pytest.mark.parametrize("outcome", [Outcome.EMPTY_WATCH, Outcome.SERVER_ERROR])
def test_a_watch_that_is_not_served_several_times_is_replaced_by_a_list(outcome: Outcome) -> None:
    """Some servers close a watch from a stale version without saying 410 (fabric8#7896)."""
    state = watching_state("10")
    for _ in range(MAX_CONSECUTIVE_FAILURES - 1):
        assert summarize(advance(state, outcome).request) == "10"

    assert sent(advance(state, outcome).request) == ListRequest("10", 0)
    advance(state, state.finish_page("11", ""))
    assert summarize(advance(state, outcome).request) == "11", "counting starts anew"


def test_both_kinds_of_unserved_watches_count_together() -> None:
    state = watching_state("10")
    advance(state, Outcome.EMPTY_WATCH)
    advance(state, Outcome.SERVER_ERROR)

    assert sent(advance(state, Outcome.EMPTY_WATCH).request) == ListRequest("10", 0)


def test_an_event_ends_the_count_of_watches_not_served() -> None:
    state = watching_state("10")
    for rv in ("11", "12", "13", "14"):
        for _ in range(MAX_CONSECUTIVE_FAILURES - 1):
            advance(state, Outcome.EMPTY_WATCH)
        observe(state, rv)

    assert state.phase is Phase.WATCH


@pytest.mark.client_go(13, 16)
@pytest.mark.parametrize("outcome", [Outcome.THROTTLED, Outcome.UNAUTHORIZED])
def test_a_watch_that_is_throttled_or_unauthorized_is_not_replaced_by_a_list(
    outcome: Outcome,
) -> None:
    """The version is good until the server says otherwise; thousands would list at once."""
    state = watching_state("10")

    for _ in range(20):
        assert summarize(advance(state, outcome).request) == "10"


# -- WatchLists ----------------------------------------------------------------------------------


@pytest.mark.client_go(10)
def test_the_first_watch_list_asks_for_the_newest_state_and_never_for_zero() -> None:
    """client-go: "0" would allow any old state, and the stream could go back in time."""
    assert sent(watchlist_state().request) == WatchRequest("", 450, initial=True)


def test_a_later_watch_list_asks_for_a_state_no_older_than_the_last_one_known() -> None:
    state = watchlist_state()
    state.complete_initial_list("10", 0.0)
    observe(state, "15")

    assert sent(advance(state, Outcome.ERROR_EVENT).request) == WatchRequest(
        "15", 450, initial=True
    )


@pytest.mark.client_go(35, 44)
def test_behind_the_end_mark_the_stream_is_a_watch() -> None:
    state = watchlist_state()
    phases = [state.phase]

    state.complete_initial_list("10", 0.0)

    assert [*phases, state.phase] == [Phase.WATCHLIST, Phase.WATCH]
    assert sent(advance(state, Outcome.ENDED).request) == WatchRequest("10", 450)


def test_a_watch_list_that_ends_before_its_mark_sets_no_version() -> None:
    state = watchlist_state()

    assert sent(advance(state, Outcome.CONNECTION_LOST).request) == WatchRequest(
        "", 450, initial=True
    )
    assert state.resource_version == ""


def test_an_end_mark_without_a_version_is_a_protocol_error() -> None:
    state = watchlist_state()
    with pytest.raises(ProtocolError, match="no version"):
        state.complete_initial_list("", 0.0)
    assert state.phase is Phase.WATCHLIST


@pytest.mark.parametrize(
    "outcome", [Outcome.BAD_REQUEST, Outcome.ERROR_EVENT, Outcome.WATCHLIST_TIMEOUT]
)
def test_a_server_without_watch_lists_is_listed_for_some_time_and_then_tried_again(
    outcome: Outcome,
) -> None:
    state = watchlist_state()
    advance(state, outcome, now=100.0)
    advance(state, state.finish_page("10", ""), now=100.0)

    assert sent(advance(state, Outcome.EXPIRED, now=1000.0).request) == ListRequest("10", 0)
    advance(state, state.finish_page("11", ""), now=1000.0)
    later = advance(state, Outcome.EXPIRED, now=101.0 + WATCHLIST_UNSUPPORTED_PAUSE).request
    assert sent(later) == WatchRequest("11", 450, initial=True)


def test_informers_of_one_resource_share_the_profile_of_the_server() -> None:
    profile = ServerProfile()
    first = ListWatchState(profile=profile, watch_list=True)
    first.begin(now=0.0, jitter=0.5)
    advance(first, Outcome.BAD_REQUEST)
    advance(first, first.finish_page("10", ""))

    second = ListWatchState(profile=profile, watch_list=True)

    assert second.begin(now=5.0, jitter=0.5) == ListRequest("0", PAGE_SIZE)


def test_a_bad_request_that_a_list_gets_too_does_not_disable_watch_lists() -> None:
    """A selector that one informer gets wrong is a 400 to both."""
    profile = ServerProfile()
    state = ListWatchState(profile=profile, watch_list=True)
    state.begin(now=0.0, jitter=0.5)
    advance(state, Outcome.BAD_REQUEST)

    for _ in range(5):
        assert isinstance(advance(state, Outcome.BAD_REQUEST).request, ListRequest)

    assert profile.supports_watchlist(0.0)


def test_interrupted_watch_lists_are_tried_again_soon() -> None:
    """Three failures may be one server that starts anew."""
    state = watchlist_state()
    for _ in range(MAX_CONSECUTIVE_FAILURES):
        advance(state, Outcome.CONNECTION_LOST)
    advance(state, state.finish_page("10", ""), now=5.0)

    assert not state.profile.supports_watchlist(5.0)
    assert state.profile.supports_watchlist(5.0 + WATCHLIST_FAILED_PAUSE)


@pytest.mark.client_go(42)
@pytest.mark.parametrize(
    "outcome",
    [Outcome.UNAUTHORIZED, Outcome.THROTTLED, Outcome.UNREACHABLE],
)
def test_an_error_unrelated_to_watch_lists_never_leads_to_a_list(outcome: Outcome) -> None:
    """401, 429 and a network that is down concern a list alike."""
    state = watchlist_state()
    for _ in range(20):
        assert sent(advance(state, outcome).request) == WatchRequest("", 450, initial=True)


@pytest.mark.parametrize(
    "outcome", [each for each, row in TRANSITIONS[Phase.WATCHLIST].items() if row.fallback]
)
def test_a_watch_list_that_fails_several_times_is_replaced_by_a_list(
    outcome: Outcome,
) -> None:
    state = watchlist_state()
    for _ in range(MAX_CONSECUTIVE_FAILURES - 1):
        assert summarize(advance(state, outcome).request) == WATCHLIST_PREFIX

    newest = outcome in (Outcome.EXPIRED, Outcome.VERSION_TOO_LARGE)
    expected = ListRequest("" if newest else "0", PAGE_SIZE)
    assert sent(advance(state, outcome).request) == expected
    assert advance(state, Outcome.SERVER_ERROR).request.verb == "watchlist", "one list is tried"


# -- brief watches -------------------------------------------------------------------------------


@pytest.mark.parametrize("lasts", [1.0, 4.0, 15.0, 19.0])
@pytest.mark.parametrize("outcome", [Outcome.SHORT_WATCH, Outcome.CONNECTION_LOST])
def test_watches_that_are_cut_soon_begin_twenty_seconds_apart_after_two_minutes(
    outcome: Outcome, lasts: float
) -> None:
    """Before, three seconds: a resource whose schema changes three times is watched again soon."""
    state, delays, now = watching_state(), list[tuple[float, float]](), 0.0
    while now < 600.0:
        assert isinstance(state.request, WatchRequest)
        state.open_watch(state.request, now)
        now += lasts
        delay = advance(state, outcome, now=now).delay
        delays.append((now, delay))
        now += delay
        if outcome is Outcome.CONNECTION_LOST:
            assert advance(state, state.finish_page("10", ""), now=now).delay == 0.0

    assert delays[0][1] == 0.0
    assert {delay for at, delay in delays[1:] if at < 120.0} == {max(0.0, FIRST_PAUSE - lasts)}
    assert {round(delay, 9) for at, delay in delays if at > 145.0} == {LATER_PAUSE - lasts}


@pytest.mark.parametrize(
    ("lasted", "changed", "seen", "outcome"),
    [
        (0.5, False, "10", Outcome.EMPTY_WATCH),
        (0.5, True, "11", Outcome.ENDED),
        (0.5, False, "11", Outcome.EMPTY_WATCH),
        (0.5, True, "10", Outcome.EMPTY_WATCH),
        (5.0, False, "10", Outcome.SHORT_WATCH),
        (5.0, True, "11", Outcome.ENDED),
        (SHORT_WATCH_SECONDS, False, "10", Outcome.ENDED),
    ],
)
def test_the_end_of_a_watch_is_classified_by_its_duration_and_its_changes(
    lasted: float, changed: bool, seen: str, outcome: Outcome
) -> None:
    """A bookmark alone is no news, and neither is an old event once more."""
    state = watching_state("10")
    state.open_watch(WatchRequest("10", 300), 100.0)
    state.record_watch_data(seen, now=100.0, changed=changed)

    assert state.finish_watch(100.0 + lasted).outcome is outcome


# -- silence, and a server that goes back in time ------------------------------------------------


def test_an_idle_timeout_leads_to_one_freshness_check_and_then_to_a_watch() -> None:
    state = freshness_check_state()
    assert sent(state.request) == ListRequest("", 1, freshness_check=True)
    assert state.phase is Phase.FRESHNESS_CHECK

    assert sent(advance(state, state.finish_page("17", "t")).request) == WatchRequest("10", 450)


def test_a_freshness_check_that_the_server_rejects_is_not_repeated() -> None:
    state = freshness_check_state()

    assert sent(advance(state, Outcome.SERVER_ERROR).request) == WatchRequest("10", 450)


def test_a_watch_that_could_not_reach_the_server_is_preceded_by_one_freshness_check() -> None:
    """A restored server accepts a watch from a version that it hasn't reached, and is silent."""
    state = watching_state("10")
    check = ListRequest("", 1, freshness_check=True)

    assert sent(advance(state, Outcome.UNREACHABLE).request) == check
    assert sent(advance(state, Outcome.UNREACHABLE).request) == check
    step = advance(state, state.finish_page("12", ""))

    assert sent(step.request) == WatchRequest("10", 450)
    assert step.delay == 0.0


# -- the end of an outage ------------------------------------------------------------------------


def test_the_first_410_after_an_outage_is_followed_at_once_and_the_second_one_waits() -> None:
    state = watching_state("10")
    for _ in range(6):
        assert advance(state, Outcome.UNREACHABLE).delay > 0

    advance(state, state.finish_page("12", ""))
    assert advance(state, Outcome.EXPIRED).delay == 0.0
    assert advance(state, Outcome.EXPIRED).delay == 3.2


def test_an_answer_ends_the_waits_of_an_unreachable_server_once_in_an_outage() -> None:
    state = listing_state()
    delays = [
        [advance(state, Outcome.UNREACHABLE).delay for _ in range(5)],
        [advance(state, Outcome.SERVER_ERROR).delay for _ in range(2)],
        [advance(state, Outcome.UNREACHABLE).delay for _ in range(2)],
        [advance(state, Outcome.SERVER_ERROR).delay for _ in range(2)],
    ]

    assert delays == [[0.8, 1.6, 3.2, 6.4, 12.8], [1.6, 3.2], [6.4, 12.8], [25.6, 30.0]]


def test_a_state_that_was_read_ends_an_outage_if_requests_keep_working() -> None:
    def next_wait(seconds: float) -> float:
        state = listing_state()
        for _ in range(5):
            advance(state, Outcome.ACCESS_DENIED)
        advance(state, state.finish_page("10", ""), now=100.0)
        return advance(state, Outcome.PROTOCOL_ERROR, now=100.0 + seconds).delay

    assert next_wait(SETTLING_TIME) == 0.8
    assert next_wait(SETTLING_TIME - 0.1) == 25.6


def test_a_watch_list_ends_an_outage_too() -> None:
    state = watchlist_state()
    for _ in range(5):
        advance(state, Outcome.ACCESS_DENIED)
    state.complete_initial_list("10", 100.0)

    assert advance(state, Outcome.PROTOCOL_ERROR, now=120.0).delay == 0.8


def test_a_load_balancer_that_cuts_each_watch_after_a_minute_causes_no_waits() -> None:
    state, now, delays = listing_state(), 0.0, list[float]()
    advance(state, state.finish_page("10", ""), now=now)
    for _ in range(8):
        assert isinstance(state.request, WatchRequest)
        state.open_watch(state.request, now)
        delays.append(advance(state, Outcome.CONNECTION_LOST, now=now + 60.0).delay)
        now += 60.0 + delays[-1]
        advance(state, state.finish_page("10", ""), now=now)

    assert delays == [0.0] * 8


@pytest.mark.parametrize(
    ("lasts", "served", "outcome"),
    [
        (0.5, False, Outcome.LOST_AT_ONCE),
        (0.5, True, Outcome.CONNECTION_LOST),
        (1.0, False, Outcome.CONNECTION_LOST),
    ],
)
def test_a_watch_that_breaks_was_served_if_it_has_shown_something_or_lasted_a_second(
    lasts: float, served: bool, outcome: Outcome
) -> None:
    """client-go's rule for a watch that it follows at once."""
    state = watching_state("10")
    state.open_watch(WatchRequest("10", 300), 100.0)
    state.record_watch_data("10", now=100.0, bookmark=served)

    end = state.finish_failed(ConnectionLost("reset"), opened=True, now=100.0 + lasts)

    assert end.outcome is outcome


def test_watches_that_break_at_once_are_followed_with_growing_waits_and_then_by_a_list() -> None:
    state, delays = watching_state("10"), list[float]()
    for _ in range(MAX_CONSECUTIVE_FAILURES):
        step = advance(state, Outcome.LOST_AT_ONCE)
        delays.append(step.delay)
        if step.request.verb == "freshness_check":
            advance(state, state.finish_page("10", ""))

    assert delays == [0.8, 1.6, 3.2]
    assert sent(state.request) == ListRequest("10", 0)


def test_a_server_that_breaks_each_watch_after_a_successful_read_is_requested_with_pauses() -> None:
    state, now, delays = listing_state(), 0.0, list[float]()
    for _ in range(6):
        advance(state, state.finish_page("10", ""), now=now)
        delays.append(advance(state, Outcome.EXPIRED, now=now + 1.0).delay)
        now += 1.0 + delays[-1]

    assert delays == [0.0, 1.6, 3.2, 6.4, 12.8, 25.6]


def test_an_answer_to_another_informer_may_end_one_wait_of_an_outage() -> None:
    state = watching_state("10")
    assert not advance(state, Outcome.UNAUTHORIZED).until_answer
    assert advance(state, Outcome.UNREACHABLE).until_answer
    assert advance(state, Outcome.UNREACHABLE).until_answer

    state.end_wait(0.5)

    assert not advance(state, Outcome.UNREACHABLE, now=1.0).until_answer
    advance(state, state.finish_page("10", ""), now=2.0)
    assert advance(state, Outcome.UNREACHABLE, now=200.0).until_answer, "the next outage"


@pytest.mark.parametrize("outcome", list(TRANSITIONS[Phase.WATCH]), ids=str)
def test_an_answer_to_another_informer_ends_the_waits_for_the_server_alone(
    outcome: Outcome,
) -> None:
    """Not those after 401, 403, 404 and 429, which concern one client or resource."""
    state = watching_state("10")
    state.backoff.failures, state.backoff.quiet_since = 4, 0.0
    expected = outcome.name in (
        "UNREACHABLE",
        "CONNECTION_LOST",
        "LOST_AT_ONCE",
        "EMPTY_WATCH",
        "UNAVAILABLE",
        "SERVER_ERROR",
        "ERROR_EVENT",
    )

    step = advance(state, outcome)

    assert step.until_answer is expected
    assert step.until_success is (expected and outcome is not Outcome.UNREACHABLE)
    asked = advance(watching_state("10"), outcome, retry_after=5.0)
    assert not asked.until_answer, "the server has asked for the wait"


def test_an_event_or_a_bookmark_lowers_the_waits_once_in_an_outage() -> None:
    def waits(*, changed: bool, bookmark: bool) -> list[float]:
        state, found = watching_state("10"), list[float]()
        for _ in range(3):
            for _ in range(4):
                found.append(advance(state, Outcome.UNAUTHORIZED).delay)
            state.open_watch(WatchRequest("10", 300), 0.0)
            state.record_watch_data("11", now=0.0, changed=changed, bookmark=bookmark)
        return found

    lowered = [0.8, 1.6, 3.2, 6.4, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0, 30.0]
    assert waits(changed=True, bookmark=False) == lowered
    assert waits(changed=False, bookmark=True) == lowered
    assert waits(changed=False, bookmark=False)[4] == 12.8


def test_the_first_410_after_a_failure_of_another_kind_is_followed_at_once() -> None:
    state = watching_state("10")
    assert advance(state, Outcome.ACCESS_DENIED).delay == 0.0
    advance(state, state.finish_page("10", ""))
    assert advance(state, Outcome.SERVER_ERROR).delay > 0.0
    assert advance(state, Outcome.EXPIRED).delay == 0.0
    assert advance(state, Outcome.EXPIRED).delay > 0.0, "the second one waits"
    assert advance(state, Outcome.SERVER_ERROR).delay > 0.0
    assert advance(state, Outcome.EXPIRED).delay == 0.0


def test_a_410_is_followed_at_once_once_in_an_outage_that_has_lasted_for_two_minutes() -> None:
    """Promise 11: three requests a minute."""
    state, now, at_once = watching_state("10"), 0.0, 0
    for number in range(40):
        outcome = Outcome.EXPIRED if number % 2 else Outcome.UNAUTHORIZED
        delay = advance(state, outcome, now=now).delay
        at_once += now >= 120.0 and not delay
        now += delay
        if state.phase is not Phase.WATCH:
            advance(state, state.finish_page("10", ""), now=now)

    assert now > 500.0
    assert at_once == 0


def test_no_failures_and_answers_lead_to_more_than_five_requests_in_ten_seconds() -> None:
    """A skipped wait, one that an answer ends, and lowered ones come together."""
    state, now, times = watching_state("10"), 0.0, list[float]()
    outcomes = [
        Outcome.ACCESS_DENIED,
        Outcome.SERVER_ERROR,
        Outcome.EXPIRED,
        Outcome.UNREACHABLE,
        Outcome.EXPIRED,
        Outcome.UNREACHABLE,
        Outcome.EXPIRED,
    ]
    for outcome in outcomes:
        step = advance(state, outcome, now=now)
        now += step.delay
        if step.until_answer:
            now += state.end_wait(now - step.delay) - step.delay
        times.append(now)
        if state.phase in (Phase.LIST, Phase.FRESHNESS_CHECK):
            advance(state, state.finish_page("10", ""), now=now)

    assert all(later - at >= 10.0 for at, later in zip(times, times[5:], strict=False))


def test_the_wait_that_a_busy_server_asks_for_does_not_grow() -> None:
    """kube-apiserver asks for one second with each 429. Three are waited, later twenty."""
    state, now, delays = listing_state(), 0.0, list[float]()
    for _ in range(50):
        delays.append(advance(state, Outcome.THROTTLED, now=now, retry_after=1.0).delay)
        now += delays[-1]

    assert delays == [FIRST_PAUSE] * 40 + [LATER_PAUSE] * 10
    assert advance(state, Outcome.THROTTLED, now=now, retry_after=45.0).delay == 45.0
    assert advance(state, Outcome.THROTTLED, now=now).delay == LATER_PAUSE, "nothing was asked for"


def test_an_older_newest_version_means_that_the_server_was_restored() -> None:
    state = freshness_check_state()
    end = state.finish_page("9", "")
    assert end == RequestEnd(Outcome.REWOUND)
    assert sent(advance(state, end).request) == ListRequest("", PAGE_SIZE)

    advance(state, state.finish_page("9", ""))

    assert state.version_went_back
    assert sent(state.request) == WatchRequest("9", 450)


def test_a_consistent_list_at_an_older_version_means_that_the_server_was_restored() -> None:
    state = watching_state("10")
    advance(state, Outcome.VERSION_TOO_LARGE)

    advance(state, state.finish_page("9", ""))

    assert state.version_went_back


def test_a_consistent_watch_list_at_an_older_version_means_that_the_server_was_restored() -> None:
    state = watchlist_state("10")
    advance(state, Outcome.VERSION_TOO_LARGE)
    assert sent(state.request) == WatchRequest("", 450, initial=True)

    state.complete_initial_list("9", 0.0)

    assert state.version_went_back
    assert state.resource_version == "9"


def test_a_newer_state_clears_the_restored_flag() -> None:
    state = freshness_check_state()
    advance(state, state.finish_page("9", ""))
    advance(state, state.finish_page("9", ""))
    advance(state, Outcome.EXPIRED)
    advance(state, state.finish_page("12", ""))

    assert not state.version_went_back


def test_a_list_at_any_version_does_not_prove_a_restored_server() -> None:
    """The first list is at "0", and there is nothing to compare it with."""
    state = listing_state()
    advance(state, state.finish_page("9", ""))

    assert not state.version_went_back


# -- a resource that isn't served ------------------------------------------------------------------


@pytest.mark.parametrize("watch_list", [False, True])
def test_a_404_leads_to_a_check_if_the_resource_is_served(watch_list: bool) -> None:
    state = ListWatchState(backoff=Backoff(NO_JITTER), discovery=True, watch_list=watch_list)
    first = state.begin(now=0.0, jitter=0.5)

    if watch_list:
        assert advance(state, Outcome.NOT_FOUND).request.verb == "list"
    step = finish(state, 404, "NotFound")

    assert step.request == DiscoveryRequest()
    assert step.delay > 0
    assert advance(state, Outcome.NOT_SERVED).request == DiscoveryRequest()
    step = advance(state, Outcome.APPEARED)
    assert (step.request.verb, step.delay) == (first.verb, 0.0)


def test_a_resource_that_appears_again_is_read_by_a_consistent_list() -> None:
    state = ListWatchState(backoff=Backoff(NO_JITTER), discovery=True)
    advance(state, state.finish_page("10", ""))
    advance(state, Outcome.NOT_FOUND)
    finish(state, 404, "NotFound")

    assert sent(advance(state, Outcome.APPEARED).request) == ListRequest("", 500)


def test_a_withdrawn_resource_is_read_by_a_consistent_list_even_if_discovery_fails_later() -> None:
    state = ListWatchState(backoff=Backoff(NO_JITTER), discovery=True)
    advance(state, state.finish_page("10", ""))
    advance(state, Outcome.NOT_FOUND)
    finish(state, 404, "NotFound")
    advance(state, Outcome.NOT_SERVED)

    assert sent(advance(state, Outcome.UNREACHABLE).request) == ListRequest("", 500)


# -- watches that are refused --------------------------------------------------------------------

REFUSED = [(403, "Forbidden"), (404, "NotFound"), (405, "MethodNotAllowed")]


def finish(state: ListWatchState, code: int, reason: str) -> ScheduledRequest:
    """Return the request that follows an error response to the request under way."""
    end = state.finish_failed(server_error(Status(code, reason)), opened=False)
    return advance(state, end)


@pytest.mark.client_go(38)
@pytest.mark.parametrize(("code", "reason"), REFUSED)
def test_a_rejected_watch_list_is_followed_by_a_list_at_once(code: int, reason: str) -> None:
    state = watchlist_state()
    step = finish(state, code, reason)

    assert (sent(step.request), step.delay) == (ListRequest("0", PAGE_SIZE), 0.0)


def test_after_a_rejected_list_the_next_read_is_a_watch_list_again() -> None:
    """The role may allow watches once it allows anything."""
    state = watchlist_state()
    finish(state, 403, "Forbidden")

    step = finish(state, 403, "Forbidden")

    assert sent(step.request) == WatchRequest("", 450, initial=True)
    assert step.delay > 0


@pytest.mark.parametrize(("code", "reason"), REFUSED)
def test_lists_refresh_the_cache_if_a_watch_is_rejected_right_after_a_list(
    code: int, reason: str
) -> None:
    state = watching_state("10")
    error = server_error(Status(code, reason))
    first = state.finish_failed(error, opened=False)
    assert first == RequestEnd(Outcome.WATCH_REFUSED, error)

    step = advance(state, first)
    assert (sent(step.request), step.delay) == (ListRequest("10", 0), POLL_INTERVAL)
    assert step.request.verb == "list"


def test_a_watch_is_tried_again_behind_the_first_list_and_then_ever_more_rarely() -> None:
    state, lists = watching_state("10"), list[int]()
    for _ in range(6):
        end = state.finish_failed(server_error(Status(403, "Forbidden")), opened=False)
        assert end.known is bool(lists)
        step, count = advance(state, end), 0
        while isinstance(step.request, ListRequest):
            assert step.delay == POLL_INTERVAL
            count += 1
            step = advance(state, state.finish_page("10", ""))
        lists.append(count)

    assert lists == [1, 2, 4, 8, 8, 8]


def test_a_watch_that_is_accepted_ends_the_polling() -> None:
    state = ListWatchState(backoff=Backoff(NO_JITTER), watch_list=True)
    state.begin(now=0.0, jitter=0.5)
    finish(state, 403, "Forbidden")
    advance(state, state.finish_page("10", ""))
    finish(state, 403, "Forbidden")
    assert sent(advance(state, state.finish_page("11", "")).request) == WatchRequest("11", 450)

    state.open_watch(WatchRequest("11", 450), 100.0)

    assert sent(advance(state, Outcome.ENDED).request) == WatchRequest("11", 450)
    assert sent(advance(state, Outcome.EXPIRED).request) == WatchRequest("11", 450, initial=True)
    assert state.finish_failed(server_error(Status(403, "Forbidden")), opened=False).outcome is (
        Outcome.ACCESS_DENIED
    )


def test_an_outage_does_not_end_the_polling() -> None:
    state = watching_state("10")
    finish(state, 403, "Forbidden")
    for _ in range(3):
        assert sent(advance(state, Outcome.UNREACHABLE).request) == ListRequest("10", 0)

    assert sent(advance(state, state.finish_page("11", "")).request) == WatchRequest("11", 450)
    assert finish(state, 403, "Forbidden").delay == POLL_INTERVAL


def test_a_served_resource_that_answers_404_is_listed_and_looked_up_alternately() -> None:
    """One request a wait: a broken server is not asked twice as much."""
    state = discovery_state()
    for _ in range(3):
        step = advance(state, Outcome.SERVED)
        assert isinstance(step.request, ListRequest)
        assert step.delay > 0
        step = advance(state, Outcome.NOT_FOUND)
        assert isinstance(step.request, DiscoveryRequest)
        assert step.delay > 0


# -- answers that no server should give ------------------------------------------------------------


def test_a_continue_token_that_leads_to_the_same_page_is_a_protocol_error() -> None:
    """Otherwise the page would be requested thousands of times a second, and every item stored."""
    state = paging_state()

    with pytest.raises(ProtocolError, match="leads to the same page"):
        state.finish_page("10", "t1")


def test_a_list_that_starts_again_may_have_the_same_continue_token() -> None:
    state = paging_state()
    advance(state, Outcome.ACCESS_DENIED)
    assert state.phase is Phase.LIST

    assert state.finish_page("10", "t1").outcome is Outcome.MORE


def test_a_watch_starts_at_the_version_of_the_first_page() -> None:
    """client-go's pager. Else what happened in between to what was on it would be missed."""
    state = listing_state()
    advance(state, state.finish_page("100", "t1"))
    advance(state, state.finish_page("200", ""))

    assert sent(state.request) == WatchRequest("100", 450)


def test_a_list_that_is_older_than_requested_is_rejected() -> None:
    state = watching_state("10")
    advance(state, Outcome.EXPIRED)

    end = state.finish_page("5", "")

    assert end.outcome is Outcome.REWOUND
    assert "older than requested" in str(end.error)
    assert state.resource_version == "10"
    assert sent(advance(state, end).request) == ListRequest("", PAGE_SIZE)


def test_a_watch_list_that_is_older_than_requested_is_rejected() -> None:
    state = watchlist_state("10")

    with pytest.raises(ProtocolError, match="older than requested"):
        state.complete_initial_list("5", 0.0)
    assert state.resource_version == "10"


def test_watches_that_end_after_one_change_count_as_short_after_a_few_times() -> None:
    state = watching_state("10")
    outcomes: list[Outcome] = []
    for version in range(11, 18):
        state.open_watch(WatchRequest("10", 300), 100.0)
        state.record_watch_data(str(version), now=100.0, changed=True)
        outcomes.append(state.finish_watch(100.1).outcome)
        advance(state, outcomes[-1])

    assert outcomes == [*[Outcome.ENDED] * MAX_CONSECUTIVE_FAILURES, *[Outcome.SHORT_WATCH] * 4]


# -- restarts ------------------------------------------------------------------------------------


def test_a_request_that_follows_a_success_is_no_restart() -> None:
    state = listing_state()
    assert not state.begin(now=0.0, jitter=0.5).restart
    assert not advance(state, state.finish_page("10", "t1")).request.restart
    assert not advance(state, state.finish_page("10", "")).request.restart


def test_a_request_that_follows_any_other_end_is_a_restart() -> None:
    for outcome in (Outcome.ENDED, Outcome.CONNECTION_LOST, Outcome.IDLE_TIMEOUT, Outcome.EXPIRED):
        assert advance(watching_state(), outcome).request.restart


# -- waits ---------------------------------------------------------------------------------------


@pytest.mark.client_go(17)
def test_failures_of_all_kinds_share_one_backoff() -> None:
    state = listing_state()
    waits = [
        advance(state, Outcome.UNREACHABLE).delay,
        advance(state, Outcome.ACCESS_DENIED).delay,
    ]
    advance(state, state.finish_page("10", ""))
    waits += [
        advance(state, Outcome.UNREACHABLE).delay,
        advance(state, Outcome.PROTOCOL_ERROR).delay,
    ]

    assert waits == [0.8, 1.6, 3.2, 6.4]


def test_a_list_and_a_watch_that_fail_alternately_wait() -> None:
    """client-go loops without a wait where a server answers 410 to each."""
    state = watching_state("10")
    waits: list[float] = []
    for _ in range(4):
        waits.append(advance(state, Outcome.EXPIRED).delay)
        advance(state, state.finish_page("10", ""))

    assert waits == [0.0, 1.6, 3.2, 6.4]


def test_after_a_quiet_time_the_alternative_is_tried_at_once_again() -> None:
    state = watching_state("10")
    assert advance(state, Outcome.EXPIRED, now=0.0).delay == 0.0
    advance(state, state.finish_page("10", ""), now=0.0)

    assert advance(state, Outcome.EXPIRED, now=1000.0).delay == 0.0


def test_the_repr_shows_the_phase_the_version_and_the_failures() -> None:
    state = ListWatchState()
    assert repr(state) == "<ListWatchState LIST rv=none failures=0>"
    advance(state, Outcome.UNREACHABLE)
    advance(state, state.finish_page("10", "t1"))
    assert repr(state) == "<ListWatchState PAGE rv=none failures=1>"
    advance(state, state.finish_page("10", ""))
    assert repr(state) == "<ListWatchState WATCH rv=10 failures=1>"


# -- any sequence --------------------------------------------------------------------------------

PROGRESS = {
    Outcome.MORE,
    Outcome.COMPLETE,
    Outcome.ALIVE,
    Outcome.ENDED,
    Outcome.SILENT_WATCH,
}
SLOW = {
    Outcome.SHORT_WATCH,
    Outcome.CONNECTION_LOST,
    Outcome.IDLE_TIMEOUT,
    Outcome.REWOUND,
    Outcome.APPEARED,
    Outcome.API_VERSION_CHANGED,
}
"""Outcomes that take their time by themselves, and what follows such a one."""
POLLS = {Outcome.POLLED, Outcome.WATCH_REFUSED}
"""Outcomes that the state machine itself finds, where the server refuses watches."""


@given(st.data(), st.sampled_from([0, 1, 50]), st.booleans())
def test_any_sequence_of_outcomes_keeps_the_version_and_waits_between_failures(
    data: st.DataObject, page_size: int, watch_list: bool
) -> None:
    """It never watches before a state was complete, never forgets its version, and of any two
    failures that follow each other in an outage at least one is waited for.
    """
    state = ListWatchState(page_size=page_size, watch_list=watch_list)
    state.begin(now=0.0, jitter=0.0)
    now, complete, version, last_wait, failed_at = 0.0, False, 100, 1.0, -1000.0
    read_at = float("inf")
    for _ in range(data.draw(st.integers(1, 25))):
        version += 1
        if state.phase is Phase.WATCHLIST and data.draw(st.booleans()):
            state.complete_initial_list(str(version), now)
            complete, read_at = True, now
        outcome = data.draw(strategies.outcomes(state.phase).filter(lambda each: each not in POLLS))
        before = state.resource_version
        if outcome in (Outcome.MORE, Outcome.COMPLETE):
            token = f"t{version}" if outcome is Outcome.MORE else ""
            assert state.finish_page(str(version), token).outcome is outcome
            complete = complete or outcome is Outcome.COMPLETE
            read_at = now if outcome is Outcome.COMPLETE else read_at
        elif state.phase is Phase.WATCH and data.draw(st.booleans()):
            observe(state, str(version))
            observe(state, "")
        early = outcome is Outcome.ENDED and state.phase is Phase.WATCHLIST
        jitter, pause = data.draw(strategies.unit_floats), data.draw(strategies.seconds)

        step = state.advance(outcome, now=now, jitter=jitter)

        assert 0 <= step.delay <= 60
        assert not (before and not state.resource_version)
        if isinstance(step.request, WatchRequest) and not step.request.initial:
            assert complete
            assert step.request.resource_version == state.resource_version != ""
        elif isinstance(step.request, WatchRequest):
            assert watch_list
            assert step.request.resource_version in ("", state.resource_version)
        elif isinstance(step.request, ListRequest) and step.request.continue_token:
            assert step.request.continue_token == f"t{version}" or outcome not in PROGRESS
        if outcome in PROGRESS and not early:
            assert step.delay == 0
        elif outcome in SLOW:
            last_wait = max(last_wait, step.delay)
        else:
            over = now - failed_at >= 120 or now - read_at >= SETTLING_TIME
            assert step.delay or last_wait or over
            last_wait, failed_at, read_at = step.delay, now + step.delay, float("inf")
        now += step.delay + pause


def test_a_list_without_a_version_is_a_protocol_error_and_changes_nothing() -> None:
    state = listing_state()
    advance(state, state.finish_page("10", ""))
    with pytest.raises(ProtocolError, match="no resourceVersion"):
        state.finish_page("", "")
    assert state.resource_version == "10"


def test_a_watch_that_was_served_starts_the_count_of_unserved_ones_again() -> None:
    state = listing_state()
    advance(state, state.finish_page("10", ""))
    for _ in range(MAX_CONSECUTIVE_FAILURES + 1):
        assert isinstance(advance(state, Outcome.EMPTY_WATCH).request, WatchRequest)
        assert isinstance(advance(state, Outcome.ENDED).request, WatchRequest)


def test_the_wait_of_a_long_retry_after_does_not_reset_the_backoff() -> None:
    backoff = Backoff(NO_JITTER)
    assert backoff.next(0.0, 0.0, minimum=300.0) == 300.0
    assert backoff.next(300.0, 0.0) == 1.6


def test_a_first_failure_with_a_retry_after_waits_for_it() -> None:
    state = listing_state()
    advance(state, state.finish_page("10", ""))
    step = state.advance(Outcome.EXPIRED, now=0.0, jitter=0.0, retry_after=3.0)
    assert step.delay == 3.0
