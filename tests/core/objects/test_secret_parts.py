"""The parts of a Secret: no repr shows contents, however a program got the part."""

from __future__ import annotations

import copy
import pickle
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from aioinformer import Added, Deleted, KubeObject, Resource, Updated, field, fields
from aioinformer._core.objects.resources import find_built_in
from aioinformer.errors import PathMismatch
from tests.core.builders import make_object

CANARY = "hunter2"
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
BODY: dict[str, Any] = {
    "metadata": {
        "name": "a",
        "namespace": "web",
        "resourceVersion": "1",
        "labels": {"app": "shop"},
        "annotations": {APPLIED: f'{{"stringData":{{"pin":"{CANARY}"}}}}'},
        "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:data": {CANARY: {}}}}],
    },
    "data": {"pin": CANARY, "deep": {"list": [[{"pin": CANARY}], CANARY]}},
    "list": [CANARY, {"pin": CANARY}],
}

VIEWS: dict[str, Callable[[KubeObject], object]] = {
    "item": lambda obj: obj["data"],
    "item with a default": lambda obj: obj.get("data"),
    "nested": lambda obj: obj["data"]["deep"],
    "nested with a default": lambda obj: obj["data"].get("deep", {}),
    "list": lambda obj: obj["list"],
    "item of a list": lambda obj: obj["list"][1],
    "slice": lambda obj: obj["list"][:1],
    "list in a list": lambda obj: obj["data"]["deep"]["list"][0],
    "iteration": lambda obj: [obj[name] for name in obj],
    "iteration of a list": lambda obj: list(obj["list"])[1:],
    "reversed list": lambda obj: next(iter(reversed(obj["list"]))),
    "values": lambda obj: (obj.values(), list(obj.values())),
    "values of a part": lambda obj: obj["data"].values(),
    "items": lambda obj: (obj.items(), list(obj.items())),
    "items of a part": lambda obj: obj["data"].items(),
    "dict of the object": dict,
    "keywords": lambda obj: dict(**obj),
    "metadata": lambda obj: obj["metadata"],
    "managedFields": lambda obj: obj["metadata"]["managedFields"],
    "annotations": lambda obj: obj.annotations,
    "annotations as an item": lambda obj: obj["metadata"]["annotations"],
    "field": field("data"),
    "field of a list": field("list[1]"),
    "fields": fields("data.deep", "metadata.annotations", "list"),
    "shallow copy": lambda obj: copy.copy(obj["data"]),
    "deep copy": lambda obj: copy.deepcopy(obj["data"]),
    "pickle": lambda obj: pickle.loads(pickle.dumps(obj["data"])),  # noqa: S301 - ours
    "events": lambda obj: [Added(obj), Updated(obj, obj), Deleted(obj)],
    "event's object": lambda obj: Updated(obj, obj).new["data"],
}


def secret(resource: Resource | None = None) -> KubeObject:
    return make_object(BODY, resource=resource or find_built_in("secrets"))


@pytest.mark.parametrize("opened_first", [False, True], ids=["closed", "open"])
@pytest.mark.parametrize("way", VIEWS)
def test_no_repr_of_a_part_of_a_secret_shows_its_contents(way: str, *, opened_first: bool) -> None:
    obj = secret()
    if opened_first:
        assert obj["data"]
    part = VIEWS[way](obj)

    assert CANARY not in f"{part!r} {part} {[part]} {(part,)!r}"


def test_no_repr_of_a_part_of_a_deep_secret_shows_its_contents() -> None:
    obj = secret()
    deep = KubeObject(
        obj.key,
        "u",
        "1",
        obj.raw[:-1] + b',"x":%b}' % (b"[" * 50_000 + b"]" * 50_000),
        obj.resource,
    )

    parts = [*fields("data", "list")(deep), deep.annotations]
    assert parts == [BODY["data"], BODY["list"], BODY["metadata"]["annotations"]]
    assert CANARY not in repr(parts)


def test_the_repr_of_a_part_shows_its_size() -> None:
    obj = secret()

    assert repr(obj["data"]) == "<part of a Secret keys=2>"
    assert repr(obj["metadata"]["managedFields"]) == "<part of a Secret items=1>"
    assert repr(obj.labels) == "{'app': 'shop'}", "labels have no contents"


def test_the_parts_of_a_secret_have_its_contents() -> None:
    obj, other = secret(), secret(find_built_in("configmaps"))

    for name in ("metadata", "data", "list"):
        assert obj[name] == other[name] == BODY[name]
    assert obj["data"].to_dict() == BODY["data"]
    assert type(obj["data"].to_dict()["deep"]) is dict
    assert obj["data"]["deep"]["list"].to_list() == BODY["data"]["deep"]["list"]
    assert obj.to_dict() == BODY | {"apiVersion": "v1", "kind": "Secret"}
    assert type(obj.to_dict()) is dict
    assert field("data.deep.list[0][0].pin")(obj) == CANARY
    match obj:
        case {"data": {"deep": {"list": [[{"pin": pin}], *_]}}}:
            assert pin == CANARY
        case _:
            pytest.fail("a pattern matches the contents")


@pytest.mark.parametrize(
    "resource",
    [find_built_in("configmaps"), Resource("example.com", "v1", "secrets", "Secret")],
    ids=str,
)
def test_the_parts_of_other_objects_show_their_contents(resource: Resource) -> None:
    obj = secret(resource)

    assert repr(obj["data"]) == repr(BODY["data"])
    assert repr(obj.annotations) == repr(BODY["metadata"]["annotations"])
    assert repr(field("list")(obj)) == repr(BODY["list"])


FAILURES: dict[str, Callable[[KubeObject], object]] = {
    "key": lambda obj: obj["dat"],
    "key of a part": lambda obj: obj["data"]["pi"],
    "position": lambda obj: obj["list"][7],
    "writing": lambda obj: obj["data"].update(pin=""),
    "path": lambda obj: fields("data.pin", "list.pin", strict=True)(obj),
}


@pytest.mark.parametrize("opened_first", [False, True], ids=["closed", "open"])
@pytest.mark.parametrize("way", FAILURES)
def test_no_traceback_with_variables_shows_the_contents_of_a_secret(
    way: str, *, opened_first: bool
) -> None:
    obj = secret()
    if opened_first:
        assert obj["data"]
    with pytest.raises((LookupError, AttributeError, PathMismatch)) as caught:
        FAILURES[way](obj)

    shown = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    assert CANARY not in "".join(shown.format())
