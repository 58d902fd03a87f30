"""The benchmark of restarts, at a small size."""

from __future__ import annotations

import pytest

from benchmarks.features.restarts import Arguments, measure


@pytest.mark.benchmarks
@pytest.mark.timeout(150)
async def test_a_restart_with_a_file_reads_no_list() -> None:
    arguments = Arguments(objects=400, rate=5, seconds=0.3, settle=0.2, peer=False)
    cold, first, warm = (await measure(arguments)).values()
    assert cold.received > 400 * 500
    assert first.received > 400 * 500
    assert warm.received < cold.received / 2, "some changes, and no list"
    assert 0 < warm.readable <= warm.synced
