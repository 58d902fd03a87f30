"""The state of a reflector: comparisons, freshness and retries. ``test_health`` tests the rest."""

from __future__ import annotations

from aioinformer._runtime.reporting.reflector_status import ReflectorStatus
from aioinformer.errors import ConnectionFailed, ServerFailure, Status
from tests.runtime.loop_clock import LoopClock


def started(clock: LoopClock) -> ReflectorStatus:
    """Return the status of a reflector that starts now."""
    status = ReflectorStatus()
    status.start(clock)
    return status


def test_freshness_counts_from_the_last_proof() -> None:
    clock = LoopClock()
    status = started(clock)
    before = status.fresh

    status.fresh_at = clock()
    clock.work(2)

    assert (before, status.fresh) == (None, 2.0)


def test_a_retry_that_is_overdue_is_due_now() -> None:
    clock = LoopClock()
    status = started(clock)
    status.record_error(ConnectionFailed("refused"))
    status.schedule_retry(3)
    clock.work(1)
    assert (status.state, status.retry_in) == ("waiting", 2.0)

    clock.work(9)

    assert status.retry_in == 0.0


def test_a_reflector_of_an_unserved_resource_waits_for_the_resource() -> None:
    status = started(LoopClock())
    status.absent = True
    status.schedule_retry(3)

    assert status.state == "absent"


def test_a_refused_watch_is_a_healthy_state_only_while_nothing_else_fails() -> None:
    status = started(LoopClock())
    refusal = ServerFailure(Status(503, "ServiceUnavailable"))
    status.watch_refusal = refusal
    status.record_error(refusal)
    status.schedule_retry(30)
    states = [status.state]

    status.record_error(ConnectionFailed("refused"))
    status.schedule_retry(1)
    states.append(status.state)

    status.clear_error()
    assert [*states, status.state] == ["polling", "waiting", "polling"]
    assert status.error is refusal


def test_a_status_that_remembers_no_error_copies_none() -> None:
    status = ReflectorStatus()
    status.replace_error(lambda error: ValueError("a copy"))
    assert repr(status) == "<ReflectorStatus new error=None>"

    status.record_error(KeyError("original"))
    status.replace_error(lambda error: ValueError(f"copy of {error}"))

    assert repr(status) == "<ReflectorStatus new error=ValueError(\"copy of 'original'\")>"


def test_excluded_objects_are_counted_again_from_the_beginning_of_each_state() -> None:
    status = started(LoopClock())
    seen = [status.excludes]
    status.excluded += 2
    seen.append(status.excludes)
    status.begin_state()
    seen.append(status.excludes)
    status.excluded += 1
    seen.append(status.excludes)

    assert (seen, status.excluded) == ([False, True, False, True], 3)
