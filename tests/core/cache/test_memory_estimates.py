"""The numbers of which the estimate of an informer's memory consists."""

from __future__ import annotations

from collections.abc import Iterable
from sys import getsizeof

import pytest

from aioinformer import KubeObject, ObjectKey
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
from aioinformer._core.objects.kube_object import create_object, create_packed_object
from tests.core.builders import PODS, key

UID = "0b1d2c3e-5f60-4a7b-8c9d-112233445566"


def estimate(*, objects: int = 3, json_bytes: int = 1000) -> CacheMemory:
    return CacheMemory.estimate(
        objects=objects,
        json_bytes=json_bytes,
        overhead_bytes=700,
        opened=[10, 20],
        pending=2,
        queued_bytes=50,
    )


def cached(names: Iterable[str], *, packed: bool = True) -> dict[ObjectKey, KubeObject]:
    """Return objects as a list (not packed: a watch) brings them."""
    create = create_packed_object if packed else create_object
    raw = b'{"metadata":{"uid":"%b","resourceVersion":"1"}}' % UID.encode()
    return {key(name): create(key(name), UID, "1", raw, PODS) for name in names}


def test_each_number_has_its_part_of_the_estimate() -> None:
    assert estimate() == CacheMemory(
        objects=3,
        json_bytes=1000,
        overhead_bytes=700,
        open_bytes=6 * 30,
        pending_bytes=50 + 2 * (333 + OBJECT_BYTES + EVENT_BYTES),
    )
    assert estimate().total == (1000 + 700 + 180 + 50 + 2 * (333 + OBJECT_BYTES + EVENT_BYTES))


def test_pending_events_of_an_empty_cache_count_without_json() -> None:
    found = estimate(objects=0, json_bytes=0)

    assert found.pending_bytes == 50 + 2 * (OBJECT_BYTES + EVENT_BYTES)
    assert type(found.pending_bytes) is int


@pytest.mark.parametrize("lengths", [(), (3,), (3, 4), (1, 2, 5)])
def test_the_overhead_has_the_mean_length_of_the_names(lengths: tuple[int, ...]) -> None:
    objects = cached(letter * length for letter, length in zip("abc", lengths, strict=False))
    mean = sum(lengths) // len(lengths) if lengths else 0

    found = estimate_overhead(objects)
    assert found == getsizeof(objects) + len(lengths) * (OBJECT_BYTES + NAME_BYTES + mean)
    assert type(found) is int


def test_the_mean_length_of_the_names_is_that_of_the_first_and_last_ones() -> None:
    names = [f"{number:04}" for number in range(SAMPLED)]
    names[SAMPLED // 2 : SAMPLED // 2] = ["x" * 200]
    objects = cached(names)

    assert estimate_overhead(objects) == getsizeof(objects) + (SAMPLED + 1) * (
        OBJECT_BYTES + NAME_BYTES + 4
    )


def test_uid_and_version_of_watched_objects_count() -> None:
    listed, watched = cached("abcd"), cached("ab") | cached("cd", packed=False)

    assert estimate_overhead(watched) - estimate_overhead(listed) == 4 * UNPACKED_BYTES // 2


def test_an_index_has_the_mean_size_of_its_first_buckets() -> None:
    small: dict[str, list[int]] = {f"{number:04}": [] for number in range(SAMPLED)}
    buckets = small | {"the last": [0] * 1000}
    each = getsizeof([]) + getsizeof("0000")

    assert estimate_index(buckets) == getsizeof(buckets) + (SAMPLED + 1) * each
    assert estimate_index({}) == getsizeof({})
    two: dict[str, list[int]] = {"a": [], "b": [0] * 10}
    sizes = [getsizeof(bucket) + getsizeof(value) for value, bucket in two.items()]
    assert estimate_index(two) == getsizeof(two) + 2 * (sum(sizes) // 2)
