"""Reads of the cache."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from aioinformer import label_index, labelled, where
from aioinformer._core.cache.indexer import Indexer
from aioinformer._core.cache.lister import Lister
from aioinformer._core.cache.query import Search
from aioinformer._core.objects.deltas import Delta
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.selectors.parsed_selectors import LabelSelector
from aioinformer.errors import (
    IndexFailed,
    InvalidSelector,
    NotCached,
    NotSynced,
    ObjectDecodeError,
    UsageError,
)
from tests.core.builders import (
    NODES,
    PODS,
    added,
    deleted,
    key,
    make_object,
    pod,
    pod_body,
    replaced,
    updated,
)

A = pod("a", labels={"app": "shop"}, node="n1")
B = pod("b", labels={"app": "blog"}, node="n1")
OTHER = pod("a", namespace="other", labels={"app": "shop", "tier": "web"}, node="n2")


def node_of(obj: KubeObject) -> str:
    node: str = obj["spec"]["nodeName"]
    return node


def holding(*objects: KubeObject, indexer: Indexer | None = None) -> Indexer:
    """Create a synced cache of these objects."""
    indexer = indexer or Indexer({"node": node_of})
    replacement = indexer.replace(replaced(objects))
    replacement.step(1000)
    replacement.commit()
    return indexer


def pods(*, namespace: str | None = None) -> Lister:
    """Return a lister of three pods."""
    return Lister(holding(A, B, OTHER), PODS, namespace=namespace)


def change(indexer: Indexer, delta: Delta) -> None:
    indexer.apply(delta, [])


# -- one object ----------------------------------------------------------------------------------


@pytest.mark.client_go(106)
def test_an_object_is_found_by_key_by_text_and_by_name_and_namespace() -> None:
    lister = pods()

    assert lister.get(key("a")) is A
    assert lister.get("web/a") is A
    assert lister.get("a", namespace="web") is A
    assert lister.get("a", namespace="other") is OTHER


def test_an_absent_object_is_none() -> None:
    lister = pods()

    assert lister.get(key("z")) is None
    assert lister.get("web/z") is None
    assert lister.get("b", namespace="other") is None


def test_a_name_alone_is_enough_where_one_namespace_is_cached() -> None:
    assert pods(namespace="other").get("a") is OTHER
    assert pods(namespace="other").get("a", namespace="web") is A


def test_a_name_alone_is_enough_for_a_cluster_scoped_resource() -> None:
    node = make_object({"metadata": {"name": "node-1", "uid": "u", "resourceVersion": "1"}})

    assert Lister(holding(node, indexer=Indexer()), NODES).get("node-1") is node


def test_a_name_without_a_namespace_is_ambiguous_in_a_cache_of_several_namespaces() -> None:
    with pytest.raises(UsageError) as caught:
        pods().get("a")
    assert str(caught.value) == (
        "the name 'a' alone is ambiguous: this cache of pods has several namespaces; pass "
        "namespace=, 'namespace/a' or an ObjectKey"
    )


def test_a_text_with_another_namespace_than_the_given_one_is_an_error() -> None:
    assert pods().get("web/a", namespace="web") is A
    with pytest.raises(UsageError, match=r"^'web/a' is not in the namespace 'other'$"):
        pods().get("web/a", namespace="other")


def test_a_key_of_three_parts_is_an_error() -> None:
    with pytest.raises(ValueError, match="a/b/c"):
        pods().get("a/b/c")


# -- many ----------------------------------------------------------------------------------------


@pytest.mark.client_go(106)
def test_all_objects_are_listed() -> None:
    assert pods().list() == [A, B, OTHER]


def test_a_namespace_narrows_the_list() -> None:
    assert pods().list(namespace="web") == [A, B]
    assert pods().list(namespace="nowhere") == []


@pytest.mark.parametrize(
    "labels",
    ["app=shop", {"app": "shop"}, LabelSelector.parse("app=shop")],
    ids=["text", "mapping", "selector"],
)
def test_labels_narrow_the_list(labels: str | dict[str, str] | LabelSelector) -> None:
    assert pods().list(labels=labels) == [A, OTHER]
    assert pods().list(labels=labels, namespace="other") == [OTHER]


@pytest.mark.parametrize("labels", [None, "", {}], ids=repr)
def test_a_list_without_labels_contains_every_object(labels: str | dict[str, str] | None) -> None:
    assert len(pods().list(labels=labels)) == 3


def test_labels_that_do_not_parse_are_an_error() -> None:
    with pytest.raises(InvalidSelector):
        pods().list(labels="app in (")


def test_a_returned_list_is_a_copy() -> None:
    lister = pods()
    lister.list().clear()

    assert len(lister.list()) == 3


# -- indexes -------------------------------------------------------------------------------------


def test_an_index_finds_objects_by_value() -> None:
    lister = pods()

    assert sorted(lister.by_index("node", "n1"), key=lambda obj: obj.name) == [A, B]
    assert lister.by_index("node", "n2") == [OTHER]
    assert lister.by_index("node", "n3") == []


@pytest.mark.client_go(105)
def test_the_values_and_the_names_of_indexes_can_be_listed() -> None:
    lister = pods()

    assert sorted(lister.index_values("node")) == ["n1", "n2"]
    assert lister.indexers == ("node",)


@pytest.mark.parametrize("value", [80, None, b"n1", ["n1"]], ids=repr)
@pytest.mark.parametrize("read", ["by_index", "index_keys"])
def test_a_look_up_by_a_value_that_is_no_text_is_a_type_error(read: str, value: Any) -> None:
    text = f"the values of the index 'node' are text, not {type(value).__name__}: "
    with pytest.raises(TypeError, match=text):
        getattr(pods(), read)("node", value)


def test_an_unknown_index_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"pods has no index 'nodes'; its indexes: node$"):
        pods().by_index("nodes", "n1")
    with pytest.raises(UsageError, match=r"its indexes: none$"):
        Lister(holding(indexer=Indexer()), PODS).index_values("node")
    two = Lister(holding(indexer=Indexer({"node": node_of, "name": str})), PODS)
    with pytest.raises(UsageError, match=r"its indexes: node, name$"):
        two.index_values("nodes")


# -- one or an error -----------------------------------------------------------------------------


@pytest.mark.client_go(108)
def test_brackets_give_the_object_or_an_error_with_resource_and_name() -> None:
    lister = pods(namespace="web")
    assert lister["a"] is A
    assert lister[OTHER.key] is OTHER

    with pytest.raises(NotCached) as caught:
        lister["z"]
    assert str(caught.value) == "web/z is not among the cached pods"
    assert (caught.value.resource, caught.value.key) == ("pods", "web/z")
    with pytest.raises(KeyError):
        lister["web/z"]


# -- selections ----------------------------------------------------------------------------------


def test_fields_and_a_predicate_narrow_the_list_too() -> None:
    lister = pods()
    assert lister.list(fields="spec.nodeName=n1,metadata.name!=a") == [B]
    assert lister.list(fields={"metadata.namespace": "other"}) == [OTHER]
    assert lister.list(where=lambda obj: obj.name == "a") == [A, OTHER]
    assert lister.list(where=where("spec.nodeName", "n1") & labelled("app=blog")) == [B]
    assert lister.list(labels="app=shop", namespace="web", where=lambda obj: False) == []


def test_a_selection_can_be_counted() -> None:
    assert pods().count() == 3
    assert pods().count(labels="app=shop") == 2
    assert pods().count(namespace="web") == 2
    assert pods().count(where=lambda obj: obj is A) == 1
    assert pods().count(labels="app=shop", fields="spec.nodeName=n2") == 1


def test_a_label_index_is_used_without_being_named() -> None:
    indexer = holding(A, B, OTHER, indexer=Indexer({"labels": label_index("app")}))
    lister = Lister(indexer, PODS)
    assert lister.list(labels="app=shop") == [A, OTHER]

    indexer.state.indexes["labels"].buckets["app=shop"].pop(A.key)
    assert lister.list(labels="app=shop") == [OTHER], "it is the index that was asked"


# -- more of indexes -----------------------------------------------------------------------------


def shared(obj: KubeObject) -> list[str]:
    """Several values."""
    return ["all", node_of(obj)]


def test_objects_that_share_a_value_with_another_one_are_found_once_each() -> None:
    lister = Lister(holding(A, B, OTHER, indexer=Indexer({"some": shared})), PODS)
    assert lister.index("some", A) == [A, B, OTHER]
    assert pods().index("node", A) == [A, B]
    assert pods().index("node", pod("x", node="n2")) == [OTHER], "it need not be cached"
    assert pods().index("node", pod("x", node="n3")) == []


def test_the_error_of_an_index_function_names_the_object() -> None:
    with pytest.raises(IndexFailed, match=r"'node'.*pods web/x: KeyError") as caught:
        pods().index("node", make_object(pod_body("x") | {"spec": {}}))
    assert isinstance(caught.value.__cause__, KeyError)
    assert "not added" not in str(caught.value), "the index exists"


def test_the_keys_under_a_value_are_sorted() -> None:
    indexer = holding(B, OTHER, A)
    lister = Lister(indexer, PODS)
    assert lister.index_keys("node", "n1") == [A.key, B.key]
    assert lister.index_keys("node", "n3") == []


def test_the_objects_under_each_value_can_be_counted() -> None:
    assert pods().index_counts("node") == {"n1": 2, "n2": 1}


def test_an_index_shows_the_newest_version_of_an_object_whose_value_stays() -> None:
    indexer = holding(A, B)
    lister = Lister(indexer, PODS)
    newer = pod("a", rv="200", node="n1")
    change(indexer, updated(newer))

    assert sorted(lister.by_index("node", "n1"), key=lambda obj: obj.name) == [newer, B]


# -- as a collection -----------------------------------------------------------------------------


def test_a_lister_is_a_sized_iterable_container() -> None:
    lister = pods()

    assert len(lister) == 3
    assert list(lister) == [A, B, OTHER]
    assert lister.keys() == [A.key, B.key, OTHER.key]
    assert key("a") in lister
    assert key("z") not in lister
    assert "web/a" in lister
    assert "web/z" not in lister
    assert pod("a", rv="99") in lister, "an object is looked up by its key"
    assert 7 not in lister


# -- now and before ------------------------------------------------------------------------------


def test_a_read_shows_each_change_at_once() -> None:
    indexer = holding(A)
    lister = Lister(indexer, PODS)
    change(indexer, updated(pod("a", rv="200")))
    change(indexer, added(pod("c", rv="201")))
    assert sorted(f"{obj.name} {obj.resource_version}" for obj in lister) == ["a 200", "c 201"]
    change(indexer, deleted(pod("a", rv="202")))
    assert [obj.name for obj in lister] == ["c"]
    assert lister.resource_version == "202"


def test_iterating_goes_on_undisturbed_while_the_cache_changes() -> None:
    indexer = holding(A, B)
    names: list[str] = []
    for obj in Lister(indexer, PODS):
        names.append(obj.name)
        change(indexer, deleted(A))
        change(indexer, added(pod("c", rv="200")))

    assert names == ["a", "b"]


def test_a_relist_is_seen_whole_by_the_same_lister() -> None:
    indexer = holding(A)
    lister = Lister(indexer, PODS)
    holding(B, OTHER, indexer=indexer)

    assert lister.list() == [B, OTHER]
    assert lister.by_index("node", "n1") == [B]


def test_reading_before_the_first_full_state_is_an_error_that_names_a_remedy() -> None:
    """An empty result would look like an empty cluster."""
    indexer = Indexer({"node": node_of})
    change(indexer, added(A))
    lister = Lister(indexer, PODS)

    for read in (
        lambda: lister.get("web/a"),
        lister.list,
        lister.keys,
        lambda: len(lister),
        lambda: "web/a" in lister,
        lambda: list(lister),
        lambda: lister.by_index("node", "n1"),
        lambda: lister.index_values("node"),
        lambda: lister.index_keys("node", "n1"),
        lambda: lister.index_counts("node"),
        lambda: lister.index("node", A),
        lambda: lister["web/a"],
        lister.count,
    ):
        with pytest.raises(NotSynced) as caught:
            read()
        assert str(caught.value) == (
            "the initial list of pods is not complete yet; await wait_synced() first, inside of "
            "the factory's `async with`, or read through lister.unsynced"
        )


def test_reading_unsynced_shows_what_there_is() -> None:
    indexer = Indexer({"node": node_of})
    change(indexer, added(A))
    early = Lister(indexer, PODS, namespace="web").unsynced

    assert early.list() == [A]
    assert early.get("a") is A
    assert early.by_index("node", "n1") == [A]
    assert early.unsynced.list() == [A]


async def find_in_steps(search: Search[Any]) -> AsyncIterator[Any]:
    """Iterate over the results of a search, one object at a time."""
    while not search.done:
        for found in search.step(1):
            yield found


async def test_a_scan_finds_in_steps_what_a_list_finds() -> None:
    lister = Lister(holding(A, B, OTHER), PODS, start_scan=find_in_steps)

    for each in (lister, lister.unsynced):
        assert [obj async for obj in each.scan()] == [A, B, OTHER]
        assert [obj async for obj in each.scan(labels="app=shop")] == [A, OTHER]
        assert [obj async for obj in each.scan(namespace="web")] == [A, B]
        assert [obj async for obj in each.scan(fields="spec.nodeName=n2")] == [OTHER]
        assert [obj async for obj in each.scan(where=lambda obj: obj.name == "b")] == [B]


def test_a_lister_that_belongs_to_no_informer_does_not_scan() -> None:
    with pytest.raises(UsageError) as caught:
        pods().scan()
    assert str(caught.value) == (
        "this lister can't scan, because it was made without start_scan: read with list(), or use "
        "the lister of an informer"
    )


def test_version_and_index_names_can_be_read_at_any_time() -> None:
    lister = Lister(Indexer({"node": node_of}), PODS)

    assert lister.resource_version == ""
    assert lister.indexers == ("node",)


def test_a_lister_has_no_way_to_write() -> None:
    assert not {"add", "apply", "replace", "delete", "update"} & set(dir(pods()))


def test_the_repr_shows_size_and_whether_it_is_synced() -> None:
    assert repr(Lister(Indexer(), PODS)) == "<Lister pods objects=0 synced=False>"
    assert repr(pods()) == "<Lister pods objects=3 synced=True>"


# -- what can't be read ----------------------------------------------------------------------------


def odd() -> KubeObject:
    """Return a pod whose labels can't be read."""
    body = pod_body("odd")
    return make_object(body | {"metadata": body["metadata"] | {"labels": {"app": 7}}})


def test_an_object_whose_labels_cannot_be_read_is_an_error_of_a_selection() -> None:
    lister = Lister(holding(A, odd(), indexer=Indexer()), PODS)

    with pytest.raises(ObjectDecodeError, match="pods web/odd"):
        lister.list(labels="app=shop")
    assert len(lister.list()) == 2


def test_an_object_that_a_label_index_has_rejected_is_not_selected() -> None:
    indexer = Indexer({"labels": label_index("app")})
    lister = Lister(holding(A, odd(), indexer=indexer), PODS)

    assert lister.list(labels="app=shop") == [A]
    assert [*indexer.rejected] == [key("odd")]


def test_a_misspelt_argument_of_a_read_is_corrected() -> None:
    lister: Any = pods()
    for read in (lister.list, lister.scan, lister.count):
        with pytest.raises(TypeError, match="'label_selector'; did you mean 'labels'"):
            read(label_selector="app=shop")


def test_the_error_for_a_selector_of_another_type_describes_a_selector() -> None:
    lister: Any = pods()
    with pytest.raises(TypeError, match=r"a label selector is a text such as .*, not \['app'\]"):
        lister.list(labels=["app"])
    with pytest.raises(TypeError, match=r"a field selector is a text such as .*, not \['app'\]"):
        lister.list(fields=["app"])
