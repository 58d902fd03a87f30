"""The benchmark of latency, at a small size: events arrive at the given rate with their time."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from benchmarks.load.pods import Dataset
from benchmarks.load.processes import PACED, serving
from benchmarks.measures.latency import Latency, measure, measure_floor

PODS, EVENTS, RATE = 20, 150, 1_000


@pytest.fixture(scope="module", name="dataset")
def list_dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return Dataset.write(tmp_path_factory.mktemp("dataset"), PODS, 0)


@pytest.fixture(name="server")
def start_server(dataset: Dataset) -> Iterator[str]:
    """Return the URL of a server. Its start takes long on a busy machine: no loop waits for it."""
    options = f"--pods={PODS}", f"--events={EVENTS}", f"--rate={RATE}"
    with serving(dataset.folder, *options, program=PACED) as server:
        yield server


@pytest.mark.parametrize("floor", [False, True])
async def test_events_come_at_their_pace_and_their_age_is_measured(
    server: str, *, floor: bool
) -> None:
    start = time.monotonic()
    found = await (measure_floor(server, EVENTS) if floor else measure(server, EVENTS, PODS))
    assert found.rate <= RATE * 1.1
    assert 0 < found.p50 <= found.p99 <= found.worst < time.monotonic() - start


def test_percentiles_are_of_all_events() -> None:
    taken = [number * 1_000_000 for number in range(1, 101)]

    found = Latency.of(taken[::-1], seconds=2)

    assert (found.rate, found.p50, found.p99, found.worst) == (50, 0.051, 0.1, 0.1)
