"""An object reads the same while it is compressed."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec.structs import force_setattr

from aioinformer import KubeObject, field, fields
from aioinformer._core.cache.comparison import is_same_content
from aioinformer._core.compression.compressed_object import (
    CompressedBytes,
    CompressedObject,
    CompressionGroup,
    saved_bytes,
)
from aioinformer._core.compression.compressor import Compressor
from aioinformer._core.compression.zstd import find_zstd
from aioinformer._core.objects.kube_object import (
    DIFFERENT,
    SAME_UID,
    SAME_VERSION,
    cached_body,
    compare_identity,
    pack_identity,
)
from aioinformer._core.objects.object_body import COMPRESSED, MAX_DECODED, IdentityPlace
from aioinformer.errors import ObjectDecodeError
from tests.core.builders import PODS
from tests.core.compression.rested import (
    change,
    compress,
    object_of,
    pod_bodies,
    trained_compressor,
)

RAW = pod_bodies()[0]
BROKEN = b'{"metadata":{"name":"web-0"},"data":"' + b"x" * 4000 + b'\xff"}'


def group_without_dictionary() -> CompressionGroup:
    compressed = Compressor(find_zstd()).compress(object_of(RAW), {})
    assert compressed is not None
    return compressed.group


class Metadata(msgspec.Struct):
    name: str
    labels: dict[str, str]


class Pod(msgspec.Struct):
    metadata: Metadata


READS: list[Callable[[KubeObject], Any]] = [
    lambda obj: obj.raw,
    lambda obj: obj.uid,
    lambda obj: obj.resource_version,
    lambda obj: obj.key,
    lambda obj: (obj.kind, obj.api_version, obj.name, obj.namespace),
    lambda obj: dict(obj.labels),
    lambda obj: dict(obj.annotations),
    lambda obj: list(obj.owner_references),
    lambda obj: (obj.creation_timestamp, obj.deletion_timestamp),
    lambda obj: obj["spec"]["containers"][0]["image"],
    lambda obj: obj.to_dict(),
    lambda obj: dict(obj),
    lambda obj: obj.decode(Pod),
    lambda obj: field("status.podIP")(obj),
    lambda obj: fields("metadata.uid", "spec.nodeName")(obj),
    lambda obj: (len(obj), list(obj), "spec" in obj, bool(obj)),
    repr,
    hash,
    pickle.dumps,
    lambda obj: pickle.loads(pickle.dumps(obj)),  # noqa: S301 - made here
    lambda obj: len(obj.stored),
]


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("packed", [True, False])
def test_a_compressed_object_reads_as_before(
    read: Callable[[KubeObject], Any], packed: bool
) -> None:
    obj = compress(object_of(RAW, packed=packed))
    assert read(obj) == read(object_of(RAW, packed=packed))


def test_a_compressed_object_equals_the_same_object() -> None:
    obj = compress(object_of(RAW))
    assert obj == object_of(RAW)
    assert object_of(RAW) == obj
    assert obj != object_of(change(RAW, labels={}))
    assert copy.deepcopy(obj) is obj
    assert isinstance(obj, KubeObject)


def test_saved_bytes_is_the_difference_of_the_sizes() -> None:
    obj = compress(object_of(RAW), trained_compressor(pod_bodies()))
    stored = obj.stored
    assert type(stored) is CompressedBytes
    assert len(stored.data) < len(RAW) / 6
    assert saved_bytes(obj) == len(RAW) - len(stored.data) - 65
    assert saved_bytes(object_of(RAW)) == 0


def test_a_body_is_kept_until_others_replace_it() -> None:
    obj = compress(object_of(RAW))
    assert cached_body(obj) is None
    assert obj["spec"]
    assert cached_body(obj) is not None
    for raw in pod_bodies()[1 : MAX_DECODED + 1]:
        assert object_of(raw)["spec"]
    assert cached_body(obj) is None
    assert (obj.uid, obj.raw) == (object_of(RAW).uid, RAW)


def test_uid_and_version_need_no_decompression() -> None:
    obj = object_of(RAW)
    compressor = Compressor(find_zstd())
    compressed = compressor.compress(obj, {})
    assert compressed is not None
    broken = CompressedBytes(compressed.data[:-5], compressed.group)
    compressor.store(obj, broken)
    newer = object_of(change(RAW, resourceVersion="99"), packed=False)
    assert (obj.uid, obj.resource_version) == (newer.uid, object_of(RAW).resource_version)
    assert compare_identity(obj, newer) == SAME_UID
    with pytest.raises(find_zstd().ZstdError, match="end-of-stream"):
        obj.raw  # noqa: B018 - raises


@pytest.mark.parametrize("packed", [True, False])
def test_a_compressed_object_is_compared_with_newer_objects_of_any_form(packed: bool) -> None:
    obj = compress(object_of(RAW))
    other_uid = change(RAW, uid="0b1d2c3e-5f60-4a7b-8c9d-0123456789ab")
    for raw, expected in (
        (RAW, SAME_VERSION),
        (change(RAW, resourceVersion="99"), SAME_UID),
        (other_uid, DIFFERENT),
    ):
        assert compare_identity(obj, object_of(raw, packed=packed)) == expected


@pytest.mark.parametrize("uid", ["0b1d2c3e-5f60-4a7b-8c9d-0123456789ab", "uid-1", "", "u" * 254])
def test_any_uid_is_compared(uid: str) -> None:
    compressed = CompressedBytes.of(RAW, b"", uid, "7", group_without_dictionary())
    assert compressed.compare(uid, "7") == SAME_VERSION
    assert compressed.compare(uid, "70") == SAME_UID
    assert compressed.compare(f"{uid}x", "7") == DIFFERENT


def test_an_object_is_compared_between_the_two_steps_of_its_compression() -> None:
    obj = object_of(RAW, packed=False)
    force_setattr(obj, "__class__", CompressedObject)
    other_uid = change(RAW, uid="0b1d2c3e-5f60-4a7b-8c9d-0123456789ab")
    assert compare_identity(obj, object_of(RAW)) == SAME_VERSION
    assert compare_identity(obj, object_of(change(RAW, resourceVersion="99"))) == SAME_UID
    assert compare_identity(obj, object_of(other_uid)) == DIFFERENT


def test_equal_versions_are_compared_by_content() -> None:
    obj = compress(object_of(RAW))
    assert is_same_content(obj, object_of(RAW))
    assert is_same_content(obj, compress(object_of(RAW)))
    assert not is_same_content(obj, object_of(change(RAW, labels={"served": "otherwise"})))
    assert not is_same_content(compress(object_of(change(RAW, labels={}))), object_of(RAW))


@pytest.mark.parametrize(
    "uid",
    [
        "uid-1",
        "",
        "ü" * 9,
        "\x00" * 100,
        "u" * 254,
        "0B1D2C3E-5F60-4A7B-8C9D-0123456789AB",
        "0b1d2c3e5f604a7b8c9d0123456789ab",
        "0b1d2c3e-5f60-4a7b-8c9d-0123456789ab",
        "0b1d2c3e-5f60",
    ],
)
def test_any_uid_is_kept(uid: str) -> None:
    obj = KubeObject(object_of(RAW).key, uid, "7", RAW, PODS)
    compress(obj)
    assert (obj.uid, obj.resource_version, obj.raw) == (uid, "7", RAW)
    pack_identity(obj)
    assert (obj.uid, obj.raw) == (uid, RAW)


SIMILAR_UIDS = (
    "0b1d2c3e-5f60-4a7b-8c9d-0123456789ab",
    "0b1d2c3e-5f60-4a7b-8c9d-0123456789ac",
    "0B1D2C3E-5F60-4A7B-8C9D-0123456789AB",
    "0b1d2c3e5f604a7b8c9d0123456789ab",
    "0b1d2c3e-5f60-4a7b-8c9d0-123456789ab",
    "0b1d2c3e-5f60-4a7b-8c9d-0-123456789b",
    "0b1d2c3e-5f60-4a7b-8c9d- 0123456789b",
    "",
)


@pytest.mark.parametrize("uid", SIMILAR_UIDS)
def test_only_the_same_uid_and_version_are_equal(uid: str) -> None:
    key = object_of(RAW).key
    obj = compress(KubeObject(key, uid, "7", RAW, PODS))
    assert obj.uid == uid
    for other in SIMILAR_UIDS:
        expected = SAME_VERSION if other == uid else DIFFERENT
        assert compare_identity(obj, KubeObject(key, other, "7", b"{}", PODS)) == expected
    for version in ("", "70", "77"):
        assert compare_identity(obj, KubeObject(key, uid, version, b"{}", PODS)) == SAME_UID


@pytest.mark.parametrize("version", ["", "v" * 254])
def test_any_version_is_kept(version: str) -> None:
    obj = KubeObject(object_of(RAW).key, "uid-1", version, RAW, PODS)
    compress(obj)
    assert (obj.uid, obj.resource_version, obj.raw) == ("uid-1", version, RAW)


@pytest.mark.parametrize(
    ("uid", "version", "what"), [("u" * 255, "7", "uid"), ("uid-1", "7" * 255, "version")]
)
def test_a_text_beyond_the_length_of_the_header_is_an_error(
    uid: str, version: str, what: str
) -> None:
    group = group_without_dictionary()
    with pytest.raises(ValueError, match=f"^the {what} is too long$"):
        CompressedBytes.of(RAW, b"", uid, version, group)


def test_index_values_are_none_unless_they_are_given() -> None:
    group = group_without_dictionary()
    assert not group.is_reference
    assert CompressedBytes.of(RAW, b"", "uid", "7", group).known_values == {}
    valued = CompressionGroup(group.codec, [(), (("node", ("node-1",)),)])
    assert not valued.is_reference
    assert CompressedBytes.of(RAW, b"", "uid", "7", valued, 1).known_values == {"node": ("node-1",)}


@pytest.mark.parametrize("packed", [True, False])
def test_an_object_is_readable_between_the_two_steps_of_its_compression(packed: bool) -> None:
    obj, expected = object_of(RAW, packed=packed), object_of(RAW)
    force_setattr(obj, "__class__", CompressedObject)
    assert (obj.raw, obj.uid, obj.resource_version) == (
        RAW,
        expected.uid,
        expected.resource_version,
    )


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("name", ["uid", "resource_version"])
def test_a_reader_that_was_called_before_the_compression_can_go_on_after_it(
    name: str, packed: bool
) -> None:
    obj, expected = object_of(RAW, packed=packed), object_of(RAW)
    state, read = pack_identity(obj), vars(KubeObject)[name].fget
    compress(obj)
    assert read(obj) == getattr(expected, name)
    assert isinstance(state, IdentityPlace)
    assert obj.raw[state.uid].decode() == expected.uid, "the places are those in the JSON"


def test_compressed_objects_have_no_state_of_their_own() -> None:
    states = [
        pack_identity(compress(object_of(raw, packed=number % 2 == 0)))
        for number, raw in enumerate(pod_bodies())
    ]
    assert set(states) == {COMPRESSED}
    assert COMPRESSED.closed is COMPRESSED


def test_an_object_that_is_opened_while_it_is_compressed_stays_open() -> None:
    obj, compressor = object_of(RAW), Compressor(find_zstd())
    compressed = compressor.compress(obj, {})
    body = obj["metadata"]
    assert compressor.store(obj, compressed) > 0
    assert cached_body(obj) is not None
    assert (obj.uid, obj.raw, obj["metadata"]) == (object_of(RAW).uid, RAW, body)


def test_a_uuid_takes_16_bytes() -> None:
    group = group_without_dictionary()
    uid = "0b1d2c3e-5f60-4a7b-8c9d-0123456789ab"
    packed, text = (CompressedBytes.of(RAW, b"", each, "7", group) for each in (uid, uid.upper()))
    assert len(text.data) - len(packed.data) == 36 - 16


@pytest.mark.parametrize("uid", ["u" * 255, "u" * 256, "\ud800"])
def test_an_object_with_an_impossible_uid_stays_as_it_is(uid: str) -> None:
    compressor = Compressor(find_zstd())
    obj = KubeObject(object_of(RAW).key, uid, "7", RAW, PODS)
    assert compressor.store(obj, compressor.compress(obj, {})) == 0
    assert (type(obj) is not CompressedObject, obj.uid, obj.raw) == (True, uid, RAW)
    assert not compressor.is_due(obj), "a second attempt"


def test_a_body_that_is_no_json_raises_the_same_error() -> None:
    plain, obj = (KubeObject(object_of(RAW).key, "uid", "7", BROKEN, PODS) for _ in range(2))
    compress(obj)
    with pytest.raises(ObjectDecodeError) as expected:
        plain.to_dict()
    with pytest.raises(ObjectDecodeError) as found:
        obj.to_dict()
    assert str(found.value) == str(expected.value)
    assert obj.raw == BROKEN


def test_msgspec_does_not_encode_a_compressed_object_by_its_fields() -> None:
    with pytest.raises(TypeError, match="send its raw bytes"):
        msgspec.json.encode(compress(object_of(RAW)))


def test_a_compressed_object_is_as_read_only_as_any_other() -> None:
    obj = compress(object_of(RAW))
    for name in ("raw", "stored", "uid"):
        with pytest.raises(TypeError, match="can't be written"):
            setattr(obj, name, b"")


def test_threads_read_objects_while_they_are_compressed() -> None:
    objects = [object_of(raw, packed=number % 2 == 0) for number, raw in enumerate(pod_bodies())]
    expected = [(obj.uid, obj.resource_version, obj.raw, obj.to_dict()) for obj in objects]
    compressors = [trained_compressor(pod_bodies()), trained_compressor(pod_bodies()[50:])]
    read_node, done, rounds = field("spec.nodeName"), threading.Event(), [0] * 3
    failures: list[object] = []

    def read(thread: int) -> None:
        while not done.is_set():
            for obj, (uid, version, raw, body) in zip(objects, expected, strict=True):
                found = obj.uid, obj.resource_version, obj.raw, dict(obj), len(obj.stored)
                if found != (uid, version, raw, body, len(raw)) or not read_node(obj):
                    failures.append(found)
            rounds[thread] += 1

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=read, args=(number,)) for number in range(3)]
    try:
        for thread in threads:
            thread.start()
        for compressor in compressors * 3:
            for obj in objects:
                if compressor.is_due(obj):
                    compressor.store(obj, compressor.compress(obj, {}))
    finally:
        done.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(before)
    assert failures == []
    assert sum(type(obj) is CompressedObject for obj in objects) > 150
