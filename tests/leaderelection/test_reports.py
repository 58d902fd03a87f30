"""Reports of failed requests for Leases."""

from __future__ import annotations

import asyncio
import logging

import pytest

from aioinformer.errors import Conflict, Status, server_error
from aioinformer.leaderelection.reports import LeaseReporter
from aioinformer.leaderelection.suspend_clock import SuspendAwareClock
from tests.leaderelection.electors import run_simulated

log = logging.getLogger("aioinformer.election")


@pytest.mark.parametrize(
    ("pause", "fails_again", "seconds"),
    [
        (30, False, 30),
        (30, True, 30),
        (3600, False, None),  # the write was not due any more
        (3600, True, 0),
    ],
)
def test_a_recovery_is_logged_with_the_seconds_of_the_failure(
    pause: float, fails_again: bool, seconds: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        clock = SuspendAwareClock(asyncio.get_running_loop().time)
        reporter = LeaseReporter("lease web/a", log, clock)
        reporter.failed("the write failed", TimeoutError())
        await asyncio.sleep(pause)
        reporter.failed("the deletion failed", make_conflict())
        if fails_again:
            reporter.failed("the read failed", OSError())
        reporter.succeeded("the write failed", "the read failed")
        assert isinstance(reporter.error, Conflict)  # which is normal

    with caplog.at_level(logging.INFO, log.name):
        run_simulated(main)
    text = f"lease web/a: requests succeed again after {seconds} s"
    assert [each for each in caplog.messages if "again" in each] == [text] * (seconds is not None)


def make_conflict() -> Exception:
    return server_error(Status(409, "Conflict", "another was faster"), phase="write")
