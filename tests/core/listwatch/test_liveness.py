"""The time without data after which a watch is replaced."""

from __future__ import annotations

import pytest

from aioinformer._core.listwatch.liveness import (
    DEADLINE_GRACE,
    MIN_TIMEOUT,
    IdleTimeout,
    LivenessPolicy,
)
from aioinformer._core.listwatch.server_profile import ServerProfile

NEVER = float("inf")
AT_LAST = 1600.0 + DEADLINE_GRACE
"""The time at which a watch of 600 s that began at 1,000 s is replaced in any case."""


def opened(
    profile: ServerProfile | None = None,
    *,
    initial: bool = False,
    policy: LivenessPolicy | None = None,
) -> IdleTimeout:
    """Return a watch of 600 s that is answered at 1,000 s."""
    return IdleTimeout(
        policy or LivenessPolicy(),
        profile or ServerProfile(),
        now=1000.0,
        timeout=600.0,
        initial=initial,
    )


def once_a_minute() -> ServerProfile:
    return ServerProfile(bookmark_interval=60.0)


# -- watches -------------------------------------------------------------------------------------


def test_without_a_bookmark_the_watch_has_no_idle_timeout() -> None:
    idle_timeout = opened()
    idle_timeout.last_data = 1200.0

    assert idle_timeout.deadline == AT_LAST
    assert not idle_timeout.past_deadline(AT_LAST - 1.0)
    assert idle_timeout.past_deadline(AT_LAST)


def test_bookmarks_each_minute_give_an_idle_timeout_of_75_seconds() -> None:
    idle_timeout = opened()
    idle_timeout.last_data = 1060.0
    idle_timeout.record_bookmark(1060.0)

    assert idle_timeout.deadline == 1060.0 + 75.0


def test_the_interval_is_remembered_across_reconnects() -> None:
    assert opened(once_a_minute()).deadline == 1000.0 + 75.0


def test_data_of_any_kind_extends_the_deadline() -> None:
    idle_timeout = opened(once_a_minute())
    idle_timeout.last_data = 1050.0

    assert idle_timeout.deadline == 1125.0


@pytest.mark.parametrize("before_the_end", [0.5, 2.0, 4.9])
def test_bookmarks_just_before_the_deadline_are_ignored(before_the_end: float) -> None:
    """Every server sends one there, however often it sends others."""
    profile = ServerProfile()
    opened(profile).record_bookmark(1600.0 - before_the_end)

    assert profile.bookmark_interval is None


def test_very_frequent_bookmarks_do_not_shorten_the_timeout_below_its_minimum() -> None:
    profile = ServerProfile()
    idle_timeout = opened(profile)
    for at in range(1001, 1021):
        idle_timeout.last_data = float(at)
        idle_timeout.record_bookmark(float(at))

    assert profile.bookmark_interval is not None
    assert profile.bookmark_interval < 2.0
    assert idle_timeout.timeout == MIN_TIMEOUT


def test_a_factor_of_zero_waits_for_the_deadline() -> None:
    assert opened(once_a_minute(), policy=LivenessPolicy(idle_factor=0)).deadline == AT_LAST


def test_the_time_of_a_slow_consumer_does_not_count() -> None:
    idle_timeout = opened(once_a_minute())
    idle_timeout.pause()
    assert idle_timeout.deadline == NEVER

    idle_timeout.resume(1500.0)

    assert idle_timeout.deadline == 1575.0


def test_a_consumer_that_is_slow_beyond_the_deadline_leaves_a_grace_period() -> None:
    idle_timeout = opened()
    idle_timeout.pause()
    idle_timeout.resume(5000.0)

    assert idle_timeout.deadline == 5000.0 + DEADLINE_GRACE


def test_bookmarks_that_waited_in_the_socket_don_t_count() -> None:
    profile = once_a_minute()
    idle_timeout = opened(profile)
    idle_timeout.pause()
    idle_timeout.resume(1500.0)
    idle_timeout.record_bookmark(1500.0)
    assert profile.bookmark_interval == 60.0

    idle_timeout.record_bookmark(1560.0)

    assert profile.bookmark_interval == 60.0


# -- WatchLists ----------------------------------------------------------------------------------


def test_an_initial_list_has_a_short_idle_timeout() -> None:
    idle_timeout = opened(initial=True)
    assert idle_timeout.deadline == 1030.0

    idle_timeout.last_data = 1010.0

    assert idle_timeout.deadline == 1040.0


def test_an_initial_list_has_a_total_timeout() -> None:
    """A server that ignores sendInitialEvents sends its objects, then what changes."""
    idle_timeout = opened(initial=True)
    idle_timeout.last_data = 1299.0

    assert idle_timeout.deadline == 1300.0


def test_after_the_end_mark_the_timeout_is_that_of_a_watch() -> None:
    idle_timeout = opened(initial=True)
    idle_timeout.last_data = 1020.0
    idle_timeout.complete_initial_list(1020.0)
    assert idle_timeout.deadline == 1020.0 + 75.0

    idle_timeout.last_data = 1080.0
    idle_timeout.record_bookmark(1080.0)

    assert idle_timeout.deadline == 1080.0 + 75.0


def test_after_the_end_mark_an_interval_of_a_minute_is_assumed() -> None:
    """A connection may die in the first minute of a watch."""
    profile = ServerProfile()
    opened(profile, initial=True).complete_initial_list(1005.0)
    assert profile.bookmark_interval == 60.0

    slower = ServerProfile(bookmark_interval=90.0)
    opened(slower, initial=True).complete_initial_list(1005.0)
    assert slower.bookmark_interval == 90.0


def test_the_time_of_a_slow_consumer_during_an_initial_list_does_not_count() -> None:
    idle_timeout = opened(initial=True)
    idle_timeout.pause()
    idle_timeout.resume(2000.0)

    assert idle_timeout.deadline == 2030.0


# -- the numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [-1.0, 0.5])
def test_a_factor_below_one_is_rejected(factor: float) -> None:
    with pytest.raises(ValueError, match="idle_factor"):
        LivenessPolicy(idle_factor=factor)


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_the_timeouts_of_an_initial_list_are_above_zero(seconds: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        LivenessPolicy(initial_idle=seconds)
    with pytest.raises(ValueError, match="above 0"):
        LivenessPolicy(initial_total=seconds)


# -- intervals -----------------------------------------------------------------------------------


def test_a_first_bookmark_soon_after_the_start_does_not_change_the_interval() -> None:
    profile = once_a_minute()
    idle_timeout = opened(profile)
    idle_timeout.record_bookmark(1003.0)
    assert profile.bookmark_interval == 60.0

    idle_timeout.record_bookmark(1023.0)

    assert profile.bookmark_interval == 40.0


def test_the_interval_of_a_first_bookmark_begins_with_the_watch() -> None:
    profile = ServerProfile()
    opened(profile).record_bookmark(1090.0)

    assert profile.bookmark_interval == 90.0


def test_the_interval_behind_an_initial_list_begins_with_its_end_mark() -> None:
    profile = ServerProfile()
    idle_timeout = opened(profile, initial=True)
    idle_timeout.complete_initial_list(1020.0)
    idle_timeout.record_bookmark(1110.0)

    assert profile.bookmark_interval == 90.0


def test_a_bookmark_five_seconds_before_the_deadline_does_not_count() -> None:
    profile = ServerProfile()
    opened(profile).record_bookmark(1595.0)
    assert profile.bookmark_interval is None

    opened(profile).record_bookmark(1594.0)
    assert profile.bookmark_interval is not None


# -- pauses --------------------------------------------------------------------------------------


def test_an_initial_list_does_not_outlive_the_deadline_of_its_watch() -> None:
    idle_timeout = opened(initial=True)
    assert not idle_timeout.past_deadline(AT_LAST)

    idle_timeout.complete_initial_list(1100.0)

    assert idle_timeout.past_deadline(AT_LAST)


# -- freshness checks ------------------------------------------------------------------------------


@pytest.mark.parametrize(("moved", "interval"), [(True, 60.0), (False, 120.0)])
def test_the_check_after_a_timeout_decides_about_the_interval(moved: bool, interval: float) -> None:
    profile = once_a_minute()
    idle_timeout = opened(profile)
    assert str(idle_timeout.expire(1075.0)).startswith("the watch received no data for 75 s")
    idle_timeout.server_moved = moved
    assert profile.bookmark_interval == 60.0
    idle_timeout.end_check()
    idle_timeout.end_check()

    assert profile.bookmark_interval == interval


def test_a_check_after_another_end_of_a_watch_says_nothing_about_the_interval() -> None:
    profile = once_a_minute()
    opened(profile).end_check()

    assert profile.bookmark_interval == 60.0


def test_a_factor_of_one_and_all_limits_above_zero_are_allowed() -> None:
    LivenessPolicy(idle_factor=1, initial_idle=0.1, initial_total=0.1, list_total=0.1)
    with pytest.raises(ValueError, match=r"^initial_idle, .* and list_total must be above 0$"):
        LivenessPolicy(list_total=0)
    with pytest.raises(ValueError, match=r"^idle_factor must be 0 or at least 1, not 0\.5$"):
        LivenessPolicy(idle_factor=0.5)
