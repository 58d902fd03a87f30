"""Merge patches, reduced to the part that changes something."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.objects.readonly import freeze
from aioinformer._core.writing.merge_patches import has_list, reduce_merge_patch
from aioinformer.testing.writes.patches import apply_merge_patch

scalars = st.one_of(st.booleans(), st.integers(-1, 2), st.floats(0, 2), st.sampled_from(["", "a"]))
names = st.sampled_from(["a", "b", "c"])


def documents(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    values = st.recursive(
        leaves,
        lambda below: st.one_of(
            st.lists(below, max_size=2), st.dictionaries(names, below, max_size=3)
        ),
        max_leaves=8,
    )
    return st.dictionaries(names, values, max_size=3)


patches = documents(st.one_of(scalars, st.none()))


def without_empty(value: Any) -> Any:
    """Return a document as a server stores it that stores no empty objects."""
    if not isinstance(value, dict):
        return value
    document = cast("dict[str, Any]", value)
    below = {name: without_empty(each) for name, each in document.items()}
    return {name: each for name, each in below.items() if each != {}}


@given(documents(scalars), documents(scalars))
def test_the_reduced_patch_has_the_effect_of_the_whole_one(
    current: dict[str, Any], patch: dict[str, Any]
) -> None:
    """The model is the embedded server's merge patch."""
    reduced = reduce_merge_patch(freeze(current), patch)
    assert apply_merge_patch(current, reduced) == apply_merge_patch(current, patch)


@given(documents(scalars), patches)
def test_the_reduced_patch_with_removals_has_the_effect_of_the_whole_one_but_for_empty_objects(
    current: dict[str, Any], patch: dict[str, Any]
) -> None:
    reduced = apply_merge_patch(current, reduce_merge_patch(freeze(current), patch))
    whole = apply_merge_patch(current, patch)
    assert without_empty(reduced) == without_empty(whole)
    assert apply_merge_patch(reduced, patch) == whole, "nothing else is missing"


@given(documents(scalars), patches)
def test_nothing_is_left_of_a_patch_that_was_applied(
    current: dict[str, Any], patch: dict[str, Any]
) -> None:
    assert reduce_merge_patch(apply_merge_patch(current, patch), patch) == {}
    reduced = reduce_merge_patch(current, patch)
    assert reduce_merge_patch(apply_merge_patch(current, reduced), patch) == {}


@given(documents(st.none()))
def test_no_removal_is_left_if_the_server_stores_no_empty_objects(patch: dict[str, Any]) -> None:
    whole = without_empty(patch)
    assert reduce_merge_patch(without_empty(apply_merge_patch({}, whole)), whole) == {}


@pytest.mark.parametrize(
    ("current", "patch", "reduced"),
    [
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, {"b": 3}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, {"a": {"c": 3}}),
        ({"a": 1}, {"a": None, "b": None}, {"a": None}),
        ({}, {"a": {"b": None, "c": {"d": None}}}, {}),
        ({}, {"a": {"b": None, "c": {}}}, {"a": {"b": None, "c": {}}}),
        ({"a": 1}, {"a": {"b": None}}, {"a": {"b": None}}),
        ({"a": 1}, {"a": True}, {"a": True}),
        ({"a": 1}, {"a": 1.0}, {}),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}, {}),
        ({"a": [1, 2]}, {"a": [1]}, {"a": [1]}),
        ({"a": [1]}, {"a": [True]}, {"a": [True]}),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, {"a": [{"b": 2}]}),
        ({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": 2}]}, {"a": [{"b": 1, "c": 2}]}),
        ({"a": "x"}, {"a": ["x"]}, {"a": ["x"]}),
    ],
)
def test_members_that_are_there_already_are_left_out(
    current: Any, patch: Any, reduced: Any
) -> None:
    assert reduce_merge_patch(freeze(current), patch) == reduced
    assert reduce_merge_patch(current, freeze(patch)) == reduced


def test_a_list_in_a_patch_is_found() -> None:
    assert has_list({"a": {"b": []}})
    assert not has_list({"a": {"b": "text"}, "c": None})
