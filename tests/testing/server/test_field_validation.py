"""Tests of unknown and duplicate fields. Answers of the real server are compared elsewhere."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.testing import ApiServer
from aioinformer.testing.server.field_validation import find_duplicates

SIZES = "/apis/example.com/v1/namespaces/default/sizes"
MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}
SPEC: dict[str, Any] = {"type": "object", "properties": {"size": {"type": "integer"}}}
DEFINITION: dict[str, Any] = {
    "metadata": {"name": "sizes.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "sizes", "kind": "Size"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC}}},
            }
        ],
    },
}
BODY = {
    "apiVersion": "example.com/v1",
    "kind": "Size",
    "metadata": {"name": "a"},
    "spec": {"size": 1, "odd": 2},
}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "odd": 1}, "odd": 2}


@pytest.fixture(autouse=True)
def defined(server: ApiServer) -> None:
    server.cluster.create("customresourcedefinitions", DEFINITION)


async def test_an_unknown_field_gives_a_warning_unless_the_client_requests_an_error_or_none(
    http: aiohttp.ClientSession,
) -> None:
    statuses: dict[str, int] = {}
    warnings: dict[str, list[str]] = {}
    for value in ("Strict", "Ignore", "Warn", ""):
        body = BODY | {"metadata": {"name": f"a{value}".lower()}}
        query = {"fieldValidation": value}
        async with http.post(SIZES, json=body, params=query) as response:
            statuses[value] = response.status
            warnings[value] = response.headers.getall("Warning", [])
    assert statuses == {"Strict": 400, "Ignore": 201, "Warn": 201, "": 201}
    text = '299 - "unknown field \\"spec.odd\\""'
    assert warnings == {"Strict": [], "Ignore": [], "Warn": [text], "": [text]}


async def test_a_strict_patch_is_rejected_with_the_patched_object(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    server.cluster.create("sizes.example.com", BODY | {"spec": {"size": 1}})
    url = f"{SIZES}/a?fieldValidation=Strict"
    async with http.patch(url, data='{"spec":{"odd":1}}', headers=MERGE_PATCH) as response:
        message = (await response.json())["message"]
        assert response.status == 422
    assert message.startswith(' "" is invalid: patch: Invalid value: "{')
    assert '\\"spec\\":{\\"odd\\":1,\\"size\\":1}}": strict decoding error: ' in message
    assert message.endswith('unknown field "spec.odd"')


async def test_a_resource_without_a_schema_has_no_unknown_fields(
    http: aiohttp.ClientSession,
) -> None:
    url = "/api/v1/namespaces/default/pods?fieldValidation=Strict"
    async with http.post(url, json=POD) as response:
        assert (response.status, response.headers.getall("Warning", [])) == (201, [])


@given(st.recursive(st.integers(), lambda inner: st.dictionaries(st.text(max_size=2), inner)))
def test_a_text_without_repeated_members_has_no_duplicates(value: object) -> None:
    assert find_duplicates(json.dumps(value).encode()) == []


def test_duplicates_are_found_at_any_depth_in_the_order_of_the_text() -> None:
    text = b'{"a":{"b":1,"b":2,"b":3},"l":[{"x":1},{"x":1,"x":2}],"a":1}'
    assert find_duplicates(text) == ["a.b", "a.b", "l[1].x", "a"]


def test_yaml_is_not_searched_for_duplicates() -> None:
    assert find_duplicates(b"a: 1\na: 2\n") == []
