"""Caches are weighed and asked the same, at a small size."""

from __future__ import annotations

import pytest

from benchmarks.caches import CACHES, CacheName, measure
from benchmarks.pods import Dataset
from benchmarks.processes import serving

PODS = 300


@pytest.fixture(scope="module", name="dataset")
def a_list(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return Dataset.write(tmp_path_factory.mktemp("dataset"), PODS, 0)


@pytest.mark.parametrize("name", [CACHES[0], CACHES[-1]])
async def test_each_cache_is_filled_and_asked(name: CacheName, dataset: Dataset) -> None:
    """Who doesn't find what was asked for is an AssertionError of the benchmark's own."""
    with serving(dataset.folder) as server:
        found = await measure(name, server, PODS)
    assert found.pods == PODS
    assert 0 < found.get < found.scan
    assert 0 < found.by_index < found.scan
    assert (found.by_label > 0) is (name == "ours")
