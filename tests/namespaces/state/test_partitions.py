"""The cache of several namespaces."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from aioinformer import Added, Deleted, Event, KubeObject, ObjectKey, Updated
from aioinformer._core.cache.comparison import is_same_content
from aioinformer._core.cache.lister import Lister
from aioinformer._core.objects.deltas import (
    Bookmark,
    Confirmed,
    Correction,
    CorrectionGuard,
    Delta,
    Replaced,
)
from aioinformer._core.objects.kube_object import DeleteReason
from aioinformer._core.objects.view import conversion_view
from aioinformer.errors import IndexFailed, NotSynced, UsageError
from aioinformer.namespaces.state.partitions import PartitionedIndexer
from tests.core.builders import PODS, pod

NAMESPACES = ("a", "b", "c")
NAMES = ("x", "y", "z")


def node_of(obj: KubeObject) -> str:
    node: str = obj["spec"]["nodeName"]
    return node


def name_of(obj: KubeObject) -> str:
    return obj.name


def relist(
    cache: PartitionedIndexer,
    namespace: str,
    *objects: KubeObject,
    version: str = "10",
    reason: DeleteReason = "vanished",
) -> list[Event]:
    """Replace the state of one namespace, and return the events."""
    replacement = cache.replace(Replaced(objects, version, reason=reason, scope=namespace))
    while not replacement.step(1):
        pass
    events = [*replacement.commit()]
    while not replacement.step(1):
        pass
    return events


def synced_cache(*namespaces: str) -> PartitionedIndexer:
    """Return a cache with an object ``x`` in each of these namespaces."""
    cache = PartitionedIndexer({"node": node_of})
    for namespace in namespaces:
        cache.add_scope(namespace)
        relist(cache, namespace, pod("x", namespace=namespace))
    cache.complete()
    return cache


def keys(cache: PartitionedIndexer) -> list[str]:
    return sorted(map(str, cache.state.objects))


def delta(cache: PartitionedIndexer, obj: KubeObject) -> list[Event]:
    events: list[Event] = []
    assert cache.apply(Delta("Updated", obj), events) is None
    return events


# -- namespaces --------------------------------------------------------------------------------


def test_a_removed_namespace_leaves_no_object_and_ignores_late_changes() -> None:
    cache = synced_cache("a", "b")
    old = cache.state.objects[ObjectKey("a", "x")]
    cache.remove_scope("a")
    assert keys(cache) == ["a/x", "b/x"], "the removal is queued behind what was read"
    assert relist(cache, "a", reason="scope_removed") == [Deleted(old, "scope_removed")]
    assert delta(cache, pod("y", namespace="a")) == []
    cache.bookmark(Bookmark("99", scope="a"))
    assert keys(cache) == ["b/x"]
    assert cache.part("a") is None
    assert cache.state.part_of(ObjectKey("a", "x")) is None


def test_versions_that_are_no_numbers_have_no_oldest() -> None:
    cache = synced_cache("a", "b")
    cache.bookmark(Bookmark("abc", scope="b"))
    assert cache.state.resource_version == ""


# -- the latch ---------------------------------------------------------------------------------


def test_the_cache_is_not_synced_before_all_namespaces_are_known() -> None:
    cache = PartitionedIndexer()
    cache.add_scope("a")
    relist(cache, "a")
    before = cache.state.synced
    cache.complete()
    assert (before, cache.state.synced) == (False, True)


@pytest.mark.parametrize("way", ["skip", "remove"])
def test_a_namespace_that_is_skipped_or_removed_is_not_waited_for(way: str) -> None:
    cache = PartitionedIndexer()
    cache.add_scope("a")
    cache.complete()
    (cache.skip_scope if way == "skip" else cache.remove_scope)("a")
    assert cache.state.synced


def test_a_state_from_before_a_removal_does_not_count_for_the_namespace_that_was_added_again() -> (
    None
):
    cache = PartitionedIndexer()
    cache.add_scope("a")
    cache.add_scope("b")
    cache.complete()
    cache.remove_scope("a")
    cache.add_scope("a")
    relist(cache, "b")
    seen: list[bool] = []
    relist(cache, "a", pod("x", namespace="a"))  # was queued before the removal
    seen.append(cache.state.synced)
    relist(cache, "a", reason="scope_removed")
    seen.append(cache.state.synced)
    relist(cache, "a", pod("x", namespace="a"))
    assert [*seen, cache.state.synced] == [False, False, True]
    assert keys(cache) == ["a/x"]


def test_an_unsynced_cache_can_be_read_on_request_only() -> None:
    cache = PartitionedIndexer()
    cache.add_scope("a")
    relist(cache, "a", pod("x", namespace="a"))
    lister = Lister[KubeObject](cache, PODS)
    with pytest.raises(NotSynced):
        lister.get("a/x")
    assert lister.unsynced.get("a/x") is not None


# -- indexes -----------------------------------------------------------------------------------


def test_an_index_build_covers_all_namespaces_and_those_added_meanwhile() -> None:
    cache = synced_cache("a", "b")
    build = cache.build_index("name", name_of)
    assert build is not None
    assert not build.step(1)
    cache.add_scope("c")
    relist(cache, "c", pod("z", namespace="c"))
    while not build.step(1):
        pass
    build.commit()
    assert cache.build_index("name", name_of) is None
    cache.add_scope("d")
    relist(cache, "d", pod("z", namespace="d"))
    lister = Lister[KubeObject](cache, PODS)
    assert sorted(str(obj.key) for obj in lister.by_index("name", "z")) == ["c/z", "d/z"]
    assert len(lister.by_index("name", "x")) == 2


def test_an_index_that_raises_leaves_every_namespace_as_it_was() -> None:
    cache = synced_cache("a", "b")
    build = cache.build_index("bad", lambda obj: obj["spec"]["missing"])
    assert build is not None
    with pytest.raises(IndexFailed):
        build.step(100)
    build.abandon()
    assert set(cache.state.indexes) == {"node"}
    with pytest.raises(UsageError, match="can't be added at once"):
        cache.add_indexers({"name": name_of})


def test_a_list_of_one_namespace_reads_that_namespace_only() -> None:
    cache = synced_cache("a", "b")
    read: list[str] = []

    def record(obj: KubeObject) -> bool:
        read.append(str(obj.key))
        return True

    lister = Lister[KubeObject](cache, PODS)
    assert [str(obj.key) for obj in lister.list(namespace="b", where=record)] == ["b/x"]
    assert read == ["b/x"]
    assert lister.list(namespace="z") == []
    assert [obj.key for obj in cache.state.candidates("a")] == [ObjectKey("a", "x")]
    assert len(cache.state.candidates(None)) == 2


# -- any history -------------------------------------------------------------------------------


@st.composite
def objects_of(draw: st.DrawFn, namespace: str) -> tuple[KubeObject, ...]:
    names = draw(st.sets(st.sampled_from(NAMES)))
    return tuple(
        pod(
            name,
            namespace=namespace,
            rv=str(draw(st.integers(1, 4))),
            uid=draw(st.sampled_from(["u1", "u2"])),
            node=draw(st.sampled_from(["n1", "n2"])),
        )
        for name in sorted(names)
    )


class Histories(RuleBasedStateMachine):
    """A cache beside a dict for each namespace, and a listener's view beside both."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = PartitionedIndexer({"node": node_of})
        self.cache.complete()
        self.model: dict[str, dict[str, KubeObject]] = {}
        """The objects of each namespace that has had a state."""
        self.scopes: set[str] = set()
        self.view: dict[ObjectKey, KubeObject] = {}

    def deliver(self, events: list[Event]) -> None:
        for event in events:
            match event:
                case Added(obj, _):
                    assert obj.key not in self.view
                    self.view[obj.key] = obj
                case Updated(old, new):
                    assert self.view[old.key] is old
                    assert old.uid == new.uid
                    self.view[new.key] = new
                case Deleted(obj, _):
                    assert self.view.pop(obj.key).uid == obj.uid

    @rule(namespace=st.sampled_from(NAMESPACES))
    def add(self, namespace: str) -> None:
        if namespace not in self.scopes:
            self.scopes.add(namespace)
            self.cache.add_scope(namespace)

    @precondition(lambda self: self.scopes)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        namespace = data.draw(st.sampled_from(sorted(self.scopes)))
        self.scopes.discard(namespace)
        self.cache.remove_scope(namespace)
        removed = relist(self.cache, namespace, version="", reason="scope_removed")
        assert all(isinstance(each, Deleted) for each in removed)
        self.model.pop(namespace, None)
        self.deliver(removed)

    @precondition(lambda self: self.scopes)
    @rule(data=st.data())
    def list(self, data: st.DataObject) -> None:
        namespace = data.draw(st.sampled_from(sorted(self.scopes)))
        objects = data.draw(objects_of(namespace))
        first = namespace not in self.model
        events = relist(self.cache, namespace, *objects)
        assert all(event.initial == first for event in events if isinstance(event, Added))
        held = self.model.get(namespace, {})
        # An object that is cached in this version with equal content stays.
        self.model[namespace] = {obj.name: self.kept(held.get(obj.name), obj) for obj in objects}
        self.deliver(events)

    @staticmethod
    def kept(old: KubeObject | None, new: KubeObject) -> KubeObject:
        return old if old is not None and is_same_content(old, new) else new

    @precondition(lambda self: self.model)
    @rule(data=st.data(), kind=st.sampled_from(["Added", "Updated", "Deleted"]))
    def watch(self, data: st.DataObject, kind: str) -> None:
        namespace = data.draw(st.sampled_from(sorted(self.model)))
        events: list[Event] = []
        for obj in data.draw(objects_of(namespace)):
            held = self.model[namespace]
            if kind == "Deleted":
                held.pop(obj.name, None)
                self.cache.apply(Delta("Deleted", obj), events)
            else:
                held[obj.name] = self.kept(held.get(obj.name), obj)
                self.cache.apply(Delta("Updated", obj), events)
        self.deliver(events)

    @invariant()
    def everything_agrees(self) -> None:
        expected = {obj.key: obj for held in self.model.values() for obj in held.values()}
        state = self.cache.state
        assert dict(state.objects.items()) == expected == self.view == state.copy_objects()
        assert len(state.objects) == len(expected)
        assert sorted(map(str, state.objects)) == sorted(map(str, expected))
        assert {obj.key for obj in state.objects.values()} == set(expected)
        lister = Lister[KubeObject](self.cache, PODS)
        for node in ("n1", "n2"):
            filed = {obj.key for obj in lister.by_index("node", node)}
            assert filed == {key for key, obj in expected.items() if node_of(obj) == node}
        for namespace in NAMESPACES:
            chosen = {obj.key for obj in lister.list(namespace=namespace)}
            assert chosen == {key for key in expected if key.namespace == namespace}


TestHistories = Histories.TestCase
TestHistories.settings = settings(stateful_step_count=20)


# -- reading and correcting ------------------------------------------------------------------


def test_the_objects_of_all_namespaces_are_one_mapping() -> None:
    cache = synced_cache("a", "b")
    objects = cache.state.objects
    x, missing, elsewhere = ObjectKey("a", "x"), ObjectKey("a", "z"), ObjectKey("c", "x")

    assert (objects[x].name, objects.get(x) is objects[x], x in objects) == ("x", True, True)
    for absent in (missing, elsewhere):
        assert absent not in objects
        assert objects.get(absent, 7) == 7
        with pytest.raises(KeyError):
            objects[absent]
    no_key: object = "a/x"
    assert no_key not in objects
    assert len(objects) == 2
    assert [*objects.values()] == [objects[each] for each in objects]
    assert (len(objects.values()), objects[x] in objects.values()) == (2, True)


def test_the_buckets_of_all_namespaces_are_one_mapping() -> None:
    cache = synced_cache("a", "b")
    delta(cache, pod("y", namespace="b", node="node-2"))
    buckets = cache.state.indexes["node"].buckets

    assert (sorted(buckets), len(buckets)) == (["node-1", "node-2"], 2)
    assert [*buckets["node-2"]] == [ObjectKey("b", "y")]
    assert sorted(buckets["node-1"]) == [ObjectKey("a", "x"), ObjectKey("b", "x")]
    with pytest.raises(KeyError, match="node-3"):
        buckets["node-3"]


def test_a_namespace_has_its_own_state() -> None:
    cache = synced_cache("a", "b")

    parts = {name: cache.part(name) for name in ("a", "b", "c")}
    assert parts["c"] is None
    assert parts["a"] is not parts["b"]
    assert {name: part.state for name, part in parts.items() if part} == cache.scope_states()
    cache.add_scope("c")
    states = [cache.state.part_of(ObjectKey(name, "x")) for name in ("a", "c", "other")]
    assert states[0] is cache.scope_states()["a"]
    assert states[1] is not None
    assert (len(states[1].objects), states[2]) == (0, None)
    assert cache.part("c") is None, "no list of the namespace was applied"


def test_an_equal_object_is_replaced_by_the_cached_one() -> None:
    cache = synced_cache("a")
    cached = cache.state.objects[ObjectKey("a", "x")]
    same, newer, elsewhere = (
        pod("x", namespace="a"),
        pod("x", namespace="a", rv="9"),
        pod("x", namespace="b"),
    )

    assert cache.deduplicate(same) is cached
    assert cache.deduplicate(newer) is newer
    assert cache.deduplicate(elsewhere) is elsewhere


def test_a_correction_is_applied_in_the_namespace_of_its_object() -> None:
    cache, guard, events = synced_cache("a", "b"), CorrectionGuard(pending=2), list[Event]()
    old = cache.state.objects[ObjectKey("a", "x")]
    elsewhere = ObjectKey("removed", "x")

    assert cache.correct(Correction(old.key, old, None, guard), events) is None
    assert (events, keys(cache), guard.pending) == ([Deleted(old, "vanished")], ["b/x"], 1)
    assert cache.correct(Correction(elsewhere, None, pod("x"), guard), events) is None
    assert (len(events), keys(cache), guard.pending) == (1, ["b/x"], 0)


def test_a_restored_namespace_is_synced_once_the_server_has_confirmed_its_state() -> None:
    cache = PartitionedIndexer()
    cache.add_scope("a")
    cache.complete()
    replacement = cache.replace(Replaced([pod("x", namespace="a")], "10", scope="a", restored=True))
    assert replacement.initial
    while not replacement.step(1):
        pass
    replacement.commit()
    assert not cache.state.synced
    cache.confirm_restored(Confirmed("removed"))
    assert not cache.state.synced
    cache.confirm_restored(Confirmed("a"))

    assert cache.state.synced


def test_a_confirmation_from_before_a_removal_does_not_count() -> None:
    cache = PartitionedIndexer()
    cache.add_scope("a")
    cache.replace(Replaced([], "10", scope="a", restored=True))
    cache.complete()
    cache.state.synced = False
    cache.remove_scope("a")
    cache.state.synced = False
    cache.add_scope("a")
    cache.confirm_restored(Confirmed("a"))

    assert not cache.state.synced


def test_an_object_is_held_by_uid() -> None:
    cache = synced_cache("a")

    assert cache.holds(pod("x", namespace="a", rv="9"))
    assert not cache.holds(pod("x", namespace="a", uid="another"))
    assert not cache.holds(pod("x", namespace="b"))


def test_the_reprs_count_the_namespaces() -> None:
    cache = PartitionedIndexer()
    cache.add_scope("a")
    cache.add_scope("b")
    assert repr(cache) == "<PartitionedIndexer <PartitionedState parts=0/2 synced=False> waiting=2>"
    replacement = cache.replace(Replaced([pod("x", namespace="a")], "10", scope="a"))
    assert repr(replacement).startswith("<StagedReplacement ")


def test_the_view_of_the_cache_is_that_of_each_namespace() -> None:
    view = conversion_view(name_of)
    cache = PartitionedIndexer(view=view)
    cache.add_scope("a")
    relist(cache, "a", pod("x", namespace="a"))
    part = cache.part("a")

    assert part is not None
    assert cache.view is part.view is view


def test_an_index_covers_all_namespaces_and_those_added_later() -> None:
    cache = synced_cache("a", "b")
    lister = Lister[KubeObject](cache, PODS)
    cache.add_scope("c")
    relist(cache, "c", pod("y", namespace="c", node="node-2"), pod("z", namespace="c"))
    found = lister.by_index("node", "node-1")
    assert sorted(str(obj.key) for obj in found) == ["a/x", "b/x", "c/z"]
    assert sorted(lister.index_values("node")) == ["node-1", "node-2"]
    assert lister.index_counts("node") == {"node-1": 3, "node-2": 1}
    assert lister.by_index("node", "node-3") == []
    assert [obj.name for obj in lister.index("node", pod("new", node="node-2"))] == ["y"]
