"""The cache's data: objects by key, and the indexes over them."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Iterable
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aioinformer._core.cache.store import (
    DICT_RESIZE_POINTS,
    RESIZE_COST,
    CacheState,
    Index,
    IndexValues,
)
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.readonly import FrozenMapping, FrozenSequence
from aioinformer.errors import IndexFailed, UsageError
from tests.core import strategies
from tests.core.builders import key, pod
from tests.garbage_collector import DICTS_ARE_UNTRACKED


def by_node(obj: KubeObject) -> str:
    """One value."""
    node: str = obj["spec"]["nodeName"]
    return node


def by_labels(obj: KubeObject) -> Iterable[str]:
    """Several values, or none."""
    return (f"{name}={value}" for name, value in obj.labels.items())


def indexed(*names: str) -> CacheState:
    """Create an empty state with these indexes."""
    functions = {"node": by_node, "labels": by_labels}
    return CacheState(indexes={name: Index(name, functions[name]) for name in names})


def held(index: Index) -> dict[str, list[KubeObject]]:
    """Return an index's content, after checking its keys."""
    for bucket in index.buckets.values():
        assert bucket, "no bucket is empty"
        assert all(obj.key == key for key, obj in bucket.items())
    return {value: list(bucket.values()) for value, bucket in index.buckets.items()}


def keys(state: CacheState, index: str) -> dict[str, set[ObjectKey]]:
    """Return an index's keys, after checking that its objects are the cached ones."""
    found = held(state.indexes[index])
    assert all(state.objects[obj.key] is obj for objects in found.values() for obj in objects)
    return {value: {obj.key for obj in objects} for value, objects in found.items()}


# -- an index ------------------------------------------------------------------------------------


@pytest.mark.client_go(103)
@pytest.mark.parametrize(
    ("found", "values"),
    [
        (None, ()),
        ("node-1", ("node-1",)),
        ("", ("",)),
        ([], ()),
        (["a", "b", "a"], ("a", "b")),
        (("a",), ("a",)),
    ],
    ids=["none", "text", "empty text", "empty", "list", "tuple"],
)
def test_an_index_function_gives_several_values_one_or_none(
    found: Iterable[str] | str | None, values: IndexValues
) -> None:
    assert Index("x", lambda _: found).values(pod("a")) == values


def test_an_index_function_may_give_an_iterator() -> None:
    assert Index("x", lambda _: iter("ab")).values(pod("a")) == ("a", "b")


@pytest.mark.parametrize(
    ("found", "shown"),
    [
        (3, "int"),
        (True, "bool"),
        (b"80", "bytes with int in it"),
        ({"port": "80"}, "dict"),
        (FrozenMapping({"port": "80"}), "FrozenMapping"),
        ([80], "list with int in it"),
        (["a", None], "list with NoneType in it"),
        ([["a"]], "list with list in it"),
        ([{"a": "b"}], "list with dict in it"),
        (FrozenSequence(["a", 80]), "FrozenSequence with int in it"),
        (iter(["a", 80]), "list_iterator with int in it"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_index_function_that_returns_no_text_is_an_error_that_shows_types_only(
    found: Any, shown: str
) -> None:
    text = f"^it returned {shown}; an index function returns a string, a list of strings or None: "
    with pytest.raises(TypeError, match=text):
        Index("x", lambda _: found).values(pod("a"))


def test_a_type_error_of_an_index_function_or_of_its_iterator_is_raised_unchanged() -> None:
    def failing(obj: KubeObject) -> Iterable[str]:
        yield obj.name
        raise TypeError("of the iterator")

    def refusing(obj: KubeObject) -> str:
        raise TypeError("of the function")

    for function, text in ((failing, "^of the iterator$"), (refusing, "^of the function$")):
        with pytest.raises(TypeError, match=text):
            Index("x", function).values(pod("a"))


def test_the_exception_of_an_index_function_is_raised() -> None:
    with pytest.raises(KeyError, match="nodeNam"):
        Index("x", lambda obj: str(obj["nodeNam"])).values(pod("a"))


def test_a_newer_version_replaces_the_older_one_in_its_buckets_if_no_value_changes() -> None:
    index, old, new = Index("x", by_node), pod("a"), pod("a", rv="2")
    index.move(old, (), ("1",))
    index.move(new, ("1",), ("1",))

    (found,) = held(index)["1"]
    assert found is new


def test_a_change_that_keeps_the_only_value_does_not_call_the_function_for_the_old_object() -> None:
    """The function may read the whole body, which has left the processor's cache long ago."""
    asked = list[KubeObject]()

    def remembered(obj: KubeObject) -> str:
        asked.append(obj)
        return by_node(obj)

    state = CacheState(indexes={"node": Index("node", remembered)})
    first, second, moved = pod("a", node="1"), pod("a", rv="2", node="1"), pod("a", node="2")
    state.put(first, None)
    state.put(second, first)
    assert keys(state, "node") == {"1": {first.key}}
    assert [each is obj for each, obj in zip(asked, (first, second), strict=True)] == [True, True]

    state.put(moved, second)
    assert keys(state, "node") == {"2": {first.key}}


def test_a_reader_in_a_thread_never_finds_a_bucket_empty() -> None:
    index, obj = Index("x", by_node), pod("a")
    index.move(obj, (), ("1",))
    picked_up = index.buckets["1"]
    index.move(obj, ("1",), ())

    assert list(picked_up.values()) == [obj]


# -- a state -------------------------------------------------------------------------------------


def test_all_versions_of_an_object_have_one_key_in_memory() -> None:
    """Otherwise each changed object would keep its name in memory twice."""
    state = indexed("node")
    old, new = pod("a", node="n1"), pod("a", rv="2", node="n2")
    state.put(old, None)
    state.put(new, old)

    assert new.key is old.key
    assert [*state.objects, *state.indexes["node"].buckets["n2"]] == [key("a")] * 2
    assert all(each is old.key for each in state.objects)


def moody(obj: KubeObject) -> str:
    """Return the object's node, or raise for version 2."""
    if obj.resource_version == "2":
        raise RuntimeError("moody")
    return by_node(obj)


def test_a_cancelled_error_in_an_index_function_is_a_usage_error() -> None:
    def cancelled(obj: KubeObject) -> Iterable[str]:
        yield obj.name
        raise asyncio.CancelledError

    with pytest.raises(UsageError, match="'odd' raised a CancelledError"):
        Index("odd", cancelled).values(pod("a"))


def test_nothing_has_changed_when_an_index_function_raises() -> None:
    """client-go's store is left inconsistent here."""
    state = CacheState(indexes={"node": Index("node", by_node), "moody": Index("moody", moody)})
    old = pod("a", node="n1")
    state.put(old, None)

    with pytest.raises(IndexFailed, match="'moody' raised at pods web/a: RuntimeError: moody"):
        state.put(pod("a", rv="2", node="n2"), old)
    assert state.objects == {key("a"): old}
    assert keys(state, "node") == keys(state, "moody") == {"n1": {key("a")}}


def test_an_index_stays_consistent_when_its_function_raises_for_a_filed_object() -> None:
    """A function must return the same values every time; if not, the index stays consistent."""
    broken: set[str] = set()

    def fickle(obj: KubeObject) -> str:
        if obj.resource_version in broken:
            raise RuntimeError("fickle")
        return by_node(obj)

    state = CacheState(indexes={"node": Index("node", fickle)})
    old, other = pod("a", node="n1"), pod("b", node="n1")
    state.put(old, None)
    state.put(other, None)
    broken.add("1")
    state.put(pod("a", rv="2", node="n2"), old)
    assert keys(state, "node") == {"n1": {key("b")}, "n2": {key("a")}}
    state.remove(other)
    assert keys(state, "node") == {"n2": {key("a")}}


def test_an_empty_copy_of_a_state_has_the_same_indexes() -> None:
    state = indexed("node", "labels")
    state.put(pod("a"), None)
    state.resource_version, state.synced = "5", True
    empty = state.empty_copy()

    assert (empty.objects, empty.resource_version, empty.synced) == ({}, "", False)
    assert {name: held(index) for name, index in empty.indexes.items()} == {
        "node": {},
        "labels": {},
    }
    empty.put(pod("b"), None)
    assert keys(state, "node") == {"node-1": {key("a")}}


def test_the_residue_is_all_that_dropping_the_state_would_free() -> None:
    state = indexed("node")
    objects = [pod("a", node="n1"), pod("b", node="n2")]
    for obj in objects:
        state.put(obj, None)

    held_, keys_, buckets, containers = state.batches_to_free()
    assert (held_, keys_) == (objects, [key("a"), key("b")])
    assert buckets == [{key("a"): objects[0]}, {key("b"): objects[1]}]
    assert containers == [state.objects, state.indexes["node"].buckets]
    assert len(state.objects) == 2, "nothing was taken apart"


def test_an_index_under_construction_receives_every_change_and_cannot_be_read() -> None:
    state, growing = indexed("node"), Index("labels", by_labels)
    old, other = pod("a", labels={"n": "1"}), pod("b", labels={"n": "1"})
    state.put(old, None)
    state.building = (growing,)
    new = pod("a", rv="2", labels={"n": "2"})
    state.put(new, old)
    assert held(growing) == {"n=2": [new]}, "though the old one was never filed"
    state.put(other, None)
    state.remove(new)
    assert held(growing) == {"n=1": [other]}
    assert list(state.indexes) == ["node"]
    assert list(state.empty_copy().building) == []
    assert [{key("b"): other}] in list(state.batches_to_free())


def test_a_new_index_takes_changes_beside_an_index_that_is_being_built() -> None:
    state, growing, node = indexed(), Index("labels", by_labels), Index("node", by_node)
    state.building = (growing,)
    state.indexes = {"node": node}
    a = pod("a", node="n1", labels={"n": "1"})
    state.put(a, None)
    assert held(growing) == {"n=1": [a]}
    assert held(node) == {"n1": [a]}

    state.building = ()
    state.remove(a)
    assert held(node) == {}
    assert held(growing) == {"n=1": [a]}, "the abandoned index takes no further change"


CHANGES = st.lists(
    st.tuples(strategies.few_names, st.sampled_from(["n1", "n2", ""]), st.booleans()), max_size=30
)


@pytest.mark.client_go(101, 102)
@given(CHANGES)
@settings(deadline=None)
def test_indexes_equal_newly_built_ones_after_any_changes(
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


# -- growing -----------------------------------------------------------------------------------


def test_full_dicts_are_enlarged_before_the_next_object_one_after_the_other() -> None:
    """An object with a label that every object has would make two large dicts grow at once."""
    obj, count = pod("a"), min(DICT_RESIZE_POINTS) + 1  # the first size of a new dict
    state = CacheState(
        indexes={"all": Index("all", lambda _: "x"), "few": Index("few", lambda _: None)}
    )
    state.objects = {key(str(number)): obj for number in range(count)}
    state.indexes["all"].buckets["x"] = bucket = dict(state.objects)
    sizes = [sys.getsizeof(each) for each in (state.objects, bucket)]

    work = state.resize_dicts()
    assert sum(1 for _ in islice(work, RESIZE_COST)) == RESIZE_COST
    assert sys.getsizeof(state.objects) > sizes[0]
    assert sys.getsizeof(bucket) == sizes[1], "not in the same step"
    assert sum(1 for _ in work) == RESIZE_COST
    grown = [sys.getsizeof(each) for each in (state.objects, bucket)]
    state.put(pod("next"), None)

    assert [sys.getsizeof(each) for each in (state.objects, bucket)] == grown
    assert len(state.objects) == len(bucket) == count + 1
    assert not (DICTS_ARE_UNTRACKED and gc.is_tracked(state.objects))


def test_no_object_of_a_long_list_resizes_a_large_dict() -> None:
    state = CacheState(indexes={"all": Index("all", lambda _: "x")})
    grown, resized = list[int](), 0
    for count, obj in enumerate(pod(str(number)) for number in range(100_000)):
        if count in DICT_RESIZE_POINTS:
            resized += sum(1 for _ in state.resize_dicts()) // RESIZE_COST
        before = _dict_sizes(state)
        state.put(obj, None)
        if _dict_sizes(state) != before:
            grown.append(count)

    assert resized == 8, "two dicts at each of 10,922, 21,845, 43,690 and 87,381 entries"
    assert max(grown) < min(DICT_RESIZE_POINTS), "a resize of a large dict has a step of its own"


def _dict_sizes(state: CacheState) -> list[int]:
    return [sys.getsizeof(each) for each in (state.objects, state.indexes["all"].buckets.get("x"))]


def test_dicts_that_are_not_full_are_not_enlarged() -> None:
    state = CacheState(indexes={"all": Index("all", lambda _: "x")})
    state.put(pod("a"), None)

    assert list(state.resize_dicts()) == []
