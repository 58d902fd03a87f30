"""Tests of pruning, defaults and validation. Answers of the real server are compared elsewhere."""

from __future__ import annotations

import logging
import sys
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import Resource
from aioinformer.errors import Invalid
from aioinformer.testing.writes.structural_schema import StructuralSchema

SIZES = Resource("example.com", "v1", "sizes", "Size")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "a": {
            "type": "object",
            "default": {},
            "properties": {"b": {"type": "integer", "default": 1}, "c": {"type": "string"}},
        },
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {}}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"x": {"default": 2}}}},
        "null": {"type": "string", "nullable": True, "enum": ["x"]},
    },
}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "c", "free", "x", "y"]), inner, max_size=3)
    ),
    max_leaves=8,
)
BODIES = st.dictionaries(
    st.sampled_from(["metadata", "a", "free", "map", "list", "null", "unknown"]), VALUES
)


def test_unknown_fields_are_dropped_and_defaults_are_set() -> None:
    sent = {
        "metadata": {"name": "n", "odd": 1},
        "a": {"c": "x", "d": 1},
        "free": {"q": [1]},
        "map": {"k": {"y": 1}},
        "list": [{"y": 1}, {"x": 5}],
        "null": None,
        "unknown": 1,
    }
    before = deepcopy(sent)
    assert StructuralSchema(SIZES, SCHEMA).prepare(sent) == {
        "metadata": {"name": "n"},
        "a": {"b": 1, "c": "x"},
        "free": {"q": [1]},
        "map": {"k": {}},
        "list": [{"x": 2}, {"x": 5}],
        "null": None,
    }
    assert sent == before


@given(BODIES)
def test_a_prepared_body_stays_as_it_is(body: dict[str, Any]) -> None:
    schema = StructuralSchema(SIZES, SCHEMA)
    prepared = schema.prepare(body)
    assert schema.prepare(prepared) == prepared
    assert "unknown" not in prepared
    if isinstance(body.get("free"), dict):
        assert prepared["free"] == body["free"]


def test_a_nullable_field_may_be_null_and_no_other_may() -> None:
    schema = StructuralSchema(SIZES, SCHEMA)
    schema.check({"metadata": {"name": "n"}, "null": None})
    with pytest.raises(Invalid, match="free in body must be of type object"):
        schema.check({"metadata": {"name": "n"}, "free": None})


def test_an_invalid_schema_is_an_error() -> None:
    with pytest.raises(ValueError, match="nope"):
        StructuralSchema(SIZES, {"type": "nope"})


def test_a_missing_validation_library_is_logged_and_objects_are_not_validated(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    with caplog.at_level(logging.WARNING):
        schema = StructuralSchema(SIZES, SCHEMA)
    # The warning is given once in a process, so that another test may have received it.
    assert caplog.text == "" or "jsonschema-rs is missing" in caplog.text
    schema.check({"metadata": {"name": "n"}, "free": 5})
    assert schema.prepare({"unknown": 1}) == {"a": {"b": 1}}


def test_unknown_fields_are_those_that_pruning_drops() -> None:
    body = {
        "metadata": {"name": "n", "odd": 1},
        "a": {"c": "x", "d": 1},
        "map": {"k": {"z": 1}},
        "list": [{"x": 1, "y": 1}],
        "other": 1,
    }
    found = StructuralSchema(SIZES, SCHEMA).unknown_fields(body)
    assert found == ["a.d", "list[0].y", "map.k.z", "metadata.odd", "other"]


@given(BODIES)
def test_a_pruned_body_has_no_unknown_fields(body: dict[str, Any]) -> None:
    schema = StructuralSchema(SIZES, SCHEMA)
    pruned = schema.prepare(body | {"metadata": {}})
    assert schema.unknown_fields(pruned) == []


def test_items_of_sets_and_keyed_lists_are_unique() -> None:
    items = {"type": "object", "properties": {"k": {"type": "integer"}, "v": {"type": "integer"}}}
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": items}
    tags = {"type": "array", "x-kubernetes-list-type": "set"}
    schema = StructuralSchema(SIZES, {"type": "object", "properties": {"l": keyed, "t": tags}})
    body: dict[str, Any] = {
        "metadata": {},
        "l": [{"k": 1, "v": 1}, {"k": 1, "v": 2}, {"k": 2}],
        "t": ["a", "a"],
    }
    with pytest.raises(Invalid) as raised:
        schema.check(body)
    causes = raised.value.status.details["causes"]
    assert [(each["field"], each["reason"]) for each in causes] == [
        ("l[1]", "FieldValueDuplicate"),
        ("t[1]", "FieldValueDuplicate"),
    ]
