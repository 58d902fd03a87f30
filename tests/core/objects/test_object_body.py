"""The uid and version of objects: as strings at first, then left in the bytes."""

from __future__ import annotations

import pickle
import sys
import tracemalloc
from itertools import product

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aioinformer import KubeObject, ObjectKey, field
from aioinformer._core.cache.indexer import Indexer
from aioinformer._core.codec.list_decoder import ListDecoder
from aioinformer._core.objects import object_body
from aioinformer._core.objects.deltas import Replaced
from aioinformer._core.objects.kube_object import (
    DIFFERENT,
    SAME_UID,
    SAME_VERSION,
    compare_identity,
    pack_identity,
)
from aioinformer._core.objects.object_body import (
    LARGE_BODY_BYTES,
    MAX_DECODED,
    MAX_DECODED_LARGE,
    MAX_POSITION,
    DecodedBody,
    DecodedBodyCache,
    IdentityPlace,
    IdentityText,
    ObjectBody,
    find_place,
)
from benchmarks.load.pods import modified
from tests.core.builders import PODS

UID = "0b1d2c3e-5f60-4a7b-8c9d-000000000077"


def served(uid: str = UID, rv: str = "7", *, name: str = "web-0", spec: str = "") -> KubeObject:
    """Return a pod whose JSON is as an API server writes it."""
    body = {
        "metadata": {"name": name, "namespace": "web", "uid": uid, "resourceVersion": rv},
        "spec": {"nodeName": spec},
    }
    return KubeObject(ObjectKey("web", name), uid, rv, msgspec.json.encode(body), PODS)


def state(obj: KubeObject) -> ObjectBody:
    """Return the state of the body of ``obj``."""
    body: ObjectBody = msgspec.structs.asdict(obj)["_body"]
    return body


def packed(obj: KubeObject) -> KubeObject:
    """Return ``obj`` after it was packed."""
    pack_identity(obj)
    return obj


# A uid of 35 bytes and a version of one character in two bytes are as long as the usual ones.
@example(uid="0" * 31 + "\U00010000", version="\x80", name="", spec="")
@given(
    uid=st.uuids().map(str) | st.text(max_size=40) | st.text('"\\é-0a', min_size=36, max_size=36),
    version=st.integers(0, 10**22).map(str) | st.text(max_size=40),
    name=st.text(max_size=300),
    spec=st.text(),
)
def test_a_packed_object_has_the_same_uid_and_version(
    uid: str, version: str, name: str, spec: str
) -> None:
    obj, other = (served(uid, version, name=name, spec=spec) for _ in "12")
    pack_identity(obj)

    assert (obj.uid, obj.resource_version) == (uid, version)
    assert obj == other
    assert hash(obj) == hash(other)
    assert compare_identity(obj, other) == SAME_VERSION
    assert pickle.loads(pickle.dumps(obj)) == other  # noqa: S301 - the test's own bytes


def test_the_usual_form_is_packed_and_all_such_objects_share_one_place() -> None:
    one, other = packed(served()), packed(served(rv="8", spec="node-1"))

    assert isinstance(state(one), IdentityPlace)
    assert state(one) is state(other)
    assert sys.getsizeof(one) == 48


@pytest.mark.parametrize(
    "obj",
    [
        served("short"),
        served("é" * 36),
        served("e" * 35 + '"'),
        served(rv=""),
        served(rv="1" * 32),
        served(name="n" * MAX_POSITION),
        KubeObject(ObjectKey("web", "a"), UID, "7", b'{"metadata":{"uid" : "x"}}', PODS),
        KubeObject(ObjectKey("web", "a"), "\ud800" * 36, "7", b"{}", PODS),
    ],
)
def test_another_form_keeps_its_strings(obj: KubeObject) -> None:
    before = (obj.uid, obj.resource_version)
    pack_identity(obj)

    assert isinstance(state(obj), IdentityText)
    assert (obj.uid, obj.resource_version) == before


def test_each_position_and_length_of_the_usual_form_has_a_place_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(object_body, "_places", {})  # none of other tests
    places: set[IdentityPlace] = set()
    for padding, digits in product((*range(70), MAX_POSITION - 27), range(1, 32)):
        label, version = "b" * padding, "9" * digits
        identity = f'"uid":"{UID}","resourceVersion":"{version}"'
        raw = f'{{"metadata":{{"a{label}":"",{identity}}}}}'
        place = find_place(raw.encode(), UID, version)

        assert place is not None
        assert (raw[place.uid], raw[place.version]) == (UID, version)
        assert raw[place.identity] == f'{UID}","resourceVersion":"{version}"'
        places.add(place)
    assert len(places) == 71 * 31


def test_a_place_behind_the_greatest_position_is_not_used() -> None:
    def raw(position: int) -> bytes:
        text = f'"uid":"{UID}","resourceVersion":"7"'
        return text.rjust(len(text) + position - len('"uid":"')).encode()

    place = find_place(raw(MAX_POSITION), UID, "7")
    assert place is not None
    assert place.uid.start == MAX_POSITION
    assert find_place(raw(MAX_POSITION + 1), UID, "7") is None


def test_a_label_with_the_text_of_the_uid_is_not_taken_for_it() -> None:
    raw = (
        '{"metadata":{"labels":{"uid":"another","resourceVersion":"8"},"name":"a",'
        f'"uid":"{UID}","resourceVersion":"7"}}}}'
    ).encode()
    obj = packed(KubeObject(ObjectKey("web", "a"), UID, "7", raw, PODS))

    assert (obj.uid, obj.resource_version) == (UID, "7")
    assert find_place(raw, UID, "7") is None, "only the first uid is looked at"


def test_an_open_object_is_left_alone_and_has_its_uid() -> None:
    obj = served()
    assert obj["spec"]
    pack_identity(obj)

    assert state(obj).content is not None
    assert (obj.uid, obj.resource_version) == (UID, "7")


def test_a_packed_object_can_be_opened() -> None:
    obj = packed(served(spec="node-1"))

    assert obj["spec"]["nodeName"] == "node-1"
    assert (obj.uid, obj.resource_version) == (UID, "7")


def kept(cache: DecodedBodyCache, obj: KubeObject, size: int) -> DecodedBody:
    """Keep a decoded body of ``obj``."""
    body = DecodedBody({}, IdentityText(obj.uid, obj.resource_version))
    cache.add(obj, body, size)
    return body


@pytest.mark.parametrize(
    ("size", "limit"), [(LARGE_BODY_BYTES - 1, MAX_DECODED), (LARGE_BODY_BYTES, MAX_DECODED_LARGE)]
)
def test_the_oldest_body_is_closed_when_one_more_than_the_limit_is_kept(
    size: int, limit: int
) -> None:
    cache, objects = DecodedBodyCache(), [served(name=f"web-{n}") for n in range(limit + 1)]
    bodies = [kept(cache, obj, size) for obj in objects]

    assert state(objects[0]) is bodies[0].closed
    assert (objects[0].uid, objects[0].resource_version) == (UID, "7")
    assert [state(obj) for obj in objects[1:]] == bodies[1:]
    assert cache.objects() == objects[1:]


def test_large_and_small_bodies_are_counted_apart() -> None:
    cache, small, large = DecodedBodyCache(), served(name="small"), served(name="large")
    kept(cache, large, LARGE_BODY_BYTES)
    kept(cache, small, LARGE_BODY_BYTES - 1)

    assert cache.objects() == [small, large]


OTHER_UID = UID.replace("7", "8")


@pytest.mark.parametrize("forms", list(product((False, True), repeat=2)))
@pytest.mark.parametrize(
    ("uid", "rv", "expected"),
    [
        (UID, "7", SAME_VERSION),
        (UID, "8", SAME_UID),
        (UID, "77", SAME_UID),
        (OTHER_UID, "7", DIFFERENT),
        (OTHER_UID, "8", DIFFERENT),
        ("short", "7", DIFFERENT),
    ],
)
def test_objects_are_compared_by_uid_and_version_in_any_form(
    forms: tuple[bool, bool], uid: str, rv: str, expected: int
) -> None:
    old, new = served(), served(uid, rv)
    for obj, pack in zip((old, new), forms, strict=True):
        if pack:
            pack_identity(obj)

    assert compare_identity(old, new) == expected


def test_a_pattern_binds_the_arguments_of_the_constructor() -> None:
    match packed(served()):
        case KubeObject(key, uid, version, raw):
            assert (key.name, uid, version, raw[:1]) == ("web-0", UID, "7", b"{")
        case _:  # pyright: ignore[reportUnnecessaryComparison]
            pytest.fail("the pattern doesn't match")


def test_an_object_takes_at_most_330_bytes_beyond_its_json() -> None:
    """Traced: without the overhead of the allocator, which is 20 bytes for the JSON."""
    count = 2000
    items = b",".join(modified(number, number)[28:-2] for number in range(count))
    head = b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":['
    indexer = Indexer({"node": field("spec.nodeName")})
    tracemalloc.start()
    try:
        decoder = ListDecoder(PODS)
        objects = decoder.feed(head + items + b"]}")
        objects += decoder.close()[0]
        replacement = indexer.replace(Replaced(objects, "9"))
        del objects, decoder
        while not replacement.step(64):
            pass
        replacement.commit()
        while not replacement.step(64):
            pass
        traced = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()

    json_bytes = sum(len(obj.raw) for obj in indexer.state.objects.values())
    assert len(indexer.state.objects) == count
    assert (traced - json_bytes) / count < 330
