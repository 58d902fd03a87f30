"""Server behaviour learned per resource."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.listwatch.server_profile import (
    DEFAULT_BOOKMARK_INTERVAL,
    MAX_BOOKMARK_INTERVAL,
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
