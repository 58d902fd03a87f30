"""The queue of received deltas that are not applied yet."""

from __future__ import annotations

from collections.abc import Container

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.cache.delta_fifo import DeltaFIFO
from aioinformer._core.objects.deltas import (
    Bookmark,
    Confirmed,
    Correction,
    CorrectionGuard,
    Delta,
    DeltaKind,
    QueueEntry,
    Replaced,
    Resync,
    StateEntry,
)
from aioinformer._core.objects.kube_object import ObjectKey
from aioinformer._core.objects.stored import ModelObject
from tests.core import strategies
from tests.core.builders import PODS, added, deleted, delta, key, pod, updated


def drained(fifo: DeltaFIFO) -> list[QueueEntry]:
    """Pop all entries."""
    entries: list[QueueEntry] = []
    while (entry := fifo.pop()) is not None:
        entries.append(entry)
    return entries


# -- order ---------------------------------------------------------------------------------------


@pytest.mark.client_go(73, 86, 90)
def test_changes_are_popped_in_order_of_arrival_across_keys() -> None:
    """As in client-go since 1.36; popped by key, the cache would be no past state of the server."""
    fifo = DeltaFIFO()
    a1, b1, a2, b2 = pod("a", rv="1"), pod("b", rv="2"), pod("a", rv="3"), pod("b", rv="4")
    fifo.add(a1)
    fifo.add(b1)
    fifo.update(a2)
    fifo.delete(b2)

    assert drained(fifo) == [added(a1), added(b1), updated(a2), deleted(b2)]


@pytest.mark.client_go(79, 83, 99)
def test_states_resyncs_and_bookmarks_keep_their_order() -> None:
    fifo = DeltaFIFO()
    a, b = pod("a"), pod("b")
    fifo.add(a)
    fifo.bookmark("5")
    fifo.replace([b], "6")
    fifo.resync()
    fifo.update(b)
    fifo.bookmark("7")

    assert drained(fifo) == [
        added(a),
        Bookmark("5"),
        Replaced([b], "6"),
        Resync(),
        updated(b),
        Bookmark("7"),
    ]


@pytest.mark.client_go(76)
def test_updates_of_one_object_are_not_merged() -> None:
    """Mailboxes merge; the queue doesn't, so that the cache passes through every state."""
    fifo = DeltaFIFO()
    for rv in ("1", "2", "3"):
        fifo.update(pod("a", rv=rv))

    assert len(drained(fifo)) == 3


# -- deletions that say nothing new --------------------------------------------------------------


@pytest.mark.client_go(90)
def test_deletions_with_another_change_in_between_are_both_kept() -> None:
    fifo = DeltaFIFO()
    fifo.delete(pod("a", rv="2"))
    fifo.add(pod("a", rv="3"))
    fifo.delete(pod("a", rv="4"))

    assert len(drained(fifo)) == 3


@pytest.mark.client_go(78)
def test_the_deletion_of_something_unknown_is_dropped() -> None:
    fifo = DeltaFIFO(known={key("b")})
    fifo.delete(pod("a"))
    fifo.delete(pod("b"))

    assert drained(fifo) == [deleted(pod("b"))]


@pytest.mark.client_go(78)
def test_without_known_keys_every_deletion_is_kept() -> None:
    fifo = DeltaFIFO()
    fifo.delete(pod("a"))

    assert len(fifo) == 1


@pytest.mark.client_go(81)
def test_the_deletion_of_something_queued_is_kept() -> None:
    """client-go: queued but not known."""
    fifo = DeltaFIFO(known=())
    fifo.add(pod("a"))
    fifo.delete(pod("a", rv="2"))

    assert len(drained(fifo)) == 2


def test_a_deletion_is_kept_while_a_state_that_was_popped_is_applied() -> None:
    """A state is applied in steps, and what is known is the one before until the last of them.

    Lost, it left an object in the cache that the server didn't have (simulation).
    """
    fifo = DeltaFIFO(known=())
    fifo.replace([pod("a")], "5")
    fifo.pop()
    fifo.delete(pod("a", rv="6"))
    assert fifo.pop() == deleted(pod("a", rv="6")), "asking says that the state was applied"

    fifo.delete(pod("a", rv="7"))
    assert fifo.pop() is None


@pytest.mark.client_go(74)
def test_a_deletion_queued_before_a_state_does_not_count_behind_it() -> None:
    """The state may hold the object again."""
    fifo = DeltaFIFO(known={key("a")})
    fifo.delete(pod("a", rv="4"))
    fifo.replace([pod("a", rv="5")], "5")
    fifo.delete(pod("a", rv="6"))

    assert [entry.obj.resource_version for entry in drained(fifo) if isinstance(entry, Delta)] == [
        "4",
        "6",
    ]


# -- bookmarks, resyncs --------------------------------------------------------------------------


@pytest.mark.client_go(93)
def test_consecutive_bookmarks_leave_the_last_one() -> None:
    fifo = DeltaFIFO()
    for rv in ("5", "6", "7"):
        fifo.bookmark(rv)

    assert drained(fifo) == [Bookmark("7")]


@pytest.mark.client_go(100)
def test_a_second_resync_is_not_queued() -> None:
    fifo = DeltaFIFO()
    fifo.resync()
    fifo.add(pod("a"))
    fifo.resync()

    assert drained(fifo) == [Resync(), added(pod("a"))]
    fifo.resync()
    assert drained(fifo) == [Resync()]


# -- looking -------------------------------------------------------------------------------------


def test_the_queue_is_full_from_its_high_mark_on() -> None:
    fifo = DeltaFIFO(high_mark=2)
    fifo.add(pod("a"))
    filling = [fifo.full]
    fifo.bookmark("5")
    filling.append(fifo.full)
    fifo.add(pod("b"))
    assert len(fifo) == 3, "no entry is rejected"
    draining = [fifo.full for _ in range(3) if fifo.pop()]

    assert filling == [False, True]
    assert draining == [True, False, False]


def test_the_queue_is_full_from_its_limit_of_bytes_on() -> None:
    size = len(pod("a").raw)
    fifo = DeltaFIFO(high_bytes=2 * size)
    fifo.add(pod("a"))
    assert (fifo.size, fifo.full) == (size, False)
    fifo.update(pod("a"))
    assert (fifo.size, fifo.full) == (2 * size, True)
    fifo.pop()
    assert (fifo.size, fifo.full) == (size, False)
    fifo.pop()
    assert fifo.size == 0


def test_extend_returns_whether_the_queue_is_full() -> None:
    a, size = pod("a"), len(pod("a").raw)
    fifo = DeltaFIFO(high_mark=3, high_bytes=2 * size)
    assert [fifo.extend([added(a)]), fifo.extend([updated(a)])] == [False, True], "by its bytes"
    fifo = DeltaFIFO(high_mark=3, high_bytes=100 * size)
    assert [fifo.extend([added(a), updated(a)]), fifo.extend([updated(a)])] == [False, True]


def test_a_model_counts_as_the_bytes_of_its_json() -> None:
    model = ModelObject(key("a"), b"", PODS, stored_uid="u", stored_version="1", size=100)
    fifo = DeltaFIFO()
    fifo.add(model)
    assert fifo.size == 100
    fifo.pop()
    assert fifo.size == 0


def test_dropped_deletions_and_whole_states_do_not_count_as_bytes() -> None:
    fifo = DeltaFIFO(known=())
    fifo.delete(pod("a"))
    fifo.replace([pod("b")], "5")

    assert fifo.size == 0


def test_the_deltas_of_one_object_are_found_the_oldest_first() -> None:
    fifo = DeltaFIFO()
    a1, a2 = pod("a", rv="1"), pod("a", rv="2")
    fifo.add(a1)
    fifo.add(pod("b"))
    fifo.delete(a2)

    assert fifo.deltas(key("a")) == (added(a1), deleted(a2))
    assert fifo.deltas(key("c")) == ()
    fifo.pop()
    assert fifo.deltas(key("a")) == (deleted(a2),)
    drained(fifo)
    assert fifo.deltas(key("a")) == ()


def test_the_deltas_in_front_of_a_state_are_found_too() -> None:
    fifo = DeltaFIFO()
    fifo.add(pod("a"))
    fifo.replace([], "5")

    assert fifo.deltas(key("a")) == (added(pod("a")),)


@pytest.mark.client_go(85)
def test_the_queue_has_synced_when_a_whole_state_was_popped() -> None:
    fifo = DeltaFIFO()
    assert not fifo.synced
    fifo.add(pod("a"))
    fifo.pop()
    assert not fifo.synced
    fifo.replace([], "5")
    assert not fifo.synced
    fifo.pop()
    assert fifo.synced


@pytest.mark.client_go(88)
def test_the_queue_is_not_synced_while_another_state_is_queued() -> None:
    fifo = DeltaFIFO()
    fifo.replace([], "5")
    fifo.replace([], "6")
    fifo.pop()
    assert not fifo.synced
    fifo.pop()
    assert fifo.synced


def test_the_repr_shows_entries_and_bytes() -> None:
    fifo = DeltaFIFO()
    fifo.add(pod("a"))
    fifo.bookmark("5")

    assert repr(fifo) == f"<DeltaFIFO entries=2 size={len(pod('a').raw)} B>"


# -- against a list ------------------------------------------------------------------------------


class Model:
    """A model of the queue: a plain list, whose rules walk the list."""

    def __init__(self, known: Container[ObjectKey] | None) -> None:
        self.entries: list[QueueEntry] = []
        self.known = known
        self.applying = False

    def pop(self) -> QueueEntry | None:
        entry = self.entries.pop(0) if self.entries else None
        self.applying = isinstance(entry, Replaced)
        return entry

    def push(self, change: Delta) -> None:
        if change.kind != "Deleted" or self.worth(change.obj.key):
            self.entries.append(change)

    def worth(self, key: ObjectKey) -> bool:
        for entry in reversed(self.entries):
            if isinstance(entry, Delta) and entry.obj.key == key:
                return entry.kind != "Deleted"
            if isinstance(entry, Replaced):
                return True
        return self.known is None or self.applying or key in self.known

    def bookmark(self, mark: Bookmark) -> None:
        if self.entries and isinstance(self.entries[-1], Bookmark):
            self.entries.pop()
        self.entries.append(mark)

    def resync(self) -> None:
        if Resync() not in self.entries:
            self.entries.append(Resync())

    def size(self) -> int:
        return sum(len(entry.obj.raw) for entry in self.entries if isinstance(entry, Delta))


OPERATIONS = st.one_of(
    st.tuples(strategies.kinds, strategies.few_names),
    st.sampled_from([("pop", ""), ("pop", ""), ("replace", ""), ("bookmark", ""), ("resync", "")]),
)


@given(st.lists(OPERATIONS, max_size=60), st.none() | st.sets(strategies.few_names))
def test_the_queue_behaves_like_a_list(
    operations: list[tuple[DeltaKind | str, str]], known: set[str] | None
) -> None:
    keys = None if known is None else {key(name) for name in known}
    fifo, model = DeltaFIFO(keys, high_mark=4), Model(keys)
    for number, (what, name) in enumerate(operations):
        rv = str(number)
        match what:
            case "pop":
                assert fifo.pop() == model.pop()
            case "replace":
                fifo.replace([], rv)
                model.entries.append(Replaced([], rv))
            case "bookmark":
                fifo.bookmark(rv)
                model.bookmark(Bookmark(rv))
            case "resync":
                fifo.resync()
                model.resync()
            case "Added" | "Updated" | "Deleted":
                change = delta(what, pod(name, rv=rv))
                fifo.push(change)
                model.push(change)
            case _:
                pytest.fail(f"no operation {what}")
        assert len(fifo) == len(model.entries)
        assert fifo.size == model.size()
        assert fifo.full == (len(model.entries) >= 4)
        for each in "abcd":
            assert fifo.deltas(key(each)) == tuple(
                e for e in model.entries if isinstance(e, Delta) and e.obj.name == each
            )
    assert drained(fifo) == model.entries


def test_bookmarks_of_different_scopes_are_all_kept() -> None:
    fifo = DeltaFIFO()
    fifo.extend([Bookmark("1", scope="a"), Bookmark("2", scope="a"), Bookmark("3", scope="b")])
    fifo.put(Replaced([], "4", scope="a"))
    entries = [fifo.pop() for _ in range(3)]
    assert entries == [
        Bookmark("2", scope="a"),
        Bookmark("3", scope="b"),
        Replaced([], "4", scope="a"),
    ]


# -- what an entry carries -----------------------------------------------------------------------


def test_a_batch_is_queued_behind_its_bookmarks_and_its_redundant_deletions() -> None:
    fifo = DeltaFIFO([])  # no key is known
    a, b = pod("a"), pod("b")
    fifo.extend([deleted(a), Bookmark("5"), added(b)])

    assert drained(fifo) == [Bookmark("5"), added(b)]


def test_only_a_whole_state_makes_the_queue_synced() -> None:
    def admit(uid: str, namespace: str) -> bool:
        return uid == b.uid

    a, b = pod("a"), pod("b")
    added_state = Replaced([b], "7", scope="web", initial=admit, extends=True)
    removed_state = Replaced((), "", "scope_removed", "web", kept=admit)
    fifo = DeltaFIFO()
    fifo.add(a)
    fifo.put(added_state)
    fifo.put(removed_state)

    assert drained(fifo) == [added(a), added_state, removed_state]
    assert not fifo.synced, "these were no whole states"

    fifo.put(restored := Replaced([], "5", initial=admit, restored=True))
    assert (drained(fifo), fifo.synced) == ([restored], True)


def test_corrections_and_confirmations_keep_their_order_among_changes() -> None:
    fifo, a = DeltaFIFO(), pod("a")
    guard = CorrectionGuard()
    entries: list[StateEntry] = [
        Correction(a.key, None, a, guard),
        Confirmed("web"),
        Correction(a.key, a, None, guard),
    ]
    fifo.add(a)
    for each in entries:
        fifo.put(each)
    fifo.delete(a)

    assert drained(fifo) == [added(a), *entries, deleted(a)]


def test_the_entries_without_an_object_are_no_deltas_of_one() -> None:
    fifo, a = DeltaFIFO([]), pod("a")
    fifo.put(Confirmed())
    fifo.add(a)
    fifo.bookmark("5")
    fifo.delete(a)
    fifo.delete(a)

    assert fifo.deltas(a.key) == (added(a), deleted(a))
    assert len(drained(fifo)) == 4
    fifo.delete(a)
    assert fifo.pop() is None, "the object is neither known nor queued any more"


def test_the_default_limits_are_ten_thousand_entries_and_32_mebibytes() -> None:
    fifo = DeltaFIFO()
    for _ in range(9_999):
        fifo.put(Confirmed())
    assert (fifo.full, len(fifo)) == (False, 9_999)
    fifo.put(Confirmed())
    assert fifo.full

    fifo, a = DeltaFIFO(), pod("a", labels={"x": "y" * (1 << 20)})
    while fifo.size < (32 << 20) - len(a.raw):
        fifo.update(a)
    assert (fifo.full, len(fifo)) == (False, 31)
    fifo.update(a)
    assert fifo.full
