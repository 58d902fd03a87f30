"""The measurement of the embedded server, at a small size."""

from __future__ import annotations

import os

import pytest

from aioinformer.testing import ApiServer, Cluster
from benchmarks.features.servers import GADGETS, Arguments, measure_embedded, measure_writes

SMALL = Arguments(objects=30, writes=40, watchers=3)


async def test_every_watcher_receives_every_write_over_http() -> None:
    cluster = Cluster()
    cluster.add_resource(GADGETS)
    async with ApiServer(cluster) as server:
        figures = await measure_writes(server.url, SMALL, process=os.getpid())
    assert figures.events == 40 * 3
    assert figures.writes_per_second > 0


@pytest.mark.benchmarks
async def test_every_watcher_receives_every_write_of_the_process() -> None:
    figures = await measure_embedded(SMALL)
    assert figures["events in process"] == 40 * 3
    assert figures["load, CPU s"] > 0
