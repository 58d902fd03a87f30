"""The benchmark of workers, at a small size."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.features.workers import measure
from benchmarks.load.pods import Dataset


@pytest.mark.benchmarks
@pytest.mark.timeout(150)
async def test_each_worker_receives_all_changes(tmp_path: Path) -> None:
    Dataset.write(tmp_path, 100, 0)
    options = ["--pods=100", "--events=1000", "--rate=100"]
    found = await measure(2, tmp_path, options, 1.0)
    assert len(found) == 2
    for each in found:
        assert each.memory > 10e6
        assert each.load > 0
        assert each.sync_cpu > 0
        assert 20 < each.events <= 1000
