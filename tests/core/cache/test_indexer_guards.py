"""Corrections that a later change outdates, and states that the server confirms."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from aioinformer._core.cache.indexer import Indexer
from aioinformer._core.objects.deltas import Confirmed, Correction, CorrectionGuard, Delta, Replaced
from aioinformer._core.objects.kube_object import Added, Deleted, Event, KubeObject, Updated
from aioinformer._core.objects.stored import ExcludedObject
from aioinformer.errors import IndexFailed
from tests.core.builders import deleted, pod, updated


def by_node(obj: KubeObject) -> str:
    """Index by node; raise for a node of one name."""
    node: str = obj["spec"]["nodeName"]
    if node == "raise":
        raise ValueError("no such node")
    return node


def relist(
    indexer: Indexer, objects: Iterable[KubeObject], *, restored: bool = False
) -> list[Event]:
    replacement = indexer.replace(Replaced(tuple(objects), "10", restored=restored))
    while not replacement.step(64):
        pass
    return [*replacement.commit()]


def make_indexer(*objects: KubeObject) -> tuple[Indexer, CorrectionGuard]:
    """Return a cache of these objects that a verification may correct."""
    indexer, guard = Indexer({"node": by_node}), CorrectionGuard()
    relist(indexer, objects)
    indexer.guards.append(guard)
    return indexer, guard


# -- corrections -----------------------------------------------------------------------------------


def test_corrections_add_replace_and_remove_objects_and_are_counted() -> None:
    a, b, c = pod("a"), pod("b"), pod("c")
    other = pod("b", node="node-2")
    indexer, guard = make_indexer(b, c)
    guard.pending = 3
    events: list[Event] = []
    for each in (
        Correction(a.key, None, a, guard),
        Correction(b.key, b, other, guard),
        Correction(c.key, c, None, guard),
    ):
        assert indexer.correct(each, events) is None

    assert events == [Added(a), Updated(b, other), Deleted(c, "vanished")]
    assert indexer.state.objects == {a.key: a, b.key: other}
    assert (guard.pending, guard.applied) == (0, 3)


@pytest.mark.parametrize(
    "removal",
    [deleted(pod("a", rv="11")), Delta("Updated", ExcludedObject.of(pod("a", rv="11")))],
    ids=["deleted", "dropped"],
)
def test_a_correction_does_not_bring_back_what_was_removed_since(removal: Delta) -> None:
    indexer, guard = make_indexer()
    events: list[Event] = []
    indexer.apply(removal, events)

    assert indexer.correct(Correction(pod("a").key, None, pod("a"), guard), events) is None
    assert (indexer.state.objects, events, guard.applied) == ({}, [], 0)


def test_a_correction_of_an_object_that_has_changed_since_is_discarded() -> None:
    indexer, guard = make_indexer(pod("a"))
    cached, newer = indexer.state.objects[pod("a").key], pod("a", rv="11")
    events: list[Event] = []
    indexer.apply(updated(newer), events)

    indexer.correct(Correction(newer.key, cached, None, guard), events)
    assert indexer.state.objects == {newer.key: newer}
    assert events == [Updated(cached, newer)]


def test_a_new_state_outdates_all_corrections() -> None:
    indexer, guard = make_indexer()
    relist(indexer, [])

    indexer.correct(Correction(pod("a").key, None, pod("a"), guard), [])
    assert indexer.state.objects == {}


def test_a_correction_that_an_index_function_rejects_is_listed() -> None:
    old, new = pod("a"), pod("a", rv="12", node="raise")
    indexer, guard = make_indexer(old)
    events: list[Event] = []
    error = indexer.correct(Correction(old.key, old, new, guard), events)

    assert isinstance(error, IndexFailed)
    assert isinstance(error.__cause__, ValueError)
    assert indexer.rejected == {old.key: error}
    assert (indexer.state.objects, events, guard.applied) == ({old.key: old}, [], 0)


def test_a_correction_by_a_re_created_object_that_is_rejected_removes_the_cached_one() -> None:
    old, new = pod("a"), pod("a", rv="12", uid="another", node="raise")
    indexer, guard = make_indexer(old)
    events: list[Event] = []

    assert isinstance(indexer.correct(Correction(old.key, old, new, guard), events), IndexFailed)
    assert list(indexer.rejected) == [old.key]
    assert (indexer.state.objects, events) == ({}, [Deleted(old, "vanished")])


def test_a_correction_does_not_replace_an_object_whose_newer_version_was_rejected() -> None:
    old = pod("a")
    indexer, guard = make_indexer(old)
    cached = indexer.state.objects[old.key]
    events: list[Event] = []
    indexer.apply(updated(pod("a", rv="13", node="raise")), events)

    indexer.correct(Correction(old.key, cached, pod("a", rv="12"), guard), events)
    assert (indexer.state.objects, events) == ({old.key: cached}, [])
    assert list(indexer.rejected) == [old.key]


# -- changes and states ----------------------------------------------------------------------------


def test_an_older_version_counts_unless_a_gained_shard_is_ahead_of_the_watch() -> None:
    """A server that was restored from a backup serves lower versions than before."""
    cached, older = pod("a", rv="9", uid="later"), pod("a", rv="5", uid="earlier")
    indexer, _ = make_indexer(cached)
    events: list[Event] = []
    indexer.apply(updated(older), events)
    indexer.apply(deleted(pod("a", rv="4", uid="earlier")), events)

    assert events[:2] == [Deleted(cached, "vanished"), Added(older)]
    assert [type(event) for event in events[2:]] == [Deleted]
    assert indexer.state.objects == {}


def test_a_rejected_item_leaves_nothing_of_an_earlier_item_of_its_name() -> None:
    cached = pod("a", node="node-1")
    indexer, _ = make_indexer(cached)
    items = [pod("a", rv="12", node="node-2"), pod("a", rv="13", node="raise")]

    assert relist(indexer, items) == []
    state = indexer.state
    assert state.objects == {cached.key: cached}
    assert state.json_bytes == len(cached.raw)
    assert state.indexes["node"].buckets == {"node-1": {cached.key: cached}}
    assert list(indexer.rejected) == [cached.key]


def test_a_restored_state_is_synced_when_the_server_has_confirmed_it() -> None:
    indexer = Indexer()
    relist(indexer, [pod("a")], restored=True)
    before = (indexer.state.restored, indexer.state.synced)
    indexer.confirm_restored(Confirmed())

    assert before == (True, False)
    assert (indexer.state.restored, indexer.state.synced) == (False, True)


def test_a_cache_of_one_scope_has_one_state() -> None:
    indexer = Indexer()
    assert indexer.scope_states() == {"": indexer.state}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (7, r"the index 'node' needs a function of an object, not 7$"),
        ("spec.nodeName", r"not 'spec\.nodeName'; write field\('spec\.nodeName'\)$"),
    ],
)
def test_an_index_that_is_no_function_is_an_error(given: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        Indexer({"node": given})
