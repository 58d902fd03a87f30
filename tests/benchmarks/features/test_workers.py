"""The benchmark of workers, at a small size: real processes, and leaders that are killed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.features.workers import Arguments, measure_service


@pytest.mark.skipif(sys.platform == "win32", reason="a shared file needs flock")
@pytest.mark.parametrize(
    "takeovers",
    [
        pytest.param(2, marks=pytest.mark.benchmarks),
        pytest.param(20, marks=pytest.mark.simulation),
    ],
)
@pytest.mark.timeout(300)
async def test_workers_share_one_watch_and_take_it_over_without_a_list(
    tmp_path: Path, takeovers: int
) -> None:
    arguments = Arguments(workers=3, objects=50, rate=100, seconds=0.5, takeovers=takeovers)
    figures = await measure_service(arguments, tmp_path / "cache.db")
    assert figures.watches == 1
    assert figures.lists == 0
    assert figures.equal
    assert figures.events > 3 * 100 * 0.5 / 3
    assert len(figures.takeovers) == takeovers
    assert max(figures.takeovers) < 2
