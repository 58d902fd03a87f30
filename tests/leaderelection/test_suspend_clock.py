"""A clock that goes on while the machine sleeps."""

from __future__ import annotations

import time
from itertools import chain, repeat

import pytest

from aioinformer.leaderelection.suspend_clock import SuspendAwareClock, suspended_seconds


class Machine:
    def __init__(self) -> None:
        self.awake = 100.0
        self.asleep = 5000.0

    @property
    def clock(self) -> SuspendAwareClock:
        return SuspendAwareClock(lambda: self.awake, lambda: self.asleep)


def test_the_clock_follows_the_clock_of_the_loop_while_the_machine_is_awake() -> None:
    machine = Machine()
    clock = machine.clock
    assert clock.now == 100.0
    machine.awake += 7
    assert clock.now == 107.0


def test_time_of_suspension_is_added() -> None:
    machine = Machine()
    clock = machine.clock
    machine.asleep += 3600
    assert clock.now == 3700.0
    machine.awake += 1
    machine.asleep += 60
    assert clock.now == 3761.0
    assert repr(clock) == "<SuspendAwareClock 3761.000 s, suspended 3660 s>"


def test_time_between_two_reads_is_no_suspension_and_time_never_goes_back() -> None:
    readings = chain([10.0, 9.9, 9.95], [9.2, 10.05, 70.0, 69.5, 70.02], repeat(70.0))
    clock = SuspendAwareClock(lambda: 0.0, lambda: next(readings))
    assert [clock.now for _ in range(5)] == [0.0, 0.0, 60.0, 60.0, 60.0]


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="this system has no such clock")
def test_this_machine_reports_a_constant_suspended_time() -> None:
    before = suspended_seconds()
    assert abs(suspended_seconds() - before) < 1
