"""The measurements of large caches and many informers, at a small size."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.measures.callbacks import Stretch
from benchmarks.measures.scale import (
    TINY_SCALE,
    LargeCache,
    ManyInformers,
    Scale,
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


def test_the_section_compares_caches_of_objects_of_one_size() -> None:
    caches = [large_cache(1_000, 600), large_cache(500, 3_300), large_cache(10_000, 600)]
    many = ManyInformers(
        informers=5, listeners=20, objects=50, sync_wall=1, sync_cpu=1, longest=Stretch(),
        longest_live=Stretch(), memory=1, tasks=1, event_cpu=1,
    )  # fmt: skip
    found = Scale(
        day="2026-11-23", machine="2 cores", caches=caches, many=many, quiet_resources=50, quiet={}
    )
    text = "\n".join(scale_rows(found))

    assert "| 1,000 to 10,000 of 600 B | 1.00 x | 10.0 x; 1.0 x | 1.00 x; 1.00 x | 1.00 x |" in text
    assert text.count(" to ") == 1 + text.count("socket to the handler")
    assert "50 quiet resources" in text
    assert "Measured on 2026-11-23: 2 cores." in text


def large_cache(objects: int, json: float) -> LargeCache:
    return LargeCache(
        objects=objects, json=json, sync_wall=objects, sync_cpu=objects,
        longest=Stretch(cpu=objects), longest_live=Stretch(cpu=0.001),
        settled=json, peak=json, event_cpu=0.001,
    )  # fmt: skip
