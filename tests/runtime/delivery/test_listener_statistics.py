"""The numbers of one listener."""

from __future__ import annotations

import asyncio
import time

import pytest

from aioinformer._runtime.delivery.listener import CallTimes
from aioinformer._runtime.tasks.event_loop import loop_time
from aioinformer.testing.simulation.loop import run


def test_before_the_first_call_there_are_no_times() -> None:
    timing = CallTimes()

    assert (timing.last, timing.mean, timing.max) == (0.0, 0.0, 0.0)


def test_calls_are_recorded_one_by_one_or_together() -> None:
    timing = CallTimes()
    timing.record(3.0)
    timing.record_calls(2, 6.0, 1.0, 5.0)

    assert (timing.last, timing.max) == (1.0, 5.0)
    assert timing.mean == pytest.approx(3.0)
    assert repr(timing) == "<CallTimes calls=3 mean=3 max=5>"


def test_the_time_is_that_of_the_loop_and_the_monotonic_clock_without_one() -> None:
    async def main() -> float:
        await asyncio.sleep(5)
        return loop_time()

    assert run(main(), seed=0) == pytest.approx(5.0)
    assert loop_time() == pytest.approx(time.monotonic(), abs=1.0)
