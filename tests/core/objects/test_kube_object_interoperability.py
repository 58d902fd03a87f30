"""Cached objects as arguments of other libraries: JSON, FastAPI, pydantic, YAML, pickle."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import httpx
import msgspec
import pytest
import yaml
from fastapi import FastAPI, Response
from fastapi.encoders import jsonable_encoder
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.readonly import freeze
from tests.core.builders import PODS, make_object, pod_body

BODY: dict[str, Any] = pod_body("web-0", labels={"app": "shop"}) | {
    "spec": {
        "nodeName": "node-7",
        "containers": [{"name": "app", "image": "shop:1"}],
        "volumes": [],
    },
}
WHOLE = {"apiVersion": "v1", "kind": "Pod"} | BODY


class Container(BaseModel):
    name: str
    image: str


class Spec(BaseModel):
    nodeName: str  # noqa: N815 - the key in the JSON
    containers: list[Container]
    volumes: list[dict[str, str]]


class Pod(BaseModel):
    spec: Spec


POD = Pod(
    spec=Spec(nodeName="node-7", containers=[Container(name="app", image="shop:1")], volumes=[])
)


@pytest.fixture(name="obj", params=["closed", "open"])
def either_way(request: pytest.FixtureRequest) -> KubeObject:
    """Create the pod, with or without a decoded body."""
    obj = make_object(BODY)
    if request.param == "open":
        assert obj["spec"]
    return obj


# -- supported encodings -------------------------------------------------------------------------


def test_json_takes_the_copy_and_its_parts(obj: KubeObject) -> None:
    assert json.loads(json.dumps(obj.to_dict())) == WHOLE
    assert json.loads(json.dumps(obj["spec"].to_dict())) == BODY["spec"]
    assert json.loads(json.dumps(obj["spec"]["containers"].to_list())) == [
        {"name": "app", "image": "shop:1"}
    ]


def test_json_takes_a_list_of_objects_with_the_copy_as_its_default(obj: KubeObject) -> None:
    assert json.loads(json.dumps([obj, obj], default=KubeObject.to_dict)) == [WHOLE, WHOLE]
    assert json.loads(json.dumps({"pods": obj}, default=KubeObject.to_dict)) == {"pods": WHOLE}


def test_the_bytes_are_json_as_they_stand(obj: KubeObject) -> None:
    assert json.loads(obj.raw) == BODY


def test_yaml_takes_the_copy(obj: KubeObject) -> None:
    assert yaml.safe_load(yaml.safe_dump(obj.to_dict())) == WHOLE


def test_pydantic_validates_the_copy_the_bytes_and_the_object_itself(obj: KubeObject) -> None:
    """Pydantic reads a ``Mapping`` like a dict, and a ``Sequence`` like a list."""
    assert Pod.model_validate(obj.to_dict()) == POD
    assert Pod.model_validate_json(obj.raw) == POD
    assert Pod.model_validate(obj) == POD


def test_a_json_response_takes_the_copy(obj: KubeObject) -> None:
    assert json.loads(bytes(JSONResponse(obj.to_dict()).body)) == WHOLE


async def test_endpoints_answer_with_the_copy_or_with_the_bytes(obj: KubeObject) -> None:
    app = FastAPI()

    @app.get("/copy")
    async def as_a_copy() -> dict[str, Any]:
        return obj.to_dict()

    @app.get("/bytes")
    async def as_bytes() -> Response:
        return Response(obj.raw, media_type="application/json")

    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        answers = [await client.get(path) for path in ("/copy", "/bytes")]
    assert [answer.json() for answer in answers] == [WHOLE, BODY]
    assert {answer.headers["content-type"] for answer in answers} == {"application/json"}


# -- unsupported encodings -----------------------------------------------------------------------

NOT_ENCODED: dict[str, Callable[[Any], object]] = {
    "json": json.dumps,
    "yaml": yaml.safe_dump,
    "msgspec": msgspec.json.encode,
    "msgspec's builtins": msgspec.to_builtins,
    "FastAPI": jsonable_encoder,
    "FastAPI's response": JSONResponse,
}


@pytest.mark.parametrize("encode", NOT_ENCODED.values(), ids=NOT_ENCODED.keys())
def test_an_encoder_rejects_the_object_itself(
    encode: Callable[[Any], object], obj: KubeObject
) -> None:
    """An encoder would otherwise write the object's fields, or turn its lists into dicts."""
    refusals = (TypeError, ValueError, yaml.representer.RepresenterError)
    with pytest.raises(refusals):
        encode(obj)


@pytest.mark.parametrize(
    "encode",
    [msgspec.json.encode, msgspec.to_builtins, jsonable_encoder],
    ids=["msgspec", "msgspec's builtins", "FastAPI"],
)
def test_the_error_of_an_encoder_that_allows_it_suggests_to_dict(
    encode: Callable[[Any], object], obj: KubeObject
) -> None:
    """The errors of the other encoders contain the type's name only, without room for advice."""
    with pytest.raises((TypeError, ValueError), match=r"to_dict\(\)"):
        encode(obj)


@pytest.mark.parametrize("ports", [[], [{"name": "a", "image": "b"}], [["a", "b"]]], ids=str)
def test_the_conversion_of_a_list_to_a_dict_is_a_type_error(ports: list[Any]) -> None:
    """``dict([{"name": ..., "image": ...}])`` would be ``{"name": "image"}``."""
    with pytest.raises(TypeError, match=r"makes no dict; .* to_list\(\).*-> list\[KubeObject\]"):
        dict(freeze(ports))


# -- copies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_an_object_survives_every_pickle_protocol(protocol: int, obj: KubeObject) -> None:
    twin = pickle.loads(pickle.dumps(obj, protocol))  # noqa: S301 - ours

    assert (twin, twin.resource_version, twin.resource) == (obj, obj.resource_version, PODS)
    assert twin["spec"] == obj["spec"]


def test_a_pickle_holds_what_makes_an_object_and_nothing_of_the_cache() -> None:
    """A pickle holds public names and plain values: other versions of the library can read it."""
    obj = make_object(BODY)
    closed = pickle.dumps(obj)
    assert obj["spec"]

    assert pickle.dumps(obj) == closed
    assert b"open_bodies" not in closed
    constructor, arguments = obj.__reduce__()
    assert constructor is KubeObject
    assert arguments == (obj.key, obj.uid, obj.resource_version, obj.raw, obj.resource)


def through_a_pickle(view: Any) -> Any:
    """Return the copy that pickling and unpickling makes."""
    return pickle.loads(pickle.dumps(view))  # noqa: S301 - ours


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, through_a_pickle])
def test_parts_of_an_object_can_be_copied_and_pickled(
    clone: Callable[[Any], Any], obj: KubeObject
) -> None:
    for part in (obj["spec"], obj["spec"]["containers"]):
        twin = clone(part)
        assert twin == part
        assert type(twin) is type(part)
        with pytest.raises(TypeError, match="read-only"):
            twin[0] = "changed"
