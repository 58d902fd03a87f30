"""The benchmark of compressed caches, at a small size."""

from __future__ import annotations

import pytest

from benchmarks.features.compression import Measurement, PodServer, added_cost, measure
from benchmarks.load.workloads import make_pods

PODS = 120


@pytest.mark.benchmarks
@pytest.mark.parametrize("compressed", [False, True])
async def test_it_measures_one_informer(compressed: bool) -> None:
    server = PodServer(list(make_pods(PODS)), 200)

    found = await measure(server.url, PODS, 0.5, compressed=compressed)

    assert found.event_cpu > 0
    assert found.longest_turn > 0
    assert found.read > 0
    assert (found.stored < found.json / 4) is compressed
    assert (found.compress > 0) is compressed


def test_the_added_cost_is_that_of_neighbouring_runs_with_their_spread() -> None:
    plain, compressed = [measured(100), measured(200)], [measured(110), measured(216)]

    assert added_cost(plain, compressed) == (
        "CPU time of an event with compression: +9.0% (+8.0% to +10.0% in 2 alternating rounds)"
    )


def measured(event_cpu: float) -> Measurement:
    return Measurement(
        memory=1, estimate=1, json=1, stored=1, event_cpu=event_cpu, longest_turn=1, read=1
    )
