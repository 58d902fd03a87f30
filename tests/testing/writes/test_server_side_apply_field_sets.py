"""Tests of the fields of an object, and of their form in managedFields."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from aioinformer.testing.writes.server_side_apply import (
    CONTAINER,
    FieldPath,
    collect_fields,
    decode_fields_v1,
    encode_fields_v1,
    named_fields,
)

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "a",
        "uid": "u",
        "labels": {"app": "shop"},
        "finalizers": ["x/y"],
        "ownerReferences": [{"uid": "o", "name": "o"}],
        "managedFields": [{"manager": "m"}],
    },
    "spec": {"containers": [{"name": "web", "args": [1, 2]}], "tolerations": [{"key": "k"}]},
}


def test_items_of_keyed_lists_have_their_own_paths() -> None:
    found = collect_fields(POD, custom=False)
    web = ("f:spec", "f:containers", 'k:{"name":"web"}')
    assert found[web] is CONTAINER
    assert found[(*web, "f:args")] == [1, 2]
    assert found[("f:spec", "f:tolerations")] == [{"key": "k"}]
    assert found[("f:metadata", "f:finalizers", 'v:"x/y"')] == "x/y"
    owner = ("f:metadata", "f:ownerReferences", 'k:{"uid":"o"}')
    assert found[owner] == {"uid": "o", "name": "o"}
    assert not any(path[:3] == owner and len(path) > 3 for path in found)


def test_the_identity_of_an_object_has_no_owner() -> None:
    named = {path for path in collect_fields(POD, custom=False) if path[0] == "f:metadata"}
    assert {path[1] for path in named} == {"f:labels", "f:finalizers", "f:ownerReferences"}
    assert ("f:kind",) not in collect_fields(POD, custom=False)


def test_lists_of_custom_resources_are_one_value() -> None:
    found = collect_fields(POD, custom=True)
    assert found[("f:spec", "f:containers")] == POD["spec"]["containers"]
    assert ("f:metadata", "f:finalizers", 'v:"x/y"') in found, "metadata is the same in all"


def test_an_applied_configuration_owns_values_and_entries_of_maps() -> None:
    config = {"metadata": {"labels": {"a": "1"}}, "spec": {"m": {"x": 1}, "e": {}}, "status": {}}
    assert named_fields(config, custom=True) == {
        ("f:metadata", "f:labels", "f:a"),
        ("f:spec", "f:m"),
        ("f:spec", "f:m", "f:x"),
        ("f:spec", "f:e"),
        ("f:status",),
    }


def test_fields_are_written_as_the_server_writes_them() -> None:
    fields = frozenset({("f:spec", "f:m"), ("f:spec", "f:m", "f:x"), ("f:spec", "f:a")})
    assert encode_fields_v1(fields) == {"f:spec": {"f:a": {}, "f:m": {".": {}, "f:x": {}}}}


paths: st.SearchStrategy[FieldPath] = st.lists(
    st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"']), min_size=1, max_size=4
).map(tuple)


@given(st.frozensets(paths, max_size=8))
def test_encoded_fields_are_decoded_again(fields: frozenset[FieldPath]) -> None:
    assert decode_fields_v1(encode_fields_v1(fields)) == fields
