"""The measurement of replicas that share shards, with small numbers."""

from __future__ import annotations

import pytest

from benchmarks.features.shards import Arguments, GroupFigures, measure, table


@pytest.mark.benchmarks
@pytest.mark.timeout(150)
async def test_the_benchmark_measures_the_memory_and_the_takeover_of_replicas() -> None:
    given = Arguments(replicas=(1, 2), objects=300, events=200, rate=1000, lease_duration=3.0)
    one, two = await measure(given)
    assert (one.replicas, one.takeover) == (1, None)
    assert one.event_cpu > 0
    assert two.total_memory == pytest.approx(2 * two.memory)
    assert two.owned is not None
    assert two.takeover is not None
    assert two.takeover > 1, "not before the Lease of the dead replica has expired"


@pytest.mark.benchmarks
@pytest.mark.timeout(150)
@pytest.mark.parametrize("gate", [True, False])
async def test_replicas_are_measured_on_the_real_server(*, gate: bool) -> None:
    given = Arguments(
        replicas=(2,), objects=300, events=200, rate=200, lease_duration=3.0, gate=gate, real=True
    )
    (two,) = await measure(given)
    assert two.event_cpu > 0
    assert two.takeover is not None
    assert two.takeover > 1
    assert two.owned is not None
    assert two.takeover > two.owned - 1, "objects are reconciled after the shards have moved"


def test_the_table_shows_the_rounded_figures() -> None:
    figures = [GroupFigures(2, 1.24, 40.4, 80.8, 50.4, 100.8, 15.04, 17.26)]
    assert table(figures).splitlines()[-1] == "| 2 | 1.2 | 40, 81 | 50, 101 | 15.0, 17.3 |"
