"""What is known of how a server serves one resource."""

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


def test_watch_lists_are_tried_until_one_did_not_work_and_again_after_a_while() -> None:
    habits = ServerProfile()
    assert habits.supports_watchlist(0.0)

    habits.record_watchlist_failure(100.0, WATCHLIST_UNSUPPORTED_PAUSE)

    assert not habits.supports_watchlist(100.0)
    assert not habits.supports_watchlist(99.0 + WATCHLIST_UNSUPPORTED_PAUSE)
    assert habits.supports_watchlist(100.0 + WATCHLIST_UNSUPPORTED_PAUSE)


def test_without_a_bookmark_nothing_is_known_of_their_distance() -> None:
    assert ServerProfile().bookmark_interval is None


@pytest.mark.parametrize(
    ("after", "cadence"), [(3.0, DEFAULT_BOOKMARK_INTERVAL), (60.0, 60.0), (90.0, 90.0)]
)
def test_how_soon_the_first_bookmark_of_a_watch_comes_says_little(
    after: float, cadence: float
) -> None:
    """A server may send them to all of its watches at once."""
    habits = ServerProfile()
    habits.record_bookmark(after, first=True)

    assert habits.bookmark_interval == cadence


def test_one_long_distance_counts_at_once_and_short_ones_by_and_by() -> None:
    habits = ServerProfile()
    seen: list[float | None] = []
    for after in (60.0, 10.0, 10.0, 80.0):
        habits.record_bookmark(after, first=False)
        seen.append(habits.bookmark_interval)

    assert seen == [60.0, 35.0, 22.5, 80.0]


def test_after_a_silence_more_patience_is_had_up_to_the_length_of_a_watch() -> None:
    habits = ServerProfile(bookmark_interval=60.0)
    patient: list[bool] = []
    for _ in range(10):
        patient.append(habits.rarely_sends_bookmarks)
        habits.record_idle_timeout()

    assert patient == [False, False, *[True] * 8]
    assert habits.bookmark_interval == MAX_BOOKMARK_INTERVAL


def test_a_stream_that_proves_to_have_been_dead_teaches_no_patience() -> None:
    habits = ServerProfile(bookmark_interval=60.0)
    for _ in range(5):
        habits.record_idle_timeout()
        habits.record_dead_connection()

    assert habits.bookmark_interval == 60.0


def test_what_comes_with_an_ordinary_watch_proves_nothing() -> None:
    habits = ServerProfile(bookmark_interval=60.0)
    habits.record_idle_timeout()
    habits.record_bookmark(100.0, first=False)
    habits.record_dead_connection()

    assert habits.bookmark_interval == 110.0


def test_where_no_bookmark_was_ever_seen_silence_teaches_nothing() -> None:
    habits = ServerProfile()
    habits.record_idle_timeout()

    assert habits.bookmark_interval is None


@given(st.lists(st.tuples(st.floats(0, 10_000), st.booleans()), min_size=1))
def test_the_distance_stays_between_nothing_and_the_length_of_a_watch(
    bookmarks: list[tuple[float, bool]],
) -> None:
    habits = ServerProfile()
    for after, first in bookmarks:
        habits.record_bookmark(after, first=first)
        assert habits.bookmark_interval is not None
        assert (
            min(after, MAX_BOOKMARK_INTERVAL) <= habits.bookmark_interval <= MAX_BOOKMARK_INTERVAL
        )
