"""The measurements of large caches and many informers, at a small size."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.measures.scale import (
    TINY_SCALE,
    scale,
    scale_rows,
)


@pytest.mark.benchmarks
def test_all_events_arrive_and_the_section_shows_each_measurement() -> None:
    reported: list[str] = []
    found = scale(
        replace(TINY_SCALE, caches=((300, True), (100, False)), informers=3, seconds=0.3),
        reported.append,
    )
    assert [each.objects for each in found.caches] == [300, 100]
    small, large = found.caches
    assert 500 < small.json < 700 < 3_000 < large.json
    assert all(each.longest.cpu > 0 and each.event_cpu > 0 for each in found.caches)
    assert (found.many.informers, found.many.listeners, found.many.objects) == (3, 6, 300)
    assert found.many.tasks > 0
    assert [0 < each.p50 <= each.p99 <= each.worst for each in found.quiet.values()] == [True] * 3
    assert found.quiet_resources == TINY_SCALE.quiet
    assert "| 300 |" in "\n".join(scale_rows(found))
    assert len(reported) == 6
