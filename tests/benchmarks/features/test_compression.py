"""The benchmark of compressed caches, at a small size."""

from __future__ import annotations

import pytest

from benchmarks.features.compression import PodServer, measure
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
