"""A watch that reads the metadata of its objects alone, beside one that reads all bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.codec.watch_decoder import WatchBatch, WatchDecoder
from aioinformer._core.objects.deltas import Bookmark, Delta
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.resources import Resource
from aioinformer.errors import ObjectDecodeError, ProtocolError
from tests.client.recordings import read_recording
from tests.core.builders import PODS, WIDGETS, encode
from tests.core.strategies import names, texts, values, versions

ENTRY: dict[str, Any] = {
    "manager": 'a}},"spec":{',
    "operation": "Update",
    "fieldsType": "FieldsV1",
    "fieldsV1": {"f:spec": {'k:{"name":"web"}': {".": {}, "f:image": {}}}},
}
STREAMS: dict[str, Resource] = {
    "30-watch-from-rv": PODS,
    "31-watch-label-selector-leaves": PODS,
    "33-watch-list-streaming": PODS,
    "35-watch-rv0-synthetic-added": PODS,
    "38-watch-too-old-rv": PODS,
    "39-watch-bookmark-at-timeout": PODS,
    "51-cr-watch-list-streaming": WIDGETS,
    "52-cr-watch-while-crd-is-deleted": WIDGETS,
}


def read(stream: bytes, resource: Resource = PODS, *, validate: bool) -> WatchBatch:
    return WatchDecoder(resource, validate=validate).feed(stream)


def shown(entries: Iterable[Delta | Bookmark]) -> list[object]:
    """Return everything that a reader sees of the entries."""
    return [
        each
        if isinstance(each, Bookmark)
        else (each.kind, each.obj.key, each.obj.uid, each.obj.resource_version, each.obj.raw)
        for each in entries
    ]


def event(metadata: dict[str, Any], **members: Any) -> bytes:
    """Return a line as a server writes those of built-in resources."""
    body = {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, **members}
    return encode({"type": "MODIFIED", "object": body}) + b"\n"


def pod(name: str = "web-0", *, rv: str = "7", **members: Any) -> bytes:
    metadata = {"name": name, "namespace": "web", "uid": f"uid-{name}", "resourceVersion": rv}
    spec = {"nodeName": "node-1"}
    return event({**metadata, "managedFields": [ENTRY]}, **{"spec": spec, **members})


def changed(batch: WatchBatch) -> list[KubeObject]:
    assert batch.error is None
    return [each.obj for each in batch.entries if isinstance(each, Delta)]


# -- equal results -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STREAMS)
def test_a_recorded_watch_has_the_same_entries(name: str) -> None:
    body = read_recording(name).body
    whole = read(body, STREAMS[name], validate=True)
    heads = read(body, STREAMS[name], validate=False)
    assert shown(heads.entries) == shown(whole.entries)
    assert heads.resource_version == whole.resource_version
    assert repr(heads.error) == repr(whole.error)


ENTRIES = (ENTRY, ENTRY | {"manager": 'a]},"spec":{'}, ENTRY | {"manager": "]"})

METADATA: dict[str, st.SearchStrategy[Any]] = {
    "namespace": names,
    "uid": names,
    "resourceVersion": versions,
    "annotations": st.dictionaries(names, texts, max_size=2),
    "ownerReferences": st.lists(st.fixed_dictionaries({"name": names}), max_size=2),
    "managedFields": st.lists(st.sampled_from(ENTRIES), max_size=2),
    "zone": texts,
}
"""Members of metadata in the order of a built-in type; ``zone`` follows the managed fields."""


@st.composite
def objects(draw: st.DrawFn) -> dict[str, Any]:
    """Draw an object whose members are in the order of a built-in type, or in another."""
    metadata: dict[str, Any] = {"name": draw(names)}
    for member, strategy in METADATA.items():
        if draw(st.integers(0, 9)) < (1 if member == "zone" else 9):
            metadata[member] = draw(strategy)
    if draw(st.integers(0, 4)) == 0:
        metadata = dict(sorted(metadata.items()))
    body: dict[str, Any] = {"kind": "Pod", "apiVersion": "v1", "metadata": metadata}
    for member in draw(st.lists(st.sampled_from(["spec", "data", "status"]), unique=True)):
        body[member] = draw(
            values | st.fixed_dictionaries({"x": values, "managedFields": st.just([ENTRY])})
        )
    return body


def encode_line(kind: str, body: dict[str, Any]) -> bytes:
    return encode({"type": kind, "object": body}) + b"\n"


LINES = st.builds(encode_line, st.sampled_from(["ADDED", "MODIFIED", "DELETED"]), objects())


@given(lines=st.lists(LINES, min_size=1, max_size=6))
def test_every_watch_of_valid_objects_has_the_same_entries(lines: list[bytes]) -> None:
    stream = pod() + b"".join(lines)
    whole, heads = read(stream, validate=True), read(stream, validate=False)
    assert whole.error is None
    assert shown(heads.entries) == shown(whole.entries)
    assert heads.resource_version == whole.resource_version


def test_members_of_metadata_behind_the_managed_fields_stay() -> None:
    metadata: dict[str, Any] = {"name": "a", "namespace": "web", "uid": "u", "resourceVersion": "8"}
    metadata |= {"managedFields": [ENTRY], "zone": "a"}
    data = {"x": 1, "managedFields": [ENTRY]}
    _, obj = changed(read(pod() + event(metadata, data=data, spec=None), validate=False))
    assert obj.to_dict()["metadata"]["zone"] == "a"
    assert obj.to_dict()["data"] == data


def test_managed_fields_of_a_body_stay() -> None:
    free = {"x": 1, "managedFields": [{"y": {"z": [1]}, "spec": 5}]}
    bare = {"name": "a", "namespace": "web", "uid": "u", "resourceVersion": "8"}
    stream = pod() + event(bare, spec=free)
    _, obj = changed(read(stream, validate=False))
    assert obj.to_dict()["spec"] == free


# -- what is checked -----------------------------------------------------------------------------


def test_a_broken_body_raises_where_it_is_opened() -> None:
    broken = pod("web-1", rv="8").replace(b'"node-1"', b'"node-1')
    _, obj, after = changed(read(pod() + broken + pod("web-2", rv="9"), validate=False))
    assert (obj.key.name, obj.resource_version) == ("web-1", "8")
    with pytest.raises(ObjectDecodeError):
        obj.to_dict()
    assert after.to_dict()["spec"] == {"nodeName": "node-1"}


def test_a_recorded_watch_of_pods_is_read_up_to_the_managed_fields() -> None:
    lines = read_recording("30-watch-from-rv").body.splitlines(keepends=True)
    changes = [each for each in lines if each.startswith(b'{"type":"MODIFIED"')]
    broken = changes[-1].replace(b'"containers":[', b'"containers":')
    assert broken != changes[-1]
    obj = changed(read(changes[0] + broken, validate=False))[-1]
    with pytest.raises(ObjectDecodeError):
        obj.to_dict()


def test_validation_ends_the_watch_at_a_broken_body() -> None:
    broken = pod("web-1", rv="8").replace(b'"node-1"', b'"node-1')
    batch = read(pod() + broken, validate=True)
    assert isinstance(batch.error, ProtocolError)
    assert len(batch.entries) == 1


@pytest.mark.parametrize(
    ("part", "broken"),
    [
        (b'"name":"web-1"', b'"name":"web-1'),
        (b'"name":"web-1"', b'"name":5'),
        (b'"resourceVersion":"8"', b'"resourceVersion":8'),
        (b'{"type":"MODIFIED"', b'{"type":"MODIFIED'),
    ],
)
def test_broken_metadata_ends_the_watch(part: bytes, broken: bytes) -> None:
    line = pod("web-1", rv="8")
    assert part in line
    batch = read(pod() + line.replace(part, broken), validate=False)
    assert isinstance(batch.error, ProtocolError)
    assert len(batch.entries) == 1


def test_an_object_of_another_kind_is_ignored() -> None:
    other = pod("web-1").replace(b'"kind":"Pod"', b'"kind":"Node"')
    batch = read(pod() + other + pod("web-2"), validate=False)
    assert batch.ignored == 1
    assert [each.key.name for each in changed(batch)] == ["web-0", "web-2"]


def test_an_object_of_another_namespace_is_ignored() -> None:
    decoder = WatchDecoder(PODS, namespace="web", validate=False)
    other = pod("web-1").replace(b'"namespace":"web"', b'"namespace":"shop"')
    batch = decoder.feed(pod() + other + pod("web-2"))
    assert batch.ignored == 1
    assert [each.key.name for each in changed(batch)] == ["web-0", "web-2"]


def test_a_converter_gets_valid_bodies_only() -> None:
    decoder = WatchDecoder(PODS, converter=lambda obj: obj, validate=False)
    broken = pod("web-1", rv="8").replace(b'"node-1"', b'"node-1')
    assert isinstance(decoder.feed(pod() + broken).error, ProtocolError)


def test_kept_managed_fields_are_read_with_the_whole_line() -> None:
    decoder = WatchDecoder(PODS, managed_fields=True, validate=False)
    (_, obj) = changed(decoder.feed(pod() + pod("web-1")))
    assert obj.to_dict()["metadata"]["managedFields"] == [ENTRY]
