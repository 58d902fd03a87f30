"""The cache's only writer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from aioinformer._core.cache.delta_fifo import DeltaFIFO
from aioinformer._core.cache.indexer import Indexer, StagedReplacement
from aioinformer._core.objects.deltas import Bookmark, Delta, DeltaKind, Replaced
from aioinformer._core.objects.kube_object import (
    Added,
    Deleted,
    Event,
    KubeObject,
    ObjectKey,
    Updated,
)
from aioinformer.errors import IndexFailed, UsageError
from tests.core import strategies
from tests.core.builders import (
    PODS,
    WIDGETS,
    added,
    deleted,
    delta,
    encode,
    key,
    make_object,
    pod,
    pod_body,
    replaced,
    updated,
)


def by_node(obj: KubeObject) -> str:
    """Index by node; raise for a node of one name."""
    node: str = obj["spec"]["nodeName"]
    if node == "raise":
        raise ValueError(f"no such node, in {obj.name} at {obj.resource_version}")
    return node


def applied(indexer: Indexer, *deltas: Delta) -> list[Event]:
    """Apply changes and return their events."""
    events: list[Event] = []
    for each in deltas:
        assert indexer.apply(each, events) is None
    return events


def relisted(indexer: Indexer, objects: Iterable[KubeObject], rv: str = "100") -> list[Event]:
    """Apply a new state and return its events."""
    replacement = indexer.replace(replaced(objects, rv))
    finish(replacement)
    events = [*replacement.commit()]
    finish(replacement)
    return events


def finish(replacement: StagedReplacement) -> None:
    """Step until done."""
    while not replacement.step(1):
        pass


def holding(*objects: KubeObject) -> Indexer:
    """Create a synced cache of these objects, with an index by node."""
    indexer = Indexer({"node": by_node})
    relisted(indexer, objects, "10")
    return indexer


def held(indexer: Indexer) -> dict[str, str]:
    """Versions by name."""
    return {obj.name: obj.resource_version for obj in indexer.state.objects.values()}


def nodes(indexer: Indexer) -> dict[str, set[ObjectKey]]:
    """Return the keys in the index by node, after checking that its objects are the cached ones."""
    state = indexer.state
    buckets = state.indexes["node"].buckets
    assert all(state.objects[key] is obj for each in buckets.values() for key, obj in each.items())
    return {value: set(bucket) for value, bucket in buckets.items()}


# -- one change ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Added", "Updated"])
def test_an_absent_object_is_added_for_each_kind_of_delta(kind: DeltaKind) -> None:
    """client-go's processDeltas decides by presence."""
    indexer, obj = holding(), pod("a", rv="11")

    assert applied(indexer, delta(kind, obj)) == [Added(obj)]
    assert held(indexer) == {"a": "11"}


@pytest.mark.client_go(110)
@pytest.mark.parametrize("kind", ["Added", "Updated"])
def test_a_present_object_is_updated_for_each_kind_of_delta(kind: DeltaKind) -> None:
    old, new = pod("a", rv="1"), pod("a", rv="11")
    indexer = holding(old)

    (event,) = applied(indexer, delta(kind, new))

    assert isinstance(event, Updated)
    assert event.old is old
    assert event.new is new
    assert not event.resync
    assert indexer.state.objects[key("a")] is new


def test_a_deleted_object_is_delivered_in_the_state_that_the_server_sent() -> None:
    last = pod("a", rv="11")
    indexer = holding(pod("a", rv="1"))

    (event,) = applied(indexer, deleted(last))

    assert event == Deleted(last, "deleted")
    assert event.obj is last
    assert held(indexer) == {}
    assert nodes(indexer) == {}


def test_the_deletion_of_an_absent_object_is_no_event() -> None:
    """client-go delivers it; a listener that never received the object has nothing to delete."""
    indexer = holding()

    assert applied(indexer, deleted(pod("a", rv="11"))) == []
    assert indexer.state.resource_version == "11"


@pytest.mark.parametrize("kind", ["Added", "Updated"])
def test_a_re_created_object_is_a_deletion_and_an_addition(kind: DeltaKind) -> None:
    """client-go delivers one update across two uids."""
    old, new = pod("a", rv="1", uid="first"), pod("a", rv="11", uid="second")
    indexer = holding(old)

    assert applied(indexer, delta(kind, new)) == [Deleted(old, "vanished"), Added(new)]
    assert indexer.state.objects[key("a")] is new


def test_a_deletion_with_another_uid_is_delivered_with_the_cached_object() -> None:
    old = pod("a", rv="1", uid="first")
    indexer = holding(old)

    (event,) = applied(indexer, deleted(pod("a", rv="11", uid="second")))

    assert event == Deleted(old, "vanished")
    assert event.obj is old
    assert held(indexer) == {}


@pytest.mark.parametrize("kind", ["Added", "Updated"])
def test_a_state_that_is_held_already_is_no_event_and_the_old_object_stays(
    kind: DeltaKind,
) -> None:
    old = pod("a", rv="11")
    indexer = holding(old)

    assert applied(indexer, delta(kind, pod("a", rv="11"))) == []
    assert indexer.state.objects[key("a")] is old


def test_other_content_under_an_equal_version_is_an_update() -> None:
    old, new = pod("a", rv="5", node="n1"), pod("a", rv="5", node="n2")
    indexer = holding(old)

    assert applied(indexer, updated(new)) == [Updated(old, new)]
    assert nodes(indexer) == {"n2": {key("a")}}


def test_objects_without_a_version_are_compared_by_content() -> None:
    old, new = pod("a", rv="", node="n1"), pod("a", rv="", node="n2")
    indexer = holding(old)

    assert applied(indexer, updated(new)) == [Updated(old, new)]


def test_an_equal_version_of_another_uid_is_not_the_same() -> None:
    """A cluster restored from a backup may count anew."""
    old, new = pod("a", rv="5", uid="first"), pod("a", rv="5", uid="second")

    assert applied(holding(old), added(new)) == [Deleted(old, "vanished"), Added(new)]


# -- the applied version -------------------------------------------------------------------------


@pytest.mark.client_go(104, 118)
def test_every_change_moves_the_applied_version() -> None:
    indexer = holding()
    for number, each in enumerate([added, updated, deleted], start=11):
        applied(indexer, each(pod("a", rv=str(number))))
        assert indexer.state.resource_version == str(number)


@pytest.mark.client_go(93)
def test_a_bookmark_moves_the_applied_version() -> None:
    indexer = holding(pod("a"))
    indexer.bookmark(Bookmark("50"))

    assert indexer.state.resource_version == "50"
    assert held(indexer) == {"a": "1"}


def test_an_older_bookmark_moves_nothing() -> None:
    indexer = holding(pod("a", rv="5"))
    indexer.bookmark(Bookmark("19"))
    indexer.bookmark(Bookmark("17"))

    assert indexer.state.resource_version == "19"


@pytest.mark.client_go(104)
def test_a_change_or_bookmark_without_a_version_moves_nothing() -> None:
    indexer = holding()
    applied(indexer, added(pod("a", rv="")))
    indexer.bookmark(Bookmark(""))

    assert indexer.state.resource_version == "10"


@pytest.mark.client_go(104)
def test_a_list_moves_the_applied_version_to_its_own() -> None:
    indexer = holding(pod("a", rv="3"))

    assert indexer.state.resource_version == "10"


# -- index functions that raise ------------------------------------------------------------------


@pytest.mark.client_go(107)
def test_a_version_that_an_index_function_rejects_leaves_the_previous_one_cached() -> None:
    old = pod("a", rv="1", node="n1")
    indexer, events = holding(old), list[Event]()

    error = indexer.apply(updated(pod("a", rv="11", node="raise")), events)

    assert isinstance(error, IndexFailed)
    assert (error.index, error.key) == ("node", "web/a")
    assert isinstance(error.__cause__, ValueError)
    assert events == []
    assert indexer.state.objects == {key("a"): old}
    assert nodes(indexer) == {"n1": {key("a")}}
    assert indexer.rejected == {key("a"): error}
    assert indexer.state.resource_version == "11", "it was dealt with"


@pytest.mark.parametrize("known", [True, False])
def test_a_deletion_ends_the_rejection(*, known: bool) -> None:
    indexer = holding(*[pod("a")] * known)
    indexer.apply(updated(pod("a", rv="11", node="raise")), [])
    applied(indexer, deleted(pod("a", rv="12")))

    assert indexer.rejected == {}


def test_the_deletion_of_a_rejected_new_object_reaches_the_indexer() -> None:
    """If the queue dropped the deletion as unknown, the object would be rejected for ever."""
    indexer = holding()
    fifo = DeltaFIFO(indexer)
    indexer.apply(added(pod("a", rv="11", node="raise")), [])
    assert key("a") in indexer
    assert key("b") not in indexer

    fifo.push(deleted(pod("a", rv="12")))
    assert fifo.pop() == deleted(pod("a", rv="12"))


@pytest.mark.client_go(107)
def test_a_list_with_a_rejected_version_keeps_the_previous_one() -> None:
    old = pod("a", rv="1", node="n1")
    indexer = holding(old)
    replacement = indexer.replace(
        replaced([pod("a", rv="11", node="raise"), pod("b", rv="12", node="raise"), pod("c")])
    )
    finish(replacement)
    events = replacement.commit()

    assert events == [Added(pod("c"))]
    assert indexer.state.objects[key("a")] is old
    assert held(indexer) == {"a": "1", "c": "1"}
    assert nodes(indexer) == {"n1": {key("a")}, "node-1": {key("c")}}
    assert set(replacement.rejected) == set(indexer.rejected) == {key("a"), key("b")}


# -- a whole new state ---------------------------------------------------------------------------


def test_the_first_state_is_initial_additions_in_the_order_of_the_list() -> None:
    indexer = Indexer()
    objects = [pod("b"), pod("a"), pod("c")]

    assert relisted(indexer, objects) == [Added(obj, initial=True) for obj in objects]
    assert indexer.state.synced


@pytest.mark.client_go(75, 82, 91, 116)
def test_a_relist_delivers_deletions_first_and_then_the_other_events_in_list_order() -> None:
    """client-go's processReplacedAllInfo."""
    a1, b1, c1, d1 = (pod(name, rv="1") for name in "abcd")
    indexer = holding(a1, b1, c1, d1)
    b2, e2, a2 = pod("b", rv="11"), pod("e", rv="12"), pod("a", rv="13")

    assert relisted(indexer, [b2, e2, a2]) == [
        Deleted(c1, "vanished"),
        Deleted(d1, "vanished"),
        Updated(b1, b2),
        Added(e2),
        Updated(a1, a2),
    ]
    assert held(indexer) == {"b": "11", "e": "12", "a": "13"}


@pytest.mark.client_go(54)
def test_an_unchanged_object_yields_nothing_and_stays_the_same_object() -> None:
    old = pod("a", rv="7")
    indexer = holding(old)

    assert relisted(indexer, [pod("a", rv="7")]) == []
    assert indexer.state.objects[key("a")] is old
    assert nodes(indexer) == {"node-1": {key("a")}}


def test_a_relist_delivers_a_re_created_object_as_deletion_and_addition() -> None:
    old, new = pod("a", rv="7", uid="first"), pod("a", rv="11", uid="second")

    assert relisted(holding(old), [new]) == [Deleted(old, "vanished"), Added(new)]


def test_a_relist_at_an_older_version_delivers_the_differences() -> None:
    """After a restore of the server, versions are only compared for equality."""
    new, old = pod("a", rv="50"), pod("a", rv="7")

    assert relisted(holding(new), [old], rv="8") == [Updated(new, old)]


@pytest.mark.client_go(92)
def test_an_empty_list_empties_the_cache_and_syncs_it() -> None:
    indexer = holding(pod("a"))

    assert relisted(indexer, []) == [Deleted(pod("a"), "vanished")]
    assert held(indexer) == {}
    assert relisted(Indexer(), []) == []


def test_the_cache_shows_the_old_state_until_the_commit() -> None:
    indexer = holding(pod("a", rv="1"))
    before = indexer.state
    replacement = indexer.replace(replaced([pod("b", rv="11")]))
    finish(replacement)

    assert indexer.state is before
    assert held(indexer) == {"a": "1"}
    assert indexer.state.resource_version == "10"
    replacement.commit()
    assert held(indexer) == {"b": "11"}
    assert indexer.state.resource_version == "100"


def test_a_reader_of_the_old_state_keeps_it_whole_while_it_is_freed() -> None:
    """Threads may still read the old state, so it must stay complete."""
    objects = [pod(name, node=f"n-{name}") for name in "abcdef"]
    indexer = holding(*objects)
    reader = indexer.state
    replacement = indexer.replace(replaced([]))
    finish(replacement)
    replacement.commit()

    for _ in range(20):
        replacement.step(1)
        assert list(reader.objects.values()) == objects
        filed = reader.indexes["node"].buckets
        assert {node: [*bucket.values()] for node, bucket in filed.items()} == {
            f"n-{obj.name}": [obj] for obj in objects
        }
        assert reader.resource_version == "10"


def test_a_step_processes_the_requested_number_of_objects() -> None:
    """The runtime reads its clock between the steps."""
    indexer = holding(*(pod(f"old-{number}") for number in range(50)))
    replacement = indexer.replace(replaced([pod(f"new-{number}") for number in range(100)]))
    steps = 0
    while not replacement.step(10):
        steps += 1
        if steps <= 10:
            assert f"staged={10 * steps}/100" in repr(replacement)
    assert steps == 15
    replacement.commit()
    freeing = 0
    while not replacement.step(10):
        freeing += 1
    assert freeing >= 5


@pytest.mark.client_go(117)
def test_only_the_first_full_state_is_initial() -> None:
    indexer = Indexer()
    first = indexer.replace(replaced([]))
    assert first.initial
    finish(first)
    first.commit()
    assert first.initial, "asked for after the commit"
    second = indexer.replace(replaced([pod("a")]))
    finish(second)

    assert not second.initial
    assert second.commit() == [Added(pod("a"), initial=False)]


# -- indexes -------------------------------------------------------------------------------------


def test_indexes_are_added_to_an_empty_cache() -> None:
    indexer = Indexer()
    indexer.add_indexers({"node": by_node})
    indexer.add_indexers({"name": lambda obj: obj.name})
    applied(indexer, added(pod("a")))

    assert set(indexer.state.indexes) == {"node", "name"}
    assert nodes(indexer) == {"node-1": {key("a")}}


def test_an_index_with_the_same_name_and_function_is_no_error() -> None:
    indexer = holding(pod("a"))
    indexer.add_indexers({"node": by_node})

    assert nodes(indexer) == {"node-1": {key("a")}}


def test_a_bound_method_that_is_passed_twice_is_the_same_function() -> None:
    """``self.by_node`` is another object each time, and equal."""

    class Owner:
        def by_node(self, obj: KubeObject) -> str:
            return str(obj["spec"]["nodeName"])

    owner = Owner()
    indexer = Indexer({"node": owner.by_node})
    applied(indexer, added(pod("a")))

    indexer.add_indexers({"node": owner.by_node})
    assert indexer.build_index("node", owner.by_node) is None
    with pytest.raises(UsageError, match="'node' already"):
        indexer.add_indexers({"node": Owner().by_node})


def test_a_name_with_another_function_is_an_error_and_no_index_is_added() -> None:
    indexer = Indexer({"node": by_node})

    with pytest.raises(UsageError, match="'node' already"):
        indexer.add_indexers({"other": by_node, "node": lambda obj: obj.name})
    assert list(indexer.state.indexes) == ["node"]


@pytest.mark.parametrize("objects", [[], [pod("a")]], ids=["synced", "holding"])
def test_an_index_is_not_added_in_one_step_later(objects: list[KubeObject]) -> None:
    with pytest.raises(UsageError, match=r"objects are cached already.*await informer\.add_index"):
        holding(*objects).add_indexers({"other": by_node})


# -- looking -------------------------------------------------------------------------------------


def test_holds_compares_the_uid_and_not_the_version() -> None:
    indexer = holding(pod("a", rv="1", uid="first"))

    assert indexer.holds(pod("a", rv="99", uid="first"))
    assert not indexer.holds(pod("a", rv="1", uid="second"))
    assert not indexer.holds(pod("b", uid="first"))


def test_the_repr_shows_size_and_version() -> None:
    assert repr(Indexer()) == "<Indexer objects=0 rv=none>"
    assert repr(holding(pod("a"))) == "<Indexer objects=1 rv=10>"


# -- any sequence --------------------------------------------------------------------------------

Change = tuple[DeltaKind, str, str, str]

CHANGES = st.tuples(
    strategies.kinds, strategies.few_names, strategies.few_uids, st.sampled_from(["n1", "raise"])
)
STATES = st.dictionaries(
    strategies.few_names, st.tuples(strategies.few_uids, st.sampled_from(["n1", "n2", "raise"]))
)


@given(st.lists(CHANGES | STATES, max_size=25))
def test_the_delivered_events_add_up_to_the_cache(
    operations: list[Change | dict[str, tuple[str, str]]],
) -> None:
    """A model that applies only the events holds the same objects as the cache."""
    indexer, reported = Indexer({"node": by_node}), dict[ObjectKey, KubeObject]()
    for version, operation in enumerate(operations, start=1):
        events: list[Event] = []
        if isinstance(operation, dict):
            objects = [
                pod(name, rv=str(version), uid=uid, node=node)
                for name, (uid, node) in operation.items()
            ]
            events = relisted(indexer, objects, str(version))
        else:
            kind, name, uid, node = operation
            indexer.apply(delta(kind, pod(name, rv=str(version), uid=uid, node=node)), events)
        for event in events:
            receive(reported, event)
        assert {name: id(obj) for name, obj in reported.items()} == {
            name: id(obj) for name, obj in indexer.state.objects.items()
        }
        assert nodes(indexer) == nodes(holding(*indexer.state.objects.values()))
        assert indexer.state.resource_version == str(version)


def receive(reported: dict[ObjectKey, KubeObject], event: Event) -> None:
    """Apply an event to a listener's view, and check the order of events."""
    match event:
        case Added(obj):
            assert obj.key not in reported
            reported[obj.key] = obj
        case Updated(old, new):
            assert reported[new.key] is old
            assert old.uid == new.uid
            reported[new.key] = new
        case Deleted(obj):
            assert reported.pop(obj.key).uid == obj.uid


def test_an_accepted_duplicate_ends_the_rejection() -> None:
    def picky(obj: KubeObject) -> str:
        if obj.resource_version == "11":
            raise ValueError("not this one")
        return "fine"

    indexer = Indexer({"picky": picky})
    first, last = pod("a", rv="11"), pod("a", rv="12")

    assert relisted(indexer, [first, last]) == [Added(last, initial=True)]
    assert not indexer.rejected


# -- other content under an equal version --------------------------------------------------------


def test_the_type_that_only_one_of_two_objects_has_is_no_change() -> None:
    """The items of a list lack the kind and apiVersion that a watch sends."""
    watched = make_object({"kind": "Pod", "apiVersion": "v1", **pod_body("a", rv="5")})
    indexer = holding(watched)

    assert relisted(indexer, [pod("a", rv="5")]) == []
    assert indexer.state.objects[ObjectKey("web", "a")] is watched


def test_a_body_that_cannot_be_decoded_is_compared_byte_by_byte() -> None:
    def broken(tail: bytes) -> KubeObject:
        raw = b'{"metadata":{"name":"a","namespace":"web","uid":"u","resourceVersion":"5"},' + tail
        return KubeObject(ObjectKey("web", "a"), "u", "5", raw, PODS)

    indexer = Indexer()
    relisted(indexer, [broken(b'"x":"\xff"}')])

    assert relisted(indexer, [broken(b'"x":"\xff"}')]) == []
    assert len(relisted(indexer, [broken(b'"x":"\xfe"}')])) == 1


def test_an_object_in_another_version_of_its_resource_is_another_state() -> None:
    raw = encode(pod_body("a", rv="5"))
    v2 = replace(WIDGETS, version="v2")
    old, new = (
        KubeObject(ObjectKey("web", "a"), "uid-a", "5", raw, resource) for resource in (WIDGETS, v2)
    )
    indexer = holding(old)

    assert relisted(indexer, [new]) == [Updated(old, new)]


def test_the_deletions_of_a_new_state_have_its_reason() -> None:
    removed = pod("a")
    indexer = holding(removed)
    replacement = indexer.replace(Replaced([], "50", reason="resource_gone"))
    finish(replacement)

    assert replacement.commit() == [Deleted(removed, "resource_gone")]


# -- what is in memory already -------------------------------------------------------------------


def test_deduplicate_returns_the_cached_object_for_an_equal_one() -> None:
    held_ = pod("a", rv="5")
    indexer = holding(held_)

    assert indexer.deduplicate(pod("a", rv="5")) is held_


@pytest.mark.parametrize(
    "other",
    [
        pod("a", rv="6"),
        pod("a", rv="5", node="another"),
        pod("a", rv="5", uid="another"),
        pod("b", rv="5"),
        pod("a", rv=""),
    ],
)
def test_deduplicate_returns_any_other_object_itself(other: KubeObject) -> None:
    assert holding(pod("a", rv="5")).deduplicate(other) is other


def test_an_async_index_function_is_a_type_error() -> None:
    async def node(obj: KubeObject) -> str:
        return obj.name

    with pytest.raises(TypeError, match="function of the index 'node' is async"):
        Indexer({"node": node})  # type: ignore[dict-item]


def test_a_path_in_the_place_of_an_index_function_is_rejected() -> None:
    path: Any = "spec.nodeName"
    with pytest.raises(TypeError, match=r"'node' needs a function.*write field\('spec.nodeName'\)"):
        Indexer({"node": path})
