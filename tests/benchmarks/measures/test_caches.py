"""The benchmark of caches, at a small size."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.load.pods import Dataset
from benchmarks.load.processes import serving
from benchmarks.measures.caches import CACHES, CacheName, measure

PODS = 300


@pytest.fixture(scope="module", name="dataset")
def list_dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return Dataset.write(tmp_path_factory.mktemp("dataset"), PODS, 0)


@pytest.fixture(name="server")
def start_server(dataset: Dataset) -> Iterator[str]:
    """Return the URL of a server. Its start takes long on a busy machine: no loop waits for it."""
    with serving(dataset.folder) as server:
        yield server


@pytest.mark.parametrize("name", [CACHES[0], CACHES[-1]])
async def test_each_cache_is_filled_and_queried(name: CacheName, server: str) -> None:
    """The benchmark itself raises an AssertionError if a query doesn't find its objects."""
    found = await measure(name, server, PODS)
    assert found.pods == PODS
    assert 0 < found.get < found.scan
    assert 0 < found.by_index < found.scan
    assert (found.by_label > 0) is (name == "ours")
