"""A definition with a schema, subresources and columns, and the requests to both servers."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.apiserver.fidelity.write_requests import APPLY, JSON, MERGE, WriteRequest
from tests.apiserver.server.admin import Json

SIZES = "/apis/example.com/v1/namespaces/default/sizes"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

_ITEM: Json = {"type": "object", "properties": {"x": {"type": "integer", "default": 7}}}
_FREE: Json = {
    "type": "object",
    "x-kubernetes-preserve-unknown-fields": True,
    "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}},
}
_SPEC: Json = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 10},
        "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        "text": {"type": "string", "pattern": "^a+$", "maxLength": 3, "minLength": 1},
        "list": {"type": "array", "minItems": 1, "maxItems": 2, "items": _ITEM},
        "port": {"x-kubernetes-int-or-string": True},
        "opt": {"type": "string", "nullable": True},
        "free": _FREE,
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "when": {"type": "string", "format": "date-time"},
        "replicas": {"type": "integer"},
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"],
            "items": {
                "type": "object",
                "required": ["port"],
                "properties": {
                    "port": {"type": "integer"},
                    "protocol": {"type": "string", "default": "TCP"},
                    "note": {"type": "string"},
                },
            },
        },
        "tags": {
            "type": "array",
            "x-kubernetes-list-type": "set",
            "items": {"type": "string"},
        },
    },
}
_STATUS: Json = {
    "type": "object",
    "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}},
}
SIZE_CRD: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "sizes.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "sizes", "kind": "Size", "shortNames": ["sz"], "categories": ["all"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {"spec": _SPEC, "status": _STATUS},
                    }
                },
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
                "selectableFields": [
                    {"jsonPath": ".spec.color"},
                    {"jsonPath": ".spec.size"},
                    {"jsonPath": ".status.replicas"},
                ],
                "additionalPrinterColumns": [
                    {
                        "name": "Size",
                        "type": "integer",
                        "jsonPath": ".spec.size",
                        "description": "the size",
                    },
                    {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
            }
        ],
    },
}


def size(name: str, **more: Any) -> Json:
    head = {"apiVersion": "example.com/v1", "kind": "Size", "metadata": {"name": name}}
    return {**head, **more}


_SPECS: list[dict[str, Any]] = [
    {},
    {"size": "x"},
    {"size": 0},
    {"size": 11},
    {"size": True},
    {"size": 1, "color": "green"},
    {"size": 1, "text": "bbbb"},
    {"size": 1, "text": ""},
    {"size": 1, "text": "b"},
    {"size": 1, "list": []},
    {"size": 1, "list": [{}, {}, {}]},
    {"size": 1, "list": [{"x": "y"}]},
    {"size": 1, "list": {}},
    {"size": 1, "map": {"k": 1}},
    {"size": 1, "when": "nope"},
    {"size": 1, "port": 1.5},
    {"size": 1, "free": 5},
    {"size": 1, "tags": ["a", "b", "a", "a"]},
    {"size": 1, "ports": [{"port": 1}, {"port": 1, "note": "x"}, {"port": 1}]},
    {"size": 11, "tags": ["a", "a"]},
    {"size": 1, "ports": [{"port": 1}, {"port": 1, "protocol": "UDP"}, {"port": 2}]},
]

BODIES: list[Json] = [
    size(
        "a",
        spec={
            "size": 3,
            "unknown": 1,
            "list": [{"y": 1}],
            "free": {"q": 1, "a": {"b": "x", "c": 1}},
            "map": {"k": "v"},
            "port": "http",
            "opt": None,
        },
    ),
    size("b", spec={"size": 3}, status={"replicas": 1}, top=1),
    size("c"),
    *(size("c", spec=spec) for spec in _SPECS),
]
"""Bodies to create, valid ones and others."""

WRITES: list[WriteRequest] = [
    WriteRequest("PATCH", f"{SIZES}/a", '{"spec":{"size":99}}', MERGE),
    WriteRequest("PATCH", f"{SIZES}/a", '{"spec":{"other":99}}', MERGE),
    WriteRequest("PATCH", f"{SIZES}/a", '{"spec":{"color":null}}', MERGE),
    WriteRequest("GET", f"{SIZES}/a/scale"),
    WriteRequest("PATCH", f"{SIZES}/a/scale", '{"spec":{"replicas":4}}', MERGE),
    WriteRequest(
        "PUT",
        f"{SIZES}/a/scale",
        '{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a",'
        '"namespace":"default"},"spec":{"replicas":5}}',
    ),
    WriteRequest(
        "PUT",
        f"{SIZES}/a/scale",
        '{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a",'
        '"namespace":"default"},"spec":{"replicas":-5}}',
    ),
    WriteRequest(
        "PATCH",
        f"{SIZES}/a/status",
        '{"status":{"replicas":4,"selector":"a=b","unknown":1}}',
        MERGE,
    ),
    WriteRequest("GET", f"{SIZES}/a/scale"),
]

SELECTIONS: list[WriteRequest] = [
    WriteRequest("GET", f"{SIZES}?fieldSelector={selector}")
    for selector in (
        "spec.color%3Dred",
        "spec.color!%3Dred",
        "spec.size%3D3",
        "spec.size%3D3,metadata.name%3Db",
        "status.replicas%3D",
        "status.replicas%3D5",
        "spec.text%3Da",
        "metadata.namespace%3Ddefault",
    )
]
"""Lists by the selectable fields of the definition, and by another one."""


def _bad_definition(version: Json | None = None, **spec: Any) -> WriteRequest:
    versions = [SIZE_CRD["spec"]["versions"][0] | (version or {})]
    names = {"plural": "bads", "kind": "Bad"} | spec.pop("names", {})
    changed: Json = SIZE_CRD["spec"] | {"versions": versions, "names": names} | spec
    body = SIZE_CRD | {"metadata": {"name": "bads.example.com"}, "spec": changed}
    return WriteRequest("POST", DEFINITIONS, msgspec.json.encode(body).decode())


BAD_DEFINITIONS: list[WriteRequest] = [
    _bad_definition(names={"shortNames": 5}),
    _bad_definition(names={"categories": "all"}),
    _bad_definition(scope="Foo"),
    _bad_definition(scope=5),
    _bad_definition({"name": "v 1"}),
    _bad_definition({"name": None}),
    _bad_definition({"subresources": 5}),
    _bad_definition({"additionalPrinterColumns": [5]}),
    _bad_definition({"selectableFields": [{}]}),
    _bad_definition({"selectableFields": [{"jsonPath": ".metadata.labels"}]}),
    _bad_definition({"selectableFields": [{"jsonPath": ".spec.nope"}]}),
    _bad_definition({"selectableFields": [{"jsonPath": ".spec.list"}]}),
]
"""Definitions with wrong types and values, none of which is stored."""

DISCOVERY = WriteRequest("GET", "/apis/example.com/v1")
"""The resources of the definitions. A real server updates this document some time after it has
begun to serve them."""


def _sent(name: str, rest: str) -> str:
    return (
        f'{{"apiVersion":"example.com/v1","kind":"Size","metadata":{{"name":"{name}","odd":1}},'
        f'"spec":{{"size":1,{rest}}}}}'
    )


_STRICT, _WARN, _IGNORE = (f"fieldValidation={each}" for each in ("Strict", "Warn", "Ignore"))
_TWICE = '"size":2,"nope":1,"nope":2,"free":{"q":1,"a":{"c":1}},"list":[{"y":1}]'

FIELD_WRITES: list[WriteRequest] = [
    WriteRequest("POST", f"{SIZES}?{_STRICT}", _sent("f0", _TWICE), JSON),
    WriteRequest("POST", f"{SIZES}?{_WARN}", _sent("f1", _TWICE), JSON),
    WriteRequest("POST", f"{SIZES}?{_IGNORE}", _sent("f2", _TWICE), JSON),
    WriteRequest("POST", SIZES, _sent("f3", _TWICE), JSON),
    WriteRequest("POST", f"{SIZES}?fieldValidation=No", _sent("f4", _TWICE), JSON),
    WriteRequest("PUT", f"{SIZES}/f1?{_STRICT}", _sent("f1", '"nope":1'), JSON),
    WriteRequest("PATCH", f"{SIZES}/f1?{_WARN}", '{"spec":{"nope":1,"size":3,"size":4}}', MERGE),
    WriteRequest("PATCH", f"{SIZES}/f1?{_STRICT}", '{"spec":{"size":5}}', MERGE),
    WriteRequest("PATCH", f"{SIZES}/f1?{_IGNORE}", '{"spec":{"nope":5}}', MERGE),
    WriteRequest("PATCH", f"{SIZES}/f1?fieldValidation=No", '{"spec":{"nope":5}}', MERGE),
    WriteRequest("PATCH", f"{SIZES}/nope?{_STRICT}", '{"spec":{"nope":5}}', MERGE),
    WriteRequest("PATCH", f"{SIZES}/f1?fieldManager=m", _sent("f1", '"nope":1'), APPLY),
]
"""Writes with unknown and duplicate fields, whose warnings are compared too."""
