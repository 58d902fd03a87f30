"""The benchmark of an event's CPU time with compression, at a small size."""

from __future__ import annotations

from typing import Literal

import pytest

from benchmarks.features.compression_cost import Pair, Plan, added_cost, measure_pairs
from benchmarks.load.workloads import make_pods

PODS = 120


@pytest.mark.benchmarks
@pytest.mark.parametrize("changes", ["random", "rollouts"])
def test_it_measures_both_informers_in_turns(changes: Literal["random", "rollouts"]) -> None:
    plan = Plan(pods=PODS, changes=changes, rate=50, rest=1.0, pairs=2)

    pairs = measure_pairs(list(make_pods(PODS)), plan)

    assert len(pairs) == plan.pairs
    for pair in pairs:
        assert pair.plain > 0
        assert pair.compressed > 0


def test_the_added_cost_compares_the_median_windows_and_shows_the_spread_of_the_pairs() -> None:
    rounds = [
        [
            Pair(plain=100, compressed=110),
            Pair(plain=101, compressed=107),
            Pair(plain=99, compressed=198),  # twice its neighbours
        ],
        [
            Pair(plain=200, compressed=220),
            Pair(plain=202, compressed=206),
            Pair(plain=404, compressed=212),
        ],
    ]

    assert added_cost(rounds) == (
        "CPU time of an event: 151 µs, with compression 161 µs, +6.6% "
        "(-47.5% to +100.0% in 6 pairs; rounds: +10.0%, +5.0%)"
    )
