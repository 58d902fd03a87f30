"""Where a reflector stands between the list and the watch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioinformer._core.backoff import Backoff, BackoffPolicy
from aioinformer._core.cursor import (
    PAGE_SIZE,
    RULES,
    STUBBORN,
    WATCH_SECONDS,
    Cursor,
    ListRequest,
    Phase,
    Request,
    Step,
    WatchRequest,
)
from aioinformer._core.outcomes import Outcome
from aioinformer.errors import ProtocolError
from tests.core import strategies

EXACT = BackoffPolicy(jitter=0.0)


def fresh(*, page_size: int = 0) -> Cursor:
    """A cursor that has asked for its first list, and whose waits are exact."""
    return Cursor(backoff=Backoff(EXACT), page_size=page_size)


def paging(*, page_size: int = 0) -> Cursor:
    """A cursor that has asked for the second page of its first list."""
    cursor = fresh(page_size=page_size)
    ended(cursor, cursor.page("10", "t1"))
    return cursor


def watching(rv: str = "10", *, page_size: int = 0) -> Cursor:
    """A cursor whose first list came whole, and that has asked for a watch."""
    cursor = fresh(page_size=page_size)
    ended(cursor, cursor.page(rv, ""))
    return cursor


def ended(
    cursor: Cursor, outcome: Outcome, *, now: float = 0.0, retry_after: float | None = None
) -> Step:
    """What comes next."""
    return cursor.advance(outcome, now=now, jitter=0.5, retry_after=retry_after)


AT = {Phase.LIST: fresh, Phase.PAGE: paging, Phase.WATCH: watching}

Waits = Literal["never", "if again", "always"]


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
    # The first list is asked for at "0", 500 items a page.
    Row(Phase.LIST, Outcome.MORE, ("0", 500, "t2"), "never"),
    Row(Phase.LIST, Outcome.COMPLETE, "20", "never"),
    Row(Phase.LIST, Outcome.EXPIRED, ("", 500, ""), "if again"),
    Row(Phase.LIST, Outcome.AHEAD, ("", 500, ""), "if again"),
    Row(Phase.LIST, Outcome.BUSY, ("0", 500, ""), "always"),
    Row(Phase.LIST, Outcome.UNREACHABLE, ("0", 500, ""), "always"),
    Row(Phase.LIST, Outcome.DENIED, ("0", 500, ""), "always"),
    Row(Phase.LIST, Outcome.FAILED, ("0", 500, ""), "always"),
    Row(Phase.LIST, Outcome.REJECTED, ("0", 500, ""), "always"),
    Row(Phase.LIST, Outcome.BROKEN, ("0", 500, ""), "always"),
    # Its second page has the token t1.
    Row(Phase.PAGE, Outcome.MORE, ("0", 500, "t2"), "never"),
    Row(Phase.PAGE, Outcome.COMPLETE, "20", "never"),
    Row(Phase.PAGE, Outcome.EXPIRED, ("0", 0, ""), "if again"),
    Row(Phase.PAGE, Outcome.AHEAD, ("", 500, ""), "if again"),
    Row(Phase.PAGE, Outcome.BUSY, ("0", 500, "t1"), "always"),
    Row(Phase.PAGE, Outcome.UNREACHABLE, ("0", 500, "t1"), "always"),
    Row(Phase.PAGE, Outcome.DENIED, ("0", 500, ""), "always"),
    Row(Phase.PAGE, Outcome.FAILED, ("0", 500, "t1"), "always"),
    Row(Phase.PAGE, Outcome.REJECTED, ("0", 500, ""), "always"),
    Row(Phase.PAGE, Outcome.BROKEN, ("0", 500, ""), "always"),
    # The watch starts at 10; a list at 10 has no limit.
    Row(Phase.WATCH, Outcome.ENDED, "10", "never"),
    Row(Phase.WATCH, Outcome.UNSERVED, "10", "always"),
    Row(Phase.WATCH, Outcome.EXPIRED, ("10", 0, ""), "if again"),
    Row(Phase.WATCH, Outcome.AHEAD, ("", 500, ""), "if again"),
    Row(Phase.WATCH, Outcome.BUSY, "10", "always"),
    Row(Phase.WATCH, Outcome.UNREACHABLE, "10", "always"),
    Row(Phase.WATCH, Outcome.DENIED, "10", "always"),
    Row(Phase.WATCH, Outcome.FAILED, "10", "always"),
    Row(Phase.WATCH, Outcome.REJECTED, ("10", 0, ""), "always"),
    Row(Phase.WATCH, Outcome.BROKEN, ("10", 0, ""), "always"),
]

EVERY_ROW = pytest.mark.parametrize("row", ROWS, ids=str)


def at(row: Row, *, failures: int = 0) -> tuple[Cursor, Outcome]:
    """A cursor in the row's phase, its backoff at ``failures``, and the outcome."""
    cursor = AT[row.phase]()
    for _ in range(failures):
        cursor.backoff.next(0.0, 0.0)
    match row.outcome:
        case Outcome.MORE:
            return cursor, cursor.page("20", "t2")
        case Outcome.COMPLETE:
            return cursor, cursor.page("20", "")
        case _:
            return cursor, row.outcome


def plain(request: Request) -> tuple[str, int, str] | str:
    """The request in the form of ``Row.then``."""
    if isinstance(request, WatchRequest):
        return request.resource_version
    return request.resource_version, request.limit, request.continue_token


# -- the table -----------------------------------------------------------------------------------


def test_there_is_a_row_for_each_outcome_of_each_phase() -> None:
    every = {(phase, outcome) for phase, rules in RULES.items() for outcome in rules}

    assert {(row.phase, row.outcome) for row in ROWS} == every
    assert len(ROWS) == len(every)
    assert {outcome for _, outcome in every} == set(Outcome)


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
        "always": (True, True),
    }[row.waits]


@EVERY_ROW
def test_retry_after_is_the_least_wait_of_a_failure(row: Row) -> None:
    cursor, outcome = at(row)
    asked = ended(cursor, outcome, retry_after=77.0).delay
    cursor, outcome = at(row, failures=6)
    longer = ended(cursor, outcome, retry_after=0.5).delay

    assert asked == (0.0 if row.waits == "never" else 77.0)
    assert longer == (0.0 if row.waits == "never" else 30.0)


@pytest.mark.parametrize("phase", list(Phase))
def test_an_outcome_that_the_phase_can_not_have_is_a_mistake(phase: Phase) -> None:
    for outcome in set(Outcome) - set(RULES[phase]):
        with pytest.raises(KeyError):
            ended(AT[phase](), outcome)


# -- lists ---------------------------------------------------------------------------------------


def test_the_first_list_is_asked_for_at_any_version() -> None:
    """client-go: "0", from the server's cache."""
    cursor = Cursor()

    assert cursor.request == ListRequest("0", PAGE_SIZE)
    assert cursor.resource_version == ""


def test_a_later_list_is_asked_for_at_the_last_version_and_without_a_limit() -> None:
    """A limit would bypass the server's cache; an older state would go back in time."""
    cursor = watching("10")
    cursor.saw("15")

    assert ended(cursor, Outcome.BROKEN).request == ListRequest("15", 0)


def test_a_list_by_consistent_read_is_asked_for_until_one_succeeds() -> None:
    """client-go's isLastSyncResourceVersionUnavailable."""
    cursor = watching("10")
    ended(cursor, Outcome.AHEAD)

    for outcome in (Outcome.UNREACHABLE, Outcome.FAILED, Outcome.DENIED, Outcome.EXPIRED):
        assert ended(cursor, outcome).request == ListRequest("", PAGE_SIZE)
    ended(cursor, cursor.page("5", ""))
    assert cursor.request == WatchRequest("5", 450), "the server was set back; so are we"
    assert ended(cursor, Outcome.BROKEN).request == ListRequest("5", 0)


def test_a_page_does_not_count_as_success() -> None:
    cursor = watching("10")
    ended(cursor, Outcome.AHEAD)
    ended(cursor, cursor.page("12", "t1"))

    assert ended(cursor, Outcome.REJECTED).request == ListRequest("", PAGE_SIZE)


def test_an_expired_watch_lists_at_its_last_version_first() -> None:
    """client-go: the cache may still have it, and an older state is no answer."""
    cursor = watching("10")

    assert ended(cursor, Outcome.EXPIRED).request == ListRequest("10", 0)
    assert ended(cursor, Outcome.EXPIRED).request == ListRequest("", PAGE_SIZE)


def test_pages_follow_their_tokens() -> None:
    cursor = fresh()
    tokens: list[str] = []
    for token in ("t1", "t2", "t3", ""):
        ended(cursor, cursor.page("10", token))
        if isinstance(cursor.request, ListRequest):
            tokens.append(cursor.request.continue_token)

    assert tokens == ["t1", "t2", "t3"]
    assert cursor.phase is Phase.WATCH


def test_a_page_that_failed_is_asked_for_again() -> None:
    cursor = paging()

    for outcome in (Outcome.BUSY, Outcome.UNREACHABLE, Outcome.FAILED):
        assert ended(cursor, outcome).request == ListRequest("0", PAGE_SIZE, "t1")


def test_an_expired_token_leads_to_the_whole_list_at_the_version_first_asked_for() -> None:
    """client-go's FullListIfExpired: pages that outlive their token would never end."""
    cursor = watching("10", page_size=50)
    ended(cursor, Outcome.BROKEN)
    ended(cursor, cursor.page("12", "t1"))

    assert ended(cursor, Outcome.EXPIRED).request == ListRequest("10", 0)


def test_a_whole_list_that_expires_too_is_read_consistently() -> None:
    cursor = paging()
    ended(cursor, Outcome.EXPIRED)
    assert cursor.phase is Phase.LIST

    assert ended(cursor, Outcome.EXPIRED).request == ListRequest("", PAGE_SIZE)


def test_a_list_from_zero_in_pages_means_that_the_server_has_no_cache() -> None:
    """client-go's paginatedResult: then a list without a limit would be one huge read."""
    cursor = paging()
    ended(cursor, cursor.page("10", ""))

    for token in ("t1", "t2", "t3"):
        assert ended(cursor, Outcome.BROKEN).request == ListRequest("10", PAGE_SIZE)
        ended(cursor, cursor.page("10", token))
        ended(cursor, cursor.page("10", ""))


def test_a_consistent_list_in_pages_says_nothing_of_the_cache() -> None:
    """Those are always cut."""
    cursor = watching("10")
    ended(cursor, Outcome.AHEAD)
    ended(cursor, cursor.page("12", "t1"))
    ended(cursor, cursor.page("12", ""))

    assert ended(cursor, Outcome.BROKEN).request == ListRequest("12", 0)


def test_a_page_size_of_ones_own_is_used_for_every_list() -> None:
    cursor = fresh(page_size=50)
    assert cursor.request == ListRequest("0", 50)
    ended(cursor, cursor.page("10", ""))

    assert ended(cursor, Outcome.BROKEN).request == ListRequest("10", 50)
    assert ended(cursor, Outcome.AHEAD).request == ListRequest("", 50)


# -- watches -------------------------------------------------------------------------------------


def test_a_watch_starts_where_the_list_was_taken() -> None:
    cursor = paging()
    ended(cursor, cursor.page("10", ""))

    assert cursor.request == WatchRequest("10", 450)
    assert cursor.resource_version == "10"


def test_a_watch_goes_on_behind_the_last_event() -> None:
    cursor = watching("10")
    cursor.saw("11")
    cursor.saw("12")

    assert plain(ended(cursor, Outcome.ENDED).request) == "12"
    assert plain(ended(cursor, Outcome.UNREACHABLE).request) == "12"


def test_an_event_without_a_version_moves_nothing() -> None:
    """client-go has no such guard, and would list at "0" next: back in time."""
    cursor = watching("10")
    cursor.saw("11")
    cursor.saw("")

    assert plain(ended(cursor, Outcome.ENDED).request) == "11"


@given(strategies.chance)
@settings(deadline=None)
def test_a_watch_is_asked_to_last_between_five_and_ten_minutes(jitter: float) -> None:
    cursor = watching()
    step = cursor.advance(Outcome.ENDED, now=0.0, jitter=jitter)

    assert isinstance(step.request, WatchRequest)
    assert WATCH_SECONDS == (300, 600)
    assert 300 <= step.request.timeout <= 600


def test_watches_do_not_all_last_as_long() -> None:
    cursor = watching()
    timeouts = [
        cursor.advance(Outcome.ENDED, now=0.0, jitter=jitter).request.query()["timeoutSeconds"]
        for jitter in (0.0, 0.5, 0.99)
    ]

    assert timeouts == ["300", "450", "597"]


@pytest.mark.parametrize("outcome", [Outcome.UNSERVED, Outcome.FAILED])
def test_a_watch_that_is_never_served_gives_way_to_a_list(outcome: Outcome) -> None:
    """Some servers close a watch from a stale version without saying 410 (fabric8#7896)."""
    cursor = watching("10")
    for _ in range(STUBBORN - 1):
        assert plain(ended(cursor, outcome).request) == "10"

    assert ended(cursor, outcome).request == ListRequest("10", 0)
    ended(cursor, cursor.page("11", ""))
    assert plain(ended(cursor, outcome).request) == "11", "counting starts anew"


def test_both_ways_of_not_serving_a_watch_count_together() -> None:
    cursor = watching("10")
    ended(cursor, Outcome.UNSERVED)
    ended(cursor, Outcome.FAILED)

    assert ended(cursor, Outcome.UNSERVED).request == ListRequest("10", 0)


def test_an_event_ends_the_count_of_watches_not_served() -> None:
    cursor = watching("10")
    for rv in ("11", "12", "13", "14"):
        for _ in range(STUBBORN - 1):
            ended(cursor, Outcome.UNSERVED)
        cursor.saw(rv)

    assert cursor.phase is Phase.WATCH


@pytest.mark.parametrize("outcome", [Outcome.UNREACHABLE, Outcome.BUSY, Outcome.DENIED])
def test_a_server_that_can_not_be_asked_is_not_listed_instead(outcome: Outcome) -> None:
    """The version is good until the server says otherwise; thousands would list at once."""
    cursor = watching("10")

    for _ in range(20):
        assert plain(ended(cursor, outcome).request) == "10"


# -- waits ---------------------------------------------------------------------------------------


def test_failures_of_all_kinds_share_one_backoff() -> None:
    cursor = fresh()
    waits = [ended(cursor, Outcome.UNREACHABLE).delay, ended(cursor, Outcome.DENIED).delay]
    ended(cursor, cursor.page("10", ""))
    waits += [ended(cursor, Outcome.UNREACHABLE).delay, ended(cursor, Outcome.BROKEN).delay]

    assert waits == [0.8, 1.6, 3.2, 6.4]


def test_a_list_and_watch_that_take_turns_in_failing_wait() -> None:
    """client-go loops without a wait where a server answers 410 to each."""
    cursor = watching("10")
    waits: list[float] = []
    for _ in range(4):
        waits.append(ended(cursor, Outcome.EXPIRED).delay)
        ended(cursor, cursor.page("10", ""))

    assert waits == [0.0, 1.6, 3.2, 6.4]


def test_after_a_quiet_time_another_way_is_tried_at_once_again() -> None:
    cursor = watching("10")
    assert ended(cursor, Outcome.EXPIRED, now=0.0).delay == 0.0
    ended(cursor, cursor.page("10", ""), now=0.0)

    assert ended(cursor, Outcome.EXPIRED, now=1000.0).delay == 0.0


# -- queries -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "query"),
    [
        (ListRequest(), {"limit": "500", "resourceVersion": "0"}),
        (ListRequest("", 500), {"limit": "500"}),
        (ListRequest("10", 0), {"resourceVersion": "10"}),
        (ListRequest("0", 500, "t1"), {"limit": "500", "continue": "t1"}),
        (ListRequest("10", 0, "t1"), {"continue": "t1"}),
        (ListRequest("", 0), {}),
        (
            WatchRequest("10", 301),
            {
                "watch": "true",
                "allowWatchBookmarks": "true",
                "resourceVersion": "10",
                "timeoutSeconds": "301",
            },
        ),
    ],
    ids=str,
)
def test_a_request_asks_with(request_: Request, query: dict[str, str]) -> None:
    """A continue token and a resourceVersion together are answered with 400."""
    assert request_.query() == query


def test_the_repr_shows_the_phase_the_version_and_the_failures() -> None:
    cursor = Cursor()
    assert repr(cursor) == "<Cursor LIST rv=none failures=0>"
    ended(cursor, Outcome.UNREACHABLE)
    ended(cursor, cursor.page("10", "t1"))
    assert repr(cursor) == "<Cursor PAGE rv=none failures=1>"
    ended(cursor, cursor.page("10", ""))
    assert repr(cursor) == "<Cursor WATCH rv=10 failures=1>"


# -- any sequence --------------------------------------------------------------------------------

PROGRESS = {Outcome.MORE, Outcome.COMPLETE, Outcome.ENDED}


@given(st.data(), st.sampled_from([0, 1, 50]))
@settings(deadline=None, max_examples=300)
def test_no_sequence_of_outcomes_leads_astray(data: st.DataObject, page_size: int) -> None:
    """It never watches before a list completed, never forgets its version, and of any two
    failures that follow each other at least one is waited for.
    """
    cursor = Cursor(page_size=page_size)
    now, listed, version, last_wait, failed_at = 0.0, False, 100, 1.0, -1000.0
    for _ in range(data.draw(st.integers(1, 25))):
        outcome = data.draw(strategies.outcomes(cursor.phase))
        before = cursor.resource_version
        if outcome in (Outcome.MORE, Outcome.COMPLETE):
            version += 1
            token = f"t{version}" if outcome is Outcome.MORE else ""
            assert cursor.page(str(version), token) is outcome
            listed = listed or outcome is Outcome.COMPLETE
        elif cursor.phase is Phase.WATCH and data.draw(st.booleans()):
            version += 1
            cursor.saw(str(version))
            cursor.saw("")
        jitter, pause = data.draw(strategies.chance), data.draw(strategies.seconds)

        step = cursor.advance(outcome, now=now, jitter=jitter)

        assert 0 <= step.delay <= 60
        assert listed or isinstance(step.request, ListRequest)
        assert not (before and not cursor.resource_version)
        if isinstance(step.request, WatchRequest):
            assert step.request.resource_version == cursor.resource_version != ""
        elif step.request.continue_token:
            assert step.request.continue_token == f"t{version}" or outcome not in PROGRESS
        if outcome in PROGRESS:
            assert step.delay == 0
        else:
            assert step.delay or last_wait or now - failed_at >= 120
            last_wait, failed_at = step.delay, now + step.delay
        now += step.delay + pause


def test_a_list_without_a_version_is_a_protocol_error_and_changes_nothing() -> None:
    cursor = fresh()
    ended(cursor, cursor.page("10", ""))
    with pytest.raises(ProtocolError, match="no resourceVersion"):
        cursor.page("", "")
    assert cursor.resource_version == "10"


def test_a_watch_that_was_served_starts_the_count_of_unserved_ones_again() -> None:
    cursor = fresh()
    ended(cursor, cursor.page("10", ""))
    for _ in range(STUBBORN + 1):
        assert isinstance(ended(cursor, Outcome.UNSERVED).request, WatchRequest)
        assert isinstance(ended(cursor, Outcome.ENDED).request, WatchRequest)


def test_a_long_retry_after_is_no_quiet_time() -> None:
    backoff = Backoff(EXACT)
    assert backoff.next(0.0, 0.0, least=300.0) == 300.0
    assert backoff.next(300.0, 0.0) == 1.6


def test_a_first_failure_with_a_retry_after_waits_for_it() -> None:
    cursor = fresh()
    ended(cursor, cursor.page("10", ""))
    step = cursor.advance(Outcome.EXPIRED, now=0.0, jitter=0.0, retry_after=3.0)
    assert step.delay == 3.0
