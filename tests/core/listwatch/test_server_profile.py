"""Server behaviour learned per resource."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.listwatch.server_profile import (
    DEFAULT_BOOKMARK_INTERVAL,
    MAX_BOOKMARK_INTERVAL,
    MAX_SILENT_WATCHES,
    WATCHLIST_UNSUPPORTED_PAUSE,
    ServerProfile,
)


def test_watch_lists_are_tried_again_some_time_after_a_failure() -> None:
    profile = ServerProfile()
    assert profile.supports_watchlist(0.0)

    profile.record_watchlist_failure(100.0, WATCHLIST_UNSUPPORTED_PAUSE)

    assert not profile.supports_watchlist(100.0)
    assert not profile.supports_watchlist(99.0 + WATCHLIST_UNSUPPORTED_PAUSE)
    assert profile.supports_watchlist(100.0 + WATCHLIST_UNSUPPORTED_PAUSE)


def test_without_a_bookmark_the_interval_is_unknown() -> None:
    assert ServerProfile().bookmark_interval is None


@pytest.mark.parametrize(
    ("after", "cadence"), [(3.0, DEFAULT_BOOKMARK_INTERVAL), (60.0, 60.0), (90.0, 90.0)]
)
def test_an_early_first_bookmark_sets_the_default_interval(after: float, cadence: float) -> None:
    """A server may send them to all of its watches at once."""
    profile = ServerProfile()
    profile.record_bookmark(after, first=True)

    assert profile.bookmark_interval == cadence


def test_a_longer_interval_counts_at_once_and_a_shorter_one_gradually() -> None:
    profile = ServerProfile()
    seen: list[float | None] = []
    for after in (60.0, 10.0, 10.0, 80.0):
        profile.record_bookmark(after, first=False)
        seen.append(profile.bookmark_interval)

    assert seen == [60.0, 35.0, 22.5, 80.0]


def test_each_idle_timeout_doubles_the_interval_up_to_a_maximum() -> None:
    profile = ServerProfile(bookmark_interval=60.0)
    patient: list[bool] = []
    for _ in range(10):
        patient.append(profile.rarely_sends_bookmarks)
        profile.record_idle_timeout()

    assert patient == [False, False, *[True] * 8]
    assert profile.bookmark_interval == MAX_BOOKMARK_INTERVAL


def test_a_dead_connection_restores_the_interval() -> None:
    profile = ServerProfile(bookmark_interval=60.0)
    for _ in range(5):
        profile.record_idle_timeout()
        profile.record_dead_connection()

    assert profile.bookmark_interval == 60.0


def test_a_bookmark_after_an_idle_timeout_confirms_the_longer_interval() -> None:
    profile = ServerProfile(bookmark_interval=60.0)
    profile.record_idle_timeout()
    profile.record_bookmark(100.0, first=False)
    profile.record_dead_connection()

    assert profile.bookmark_interval == 110.0


def measured_profile() -> ServerProfile:
    """Return the profile of a server that has sent a bookmark every minute."""
    profile = ServerProfile()
    for first in (True, False):
        profile.record_bookmark(60.0, first=first)
    return profile


def record_silence(profile: ServerProfile, *moved: bool, begin: float = 0.0) -> list[float | None]:
    """Record silent watches one after another. Return the interval after each of them."""
    intervals = list[float | None]()
    for number, each in enumerate(moved):
        profile.record_silent_watch(begin + number, begin + number + 1.0, moved=each)
        intervals.append(profile.bookmark_interval)
    return intervals


def test_a_silent_watch_of_a_server_that_had_a_bookmark_to_send_leaves_the_interval() -> None:
    assert record_silence(measured_profile(), True, True, True) == [60.0, 60.0, 60.0]


def test_a_silent_watch_of_a_server_that_had_no_bookmark_to_send_doubles_the_interval() -> None:
    assert record_silence(measured_profile(), False, False, False) == [120.0, 230.0, 230.0]


def test_watches_that_fall_silent_together_double_the_interval_once() -> None:
    profile = measured_profile()
    for since in (0.0, 40.0, 74.9):
        profile.record_silent_watch(since, since + 75.0, moved=False)
    assert profile.bookmark_interval == 120.0

    profile.record_silent_watch(75.0, 225.0, moved=False)
    assert profile.bookmark_interval == 230.0


def test_a_missed_bookmark_restores_the_interval_of_a_server_that_was_quiet() -> None:
    assert record_silence(measured_profile(), False, False, True, False) == [120, 230, 60, 120]


def test_one_silent_watch_is_put_down_to_its_connection_before_the_interval_was_measured() -> None:
    """A server with rare bookmarks looks the same, and gets longer idle timeouts then."""
    profile = ServerProfile()
    profile.record_end_mark()
    assert record_silence(profile, True, True, True) == [60.0, 120.0, 230.0]


def test_a_server_that_no_longer_sends_bookmarks_gets_longer_idle_timeouts_at_last() -> None:
    intervals = record_silence(measured_profile(), *[True] * (MAX_SILENT_WATCHES + 2))
    assert intervals == [*[60.0] * MAX_SILENT_WATCHES, 120.0, 230.0]


@pytest.mark.parametrize("proof", ["a bookmark in time", "missed changes"])
def test_a_proof_that_the_connection_was_dead_lets_the_next_silent_watch_leave_the_interval(
    proof: str,
) -> None:
    profile = ServerProfile(bookmark_interval=60.0)
    for incident in range(5):
        assert record_silence(profile, True, begin=100.0 * incident) == [60.0]
        if proof == "missed changes":
            profile.record_dead_connection()
        else:
            profile.record_bookmark(60.0, first=True)


def test_a_short_first_bookmark_proves_nothing_about_the_next_silent_watch() -> None:
    profile = ServerProfile(bookmark_interval=60.0)
    record_silence(profile, True)
    profile.record_bookmark(20.0, first=True)
    assert record_silence(profile, True, begin=100.0) == [120.0]


def test_a_silent_watch_of_a_server_with_frequent_bookmarks_sets_the_default_interval() -> None:
    """The interval of frequent bookmarks may be a mistake: a server sent some of them twice."""
    profile = ServerProfile()
    for _ in range(20):
        profile.record_bookmark(10.0, first=False)
    assert record_silence(profile, True) == [DEFAULT_BOOKMARK_INTERVAL]


def test_bookmarks_sent_twice_do_not_count_as_a_measured_interval() -> None:
    profile = ServerProfile()
    profile.record_bookmark(60.0, first=True)
    profile.record_bookmark(0.0, first=False)
    assert record_silence(profile, True, True) == [60.0, 120.0]


def test_a_bookmark_in_time_restores_the_interval_before_idle_timeouts() -> None:
    profile = measured_profile()
    record_silence(profile, False, False)
    profile.record_bookmark(61.0, first=True)
    assert profile.bookmark_interval == 61.0


def test_a_second_bookmark_in_time_restores_an_interval_that_was_not_measured() -> None:
    profile = ServerProfile(bookmark_interval=60.0)
    record_silence(profile, False, False)
    profile.record_bookmark(60.0, first=True)
    assert profile.bookmark_interval == MAX_BOOKMARK_INTERVAL, "the server may send to all watches"
    profile.record_bookmark(60.0, first=False)
    assert profile.bookmark_interval == 60.0


def test_silence_is_never_normal_while_the_server_has_a_bookmark_to_send() -> None:
    profile = ServerProfile(bookmark_interval=60.0)
    record_silence(profile, False, False)
    assert profile.rarely_sends_bookmarks
    record_silence(profile, *[True] * 4, begin=100.0)
    assert (profile.bookmark_interval, profile.rarely_sends_bookmarks) == (230.0, False)
    profile.record_bookmark(500.0, first=True)
    assert profile.rarely_sends_bookmarks, "the bookmarks are rare"


def test_a_silent_watch_without_a_known_interval_leaves_the_interval_unknown() -> None:
    assert record_silence(ServerProfile(), True, False) == [None, None]


def test_an_idle_timeout_without_a_bookmark_leaves_the_interval_unknown() -> None:
    profile = ServerProfile()
    profile.record_idle_timeout()

    assert profile.bookmark_interval is None


@given(st.lists(st.tuples(st.floats(0, 10_000), st.booleans()), min_size=1))
def test_the_interval_stays_between_the_last_measured_one_and_the_maximum(
    bookmarks: list[tuple[float, bool]],
) -> None:
    profile = ServerProfile()
    for after, first in bookmarks:
        profile.record_bookmark(after, first=first)
        assert profile.bookmark_interval is not None
        assert (
            min(after, MAX_BOOKMARK_INTERVAL) <= profile.bookmark_interval <= MAX_BOOKMARK_INTERVAL
        )


def test_a_shorter_pause_does_not_end_a_longer_one() -> None:
    profile = ServerProfile()
    profile.record_watchlist_failure(100.0, 50.0)
    profile.record_watchlist_failure(110.0, 10.0)

    assert (profile.supports_watchlist(149.0), profile.supports_watchlist(150.0)) == (False, True)


def test_an_end_mark_sets_the_default_interval_until_another_one_is_known() -> None:
    profile = ServerProfile()
    profile.record_end_mark()
    assert profile.bookmark_interval == DEFAULT_BOOKMARK_INTERVAL

    profile.record_bookmark(20.0, first=False)
    profile.record_end_mark()

    assert profile.bookmark_interval == 40.0


def test_a_first_bookmark_does_not_shorten_a_known_interval() -> None:
    profile = ServerProfile(bookmark_interval=90.0)
    profile.record_bookmark(70.0, first=True)
    assert profile.bookmark_interval == 90.0

    profile.record_bookmark(100.0, first=True)
    assert profile.bookmark_interval == 100.0


def test_a_dead_connection_restores_the_interval_before_all_idle_timeouts() -> None:
    profile = ServerProfile(bookmark_interval=40.0)
    profile.record_idle_timeout()
    assert profile.bookmark_interval == 80.0
    profile.record_idle_timeout()
    assert profile.bookmark_interval == 160.0

    profile.record_dead_connection()
    assert profile.bookmark_interval == 40.0

    profile.record_idle_timeout()
    profile.record_bookmark(100.0, first=True)
    profile.record_dead_connection()
    assert profile.bookmark_interval == 100.0, "the bookmark has confirmed the interval"


@pytest.mark.parametrize(("interval", "rare"), [(None, False), (229.0, False), (230.0, True)])
def test_bookmarks_are_rare_at_the_longest_interval(interval: float | None, *, rare: bool) -> None:
    assert ServerProfile(bookmark_interval=interval).rarely_sends_bookmarks is rare
