"""Projections: a few values of an object, the same as in its whole body."""

from __future__ import annotations

import copy
import pickle
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import Lister, field, fields
from aioinformer._core.cache.indexer import Indexer
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.selectors.paths import Step, render_path, walk
from aioinformer._core.selectors.projections import Field, Fields
from aioinformer.errors import InvalidPath, ObjectDecodeError, PathMismatch
from tests.core import strategies
from tests.core.builders import PODS, added, make_object, pod, undecodable_pod

SHOP = make_object(
    {
        "metadata": {
            "name": "web-0",
            "namespace": "web",
            "uid": "u-1",
            "resourceVersion": "7",
            "labels": {"app.kubernetes.io/name": "shop", "tier": "front"},
        },
        "spec": {
            "nodeName": "node-1",
            "containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:2"}],
            "hostNetwork": False,
            "replicas": 3,
        },
        "status": {"phase": "Running", "podIPs": None},
    }
)


def opened(obj: KubeObject) -> bool:
    """Return True if ``obj`` holds its decoded body."""
    return msgspec.structs.asdict(obj)["_body"].content is not None


def closed(obj: KubeObject) -> KubeObject:
    """Return an equal object whose body is not decoded."""
    return KubeObject(obj.key, obj.uid, obj.resource_version, obj.raw, obj.resource)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.nodeName", "node-1"),
        ("spec.containers[1].image", "b:2"),
        ("spec.containers[2].image", None),
        ("metadata.labels['app.kubernetes.io/name']", "shop"),
        ("metadata.labels", {"app.kubernetes.io/name": "shop", "tier": "front"}),
        ("metadata.annotations", None),
        ("metadata.name", "web-0"),
        ("metadata.namespace", "web"),
        ("metadata.uid", "u-1"),
        ("metadata.resourceVersion", "7"),
        ("spec.hostNetwork", False),
        ("spec.replicas", 3),
        ("status.podIPs[0].ip", None),
        ("status.phase.word", None),
        ("kind", "Pod"),
        ("apiVersion", "v1"),
        ("metadata['a\"b']", None),
        ("spec.containers[2]", None),
        ("spec.volumes[0].name", None),
        ("spec.affinity.nodeAffinity.weight", None),
        ("data.key.part", None),
    ],
)
def test_a_field_is_the_value_at_its_path(path: str, value: object) -> None:
    obj = closed(SHOP)

    assert Field(path)(obj) == value
    assert obj["metadata"]  # from here on the body is decoded
    assert Field(path)(obj) == value


@pytest.mark.parametrize("path", ["spec.containers", "spec", "spec.containers[0]"])
def test_a_part_of_an_object_is_read_only(path: str) -> None:
    part = cast("dict[Any, Any]", Field(path)(SHOP))

    with pytest.raises(TypeError, match="read-only"):
        part[0] = "changed"


def test_several_fields_are_a_tuple_in_the_order_of_their_paths() -> None:
    read = Fields(("status.phase", "spec.containers[0].image", "metadata.name", "spec", "spec.x"))

    assert read(SHOP) == ("Running", "a:1", "web-0", SHOP["spec"], None)
    assert Fields(())(SHOP) == ()


def test_reading_a_field_leaves_the_object_closed() -> None:
    obj = pod("web-7", node="node-7")

    read = Fields(("spec.nodeName", "metadata.name", "kind"))
    assert read(obj) == ("node-7", "web-7", "Pod")

    assert not opened(obj)


def test_the_metadata_that_every_object_carries_needs_no_bytes() -> None:
    broken = KubeObject(SHOP.key, "u-1", "7", b"no JSON", SHOP.resource)

    names = Fields(("metadata.name", "metadata.uid"))

    assert names(broken) == ("web-0", "u-1")
    assert Field("metadata.namespace")(broken) == "web"
    assert not names.needs_bytes
    assert not Field("metadata.namespace").needs_bytes
    assert Fields(("metadata.name", "metadata.labels")).needs_bytes
    assert Field("spec[0]").needs_bytes


def test_kind_and_namespace_are_the_same_whether_or_not_the_body_is_open() -> None:
    """An object may state another kind than its resource's, and an empty namespace."""
    metadata = {"name": "n", "namespace": "", "uid": "u", "resourceVersion": "7"}
    obj = make_object({"kind": "Other", "metadata": metadata})
    read = Fields(("kind", "apiVersion", "metadata.namespace", "metadata.name"))

    assert read(obj) == ("Other", "v1", None, "n")
    assert obj["metadata"]  # from here on the body is decoded
    assert read(obj) == ("Other", "v1", None, "n")


def test_a_path_is_compiled_once() -> None:
    assert field("spec.nodeName") is field("spec.nodeName")
    assert field("spec.nodeName") is not field("spec.nodeName", strict=True)
    assert fields("a", "b") is fields("a", "b")


def test_the_repr_is_the_expression_that_makes_the_projection() -> None:
    assert repr(field("spec.nodeName")) == "field('spec.nodeName')"
    assert repr(fields("a", "b", strict=True)) == "fields('a', 'b', strict=True)"


@pytest.mark.parametrize("make", [field, fields])
def test_a_path_that_does_not_parse_is_an_error_at_once(make: Any) -> None:
    with pytest.raises(InvalidPath, match=r"spec\.\n +\^ at the end"):
        make("spec.")


def test_the_error_of_a_strict_field_names_the_object() -> None:
    with pytest.raises(PathMismatch) as caught:
        Field("status.phase.word", strict=True)(SHOP)

    message = "status.phase.word doesn't fit pods web/web-0: status.phase is a string"
    assert str(caught.value) == message
    assert isinstance(caught.value, TypeError)
    with pytest.raises(PathMismatch, match=r"^spec\.replicas\.x, kind doesn't fit pods web/web-0"):
        Fields(("spec.replicas.x", "kind"), strict=True)(SHOP)


def test_a_strict_field_does_not_fit_an_item_of_a_list_either() -> None:
    path = "spec.containers[1].image.word"

    assert Field(path)(SHOP) is None
    with pytest.raises(PathMismatch, match=r"spec\.containers\[1\]\.image is a string$"):
        Field(path, strict=True)(closed(SHOP))


@pytest.mark.parametrize("path", ["spec.containers[1].image", "status.phase"])
def test_a_strict_field_does_not_fit_a_value_that_is_read_as_a_whole_too(path: str) -> None:
    both = (path, f"{path}.word")

    assert Fields(both)(closed(SHOP)) == (Field(path)(SHOP), None)
    with pytest.raises(PathMismatch, match=r" is a string$"):
        Fields(both, strict=True)(closed(SHOP))


def test_a_strict_field_that_is_absent_is_none() -> None:
    assert Field("status.conditions[0].type", strict=True)(SHOP) is None
    assert Field("status.podIPs[0].ip", strict=True)(SHOP) is None


def test_a_body_that_is_no_json_is_a_decode_error() -> None:
    broken = KubeObject(SHOP.key, "", "7", b'{"metadata":{}', SHOP.resource)

    with pytest.raises(ObjectDecodeError, match="pods web/web-0 at resourceVersion 7"):
        Field("spec.nodeName")(broken)


def test_a_projection_does_not_decode_the_rest_of_a_body() -> None:
    assert Field("metadata.labels")(undecodable_pod()) is None


def test_one_path_may_be_the_beginning_of_another() -> None:
    paths = ("spec", "spec.nodeName", "spec.containers[0]", "spec.containers[0].image", "[0]")
    read = Fields(paths)

    assert read(SHOP)[1:] == ("node-1", {"name": "a", "image": "a:1"}, "a:1", None)
    containers = SHOP["spec"]["containers"]
    read = Fields(("spec.containers", "spec.containers[1].image", "spec.containers[2].image"))
    assert read(closed(SHOP)) == (containers, "b:2", None)


def test_a_projection_can_be_an_index_function() -> None:
    indexer = Indexer({"node": field("spec.nodeName"), "finalizer": field("metadata.finalizers")})
    held = {"metadata": {"name": "a", "finalizers": ["x", "y"]}, "spec": {"nodeName": "node-1"}}

    for body in (held, {"metadata": {"name": "b"}}):
        assert indexer.apply(added(make_object(body)), []) is None

    lister = Lister(indexer, PODS, unsynced=True)
    assert lister.index_values("node") == ["node-1"]
    assert sorted(lister.index_values("finalizer")) == ["x", "y"]
    assert [obj.name for obj in lister.by_index("node", "node-1")] == ["a"]


@given(st.data())
def test_a_field_is_what_walking_the_whole_body_finds(data: st.DataObject) -> None:
    body = data.draw(strategies.objects())
    ways = data.draw(st.lists(strategies.paths_into(body), min_size=1, max_size=4))
    _check(make_object(body), data.draw(strategies.json_styles)(body), ways)


def _check(obj: KubeObject, raw: bytes, ways: list[tuple[Step, ...]]) -> None:
    obj = KubeObject(obj.key, obj.uid, obj.resource_version, raw, obj.resource)
    whole = obj.to_dict()
    expected = tuple(walk(whole, steps) for steps in ways)
    paths = tuple(render_path(steps) for steps in ways)

    assert Fields(paths)(obj) == expected
    assert tuple(Field(path)(obj) for path in paths) == expected
    assert obj["metadata"]  # from here on the body is decoded
    assert opened(obj)
    assert Fields(paths)(obj) == expected


def test_projections_of_the_same_paths_are_equal_however_they_were_made() -> None:
    """Two parts of a program may add the same index, so equality must not depend on caching."""
    assert Field("spec.nodeName") == field("spec.nodeName")
    assert hash(Field("spec.nodeName")) == hash(field("spec.nodeName"))
    assert Fields(("a", "b")) == fields("a", "b")
    assert hash(Fields(("a", "b"))) == hash(fields("a", "b"))
    different = [field("a"), field("b"), field("a", strict=True), fields("a"), fields("b")]
    assert len({*different}) == len(different)
    assert hash(Field("a")) != hash(Field("b"))
    assert hash(Fields(("a",))) != hash(Fields(("b",)))


@pytest.mark.parametrize("read", [field("spec.nodeName", strict=True), fields("a", "b"), fields()])
def test_a_projection_is_pickled_and_copied_as_its_paths(read: Field | Fields) -> None:
    """It holds a decoder, which can't be, and a process pool may want its function."""
    assert pickle.loads(pickle.dumps(read)) is read  # noqa: S301 - ours
    assert copy.deepcopy(read) is read
