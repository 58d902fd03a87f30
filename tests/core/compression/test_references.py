"""One body as the reference of all objects of one owner."""

from __future__ import annotations

import gc
import json
import random
import sys
from collections.abc import Sequence

import pytest

from aioinformer import KubeObject
from aioinformer._core.compression.compressed_object import CompressedBytes
from aioinformer._core.compression.compressor import Compressor
from aioinformer._core.compression.references import (
    MAX_OWNERS,
    MAX_REFERENCE,
    MIN_MEMBERS,
    find_owner,
)
from aioinformer._core.compression.zstd import ReferenceCodec, find_zstd
from benchmarks.load.workloads import changed_pod
from tests.core.compression.rested import (
    change,
    compress,
    compress_batch,
    object_of,
    pod_bodies,
    trained_compressor,
)

POD = pod_bodies()[0]
OWNER = find_owner(POD)


def versions(count: int, pod: bytes = POD) -> list[bytes]:
    """Return pods of one owner, as different as the versions of one pod."""
    chance = random.Random(count)
    bodies: list[bytes] = []
    for number in range(count):
        body = json.loads(changed_pod(pod, number + 1, chance))
        body["metadata"]["name"] += f"-{number}"
        body["metadata"]["uid"] = f"0b1d2c3e-5f60-4a7b-8c9d-{number:012d}"
        bodies.append(json.dumps(body, separators=(",", ":")).encode())
    return bodies


def counted(bodies: Sequence[bytes]) -> Compressor:
    """Return a compressor that has counted these bodies."""
    compressor = Compressor(find_zstd())
    for raw in bodies:
        compressor.references.count(raw)
    return compressor


def stored(obj: KubeObject) -> CompressedBytes:
    found = obj.stored
    assert type(found) is CompressedBytes
    return found


def test_the_owner_is_the_first_one_of_the_object() -> None:
    owners = [{"kind": "ReplicaSet", "uid": "a" * 36}, {"kind": "Other", "uid": "b" * 36}]
    assert find_owner(change(POD, ownerReferences=owners)) == b"a" * 36
    assert len(OWNER) == 36
    assert json.loads(POD)["metadata"]["ownerReferences"][0]["uid"] == OWNER.decode()


@pytest.mark.parametrize("owners", [[], [{"kind": "ReplicaSet"}], None])
def test_an_object_without_the_uid_of_an_owner_has_no_reference(owners: object) -> None:
    body = {"metadata": {"name": "web-0", "ownerReferences": owners}}
    assert find_owner(json.dumps(body, separators=(",", ":")).encode()) == b""


def test_objects_of_one_owner_have_a_reference() -> None:
    bodies = versions(MIN_MEMBERS)
    compressor, alone = counted(bodies), Compressor(find_zstd())
    objects = [compress(object_of(raw), compressor) for raw in bodies]
    assert [obj.raw for obj in objects] == bodies
    assert len({id(stored(obj).group) for obj in objects}) == 1
    assert compressor.references.total_bytes == len(bodies[0])
    plain = [compress(object_of(raw), alone) for raw in bodies]
    size, larger = (sum(len(stored(obj).data) for obj in each) for each in (objects, plain))
    assert size < larger / 5


def test_objects_of_an_owner_with_few_objects_have_no_reference() -> None:
    bodies = versions(MIN_MEMBERS - 1)
    compressor = counted(bodies)
    objects = [compress(object_of(raw), compressor) for raw in bodies]
    assert not any(stored(obj).group.is_reference for obj in objects)
    assert compressor.references.total_bytes == 0


def test_a_reference_is_freed_with_the_last_object_that_needs_it() -> None:
    bodies = versions(MIN_MEMBERS)
    compressor = counted(bodies)
    objects = [compress(object_of(raw), compressor) for raw in bodies[:2]]
    compressor.references.rest()
    objects.pop()
    gc.collect()
    assert compressor.references.total_bytes
    objects.pop()
    gc.collect()
    assert compressor.references.total_bytes == 0
    again = compress(object_of(bodies[5]), compressor)
    assert again.raw == bodies[5]
    assert stored(again).group.is_reference


def test_a_new_dictionary_leaves_objects_with_a_reference_as_they_are() -> None:
    bodies = versions(MIN_MEMBERS)
    compressor = counted(bodies)
    obj, other = (compress(object_of(raw), compressor) for raw in (bodies[0], pod_bodies()[50]))
    compressor.install(compressor.train(pod_bodies(), 10**6), 10**6)
    assert not compressor.is_due(obj)
    assert compressor.is_due(other)


def test_a_reference_that_does_not_fit_is_given_up() -> None:
    chance = random.Random(0)
    strangers = [
        change(raw, annotations={"random": f"{chance.getrandbits(40_000):x}"})
        for raw in versions(MIN_MEMBERS)
    ]
    compressor = counted(strangers)
    objects = [compress(object_of(raw), compressor) for raw in strangers]
    assert [obj.raw for obj in objects] == strangers
    assert not any(stored(obj).group.is_reference for obj in objects[1:])


def test_a_batch_of_objects_of_one_owner_has_their_reference() -> None:
    bodies = versions(MIN_MEMBERS)
    compressor = counted(bodies)
    objects = [object_of(raw) for raw in bodies]
    assert {compressor.owner_of(obj) for obj in objects} == {OWNER}
    compress_batch(compressor, OWNER, objects)
    assert [obj.raw for obj in objects] == bodies
    assert len({id(stored(obj).group) for obj in objects}) == 1
    assert stored(objects[0]).group.is_reference


def test_objects_with_a_reference_have_their_index_values() -> None:
    bodies = versions(MIN_MEMBERS)
    compressor, values = counted(bodies), {"node": ("node-1",)}
    obj = compress(object_of(bodies[0]), compressor, values)
    assert stored(obj).group.is_reference
    assert stored(obj).known_values == values


def test_a_batch_goes_on_without_a_reference_that_does_not_fit() -> None:
    chance = random.Random(0)
    strangers = [
        change(raw, annotations={"random": f"{chance.getrandbits(40_000):x}"})
        for raw in versions(MIN_MEMBERS)
    ]
    compressor = counted(strangers)
    objects = [object_of(raw) for raw in strangers]
    compress_batch(compressor, OWNER, objects)
    assert [obj.raw for obj in objects] == strangers
    assert [stored(obj).group.is_reference for obj in objects[:3]] == [True, False, False]
    assert compressor.references.find(strangers[0]) is None


def test_a_batch_of_objects_without_a_reference_has_the_dictionary() -> None:
    compressor = trained_compressor(pod_bodies())
    objects = [object_of(raw) for raw in pod_bodies()[:3]]
    compress_batch(compressor, b"", objects)
    assert len({id(stored(obj).group) for obj in objects}) == 1
    assert [obj.raw for obj in objects] == list(pod_bodies()[:3])


def test_a_large_object_is_no_reference() -> None:
    bodies = [change(raw, annotations={"text": "x" * MAX_REFERENCE}) for raw in versions(30)]
    compressor = counted(bodies)
    obj = compress(object_of(bodies[0]), compressor)
    assert not stored(obj).group.is_reference


def test_the_dictionary_is_smaller_if_most_objects_have_a_reference() -> None:
    grouped, size = counted(versions(200)), 64 * 1024 * 256
    assert grouped.references.expected_share == 1
    assert counted(pod_bodies()[:20]).references.expected_share == 0
    sizes: list[int] = []
    for compressor in (grouped, Compressor(find_zstd())):
        compressor.install(compressor.train(pod_bodies(), size), size)
        sizes.append(compressor.dictionary_bytes)
    assert sizes[0] < sizes[1] / 2


def test_a_bounded_number_of_owners_is_counted_between_walks() -> None:
    references = Compressor(find_zstd()).references
    bodies = [POD.replace(OWNER, b"%036d" % number) for number in range(MAX_OWNERS + 1)]
    for raw in bodies:
        for _ in range(MIN_MEMBERS):
            references.count(raw)
    assert references.find(bodies[-1]) is not None
    references.rest()
    assert references.find(bodies[0]) is None


def test_a_reference_is_in_memory_once() -> None:
    reference = bytes(bytearray(POD))
    before = sys.getrefcount(reference)
    codec = ReferenceCodec(find_zstd(), reference)
    codec.decompress(memoryview(codec.compress(POD)))
    assert sys.getrefcount(reference) == before


@pytest.mark.parametrize("size", [8, 255, 256, 65_535, MAX_REFERENCE])
def test_any_body_is_the_same_after_compression_with_a_reference(size: int) -> None:
    reference = (POD * (size // len(POD) + 1))[:size]
    codec = ReferenceCodec(find_zstd(), reference)
    for body in (POD, reference, b"{}", b"", POD * 40):
        assert codec.decompress(memoryview(codec.compress(body))) == body
    assert codec.dictionary_bytes == size
