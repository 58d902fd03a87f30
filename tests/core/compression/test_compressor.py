"""The dictionary of an informer, and the objects that are worth compressing."""

from __future__ import annotations

import json
import random
from itertools import pairwise

import pytest

from aioinformer import KubeObject
from aioinformer._core.compression.compressed_object import (
    CompressedBytes,
    CompressedObject,
    saved_bytes,
)
from aioinformer._core.compression.compressor import (
    GROWTH,
    MAX_DICTIONARY,
    MAX_SAMPLE_BYTES,
    MAX_SAMPLES,
    MAX_VALUES,
    MIN_BYTES,
    MIN_DICTIONARY,
    MIN_SAMPLES,
    MIN_SAVED,
    MIXING_STEPS,
    WINDOW,
    Compressor,
)
from aioinformer._core.compression.references import MAX_REFERENCE, MIN_MEMBERS, find_owner
from aioinformer._core.compression.zstd import find_zstd
from tests.core.builders import pod
from tests.core.compression.rested import (
    change,
    compress,
    compress_batch,
    object_of,
    pod_bodies,
    trained_compressor,
)


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
    without = compressor.compress(object_of(raw), {})
    assert without is not None
    assert (first.known_values, without.known_values) == ({"node": ("node-0",)}, {})
    small = object_of(raw)
    for number in range(MAX_VALUES + 10):
        found = compressor.compress(small, {"node": (f"node-{number}",)})
        assert found is not None
        assert found.known_values == ({"node": (f"node-{number}",)} if number < MAX_VALUES else {})


def sized(json_bytes: int) -> KubeObject:
    """Return an object whose JSON has this many bytes."""
    head = b'{"metadata":{"name":"web-0","uid":"u","resourceVersion":"1"},"data":"'
    return object_of(head + b"x" * (json_bytes - len(head) - 2) + b'"}')


def store_sized(compressor: Compressor, json_bytes: int, stored_bytes: int) -> KubeObject:
    """Store a frame of any size as the result of a compression. Nothing decompresses it."""
    obj = sized(json_bytes)
    made = compressor.compress(obj, {})
    assert made is not None
    compressor.store(obj, CompressedBytes(bytes(stored_bytes), made.group))
    return obj


def test_a_dictionary_needs_as_many_bytes_as_its_least_samples_have() -> None:
    compressor = Compressor(find_zstd())
    assert not compressor.needs_training(MIN_SAMPLES, MIN_SAMPLES * MIN_BYTES - 1)
    assert compressor.needs_training(MIN_SAMPLES, MIN_SAMPLES * MIN_BYTES)


def test_the_smallest_object_that_is_compressed_has_the_least_bytes() -> None:
    compressor = Compressor(find_zstd())
    assert not compressor.is_due(sized(MIN_BYTES - 1))
    assert compressor.is_due(sized(MIN_BYTES))


def test_a_compressed_object_saves_at_least_the_least_bytes() -> None:
    compressor = Compressor(find_zstd())
    enough = store_sized(compressor, 1000, 1000 - MIN_SAVED)
    too_few = store_sized(compressor, 1000, 1000 - MIN_SAVED + 1)
    assert isinstance(enough, CompressedObject)
    assert not isinstance(too_few, CompressedObject)
    assert not compressor.is_due(too_few)


def test_an_object_that_could_not_be_compressed_stays_as_it_is() -> None:
    compressor, obj = Compressor(find_zstd()), sized(1000)
    assert compressor.store(obj, None) == 0
    assert not isinstance(obj, CompressedObject)
    assert not compressor.is_due(obj)


def test_an_object_that_is_compressed_again_saves_the_difference() -> None:
    compressor, raw = Compressor(find_zstd()), pod_bodies()[0]
    obj = object_of(raw)
    first = store(compressor, obj)
    assert first == saved_bytes(obj) > 0
    compressor.install(compressor.train(pod_bodies(), 10**6), 10**6)
    assert store(compressor, obj) == saved_bytes(obj) - first > 0
    stored = obj.stored
    assert type(stored) is CompressedBytes
    assert compressor.store(obj, CompressedBytes(bytes(len(raw)), stored.group)) == 0
    assert obj.raw == raw, "the earlier frame stays"


def test_a_dictionary_stops_fitting_at_a_quarter_more_than_its_first_share() -> None:
    compressor = Compressor(find_zstd())
    compressor.install(None, 10**6)
    for stored_bytes in (400, 500):
        for _ in range(WINDOW):
            store_sized(compressor, 2000, stored_bytes)
        assert not compressor.needs_training(1000, 10**6)
    for number in range(WINDOW):
        assert not compressor.needs_training(1000, 10**6), number
        store_sized(compressor, 2000, 500 + number // (WINDOW - 1))  # one byte more in all
    assert compressor.needs_training(1000, 10**6)
    compressor.install(None, 10**6)
    assert not compressor.needs_training(1000, 10**6), "the same objects make no better one"


def test_the_share_of_a_window_is_that_of_its_bytes() -> None:
    compressor = Compressor(find_zstd())
    compressor.install(None, 10**6)
    for sizes in ([(2000, 400), (6000, 1200)], [(6000, 1000), (2000, 1000)]):
        for number in range(WINDOW):
            store_sized(compressor, *sizes[number % 2])
    assert not compressor.needs_training(1000, 10**6)


def test_the_window_of_a_large_cache_is_a_quarter_of_its_objects() -> None:
    compressor, window = Compressor(find_zstd()), WINDOW + 8
    compressor.install(None, 10**6, 4 * window)
    for stored_bytes in (400, 600):
        for _ in range(window):
            assert not compressor.needs_training(1000, 10**6)
            store_sized(compressor, 2000, stored_bytes)
    assert compressor.needs_training(1000, 10**6)


def test_a_sample_is_mixed_whatever_its_length() -> None:
    compressor = Compressor(find_zstd())
    assert compressor.choose_sample([], 0) == []
    for count in (*MIXING_STEPS, 1000):
        objects = [sized(600 + number) for number in range(count)]
        sample = compressor.choose_sample(objects, 10**6)
        assert sorted(map(id, sample)) == sorted(map(id, objects))
        places = {id(obj): place for place, obj in enumerate(sample)}
        distances = [abs(places[id(one)] - places[id(other)]) for one, other in pairwise(objects)]
        assert min(distances) > 1, count


def test_a_sample_takes_every_part_of_a_large_cache() -> None:
    objects = [sized(600)] * MAX_SAMPLES * 3
    last = sized(601)
    objects[-3] = last
    sample = Compressor(find_zstd()).choose_sample(objects, 600 * len(objects))
    assert len(sample) == MAX_SAMPLES
    assert any(obj is last for obj in sample)


def test_the_repr_shows_the_dictionary() -> None:
    compressor = Compressor(find_zstd())
    compressor.install(None, 10**6)
    assert repr(compressor) == "<Compressor dictionary=0 B trainings=0>"
    compressor.install(compressor.train(pod_bodies(), 10**6), 10**6)
    size = compressor.dictionary_bytes
    assert repr(compressor) == f"<Compressor dictionary={size} B trainings=1>"


def with_reference(raw: bytes) -> Compressor:
    """Return a compressor that has counted enough objects of one owner for a reference."""
    compressor = Compressor(find_zstd())
    for _ in range(MIN_MEMBERS):
        compressor.references.count(raw)
    return compressor


def test_an_object_is_compressed_with_the_reference_of_its_owner() -> None:
    raw = pod_bodies()[0]
    compressor, values = with_reference(raw), {"node": ("node-1",)}
    first, second = (compressor.compress(object_of(raw), values) for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.group is second.group
    assert first.group.is_reference
    expected = object_of(raw)
    assert (first.uid, first.version) == (expected.uid, expected.resource_version)
    assert (first.decompress(), first.known_values) == (raw, values)


def test_an_object_that_the_reference_of_its_owner_does_not_fit_is_compressed_without() -> None:
    raw = pod_bodies()[0]
    compressor = with_reference(raw)
    chance = random.Random(1)
    stranger = change(raw, annotations={"random": f"{chance.getrandbits(40_000):x}"})
    first = compressor.compress(object_of(raw), {})
    assert first is not None
    found = compressor.compress(object_of(stranger), {})
    assert found is not None
    assert not found.group.is_reference
    assert found.decompress() == stranger


@pytest.mark.parametrize(
    ("owned", "others", "json_bytes", "expected"),
    [
        (MIN_MEMBERS, 0, 256 * 2**20, 64 * 1024),
        (MIN_MEMBERS, MIN_MEMBERS, 8 * 2**20, 17 * 1024),
        (0, MIN_MEMBERS, 8 * 2**20, 32 * 1024),
        (0, MIN_MEMBERS, 2**20, MIN_DICTIONARY),
    ],
    ids=["all", "half", "none", "a small cache"],
)
def test_objects_with_a_reference_make_a_smaller_part_of_the_dictionary(
    owned: int, others: int, json_bytes: int, expected: int
) -> None:
    compressor = Compressor(find_zstd())
    for raw in [pod_bodies()[0]] * owned + [b"{}"] * others:
        compressor.references.count(raw)
    codec = compressor.train(pod_bodies(), json_bytes)
    assert codec is not None
    assert expected - 1024 < codec.dictionary_bytes <= expected


def pod_of_size(size: int) -> KubeObject:
    """Return a pod with an owner whose JSON has ``size`` bytes."""
    raw = pod_bodies()[0]
    return object_of(raw[:-1].ljust(size - 1) + b"}")


def test_objects_that_can_have_no_reference_have_no_owner() -> None:
    compressor = Compressor(find_zstd())
    assert compressor.owner_of(pod_of_size(MAX_REFERENCE)) == find_owner(pod_bodies()[0])
    assert compressor.owner_of(pod_of_size(MAX_REFERENCE + 1)) == b""
    assert compressor.owner_of(compress(object_of(pod_bodies()[0]))) == b""
    body = json.loads(pod_bodies()[0])
    del body["metadata"]["ownerReferences"]
    alone = object_of(json.dumps(body, separators=(",", ":")).encode())
    assert compressor.owner_of(alone) == b""


def test_the_objects_of_a_batch_have_the_reference_of_its_owner() -> None:
    compressor, raw = trained_compressor(pod_bodies()), pod_bodies()[0]
    for _ in range(MIN_MEMBERS):
        compressor.references.count(raw)
    owner = compressor.owner_of(object_of(raw))
    for each, expected in ((owner, True), (b"", False), (owner, True)):
        objects = [object_of(raw), object_of(raw)]
        compress_batch(compressor, each, objects)
        groups = [stored_bytes(obj).group for obj in objects]
        assert [group.is_reference for group in groups] == [expected, expected]
        assert groups[0] is groups[1]
        assert [obj.raw for obj in objects] == [raw, raw]
    alone = compress(object_of(raw), compressor)
    assert stored_bytes(alone).group.is_reference


def stored_bytes(obj: KubeObject) -> CompressedBytes:
    found = obj.stored
    assert type(found) is CompressedBytes
    return found
