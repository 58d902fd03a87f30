"""The benchmark of compressed caches, at a small size."""

from __future__ import annotations

import pytest

from benchmarks.contestants.clientgo import version
from benchmarks.contestants.compiled import PeerMissing
from benchmarks.features.compression import (
    Measurement,
    Plan,
    added_cost,
    compared_with_client_go,
    measure_client_go,
    measure_pair,
)
from benchmarks.load.workloads import make_pods

PODS = 120


@pytest.mark.benchmarks
@pytest.mark.parametrize("compressed_first", [False, True])
def test_it_measures_both_informers(compressed_first: bool) -> None:
    plan = Plan(pods=PODS, rate=200, rest=1.0, windows=2)

    plain, compressed = measure_pair(list(make_pods(PODS)), plan, compressed_first=compressed_first)

    for found in (plain, compressed):
        assert len(found.event_cpu) == plan.windows
        assert all(cpu > 0 for cpu in found.event_cpu)
        assert found.longest_turn > 0
        assert found.read > 0
    assert compressed.stored < compressed.json / 4
    assert plain.stored == plain.json
    assert compressed.compress > 0


@pytest.mark.benchmarks
def test_it_measures_client_go_on_the_same_pods() -> None:
    try:
        found = measure_client_go(list(make_pods(2000)))
    except PeerMissing as missing:
        pytest.skip(str(missing))
    assert found > 1000


def test_the_added_cost_is_the_mean_of_the_rounds_with_the_spread_of_their_windows() -> None:
    plain = [measured(100, 100, 100), measured(200)]
    compressed = [measured(110, 107, 150), measured(216)]

    assert added_cost(plain, compressed) == (
        "CPU time of an event with compression: +9.0% (+7.0% to +50.0% in 4 pairs)"
    )


def test_client_go_is_compared_with_the_compressed_cache() -> None:
    assert compared_with_client_go(15_000, [measured(1), measured(1), measured(1)]) == (
        f"client-go {version()} takes 15,000 bytes an object, 15.0 times as much"
    )


def measured(*event_cpu: float) -> Measurement:
    return Measurement(
        memory=1000,
        estimate=1,
        json=1,
        stored=1,
        event_cpu=[*event_cpu],
        longest_turn=1,
        read=1,
    )
