"""Tests of JSON patch as the API server reads it; ``recordings/writes`` has the real answers."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer.errors import BadRequest, Invalid
from aioinformer.testing.writes.patches import JsonPatch

BODY: dict[str, Any] = {"a": {"b": [1, 2, 3], "c/d~e": 1}, "n": None}


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"op": "add", "path": "/a/b/1", "value": 9}, {"b": [1, 9, 2, 3]}),
        ({"op": "add", "path": "/a/b/-", "value": 9}, {"b": [1, 2, 3, 9]}),
        ({"op": "add", "path": "/a/b/-1", "value": 9}, {"b": [1, 2, 3, 9]}),
        ({"op": "add", "path": "/a/x", "value": 9}, {"x": 9}),
        ({"op": "remove", "path": "/a/b/0"}, {"b": [2, 3]}),
        ({"op": "remove", "path": "/a/b/-1"}, {"b": [1, 2]}),
        ({"op": "replace", "path": "/a/b/2", "value": 9}, {"b": [1, 2, 9]}),
        ({"op": "replace", "path": "/a/c~1d~0e", "value": 9}, {"c/d~e": 9}),
        ({"op": "copy", "from": "/a/b/0", "path": "/a/x"}, {"x": 1}),
        ({"op": "move", "from": "/a/b/0", "path": "/a/b/-"}, {"b": [2, 3, 1]}),
        ({"op": "test", "path": "/a/b", "value": [1, 2, 3]}, {}),
    ],
)
def test_each_operation_follows_the_rfc(
    operation: dict[str, Any], expected: dict[str, Any]
) -> None:
    before = deepcopy(BODY)
    assert JsonPatch([operation]).apply(BODY)["a"] == BODY["a"] | expected
    assert before == BODY, "what is patched is a copy"


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a/b/0", "value": 1.0},
        {"op": "test", "path": "/n", "value": False},
        {"op": "test", "path": "/a/b", "value": [1, 2]},
        {"op": "remove", "path": "/a/x"},
        {"op": "remove", "path": "/a/b/3"},
        {"op": "remove", "path": "/a/b/-4"},
        {"op": "add", "path": "/a/b/x", "value": 1},
        {"op": "add", "path": "/x/y", "value": 1},
        {"op": "add", "path": "/n/y", "value": 1},
        {"op": "replace", "path": "", "value": {}},
        {"op": "move", "path": "/x"},
        {"op": 5, "path": "/x"},
        {"path": "/x"},
    ],
)
def test_an_operation_that_fails_undoes_all(operation: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match="the server rejected our request"):
        JsonPatch([{"op": "add", "path": "/z", "value": 1}, operation]).apply(BODY)


@pytest.mark.parametrize("body", [b"{}", b"[1]", b"[", b"\xff"])
def test_a_body_that_is_no_list_of_operations_is_an_error(body: bytes) -> None:
    with pytest.raises(BadRequest):
        JsonPatch.decode(body)


keys = st.sampled_from(["a", "b", "~", "/", "-", "0"])
documents = st.dictionaries(
    keys, st.dictionaries(keys, st.integers()) | st.lists(st.integers(), max_size=3), max_size=3
)


@given(documents, keys, st.integers())
def test_an_added_value_can_be_tested_and_removed(
    body: dict[str, Any], key: str, value: int
) -> None:
    path = "/" + key.replace("~", "~0").replace("/", "~1")
    added = {"op": "add", "path": path, "value": value}
    tested = {"op": "test", "path": path, "value": value}
    removed = {"op": "remove", "path": path}
    without = {name: part for name, part in body.items() if name != key}
    assert JsonPatch([added, tested, removed]).apply(body) == without
