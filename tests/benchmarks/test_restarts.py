"""The benchmark of restarts, at a small size."""

from __future__ import annotations

from benchmarks.restarts import Arguments, measure


async def test_a_restart_with_a_file_reads_no_list() -> None:
    arguments = Arguments(objects=400, rate=20, seconds=1.5)
    cold, first, warm = (await measure(arguments)).values()
    assert cold.received > 400 * 500
    assert first.received > 400 * 500
    assert warm.received < cold.received / 3
    assert 0 < warm.readable <= warm.synced
    assert min(cold.events, first.events, warm.events) > 0
