"""The benchmark of compressed caches, at a small size."""

from __future__ import annotations

import pytest

from benchmarks.contestants.clientgo import version
from benchmarks.contestants.compiled import PeerMissing
from benchmarks.features.compression import (
    Measurement,
    Plan,
    compared_with_client_go,
    measure_client_go,
    measure_informer,
)
from benchmarks.load.workloads import make_pods

PODS = 120
MEASURED = Measurement(memory=1000, estimate=1, json=1, stored=1, longest_turn=1, read=1)


@pytest.mark.benchmarks
def test_it_measures_an_informer_with_and_without_compression() -> None:
    plan, pods = Plan(pods=PODS, rest=1.0), list(make_pods(PODS))

    plain, compressed = [measure_informer(pods, plan, compressed=each) for each in (False, True)]

    for found in (plain, compressed):
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


def test_client_go_is_compared_with_the_compressed_cache() -> None:
    assert compared_with_client_go(15_000, [MEASURED]) == (
        f"client-go {version()} takes 15,000 bytes an object, 15.0 times as much"
    )
