"""Reading the cache."""

from __future__ import annotations

import pytest

from aioinformer._core.deltas import Delta
from aioinformer._core.indexer import Indexer
from aioinformer._core.lister import Lister
from aioinformer._core.objects import KubeObject
from aioinformer._core.selectors import LabelSelector
from aioinformer.errors import InvalidSelector, NotSynced, UsageError
from tests.core.builders import NODES, PODS, added, cached, deleted, key, pod, replaced, updated

A = pod("a", labels={"app": "shop"}, node="n1")
B = pod("b", labels={"app": "blog"}, node="n1")
OTHER = pod("a", namespace="other", labels={"app": "shop", "tier": "web"}, node="n2")


def node_of(obj: KubeObject) -> str:
    node: str = obj["spec"]["nodeName"]
    return node


def holding(*objects: KubeObject, indexer: Indexer | None = None) -> Indexer:
    """A synced cache of these objects."""
    indexer = indexer or Indexer({"node": node_of})
    replacement = indexer.replace(replaced(objects))
    replacement.step(1000)
    replacement.commit()
    return indexer


def pods(*, namespace: str | None = None) -> Lister:
    """A reader of three pods."""
    return Lister(holding(A, B, OTHER), PODS, namespace=namespace)


def change(indexer: Indexer, delta: Delta) -> None:
    indexer.apply(delta, [])


# -- one object ----------------------------------------------------------------------------------


def test_an_object_is_found_by_key_by_text_and_by_name_and_namespace() -> None:
    lister = pods()

    assert lister.get(key("a")) is A
    assert lister.get("web/a") is A
    assert lister.get("a", namespace="web") is A
    assert lister.get("a", namespace="other") is OTHER


def test_what_is_not_there_is_none() -> None:
    lister = pods()

    assert lister.get(key("z")) is None
    assert lister.get("web/z") is None
    assert lister.get("b", namespace="other") is None


def test_a_name_alone_is_enough_where_one_namespace_is_cached() -> None:
    assert pods(namespace="other").get("a") is OTHER
    assert pods(namespace="other").get("a", namespace="web") is A


def test_a_name_alone_is_enough_for_a_cluster_scoped_resource() -> None:
    node = cached({"metadata": {"name": "node-1", "uid": "u", "resourceVersion": "1"}})

    assert Lister(holding(node, indexer=Indexer()), NODES).get("node-1") is node


def test_a_name_alone_does_not_say_which_of_many_namespaces() -> None:
    with pytest.raises(UsageError, match=r"which pod 'a'.*namespace="):
        pods().get("a")


def test_a_key_of_three_parts_is_none() -> None:
    with pytest.raises(ValueError, match="a/b/c"):
        pods().get("a/b/c")


# -- many ----------------------------------------------------------------------------------------


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
def test_no_labels_mean_every_object(labels: str | dict[str, str] | None) -> None:
    assert len(pods().list(labels=labels)) == 3


def test_labels_that_do_not_parse_are_an_error() -> None:
    with pytest.raises(InvalidSelector):
        pods().list(labels="app in (")


def test_a_list_is_ones_own() -> None:
    lister = pods()
    lister.list().clear()

    assert len(lister.list()) == 3


# -- indexes -------------------------------------------------------------------------------------


def test_an_index_finds_objects_by_value() -> None:
    lister = pods()

    assert sorted(lister.by_index("node", "n1"), key=lambda obj: obj.name) == [A, B]
    assert lister.by_index("node", "n2") == [OTHER]
    assert lister.by_index("node", "n3") == []


def test_the_values_and_names_of_indexes_are_told() -> None:
    lister = pods()

    assert sorted(lister.index_values("node")) == ["n1", "n2"]
    assert lister.indexes == ("node",)


def test_an_unknown_index_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"pods has no index 'nodes'; its indexes: node$"):
        pods().by_index("nodes", "n1")
    with pytest.raises(UsageError, match="its indexes: none"):
        Lister(holding(indexer=Indexer()), PODS).index_values("node")


def test_an_index_entry_whose_object_has_gone_is_left_out() -> None:
    """Another thread may remove it between the two look-ups."""
    indexer = holding(A, B)
    del indexer.state.objects[A.key]

    assert Lister(indexer, PODS).by_index("node", "n1") == [B]


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


def test_reading_before_the_first_full_state_is_an_error_that_says_what_to_do() -> None:
    """An empty answer would be taken for an empty cluster."""
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
    ):
        with pytest.raises(NotSynced, match=r"cache of pods.*wait_synced.*lister\.unsynced"):
            read()


def test_reading_unsynced_shows_what_there_is() -> None:
    indexer = Indexer({"node": node_of})
    change(indexer, added(A))
    early = Lister(indexer, PODS, namespace="web").unsynced

    assert early.list() == [A]
    assert early.get("a") is A
    assert early.by_index("node", "n1") == [A]
    assert early.unsynced.list() == [A]


def test_version_and_index_names_can_be_read_at_any_time() -> None:
    lister = Lister(Indexer({"node": node_of}), PODS)

    assert lister.resource_version == ""
    assert lister.indexes == ("node",)


def test_a_lister_has_no_way_to_write() -> None:
    assert not {"add", "apply", "replace", "delete", "update"} & set(dir(pods()))


def test_the_repr_shows_size_and_whether_it_is_synced() -> None:
    assert repr(Lister(Indexer(), PODS)) == "<Lister pods objects=0 synced=False>"
    assert repr(pods()) == "<Lister pods objects=3 synced=True>"
