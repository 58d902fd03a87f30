"""Schedules of faults: drawn from a seed, within their time, each one carried out on a source."""

from __future__ import annotations

from random import Random

import pytest

from aioinformer.testing import Cluster, ClusterSource
from aioinformer.testing.simulation import FAULT_KINDS, FaultKind, ScheduledFault
from aioinformer.testing.simulation.schedule import draw_schedule


def test_the_same_seed_draws_the_same_schedule() -> None:
    def draw(seed: int) -> tuple[ScheduledFault, ...]:
        return draw_schedule(Random(seed), kinds=FAULT_KINDS, count=10, duration=60.0)

    assert draw(7) == draw(7)
    assert draw(7) != draw(8)


def test_every_fault_begins_and_ends_within_the_duration() -> None:
    for seed in range(100):
        schedule = draw_schedule(Random(seed), kinds=FAULT_KINDS, count=10, duration=60.0)
        assert len(schedule) >= 10
        assert list(schedule) == sorted(schedule, key=lambda each: each.at)
        for fault in schedule:
            assert 0 <= fault.at <= fault.at + fault.lasting <= 60.0 + 1e-9


@pytest.mark.parametrize("kind", FAULT_KINDS)
def test_each_kind_of_fault_can_be_applied_to_a_source(kind: FaultKind) -> None:
    for seed in range(30):
        source = ClusterSource(Cluster())
        for scheduled in draw_schedule(Random(seed), kinds=[kind], count=3, duration=60.0):
            assert scheduled.kind == kind
            fault = scheduled.begin(source)
            if fault is not None:
                assert scheduled.lasting > 0
                fault.end()
        assert source.faults.on == ()


def test_a_fault_of_new_requests_often_comes_with_a_broken_watch() -> None:
    schedule = draw_schedule(Random(1), kinds=["status", "reset"], count=50, duration=60.0)
    accompanied = [each for each in schedule if each.lasting == 0.001]
    assert len(schedule) == 50 + len(accompanied)
    assert len(accompanied) > 5
    assert all(each.options == {"verb": "watch"} for each in accompanied)


def test_the_text_of_a_fault_has_its_time_and_its_options() -> None:
    fault = ScheduledFault(1.5, "status", 10.0, {"code": 503, "verb": "create"})
    assert str(fault) == "at 1.500000 s for 10 s: status code=503 verb=create"
    assert str(ScheduledFault(2.0, "compact")) == "at 2.000000 s: compact"
