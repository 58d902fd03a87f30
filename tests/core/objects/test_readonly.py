"""The read-only views over decoded JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings

from aioinformer._core.objects.readonly import (
    READ_ONLY_HINT,
    FrozenMapping,
    FrozenSequence,
    freeze,
    is_same_decoded,
    is_same_json,
    thaw,
)
from tests.core import strategies

POD: dict[str, Any] = {
    "spec": {"containers": [{"name": "app", "ports": [80, 443]}], "nodeName": "node-1"},
    "paused": False,
    "nothing": None,
}


def thawed(view: Any) -> Any:
    """Return the content of a view, read through the view's own methods."""
    if isinstance(view, FrozenMapping):
        return {name: thawed(view[name]) for name in view}
    if isinstance(view, FrozenSequence):
        return [thawed(view[at]) for at in range(len(view))]
    assert not isinstance(view, dict | list), "a container slipped through"
    return view


@given(strategies.values)
@settings(deadline=None)
def test_a_view_shows_exactly_the_content_and_nothing_that_can_be_written(value: Any) -> None:
    assert thawed(freeze(value)) == value


@given(strategies.values)
@settings(deadline=None)
def test_a_view_equals_its_content_and_another_view_of_it(value: Any) -> None:
    assert freeze(value) == value
    assert freeze(value) == freeze(thaw(value))
    assert value == freeze(value)
    assert {"in": [value]} == {"in": [freeze(value)]}
    assert not value != freeze(value)  # noqa: SIM202 - the operator is the point


def test_views_of_different_content_differ() -> None:
    assert freeze({"a": [1]}) != freeze({"a": [2]})
    assert freeze({"a": 1}) != {"a": 2}
    assert freeze([1]) != freeze([1, 2])
    assert freeze([1]) != (1,)


@pytest.mark.parametrize("value", ["text", 7, 0.5, True, None])
def test_scalars_are_returned_as_they_are(value: object) -> None:
    assert freeze(value) is value


def test_nested_containers_are_frozen_when_they_are_read() -> None:
    view = freeze(POD)

    assert isinstance(view["spec"], FrozenMapping)
    assert isinstance(view["spec"]["containers"], FrozenSequence)
    assert isinstance(view["spec"]["containers"][0]["ports"], FrozenSequence)
    assert view["spec"]["containers"][0]["ports"][-1] == 443


def test_values_get_and_iteration_are_frozen_too() -> None:
    view = freeze(POD)

    assert all(not isinstance(value, dict | list) for value in view.values())
    assert isinstance(view.get("spec"), FrozenMapping)
    assert isinstance(next(iter(view["spec"]["containers"])), FrozenMapping)


def test_a_slice_is_frozen() -> None:
    ports = freeze([[80], [443], [8080]])[1:]

    assert isinstance(ports, FrozenSequence)
    assert isinstance(ports[0], FrozenSequence)
    assert ports == [[443], [8080]]


def test_a_view_is_a_mapping_or_sequence_with_its_methods() -> None:
    view = FrozenMapping({"a": 1, "ports": [80, 443, 80]})
    ports = FrozenSequence([80, 443, 80])

    assert issubclass(FrozenMapping, Mapping)
    assert issubclass(FrozenSequence, Sequence)
    assert ("a" in view, "b" in view, len(view), list(view)) == (True, False, 2, ["a", "ports"])
    assert (ports.count(80), ports.index(443), 443 in ports) == (2, 1, True)


def test_an_absent_key_is_a_key_error_and_an_absent_item_an_index_error() -> None:
    with pytest.raises(KeyError, match="nodeNam"):
        freeze(POD)["nodeNam"]
    with pytest.raises(IndexError):
        freeze([1])[1]


def test_views_match_patterns() -> None:
    match freeze(POD):
        case {"spec": {"containers": [{"name": str(name), "ports": [first, *_]}]}}:
            assert (name, first) == ("app", 80)
        case _:
            pytest.fail("no match")


@pytest.mark.parametrize("view", [freeze({"a": 1}), freeze([1])], ids=["mapping", "sequence"])
def test_writing_raises_a_type_error_that_names_to_dict_and_to_list(view: Any) -> None:
    at = "a" if isinstance(view, FrozenMapping) else 0

    message = f"^{re.escape(READ_ONLY_HINT)}$"
    with pytest.raises(TypeError, match=message):
        view[at] = 2
    with pytest.raises(TypeError, match=message):
        del view[at]
    with pytest.raises(TypeError, match=message):
        view |= {"b": 1}
    with pytest.raises(TypeError, match=message):
        view += [1]
    assert "to_dict()" in READ_ONLY_HINT
    assert "to_list()" in READ_ONLY_HINT
    assert view == ({"a": 1} if at else [1])


WRITING = (set(dir(dict)) - set(dir(Mapping))) | (set(dir(list)) - set(dir(Sequence)))


@pytest.mark.parametrize("method", sorted(name for name in WRITING if name[0] != "_"))
def test_there_are_no_methods_that_write(method: str) -> None:
    assert not hasattr(freeze({}), method)
    assert not hasattr(freeze([]), method)


@pytest.mark.parametrize("view", [freeze({"a": 1}), freeze([1])], ids=["mapping", "sequence"])
def test_dir_lists_what_can_be_read(view: Any) -> None:
    assert all(hasattr(view, name) for name in dir(view))
    assert {"count", "index", "to_list"} <= set(dir(freeze([1])))
    assert {"get", "items", "keys", "to_dict", "values"} <= set(dir(freeze({"a": 1})))


@pytest.mark.parametrize(
    ("view", "method"),
    [(freeze({"a": 1}), "update"), (freeze({}), "pop"), (freeze([1]), "append")],
)
def test_the_error_for_a_writing_method_names_to_dict_and_to_list(view: Any, method: str) -> None:
    for error in (AttributeError, TypeError):
        with pytest.raises(error) as caught:
            getattr(view, method)
        assert str(caught.value) == f"'{type(view).__name__}' has no '{method}': {READ_ONLY_HINT}"


def test_a_sequence_of_pairs_makes_no_dict() -> None:
    """FastAPI's ``jsonable_encoder`` tries to make one of each type that it doesn't know."""
    for pairs in ([["a", 1]], []):
        with pytest.raises(TypeError) as caught:
            dict(freeze(pairs))
        assert str(caught.value) == (
            f"a 'FrozenSequence' is a list and makes no dict; {READ_ONLY_HINT}; a FastAPI endpoint "
            "that returns cached objects needs a return type, such as `-> list[KubeObject]`"
        )


def test_an_absent_key_has_a_default() -> None:
    view = freeze({"a": None, "b": [1]})

    assert (view.get("a", 7), view.get("c"), view.get("c", 7)) == (None, None, 7)
    assert isinstance(view.get("b"), FrozenSequence)


def test_views_of_different_kinds_differ() -> None:
    assert freeze({}) != freeze([])
    assert freeze([]) != freeze({})


def test_a_view_takes_no_attributes() -> None:
    for view in (freeze({}), freeze([])):
        with pytest.raises(AttributeError):
            view.note = 1


def test_a_view_has_no_hash_as_a_dict_and_a_list_have_none() -> None:
    for view in (freeze({}), freeze([])):
        with pytest.raises(TypeError, match="unhashable"):
            hash(view)


def test_a_thawed_copy_shares_no_container_with_the_original() -> None:
    copy = thaw(POD)
    copy["spec"]["containers"][0]["ports"].append(8080)
    copy["spec"]["nodeName"] = "node-2"

    assert POD["spec"] == {
        "containers": [{"name": "app", "ports": [80, 443]}],
        "nodeName": "node-1",
    }


def test_to_dict_of_a_view_is_a_deep_copy() -> None:
    copy = freeze(POD)["spec"].to_dict()
    copy["containers"][0]["ports"].clear()

    assert type(copy) is dict
    assert POD["spec"]["containers"][0]["ports"] == [80, 443]


def test_to_list_of_a_view_is_a_deep_copy() -> None:
    copy = freeze(POD)["spec"]["containers"].to_list()
    copy[0]["ports"].clear()

    assert type(copy) is list
    assert POD["spec"]["containers"][0]["ports"] == [80, 443]


def test_a_copy_can_be_written_as_json() -> None:
    spec = freeze(POD)["spec"]

    assert json.loads(json.dumps(spec.to_dict())) == spec
    assert json.loads(json.dumps(spec["containers"].to_list())) == spec["containers"]


def test_the_repr_is_the_contents() -> None:
    assert repr(freeze({"a": [1, "x"]})) == "{'a': [1, 'x']}"
    assert repr(freeze([1, {"a": None}])) == "[1, {'a': None}]"


# -- comparison --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ({"a": 1, "b": [2]}, {"b": [2.0], "a": 1}, True),
        ({"a": [{"b": 1}]}, {"a": [{"b": True}]}, False),
        ([0], [False], False),
        (1, 1.0, True),
        (1, True, False),
        ("1", 1, False),
        (None, False, False),
        ([1], [1, 2], False),
        ({"a": 1}, {"b": 1}, False),
    ],
)
def test_json_values_are_compared_with_their_types(old: Any, new: Any, same: bool) -> None:
    for first, second in ((old, new), (new, old)):
        assert is_same_json(first, second) is same
        assert is_same_decoded(first, second) is same
        assert is_same_decoded((freeze(first),), (freeze(second),)) is same
