"""The benchmark of the work queue, at a small size and without Go."""

from __future__ import annotations

import pytest

from benchmarks.features.queues import Comparison, Times, compare, measure, measure_plain, table


def times(seconds: float) -> Times:
    return Times(
        add=seconds, work=seconds, again=seconds, merged=seconds, delayed=seconds, workers=seconds
    )


async def test_every_measurement_of_our_queue_takes_some_time() -> None:
    found = await measure(40)
    assert min(found.add, found.work, found.again, found.merged) > 0
    assert min(found.delayed, found.workers) > 0


async def test_asyncios_queue_is_measured_without_merges_and_delays() -> None:
    found = await measure_plain(40)
    assert min(found.add, found.work, found.again, found.workers) > 0
    assert found.merged == found.delayed == 0


@pytest.mark.benchmarks
def test_the_comparison_without_go_has_our_queue_and_asyncios_queue() -> None:
    found = compare(40, 1, peers=False)
    assert set(found.times) == {"ours", "asyncio.Queue"}
    assert "no client-go: not asked for" in table(found)


def test_the_table_shows_our_throughput_as_a_multiple_of_client_gos() -> None:
    shown = table(Comparison(1000, {"ours": times(0.002), "client-go": times(0.0005)}))
    rows = [line for line in shown.splitlines() if line.startswith("add, distinct")]
    assert rows[0].split() == ["add,", "distinct", "keys", "2,000", "500", "(0.25", "x)"]
