"""The cache's data: objects by key, and the indexes over them."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioinformer._core.objects import KubeObject, ObjectKey
from aioinformer._core.store import Index, State
from tests.core import strategies
from tests.core.builders import key, pod


def by_node(obj: KubeObject) -> str:
    """One value."""
    node: str = obj["spec"]["nodeName"]
    return node


def by_labels(obj: KubeObject) -> Iterable[str]:
    """Several values, or none."""
    return (f"{name}={value}" for name, value in obj.labels.items())


def indexed(*names: str) -> State:
    """An empty state with these indexes."""
    functions = {"node": by_node, "labels": by_labels}
    return State(indexes={name: Index(name, functions[name]) for name in names})


def keys(state: State, index: str) -> dict[str, set[ObjectKey]]:
    """What an index holds."""
    return state.indexes[index].keys


# -- an index ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "values"),
    [
        (None, set[str]()),
        ("node-1", {"node-1"}),
        ("", {""}),
        ([], set[str]()),
        (["a", "b", "a"], {"a", "b"}),
        (("a",), {"a"}),
        (iter("ab"), {"a", "b"}),
    ],
    ids=["none", "text", "empty text", "empty", "list", "tuple", "iterator"],
)
def test_an_index_function_gives_several_values_one_or_none(
    found: Iterable[str] | str | None, values: set[str]
) -> None:
    assert Index("x", lambda _: found).values(pod("a")) == values


def test_an_index_passes_on_what_its_function_raises() -> None:
    with pytest.raises(KeyError, match="nodeNam"):
        Index("x", lambda obj: str(obj["nodeNam"])).values(pod("a"))


def test_a_key_moves_between_values() -> None:
    index = Index("x", by_node)
    index.move(key("a"), frozenset(), frozenset("12"))
    index.move(key("b"), frozenset(), frozenset("2"))
    assert index.keys == {"1": {key("a")}, "2": {key("a"), key("b")}}
    index.move(key("a"), frozenset("12"), frozenset("23"))
    assert index.keys == {"2": {key("a"), key("b")}, "3": {key("a")}}


def test_a_value_that_nothing_has_any_more_does_not_stay() -> None:
    """client-go: values such as uids would pile up for ever."""
    index = Index("x", by_node)
    index.move(key("a"), frozenset(), frozenset("1"))
    index.move(key("a"), frozenset("1"), frozenset())

    assert index.keys == {}


def test_taking_a_key_from_a_value_that_never_had_it_is_no_error() -> None:
    index = Index("x", by_node)
    index.move(key("b"), frozenset(), frozenset("1"))
    index.move(key("a"), frozenset("12"), frozenset())

    assert index.keys == {"1": {key("b")}}


def test_an_empty_index_has_the_same_name_and_function() -> None:
    index = Index("x", by_node)
    index.move(key("a"), frozenset(), frozenset("1"))
    empty = index.empty()

    assert (empty.name, empty.function, empty.keys) == ("x", by_node, {})
    assert index.keys == {"1": {key("a")}}


# -- a state -------------------------------------------------------------------------------------


def test_an_object_is_filed_in_every_index() -> None:
    state = indexed("node", "labels")
    obj = pod("a", node="n1", labels={"app": "shop", "tier": "web"})
    state.put(obj, None)

    assert state.objects == {key("a"): obj}
    assert keys(state, "node") == {"n1": {key("a")}}
    assert keys(state, "labels") == {"app=shop": {key("a")}, "tier=web": {key("a")}}


def test_a_new_version_is_filed_under_its_own_values_alone() -> None:
    state = indexed("node", "labels")
    old = pod("a", node="n1", labels={"app": "shop", "tier": "web"})
    new = pod("a", rv="2", node="n2", labels={"app": "shop"})
    state.put(old, None)
    state.put(pod("b", node="n1"), None)
    state.put(new, old)

    assert state.objects[key("a")] is new
    assert keys(state, "node") == {"n1": {key("b")}, "n2": {key("a")}}
    assert keys(state, "labels") == {"app=shop": {key("a")}}


def test_a_removed_object_is_in_no_index() -> None:
    state = indexed("node")
    obj = pod("a", node="n1")
    state.put(obj, None)
    state.remove(obj)

    assert state.objects == {}
    assert keys(state, "node") == {}


def moody(obj: KubeObject) -> str:
    """Raises for version 2."""
    if obj.resource_version == "2":
        raise RuntimeError("moody")
    return by_node(obj)


def test_nothing_has_changed_when_an_index_function_raises() -> None:
    """client-go's store is left inconsistent here."""
    state = State(indexes={"node": Index("node", by_node), "moody": Index("moody", moody)})
    old = pod("a", node="n1")
    state.put(old, None)

    with pytest.raises(RuntimeError, match="moody"):
        state.put(pod("a", rv="2", node="n2"), old)
    assert state.objects == {key("a"): old}
    assert keys(state, "node") == keys(state, "moody") == {"n1": {key("a")}}


def test_a_function_that_raises_later_for_what_it_once_filed_leaves_no_trace() -> None:
    """It was told to give the same answer every time; the index must not rot if it doesn't."""
    broken: set[str] = set()

    def fickle(obj: KubeObject) -> str:
        if obj.resource_version in broken:
            raise RuntimeError("fickle")
        return by_node(obj)

    state = State(indexes={"node": Index("node", fickle)})
    old, other = pod("a", node="n1"), pod("b", node="n1")
    state.put(old, None)
    state.put(other, None)
    broken.add("1")
    state.put(pod("a", rv="2", node="n2"), old)
    assert keys(state, "node") == {"n1": {key("b")}, "n2": {key("a")}}
    state.remove(other)
    assert keys(state, "node") == {"n2": {key("a")}}


def test_an_empty_state_has_the_same_indexes_over_nothing() -> None:
    state = indexed("node", "labels")
    state.put(pod("a"), None)
    state.resource_version, state.synced = "5", True
    empty = state.empty()

    assert (empty.objects, empty.resource_version, empty.synced) == ({}, "", False)
    assert {name: index.keys for name, index in empty.indexes.items()} == {"node": {}, "labels": {}}
    empty.put(pod("b"), None)
    assert keys(state, "node") == {"node-1": {key("a")}}


def test_the_residue_is_all_that_dropping_the_state_would_free() -> None:
    state = indexed("node")
    objects = [pod("a", node="n1"), pod("b", node="n2")]
    for obj in objects:
        state.put(obj, None)

    assert list(state.residue()) == [objects, [{key("a")}, {key("b")}]]
    assert len(state.objects) == 2, "nothing was taken apart"


CHANGES = st.lists(
    st.tuples(strategies.few_names, st.sampled_from(["n1", "n2", ""]), st.booleans()), max_size=30
)


@given(CHANGES)
@settings(deadline=None)
def test_indexes_are_always_what_a_new_index_would_be(
    changes: list[tuple[str, str, bool]],
) -> None:
    state = indexed("node", "labels")
    for number, (name, node, stays) in enumerate(changes):
        old = state.objects.get(key(name))
        if stays:
            obj = pod(name, rv=str(number), node=node, labels={"n": node} if node else None)
            state.put(obj, old)
        elif old is not None:
            state.remove(old)
        again = indexed("node", "labels")
        for obj in state.objects.values():
            again.put(obj, None)
        assert keys(state, "node") == keys(again, "node")
        assert keys(state, "labels") == keys(again, "labels")
