"""The numbers of which the estimate of an informer's memory consists."""

from __future__ import annotations

from sys import getsizeof

import pytest

from aioinformer._core.cache.memory import (
    EVENT_BYTES,
    NAME_BYTES,
    OBJECT_BYTES,
    SAMPLED,
    UNPACKED_BYTES,
    CacheMemory,
    estimate_index,
    estimate_overhead,
)
from tests.core.builders import key


def estimate(
    *, objects: int = 3, json_bytes: int = 1000, saved_bytes: int = 0, unpacked: int = 0
) -> CacheMemory:
    return CacheMemory.estimate(
        objects=objects,
        json_bytes=json_bytes,
        saved_bytes=saved_bytes,
        overhead_bytes=700,
        unpacked=unpacked,
        opened=[10, 20],
        pending=2,
        queued_bytes=50,
    )


def test_each_number_has_its_part_of_the_estimate() -> None:
    assert estimate(unpacked=2, saved_bytes=400) == CacheMemory(
        objects=3,
        json_bytes=1000,
        saved_bytes=400,
        overhead_bytes=700 + 2 * UNPACKED_BYTES,
        open_bytes=6 * 30,
        pending_bytes=50 + 2 * (333 + OBJECT_BYTES + EVENT_BYTES),
    )
    assert estimate(saved_bytes=400).total == (
        600 + 700 + 180 + 50 + 2 * (333 + OBJECT_BYTES + EVENT_BYTES)
    )


def test_saved_and_unpacked_bytes_are_limited_by_the_contents_of_the_cache() -> None:
    found = estimate(saved_bytes=2000, unpacked=9)

    assert found.saved_bytes == 1000
    assert found.overhead_bytes == 700 + 3 * UNPACKED_BYTES


def test_pending_events_of_an_empty_cache_count_without_json() -> None:
    found = estimate(objects=0, json_bytes=0)

    assert found.pending_bytes == 50 + 2 * (OBJECT_BYTES + EVENT_BYTES)
    assert type(found.pending_bytes) is int


@pytest.mark.parametrize("lengths", [(), (3,), (3, 4), (1, 2, 5)])
def test_the_overhead_has_the_mean_length_of_the_names(lengths: tuple[int, ...]) -> None:
    objects = {key(letter * length): 0 for letter, length in zip("abc", lengths, strict=False)}
    mean = sum(lengths) // len(lengths) if lengths else 0

    found = estimate_overhead(objects)
    assert found == getsizeof(objects) + len(lengths) * (OBJECT_BYTES + NAME_BYTES + mean)
    assert type(found) is int


def test_the_mean_length_of_the_names_is_that_of_the_first_ones() -> None:
    names = [f"{number:04}" for number in range(SAMPLED)] + ["x" * 200] * 1
    objects = {key(name): 0 for name in names}

    assert estimate_overhead(objects) == getsizeof(objects) + (SAMPLED + 1) * (
        OBJECT_BYTES + NAME_BYTES + 4
    )


def test_an_index_has_the_mean_size_of_its_first_buckets() -> None:
    small: dict[str, list[int]] = {f"{number:04}": [] for number in range(SAMPLED)}
    buckets = small | {"the last": [0] * 1000}
    each = getsizeof([]) + getsizeof("0000")

    assert estimate_index(buckets) == getsizeof(buckets) + (SAMPLED + 1) * each
    assert estimate_index({}) == getsizeof({})
    two: dict[str, list[int]] = {"a": [], "b": [0] * 10}
    sizes = [getsizeof(bucket) + getsizeof(value) for value, bucket in two.items()]
    assert estimate_index(two) == getsizeof(two) + 2 * (sum(sizes) // 2)
