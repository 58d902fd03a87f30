"""The dictionary of an informer, and the objects that are worth compressing."""

from __future__ import annotations

import json
import random

from aioinformer import KubeObject
from aioinformer._core.compression.compressed_object import CompressedObject
from aioinformer._core.compression.compressor import (
    GROWTH,
    MAX_DICTIONARY,
    MAX_SAMPLE_BYTES,
    MAX_SAMPLES,
    MAX_VALUES,
    MIN_BYTES,
    MIN_SAMPLES,
    WINDOW,
    Compressor,
)
from aioinformer._core.compression.zstd import find_zstd
from tests.core.builders import pod
from tests.core.compression.rested import compress, object_of, pod_bodies, trained_compressor


def other_kind(number: int) -> KubeObject:
    """Return an object that has nothing in common with the pods."""
    chance = random.Random(number)
    body = {
        "metadata": {
            "name": f"other-{number}",
            "uid": f"{chance.getrandbits(128):032x}",
            "resourceVersion": str(number + 1),
        },
        "data": {f"key{each}": f"{chance.getrandbits(200):050x}" for each in range(40)},
    }
    return object_of(json.dumps(body).encode())


def store(compressor: Compressor, obj: KubeObject) -> int:
    return compressor.store(obj, compressor.compress(obj, {}))


def test_a_dictionary_is_due_once_there_are_enough_objects() -> None:
    compressor = Compressor(find_zstd())
    assert not compressor.needs_training(MIN_SAMPLES - 1, 10**6)
    assert not compressor.needs_training(10**6, 1000)
    assert compressor.needs_training(MIN_SAMPLES, 10**6)


def test_a_dictionary_is_trained_again_when_the_cache_has_outgrown_it() -> None:
    compressor = Compressor(find_zstd())
    compressor.install(compressor.train(pod_bodies(), 10**6), 10**6)
    assert not compressor.needs_training(1000, GROWTH * 10**6 - 1)
    assert compressor.needs_training(1000, GROWTH * 10**6)
    largest = 256 * MAX_DICTIONARY
    compressor.install(compressor.train(pod_bodies(1500), largest), largest)
    assert compressor.dictionary_bytes > MAX_DICTIONARY / 2
    assert not compressor.needs_training(10**6, GROWTH * largest)


def test_objects_that_make_no_dictionary_are_tried_again_when_the_cache_has_grown() -> None:
    compressor = Compressor(find_zstd())
    assert compressor.train([b"{}"] * 5, 10**6) is None
    compressor.install(None, 10**6)
    assert compressor.dictionary_bytes == 0
    assert not compressor.needs_training(1000, 10**6)
    assert compressor.needs_training(1000, GROWTH * 10**6)


def test_a_dictionary_is_trained_again_when_frames_become_larger() -> None:
    bodies = pod_bodies(2 * WINDOW)
    compressor = trained_compressor(bodies)
    for raw in bodies:
        store(compressor, object_of(raw))
    size = sum(map(len, bodies))
    assert not compressor.needs_training(1000, size), "the dictionary fits"
    strangers = [other_kind(number) for number in range(WINDOW)]
    for obj in strangers:
        compress(obj, compressor)
    assert compressor.needs_training(1000, size)
    compressor.install(compressor.train([obj.raw for obj in strangers], size), size)
    assert compressor.trainings == 2
    assert not compressor.needs_training(1000, size)


def test_in_a_large_cache_few_objects_don_t_make_a_dictionary_stale() -> None:
    bodies = pod_bodies(2 * WINDOW)
    compressor, size = Compressor(find_zstd()), sum(map(len, bodies))
    compressor.install(compressor.train(bodies, size), size, 100 * WINDOW)
    for raw in bodies:
        store(compressor, object_of(raw))
    for number in range(WINDOW):
        compress(other_kind(number), compressor)
    assert not compressor.needs_training(100 * WINDOW, size)


def test_objects_of_an_older_dictionary_are_due_again() -> None:
    bodies = pod_bodies()
    compressor = trained_compressor(bodies[:100])
    obj = compress(object_of(bodies[0]), compressor)
    assert not compressor.is_due(obj)
    compressor.install(compressor.train(bodies[100:], 10**6), 10**6)
    assert compressor.is_due(obj)
    store(compressor, obj)
    assert not compressor.is_due(obj)
    assert obj.raw == bodies[0]


def test_small_objects_stay_as_they_are() -> None:
    compressor = Compressor(find_zstd())
    obj = pod("web-0")
    assert len(obj.raw) < MIN_BYTES
    assert not compressor.is_due(obj)


def test_an_object_that_doesn_t_become_smaller_is_tried_once() -> None:
    compressor = Compressor(find_zstd())
    obj = object_of(pod_bodies()[0])
    assert compressor.is_due(obj)
    compressed = compressor.compress(obj, {})
    assert compressed is not None
    compressed = type(compressed)(compressed.data + bytes(len(obj.raw)), compressed.group)
    assert compressor.store(obj, compressed) == 0
    assert not isinstance(obj, CompressedObject)
    assert not compressor.is_due(obj)


def test_a_sample_is_of_all_parts_of_the_cache_and_of_bounded_size() -> None:
    compressor = Compressor(find_zstd())
    objects = [object_of(pod_bodies()[0])] * 50_000
    assert MAX_SAMPLES <= len(compressor.choose_sample(objects, 10**8)) < 1.1 * MAX_SAMPLES
    numbered = [object_of(raw) for raw in pod_bodies()]
    assert compressor.choose_sample(numbered, 10**6) != numbered, "neighbours are alike"
    assert set(compressor.choose_sample(numbered, 10**6)) == set(numbered)
    large = compressor.choose_sample(objects, 50_000 * 10**6)
    assert len(large) <= 1.1 * MAX_SAMPLE_BYTES / 10**6
    assert len(compressor.choose_sample(objects[:1], 10**9)) == 1


def test_index_values_are_kept_for_a_bounded_number_of_groups() -> None:
    compressor = trained_compressor(pod_bodies())
    raw = pod_bodies()[0]
    first = compressor.compress(object_of(raw), {"node": ("node-0",)})
    again = compressor.compress(object_of(raw), {"node": ("node-0",)})
    assert first is not None
    assert again is not None
    assert first.group is again.group
    small = object_of(raw)
    for number in range(MAX_VALUES + 10):
        found = compressor.compress(small, {"node": (f"node-{number}",)})
        assert found is not None
        assert found.known_values == ({"node": (f"node-{number}",)} if number < MAX_VALUES else {})
