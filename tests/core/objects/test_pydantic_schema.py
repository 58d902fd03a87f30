"""Read-only objects in pydantic models and FastAPI endpoints."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient
from pydantic import BaseModel, TypeAdapter, ValidationError

from aioinformer import KubeObject
from aioinformer._core.objects.pydantic_schema import PydanticSerializer
from aioinformer._core.objects.readonly import FrozenMapping, FrozenSequence
from tests.core.builders import make_object, pod_body

BODY = pod_body("web-0") | {"spec": {"nodeName": "node-1", "containers": [{"image": "web:1"}]}}
POD = make_object(BODY)
OBJECT_SCHEMA = {"type": "object", "additionalProperties": True}


@pytest.mark.parametrize(
    ("kind", "value", "content", "schema"),
    [
        (KubeObject, POD, POD.to_dict(), OBJECT_SCHEMA),
        (FrozenMapping, POD["spec"], BODY["spec"], OBJECT_SCHEMA),
        (
            FrozenSequence,
            POD["spec"]["containers"],
            BODY["spec"]["containers"],
            {"type": "array", "items": {}},
        ),
    ],
)
def test_an_object_and_its_parts_are_serialized_as_the_json_that_they_contain(
    kind: type[Any], value: Any, content: Any, schema: dict[str, Any]
) -> None:
    adapter = TypeAdapter[Any](kind)
    assert adapter.validate_python(value) is value
    assert json.loads(adapter.dump_json(value)) == content
    assert adapter.dump_python(value) == content
    assert type(adapter.dump_python(value)) is type(content)
    assert adapter.json_schema(mode="serialization") == schema
    assert adapter.json_schema(mode="validation") == schema


def test_an_object_is_serialized_where_no_type_is_declared() -> None:
    values = {"pod": POD, "parts": [POD["spec"], POD["spec"]["containers"]]}
    assert json.loads(TypeAdapter(Any).dump_json(values)) == {
        "pod": POD.to_dict(),
        "parts": [BODY["spec"], BODY["spec"]["containers"]],
    }


def test_a_model_can_have_an_object_as_a_field() -> None:
    class Report(BaseModel):
        pod: KubeObject
        node: str

    report = Report(pod=POD, node="node-1")
    assert report.pod is POD
    assert json.loads(report.model_dump_json())["pod"] == POD.to_dict()


@pytest.mark.parametrize("value", [None, {}, POD["spec"]])
def test_another_value_is_no_object(value: object) -> None:
    with pytest.raises(ValidationError, match="should be an instance of KubeObject"):
        TypeAdapter(KubeObject).validate_python(value)


def test_an_object_is_not_made_from_json() -> None:
    message = "a KubeObject comes from an informer and can't be made from JSON; declare a model for"
    with pytest.raises(ValidationError, match=f"error, {message} input \\["):
        TypeAdapter(KubeObject).validate_json("{}")
    with pytest.raises(ValidationError, match="should be a valid array"):
        TypeAdapter(FrozenSequence).validate_json("{}")


async def test_fastapi_endpoints_return_objects_and_describe_them() -> None:
    app = FastAPI()

    @app.get("/pod")
    async def pod() -> KubeObject:
        return POD

    @app.get("/pods")
    async def pods() -> list[KubeObject]:
        return [POD]

    @app.get("/parts")
    async def parts() -> dict[str, Any]:
        return {"spec": POD["spec"]}

    async with AsyncClient(transport=ASGITransport(app), base_url="http://test") as http:
        assert (await http.get("/pod")).json() == POD.to_dict()
        assert (await http.get("/pods")).json() == [POD.to_dict()]
        assert (await http.get("/parts")).json() == {"spec": BODY["spec"]}
        api = (await http.get("/openapi.json")).json()
    response = api["paths"]["/pods"]["get"]["responses"]["200"]
    assert response["content"]["application/json"]["schema"]["items"] == OBJECT_SCHEMA


def test_pydantic_is_imported_at_the_first_use_only() -> None:
    program = "import sys, aioinformer; sys.exit('pydantic_core' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_each_class_has_one_serializer() -> None:
    serializer = FrozenMapping.__pydantic_serializer__

    assert FrozenMapping.__pydantic_serializer__ is serializer
    assert FrozenSequence.__pydantic_serializer__ is not serializer

    class Part(FrozenMapping):
        """A class whose serializer was not made before."""

    assert Part.__pydantic_serializer__.to_json(Part({"a": [1]})) == b'{"a":[1]}'
    assert Part.__pydantic_serializer__ is not serializer


def test_a_descriptor_makes_the_serializer_of_any_read_only_class() -> None:
    descriptor = PydanticSerializer()

    assert descriptor.__get__(None, FrozenMapping).to_json(FrozenMapping({"a": 1})) == b'{"a":1}'
    assert descriptor.__get__(None, FrozenSequence).to_json(FrozenSequence([1])) == b"[1]"


def test_without_pydantic_there_is_no_serializer(monkeypatch: pytest.MonkeyPatch) -> None:
    class Part(FrozenMapping):
        """A class whose serializer was not made before."""

    monkeypatch.setitem(sys.modules, "pydantic_core", None)
    with pytest.raises(AttributeError, match=r"^pydantic is not installed$"):
        _ = Part.__pydantic_serializer__
