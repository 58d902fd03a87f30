"""Cached objects and the three events."""

from __future__ import annotations

import copy
import datetime as dt
import gc
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from hypothesis import given

from aioinformer._core.objects import object_body
from aioinformer._core.objects.kube_object import (
    Added,
    Deleted,
    Event,
    KubeObject,
    ObjectKey,
    Updated,
)
from aioinformer.errors import ObjectDecodeError
from tests.core import strategies
from tests.core.builders import (
    NODES,
    WIDGETS,
    encode,
    key,
    make_object,
    pod,
    pod_body,
    undecodable_pod,
)


class Spec(msgspec.Struct):
    """The part of a pod's spec that a program reads."""

    nodeName: str  # noqa: N815 - the key in the JSON


class PodModel(msgspec.Struct):
    spec: Spec


@dataclass
class PlainPod:
    spec: dict[str, str]


class StrangePod(msgspec.Struct):
    status: str


def opened(obj: KubeObject) -> bool:
    """Return True if ``obj`` holds its decoded body."""
    return msgspec.structs.asdict(obj)["_body"].content is not None


# -- keys ----------------------------------------------------------------------------------------


@pytest.mark.client_go(87)
@pytest.mark.parametrize(
    ("key", "text"),
    [(ObjectKey("web", "web-0"), "web/web-0"), (ObjectKey("", "node-1"), "node-1")],
)
def test_a_key_prints_and_parses(key: ObjectKey, text: str) -> None:
    assert str(key) == text
    assert ObjectKey.parse(text) == key


@pytest.mark.parametrize("text", ["a/b/c", "/a/b", "a//b"])
def test_a_key_has_one_slash_at_most(text: str) -> None:
    with pytest.raises(ValueError, match=text):
        ObjectKey.parse(text)


def test_keys_sort_by_namespace_then_name_and_are_hashable() -> None:
    keys = [ObjectKey("b", "a"), ObjectKey("a", "z"), ObjectKey("", "y"), ObjectKey("a", "c")]

    assert [str(each) for each in sorted(keys)] == ["y", "a/c", "a/z", "b/a"]
    assert len({*keys, ObjectKey("a", "c")}) == 4


# -- reading -------------------------------------------------------------------------------------


def test_an_object_reads_as_a_mapping() -> None:
    obj = pod("web-0", node="node-7")

    assert isinstance(obj, Mapping)
    assert obj["spec"]["nodeName"] == "node-7"
    assert obj.get("status") is None
    assert set(obj) == {"metadata", "spec", "apiVersion", "kind"}
    assert len(obj) == 4
    assert "spec" in obj
    assert "status" not in obj
    with pytest.raises(KeyError, match="status"):
        obj["status"]


def test_every_object_is_true_in_a_condition() -> None:
    """The result of ``if obj := lister.get(...)`` must not depend on the object's content."""
    assert pod("web-0")


def test_name_namespace_uid_and_version_are_read_without_the_body() -> None:
    obj = undecodable_pod("web-3", rv="41")

    assert (obj.name, obj.namespace, obj.uid, obj.resource_version) == ("web-3", "web", "uid", "41")
    assert (obj.kind, obj.api_version, str(obj.key)) == ("Pod", "v1", "web/web-3")


def test_items_of_a_list_get_api_version_and_kind_from_the_resource() -> None:
    """The server leaves them out of the items of a list."""
    widget = make_object(pod_body("w"), resource=WIDGETS)

    assert (widget["apiVersion"], widget["kind"]) == ("example.com/v1", "Widget")
    assert widget.to_dict()["kind"] == "Widget"


def test_a_kind_and_an_api_version_from_the_server_stay() -> None:
    body = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"} | pod_body("web-0")

    assert make_object(body)["kind"] == "PartialObjectMetadata"
    assert make_object(body)["apiVersion"] == "meta.k8s.io/v1"


def test_the_rest_of_metadata_is_read_from_the_body() -> None:
    body = pod_body("web-0", labels={"app": "shop"})
    body["metadata"] |= {
        "annotations": {"note": "x"},
        "ownerReferences": [{"kind": "ReplicaSet", "name": "web"}],
        "creationTimestamp": "2026-07-01T10:00:00Z",
        "deletionTimestamp": "2026-07-01T10:00:30.5Z",
    }
    obj = make_object(body)

    assert obj.annotations == {"note": "x"}
    assert obj.labels == {"app": "shop"}
    assert [owner["kind"] for owner in obj.owner_references] == ["ReplicaSet"]
    assert obj.creation_timestamp == dt.datetime(2026, 7, 1, 10, tzinfo=dt.UTC)
    assert obj.deletion_timestamp == dt.datetime(2026, 7, 1, 10, 0, 30, 500_000, tzinfo=dt.UTC)


@pytest.mark.parametrize("null", [False, True], ids=["absent", "null"])
def test_missing_fields_of_metadata_are_empty(*, null: bool) -> None:
    body = pod_body("web-0")
    if null:
        names = ["labels", "annotations", "ownerReferences", "creationTimestamp"]
        body["metadata"] |= dict.fromkeys(names)
    obj = make_object(body)

    for _ in range(2):  # first without, then with a decoded body
        assert dict(obj.labels) == {}
        assert dict(obj.annotations) == {}
        assert list(obj.owner_references) == []
        assert obj.creation_timestamp is None
        assert obj.deletion_timestamp is None


def test_labels_are_the_same_whether_or_not_the_body_is_open() -> None:
    obj = pod("web-0", labels={"app": "shop"})

    closed = obj.labels
    assert obj["spec"]
    assert closed == obj.labels == {"app": "shop"}


def test_reading_labels_alone_does_not_open_the_body() -> None:
    """Selectors read the labels of every object in the cache."""
    obj = pod("web-0", labels={"app": "shop"})

    assert obj.labels["app"] == "shop"
    assert not opened(obj)


@given(strategies.objects())
def test_the_body_is_the_json(body: dict[str, Any]) -> None:
    obj = make_object(body)
    expected = {"apiVersion": "v1", "kind": "Pod"} | body

    assert obj.to_dict() == expected
    assert dict(obj) == expected


def test_a_body_decodes_as_a_struct_or_a_dataclass() -> None:
    obj = pod("web-0", node="node-7")

    assert obj.decode(PodModel).spec.nodeName == "node-7"
    assert obj.decode(PlainPod) == PlainPod({"nodeName": "node-7"})


def test_a_body_that_does_not_fit_the_model_is_a_validation_error() -> None:
    with pytest.raises(msgspec.ValidationError, match="status"):
        pod("web-0").decode(StrangePod)


def test_objects_match_patterns() -> None:
    match pod("web-0", node="node-7"):
        case {"spec": {"nodeName": str(node)}}:
            assert node == "node-7"
        case _:
            pytest.fail("no match")


def test_a_timestamp_is_aware_so_that_it_compares_with_now() -> None:
    body = pod_body("web-0")
    body["metadata"]["creationTimestamp"] = "2026-07-01T10:00:00.123456Z"

    created = make_object(body).creation_timestamp

    assert created is not None
    assert created.tzinfo is not None
    assert created < dt.datetime(2030, 1, 1, tzinfo=dt.UTC)


# -- not writing ---------------------------------------------------------------------------------


@pytest.mark.client_go(113)
def test_writing_to_an_object_is_a_type_error_that_names_to_dict() -> None:
    """client-go's "never mutate what a lister returns", enforced."""
    obj: Any = pod("web-0")

    with pytest.raises(TypeError, match=r"to_dict\(\)"):
        obj["spec"] = {}
    with pytest.raises(TypeError, match=r"to_dict\(\)"):
        del obj["spec"]
    with pytest.raises(TypeError, match=r"to_dict\(\)"):
        obj["spec"]["nodeName"] = "x"
    with pytest.raises(TypeError, match=r"to_dict\(\)"):
        obj.labels["app"] = "x"
    with pytest.raises(TypeError, match=r"to_dict\(\)"):
        obj.annotations["app"] = "x"
    with pytest.raises(TypeError, match=r"'uid' .* to_dict\(\)"):
        obj.uid = "x"
    with pytest.raises(TypeError, match=r"'uid' .* to_dict\(\)"):
        del obj.uid
    with pytest.raises(TypeError, match=r"to_dict\(\)"):
        obj |= {}
    with pytest.raises(TypeError, match=r"to_dict\(\)"):
        obj.update(spec={})
    with pytest.raises(TypeError, match=r"to_list\(\)"):
        obj.owner_references.append({})


def test_to_dict_returns_an_independent_copy() -> None:
    obj = pod("web-0")

    mine = obj.to_dict()
    mine["spec"]["nodeName"] = "changed"
    mine["metadata"]["labels"] = {}

    assert obj["spec"]["nodeName"] == "node-1"
    assert obj.to_dict() != mine
    assert type(mine["spec"]) is dict


# -- identity ------------------------------------------------------------------------------------


def test_objects_are_equal_iff_key_uid_and_bytes_are() -> None:
    obj = pod("web-0", rv="7")

    twin = pod("web-0", rv="7")
    cousin = KubeObject(obj.key, obj.uid, "not compared", obj.raw, NODES)
    others = [
        KubeObject(key("x"), obj.uid, obj.resource_version, obj.raw, obj.resource),
        KubeObject(obj.key, "another", obj.resource_version, obj.raw, obj.resource),
        KubeObject(obj.key, obj.uid, obj.resource_version, obj.raw + b" ", obj.resource),
    ]

    assert obj == twin == cousin
    assert hash(obj) == hash(twin) == hash(cousin)
    assert [obj == other for other in others] == [False, False, False]
    assert len({hash(each) for each in (obj, *others)}) == 4


def test_opening_the_body_changes_neither_equality_nor_hash() -> None:
    left, right = pod("web-0"), pod("web-0")
    before = hash(left)

    assert left["spec"]
    assert left == right
    assert hash(left) == before


def test_an_object_is_not_equal_to_its_own_content() -> None:
    obj = pod("web-0")

    assert [obj == other for other in (obj.to_dict(), obj.raw, None)] == [False, False, False]


@pytest.mark.parametrize("opened_first", [False, True], ids=["closed", "open"])
def test_an_object_survives_pickling_and_copying(*, opened_first: bool) -> None:
    obj = pod("web-0", rv="7", node="node-3")
    if opened_first:
        assert obj["spec"]

    for twin in (pickle.loads(pickle.dumps(obj)), copy.copy(obj), copy.deepcopy(obj)):  # noqa: S301 - ours
        assert twin == obj
        assert (twin.resource_version, twin.resource) == ("7", obj.resource)
        assert twin["spec"]["nodeName"] == "node-3"


def test_a_pickle_does_not_carry_the_decoded_body() -> None:
    obj = pod("web-0")
    closed = len(pickle.dumps(obj))
    assert obj["spec"]

    assert len(pickle.dumps(obj)) == closed


def test_the_repr_shows_the_name_and_the_size_and_not_the_body() -> None:
    obj = pod("web-0", rv="7", labels={"secret": "hunter2"})

    assert repr(obj) == f"<Pod web/web-0 rv=7 {len(obj.raw)} B>"
    assert "hunter2" not in repr(Added(obj))


# -- memory --------------------------------------------------------------------------------------


def test_the_garbage_collector_tracks_no_object_and_no_event() -> None:
    obj = pod("web-0")
    events: list[Event] = [Added(obj), Updated(obj, obj), Deleted(obj)]
    gc.collect()

    assert not gc.is_tracked(obj)
    assert not gc.is_tracked(obj.key)
    assert not any(gc.is_tracked(event) for event in events)


def test_a_decoded_body_is_kept_while_the_object_was_opened_lately() -> None:
    obj = pod("web-0")

    assert not opened(obj)
    assert obj["spec"]
    assert opened(obj)
    assert obj["metadata"]
    assert opened(obj)


def test_the_number_of_open_bodies_has_a_limit() -> None:
    many = [pod(f"web-{number}") for number in range(object_body.MAX_DECODED + 20)]
    for obj in many:
        assert obj["spec"]

    assert not any(opened(obj) for obj in many[:20])
    assert all(opened(obj) for obj in many[20:])
    assert many[0]["spec"]["nodeName"] == "node-1"


def test_reading_an_open_body_does_not_push_another_one_out() -> None:
    first, second = pod("web-0"), pod("web-1")
    for _ in range(object_body.MAX_DECODED + 1):
        assert first["spec"]
        assert second["spec"]

    assert opened(first)
    assert opened(second)


def test_only_a_few_large_bodies_are_kept_open() -> None:
    large = "x" * object_body.LARGE_BODY_BYTES
    many = [make_object({**pod_body(f"web-{i}"), "data": large}) for i in range(20)]
    small = pod("small")
    assert small["spec"]
    for obj in many:
        assert obj["data"] == large

    assert [opened(obj) for obj in many] == [False] * 12 + [True] * 8
    assert opened(small), "large ones must not cost the others their place"
    assert many[0]["data"] == large


def test_equal_objects_are_not_unequal() -> None:
    assert pod("a") == pod("a")
    assert not pod("a") != pod("a")  # noqa: SIM202 - the operator is the point
    assert pod("a") != pod("b")


def test_a_copy_of_an_object_is_the_object_itself() -> None:
    obj = pod("a")
    assert copy.copy(obj) is obj
    assert copy.deepcopy(obj) is obj


def test_a_model_mismatch_and_an_invalid_body_raise_different_errors() -> None:
    class Wrong(msgspec.Struct):
        spec: int

    with pytest.raises(msgspec.ValidationError):
        pod("a").decode(Wrong)
    bad = KubeObject(key("a"), "u", "7", b'{"metadata":{"name":"a"},"spec":"\xff"}', NODES)
    with pytest.raises(ObjectDecodeError, match="nodes web/a at resourceVersion 7"):
        bad.decode(dict)


# -- bodies that can't be read -------------------------------------------------------------------


def test_bad_utf_8_that_the_metadata_pass_skipped_is_an_error_where_it_is_opened() -> None:
    obj = undecodable_pod("web-0", rv="7")

    with pytest.raises(ObjectDecodeError) as caught:
        obj["data"]
    assert (caught.value.key, caught.value.resource_version) == ("web/web-0", "7")
    assert "pods web/web-0 at resourceVersion 7" in str(caught.value)
    assert caught.value.__cause__ is not None


def test_an_undecodable_body_is_the_same_error_however_it_is_opened() -> None:
    obj = undecodable_pod()

    for read in (obj.to_dict, lambda: obj.annotations, lambda: len(obj), lambda: list(obj)):
        with pytest.raises(ObjectDecodeError):
            read()


def test_labels_of_a_body_that_is_bad_elsewhere_can_be_read() -> None:
    """A label selector must not fail because of fields that it doesn't read."""
    assert undecodable_pod().labels == {}


@pytest.mark.parametrize("labels", [b'{"a":"\xff"}', b'{"a":1}', b"[]"])
def test_invalid_labels_are_an_error_that_names_the_object(labels: bytes) -> None:
    raw = b'{"metadata":{"name":"web-0","labels":%s}}' % labels
    obj = KubeObject(key("web-0"), "u", "7", raw, NODES)

    with pytest.raises(ObjectDecodeError, match="web/web-0"):
        _ = obj.labels


def test_absurd_nesting_is_an_error_where_it_is_opened() -> None:
    raw = b'{"metadata":{"name":"web-0"},"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}"

    with pytest.raises(ObjectDecodeError):
        KubeObject(key("web-0"), "u", "7", raw, NODES).to_dict()


# -- events --------------------------------------------------------------------------------------


@pytest.mark.client_go(87, 114)
def test_every_event_has_an_object() -> None:
    old, new = pod("web-0", rv="1"), pod("web-0", rv="2")

    assert [event.obj for event in (Added(new), Updated(old, new), Deleted(old))] == [new, new, old]


def test_events_match_patterns_by_position() -> None:
    old, new = pod("web-0", rv="1"), pod("web-0", rv="2")
    events: list[Event] = [Added(new, True), Updated(old, new), Deleted(new, "vanished")]

    seen: list[object] = []
    for event in events:
        match event:
            case Added(obj, initial):
                seen.append((obj, initial))
            case Updated(before, after, resync):
                seen.append((before, after, resync))
            case Deleted(obj, reason):
                seen.append((obj, reason))
    assert seen == [(new, True), (old, new, False), (new, "vanished")]


def test_events_are_live_and_deletions_have_the_reason_deleted_by_default() -> None:
    obj = pod("web-0")

    assert not Added(obj).initial
    assert not Updated(obj, obj).resync
    assert Deleted(obj).reason == "deleted"


def test_events_can_not_be_changed() -> None:
    event: Any = Added(pod("web-0"))

    with pytest.raises(AttributeError):
        event.initial = True


def test_raw_contains_the_sent_bytes() -> None:
    assert pod("web-0").raw == encode(pod_body("web-0"))


@pytest.mark.parametrize("name", ["metadata", "spec", "status", "data"])
def test_the_error_for_an_attribute_suggests_the_key(name: str) -> None:
    obj: Any = pod("web-0")

    with pytest.raises(AttributeError, match=rf"it is a mapping, write obj\['{name}'\]"):
        getattr(obj, name)
    assert not hasattr(obj, name)


def test_dir_lists_what_can_be_read() -> None:
    obj = pod("web-0")

    assert all(hasattr(obj, name) for name in dir(obj))
    assert {"get", "key", "labels", "raw", "to_dict"} <= set(dir(obj))
    assert not {"metadata", "spec", "update", "append"} & set(dir(obj))


def test_dir_decodes_nothing() -> None:
    assert "labels" in dir(undecodable_pod())
