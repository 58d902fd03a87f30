"""The pending events of one listener."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.delivery.batch_queue import FILTER_BATCH
from aioinformer._core.delivery.mailbox import MAX_MERGED, MAX_SKIPPED, Mailbox
from aioinformer._core.delivery.overflow import Overflow, OverflowName
from aioinformer._core.objects.kube_object import (
    Added,
    Deleted,
    Event,
    KubeObject,
    ObjectKey,
    Updated,
)
from aioinformer._core.selectors.event_filter import EventFilter
from tests.core import strategies
from tests.core.builders import pod


def always(_: KubeObject) -> bool:
    """Return True: the cache has every object."""
    return True


def never(_: KubeObject) -> bool:
    """Return False: the cache has no object."""
    return False


def mailbox(
    *,
    limit: int = 4,
    overflow: OverflowName = "block",
    holds: Callable[[KubeObject], bool] = always,
) -> Mailbox:
    """Make a mailbox of a cache that objects never leave."""
    return Mailbox(limit=limit, overflow=overflow, holds=holds)


def drained(box: Mailbox) -> list[Event]:
    """Everything that can be popped."""
    events: list[Event] = []
    while (event := box.pop()) is not None:
        events.append(event)
    return events


A1, A2, A3 = (pod("a", rv=rv) for rv in "123")
B1 = pod("b", rv="4")
REBORN = pod("a", rv="9", uid="another")

# -- live events ---------------------------------------------------------------------------------


def test_events_are_popped_in_the_order_they_came() -> None:
    box = mailbox()
    events: list[Event] = [Added(A1), Updated(A1, A2), Deleted(A2)]
    box.put(events[:2])
    box.put(events[2:])

    assert [box.pop(), box.pop(), box.pop(), box.pop()] == [*events, None]
    assert box.delivered == 3


def test_a_mailbox_is_drained_when_half_of_it_is_free() -> None:
    """Waking the pump for each single event would cost more than the event."""
    box = mailbox(limit=4)
    box.put([Added(A1), Updated(A1, A2), Updated(A2, A3), Deleted(A3)])
    seen: list[tuple[int, bool]] = []
    while box.pop():
        seen.append((box.free, box.half_empty))

    assert seen == [(1, False), (2, True), (3, True), (4, True)]


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_is_at_least_one(limit: int) -> None:
    with pytest.raises(ValueError, match=f"at least 1, not {limit}"):
        mailbox(limit=limit)


@pytest.mark.parametrize("rule", Overflow)
def test_a_rule_may_be_passed_as_a_member_or_by_name(rule: Overflow) -> None:
    name: Any = rule.value

    assert Mailbox(overflow=rule, holds=always).overflow is rule
    assert Mailbox(overflow=name, holds=always).overflow is rule
    assert [rule.merges, rule.blocks, rule.ends].count(True) == 1


# -- the initial state -------------------------------------------------------------------------


def test_the_initial_state_does_not_count_against_the_limit() -> None:
    box = mailbox(limit=1)
    box.replay([A1, B1])
    box.put_relist([[Deleted(A1, "vanished")]])
    box.resync([B1], always)

    assert (box.free, box.pending, box.half_empty) == (1, 0, False)
    assert len(drained(box)) == 4
    assert (box.free, box.half_empty) == (1, True)


def test_the_shared_state_is_not_copied() -> None:
    """100,000 objects and ten listeners are one sequence."""
    asked: list[str] = []

    def holds(obj: KubeObject) -> bool:
        asked.append(obj.name)
        return True

    box = mailbox(holds=holds)
    box.replay([A1, B1])
    assert asked == []
    box.pop()
    assert asked == ["a"]


def test_an_object_deleted_before_its_replay_is_skipped_with_its_events() -> None:
    box = mailbox(holds=never)
    box.replay([A1])
    box.put([Updated(A1, A2), Deleted(A2), Added(B1)])

    assert drained(box) == [Added(B1)]
    assert box.delivered == 1
    assert (box.free, box.pending) == (4, 0), "what is dropped makes room"


def test_an_object_re_created_before_its_replay_is_delivered_as_new() -> None:
    box = mailbox(holds=lambda obj: obj.uid == "another")
    box.replay([A1])
    box.put([Updated(A1, A2), Deleted(A2), Added(REBORN), Updated(REBORN, REBORN)])

    assert drained(box) == [Added(REBORN), Updated(REBORN, REBORN)]


def test_an_object_that_left_a_selector_and_came_back_is_delivered_again() -> None:
    """The same uid: only up to its first deletion is what happened to it dropped."""
    box = mailbox(holds=never)
    box.replay([A1])
    box.put([Deleted(A1), Added(A2), Deleted(A3)])

    assert drained(box) == [Added(A2), Deleted(A3)]


def test_the_deletion_in_a_relist_of_an_object_that_was_not_delivered_is_dropped() -> None:
    box = mailbox(holds=lambda obj: obj.name != "a")
    box.replay([A1, B1])
    box.put_relist([[Deleted(A1, "vanished"), Updated(B1, B1)]])

    assert drained(box) == [Added(B1, True), Updated(B1, B1)]


@pytest.mark.client_go(80)
def test_the_resync_of_an_object_that_was_deleted_meanwhile_is_dropped() -> None:
    box = mailbox(holds=lambda obj: obj.name != "a")
    box.replay([A1, B1])
    box.resync([A1, B1], lambda obj: obj.name != "a")
    box.put([Deleted(A1)])

    assert drained(box) == [Added(B1, True), Updated(B1, B1, resync=True)]


def test_a_listener_that_joined_early_receives_the_first_state_without_deleted_objects() -> None:
    box = mailbox(holds=lambda obj: obj.name != "a")
    box.put_relist([[Added(A1, True), Added(B1, True)]], initial=True)
    box.put([Deleted(A1)])

    assert drained(box) == [Added(B1, True)]
    assert box.synced


# -- relists and resyncs -------------------------------------------------------------------------


def test_the_diff_of_a_relist_is_delivered_unchanged() -> None:
    box = mailbox()
    diff: list[Event] = [Deleted(B1, "vanished"), Updated(A1, A2), Added(B1)]
    box.put_relist([diff])

    assert drained(box) == diff
    assert not box.synced, "this is not the initial state"


def test_a_resync_delivers_each_object_as_its_own_update() -> None:
    box = mailbox()
    box.resync([A1, B1], always)

    events = drained(box)
    assert events == [Updated(A1, A1, resync=True), Updated(B1, B1, resync=True)]
    assert all(isinstance(event, Updated) and event.old is event.new for event in events)


def test_a_resync_is_not_queued_behind_a_pending_one() -> None:
    """A handler that hangs would hold one more list of objects a period (simulation, seed 24)."""
    box = mailbox()
    for _ in range(3):
        box.resync([A1, B1], always)
    assert box.pop() == Updated(A1, A1, resync=True)
    box.resync([A2, B1], always)

    assert drained(box) == [Updated(B1, B1, resync=True)]
    box.resync([A2], always)
    assert drained(box) == [Updated(A2, A2, resync=True)]
    box.resync([A2], always)
    box.clear()
    box.resync([A3], always)
    assert drained(box) == [Updated(A3, A3, resync=True)]


def test_a_resync_goes_behind_everything_else() -> None:
    box = mailbox()
    box.resync([B1], always)
    box.replay([A1])
    box.put([Updated(A1, A2)])
    box.put_relist([[Updated(A2, A3)]])
    box.put([Added(B1)])

    assert drained(box) == [
        Added(A1, True),
        Updated(A1, A2),
        Updated(A2, A3),
        Added(B1),
        Updated(B1, B1, True),
    ]


def test_a_first_state_behind_a_resync_is_replayed_lazily() -> None:
    box = mailbox(holds=lambda obj: obj is not A1)
    box.resync([], always)
    box.put_relist([[Added(A1, initial=True), Added(B1, initial=True)]], initial=True)
    assert drained(box) == [Added(B1, initial=True)], (
        "objects deleted before their replay are skipped"
    )


@pytest.mark.client_go(84, 96)
def test_objects_changed_since_a_resync_began_are_skipped() -> None:
    """Merging a resync with a real update gives a real update."""
    box = mailbox()
    box.resync([A1, B1], lambda obj: obj is not A1)
    box.put([Updated(A1, A2)])

    assert drained(box) == [Updated(A1, A2), Updated(B1, B1, True)]


def test_changes_and_relists_keep_their_order() -> None:
    box = mailbox()
    box.replay([A1])
    box.put([Updated(A1, A2)])
    box.put_relist([[Updated(A2, A3)]])
    box.put([Added(B1)])
    box.put([Deleted(A3)])

    assert drained(box) == [
        Added(A1, True),
        Updated(A1, A2),
        Updated(A2, A3),
        Added(B1),
        Deleted(A3),
    ]


def test_a_relist_is_pending_until_its_last_event_is_taken() -> None:
    box = mailbox()
    assert not box.relist_pending
    box.put_relist([[Added(A1)], [Added(B1)]])
    seen: list[bool] = []
    while box.pop():
        seen.append(box.relist_pending)

    assert seen == [True, False]


def test_a_first_state_behind_live_events_waits_for_them() -> None:
    """Of a queue that was fed by hand before its first list."""
    box = mailbox()
    box.put([Added(A1)])
    box.put_relist([[Added(B1, True)]], initial=True)

    assert [box.pop(), box.synced, box.pop(), box.synced] == [
        Added(A1),
        False,
        Added(B1, True),
        False,
    ]
    assert (box.pop(), box.synced) == (None, True)


# -- coalesce ------------------------------------------------------------------------------------


def coalescing(limit: int = 2, holds: Callable[[KubeObject], bool] = always) -> Mailbox:
    """Make a mailbox that merges."""
    return mailbox(limit=limit, overflow="coalesce", holds=holds)


@pytest.mark.client_go(76)
def test_beyond_the_limit_the_oldest_are_merged() -> None:
    box = coalescing(2)
    box.put([Added(A1), Updated(A1, A2)])
    box.put([Updated(A2, A3)])

    assert (box.pending, box.max_pending, box.merged) == (2, 2, 1)
    assert drained(box) == [Added(A2), Updated(A2, A3)], "the newest are as they came"


def test_recent_events_follow_merged_ones() -> None:
    box = coalescing(2)
    box.put([Updated(A1, A2), Updated(A2, A3), Added(B1)])
    box.pop()
    box.put([Deleted(A3)])

    assert drained(box) == [Added(B1), Deleted(A3)]


def test_a_borrowed_batch_is_merged_too() -> None:
    box = coalescing(2)
    box.put([Added(A1), Added(B1)])
    run = box.borrow_batch()
    assert run is not None
    assert next(run) == Added(A1)
    box.put([Updated(A1, A2), Updated(A2, A3)])

    assert list(run) == [], "it has ended early"
    assert box.borrow_batch() is None, "now they have to be popped"
    assert drained(box) == [Added(B1), Updated(A1, A3)]
    assert box.delivered == 3


def test_the_merged_events_of_a_batch_are_delivered_before_the_rest_of_it() -> None:
    """A consumer in the middle of a batch, such as an awaiting handler, receives the merged event
    before the rest of the batch. Otherwise an older state would be delivered last.
    """
    box = coalescing(4)
    states = [pod("a", rv=str(number)) for number in range(7)]
    updates: list[Event] = [Updated(old, new) for old, new in pairwise(states)]
    box.put(updates[:4])
    run = box.borrow_batch()
    assert run is not None
    received = [next(run)]
    box.put(updates[4:])
    received += [*run, *drained(box)]

    assert box.merged > 0
    assert [event.obj.resource_version for event in received] == ["1", "3", "4", "5", "6"]


def test_the_merged_events_of_a_skipped_object_are_discarded() -> None:
    cached = {"a"}
    box = coalescing(1, lambda obj: obj.name in cached)
    box.replay([A1])
    box.put([Updated(A1, A2), Updated(A2, A3)])
    cached.clear()
    box.put([Deleted(A3)])

    assert drained(box) == []
    assert (box.synced, box.delivered, box.pending) == (True, 0, 0)


def test_a_skipped_object_that_comes_back_to_its_selector_is_new() -> None:
    """Its merged change must not begin with a state that the listener never had."""
    cached: set[str] = set()
    box = coalescing(1, lambda obj: obj.name in cached)
    box.replay([A1])
    box.put([Updated(A1, A2), Deleted(A2)])
    assert box.pop() is None
    cached.add("a")
    box.put([Added(A3)])

    assert drained(box) == [Added(A3)]


def test_discarded_events_do_not_affect_a_later_object_of_the_same_name() -> None:
    cached: set[str] = set()
    box = coalescing(3, lambda obj: obj.name in cached)
    box.replay([A1])
    box.put([Updated(A1, A2), Updated(A2, A2, True), Updated(A2, A2, True), Deleted(A2)])
    assert box.pop() is None
    box.put([Added(A3), Added(B1), Deleted(B1)])

    assert drained(box) == [Added(A3), Added(B1), Deleted(B1)]


def test_a_relist_is_merged_when_another_comes() -> None:
    box = coalescing(1)
    box.put_relist([[Updated(A1, A2), Added(B1)]])
    while box.relist_pending:
        box.merge_oldest(1)
    box.put_relist([[Updated(A2, A3), Deleted(B1, "vanished")]])

    assert drained(box) == [Updated(A1, A2), Added(B1), Updated(A2, A3), Deleted(B1, "vanished")]


def test_the_pending_events_of_a_blocked_listener_are_bounded_over_many_relists() -> None:
    box = coalescing(1)
    states = [A1, A2, A3]
    for number in range(100):
        while box.relist_pending:
            box.merge_oldest(10)
        box.put_relist([[Updated(states[number % 3], states[(number + 1) % 3])]])
        assert box.pending <= 2

    assert len(drained(box)) == 2


def test_the_mark_behind_a_first_state_survives_merging() -> None:
    box = coalescing(1)
    box.put([Added(B1)])
    box.put_relist([[Added(A1, True)]], initial=True)
    box.put([Updated(A1, A2), Updated(A2, A3)])

    assert (box.pop(), box.synced) == (Added(B1), False)
    assert (box.pop(), box.synced) == (Added(A3, True), False)
    assert (box.pop(), box.synced) == (None, True)


def test_an_initial_addition_that_is_merged_with_its_deletion_counts_as_delivered() -> None:
    box = coalescing(1)
    box.put([Added(B1)])
    box.put_relist([[Added(A1, True)]], initial=True)
    box.put([Updated(A1, A2), Deleted(A2)])

    assert drained(box) == [Added(B1)]
    assert box.synced


def test_a_step_merges_a_limited_number_of_events() -> None:
    """A limit above that, or a relist of thousands in front, takes several."""
    box = coalescing(1)
    many: list[Event] = [
        Added(pod(str(number), uid=str(number))) for number in range(MAX_MERGED + 10)
    ]
    box.put_relist([many])
    steps, before = 0, box.needs_merge
    box.put([Added(A1), Added(B1)])
    while box.needs_merge:
        box.merge_oldest(4)
        steps += 1

    assert not before
    assert 1 <= steps <= 4
    assert len(drained(box)) == MAX_MERGED + 12


# -- error ---------------------------------------------------------------------------------------


def test_a_mailbox_may_overflow_with_an_error() -> None:
    box = mailbox(limit=2, overflow="error")
    box.put([Added(A1), Updated(A1, A2)])
    assert not box.overflowed
    box.put([Updated(A2, A3)])

    assert box.overflowed


def test_two_relists_at_once_are_an_overflow_too() -> None:
    box = mailbox(overflow="error")
    box.put_relist([[Added(A1)]])
    box.put_relist([[Updated(A1, A2)]])

    assert box.overflowed


# -- a run of events -----------------------------------------------------------------------------


def test_the_rest_of_a_batch_is_returned_as_one_run() -> None:
    box = mailbox()
    box.put((Added(A1), Updated(A1, A2)))
    box.put((Added(B1),))
    assert box.pop() == Added(A1)

    runs = [list(box.borrow_batch() or []) for _ in range(3)]

    assert runs == [[Updated(A1, A2)], [Added(B1)], []]
    assert (box.delivered, box.pending) == (3, 0)


def test_an_event_is_popped_as_it_is_taken_from_a_run() -> None:
    box = mailbox()
    box.put((Added(A1), Updated(A1, A2), Updated(A2, A3)))
    run = box.borrow_batch()
    assert run is not None
    next(run)

    assert (box.delivered, box.pending, box.free) == (1, 2, 2)
    assert box.pop() == Updated(A1, A2)
    assert list(run) == [Updated(A2, A3)]


def test_clearing_ends_a_run() -> None:
    box = mailbox()
    box.put((Added(A1), Updated(A1, A2)))
    run = box.borrow_batch()
    assert run is not None
    next(run)
    box.clear()

    assert list(run) == []
    assert (box.delivered, box.pending) == (1, 0)


def test_the_initial_state_and_a_resync_are_not_lent_as_a_run() -> None:
    box = mailbox(holds=never)
    assert box.borrow_batch() is None
    box.replay([A1])
    box.put([Deleted(A1), Added(B1)])
    assert box.borrow_batch() is None, "the initial state"
    assert box.pop() == Added(B1)
    box.resync([B1], always)
    assert box.borrow_batch() is None, "a resync"


# -- a filter ------------------------------------------------------------------------------------


def without_b(event: Event) -> Event | None:
    """Exclude the object b."""
    return None if event.obj.name == "b" else event


def test_events_that_the_filter_excludes_are_not_queued() -> None:
    box = Mailbox(limit=4, holds=always, event_map=without_b)

    assert not box.put([Added(B1)])
    assert box.empty
    assert box.put([Added(B1), Added(A1)])
    assert box.pending == 1


def test_every_kind_of_event_goes_through_the_filter() -> None:
    box = Mailbox(limit=4, holds=always, event_map=without_b)
    box.replay([B1, A1])
    box.put_relist([[Deleted(B1), Updated(A1, A2)]])
    box.resync([A2, B1], always)

    assert drained(box) == [Added(A1, True), Updated(A1, A2), Updated(A2, A2, True)]
    assert box.synced
    assert box.delivered == 3


def test_a_filter_that_excludes_a_whole_relist_yields_in_between() -> None:
    """It is asked as the listener gets there, so many times in one go and no more."""
    asked: list[Event] = []
    box = Mailbox(limit=4, holds=always, event_map=asked.append)
    box.put_relist([(Added(A1),) * 100] * 10)

    assert box.borrow_batch() is None
    assert box.pop() is None
    assert (box.should_yield, len(asked), box.relist_pending) == (True, FILTER_BATCH, True)
    while box.should_yield:
        assert box.pop() is None
    assert (len(asked), box.empty) == (1000, True)


# -- numbers -------------------------------------------------------------------------------------


def test_oldest_is_the_time_of_the_oldest_pending_event() -> None:
    box = coalescing(2)
    seen = [box.oldest]
    box.replay([A1], 1.0)
    box.put([Updated(A1, A2)], 2.0)
    box.put([Updated(A2, A3), Added(B1)], 3.0)
    while box.pop():
        seen.append(box.oldest)

    assert seen == [None, 1.0, 3.0, None]


def test_merged_events_have_the_time_of_the_first_one() -> None:
    box = coalescing(1)
    box.put([Updated(A1, A2)], 2.0)
    box.put([Updated(A2, A3)], 3.0)

    assert box.oldest == 2.0


def test_every_event_is_delivered_merged_or_pending() -> None:
    box = coalescing(2)
    box.put([Added(A1), Updated(A1, A2), Updated(A2, A3), Added(B1), Deleted(A3)])
    box.pop()

    assert box.delivered + box.merged + box.pending == 5


def test_the_high_mark_is_within_the_bound() -> None:
    """It is taken when what is too much was merged, in however many steps."""
    box = coalescing(2)
    states = [pod("a", rv=str(number)) for number in range(4 * MAX_MERGED)]
    box.put([Updated(old, new) for old, new in pairwise(states)])
    highs = [box.max_pending]
    while box.needs_merge:
        box.merge_oldest(1)
    highs.append(box.max_pending)

    assert highs == [0, 2]


def test_many_skipped_events_take_several_pops() -> None:
    box = mailbox(holds=never)
    box.replay([pod(str(number)) for number in range(2 * MAX_SKIPPED)])

    looks = 1
    while box.pop() is None and box.should_yield:
        looks += 1
    assert looks == 3
    assert box.synced


# -- synced --------------------------------------------------------------------------------------


def test_a_listener_is_synced_once_it_requests_the_event_after_the_initial_state() -> None:
    """Asking says that the event before was dealt with: the handler returned."""
    box = mailbox()
    box.replay([A1, B1])
    for _ in range(2):
        box.pop()
        assert not box.synced
    assert box.pop() is None
    assert box.synced


def test_a_live_event_behind_the_state_shows_that_it_is_synced() -> None:
    box = mailbox()
    box.replay([A1])
    box.put([Updated(A1, A2)])
    box.pop()
    assert not box.synced
    assert box.pop() == Updated(A1, A2)
    assert box.synced


def test_a_listener_of_an_empty_cache_is_synced_at_its_first_request() -> None:
    box = mailbox()
    box.replay([])
    assert not box.synced
    assert box.pop() is None
    assert box.synced


def test_a_part_of_the_first_state_does_not_sync_the_listener() -> None:
    """Of a listener that joins before the first list, behind changes that came earlier."""
    box = mailbox()
    box.replay([A1], full=False)
    assert (box.pop(), box.pop(), box.synced) == (Added(A1, True), None, False)
    box.put_relist([[Added(B1, True)]], initial=True)
    assert (box.pop(), box.pop(), box.synced) == (Added(B1, True), None, True)


def test_a_listener_is_synced_when_every_object_of_the_state_was_skipped() -> None:
    box = mailbox(holds=never)
    box.replay([A1, B1])

    assert box.pop() is None
    assert box.synced


def test_a_listener_without_a_state_is_not_synced() -> None:
    box = mailbox()
    box.put([Added(A1)])
    drained(box)

    assert not box.synced


def test_once_synced_is_always_synced() -> None:
    box = mailbox()
    box.replay([])
    box.pop()
    box.replay([A1])
    box.put_relist([[Added(B1)]])

    assert box.synced


# -- the rest ------------------------------------------------------------------------------------


def test_clearing_drops_everything_that_is_pending() -> None:
    box = mailbox(holds=never)
    box.replay([A1])
    box.put([Added(B1)])
    box.pop()
    box.put([Deleted(B1)])
    box.clear()

    assert (box.pop(), box.pending, box.empty, box.synced) == (None, 0, True, True)
    box.put([Added(A1)])
    assert box.pop() == Added(A1), "nothing is held against it any more"


def test_the_pending_events_are_freed_in_steps() -> None:
    """Freeing 100,000 objects takes long, so the caller of ``clear`` releases them in steps."""
    box = coalescing(1)
    many = [pod(str(number)) for number in range(600)]
    box.replay(iter(many))
    box.put([Added(obj) for obj in many])
    while box.needs_merge:
        box.merge_oldest(64)
    box.put_relist([[Added(A1)], [Added(B1)]])
    box.resync(iter(many), always)
    rest = box.clear()

    assert (box.empty, box.pending) == (True, 0)
    assert sum(1 for _ in rest) == 3 + 2 + 3 + 3


def test_a_dropped_resync_is_freed_in_steps() -> None:
    box = mailbox()
    box.put([Added(A1)])
    box.resync([pod(str(number)) for number in range(600)], always)
    rest = box.drop_resync()

    assert sum(1 for _ in rest) == 3
    assert drained(box) == [Added(A1)]


def test_a_mailbox_is_empty_when_nothing_is_pending_live_or_not() -> None:
    box, seen = mailbox(), list[bool]()
    seen.append(box.empty)
    box.resync([A1], always)
    seen.append(box.empty)
    drained(box)
    seen.append(box.empty)
    box.put([Added(B1)])
    seen.append(box.empty)

    assert seen == [True, False, True, False]


def test_the_repr_shows_how_full_it_is() -> None:
    box = mailbox()
    box.put([Added(A1)])

    assert repr(box) == "<Mailbox pending=1/4 block synced=False>"


# -- against the cache ---------------------------------------------------------------------------


def wanted(obj: KubeObject) -> bool:
    """Filter objects by a field, so that they start and stop passing."""
    return int(obj.resource_version) % 3 > 0


def never_raises(obj: KubeObject, error: BaseException) -> None:
    """Ignore the failure of a filter."""
    raise AssertionError(obj) from error


@dataclass
class World:
    """A cache, one listener's mailbox, and what its consumer has made of what it received."""

    box: Mailbox = field(init=False)
    limit: int
    overflow: OverflowName
    picky: bool = False
    """True if a filter excludes every third version."""
    cache: dict[ObjectKey, KubeObject] = field(default_factory=dict[ObjectKey, KubeObject])
    view: dict[ObjectKey, KubeObject] = field(default_factory=dict[ObjectKey, KubeObject])
    initial_objects: set[tuple[ObjectKey, str]] = field(default_factory=set[tuple[ObjectKey, str]])
    given: list[Event] = field(default_factory=list[Event])
    received: list[Event] = field(default_factory=list[Event])
    keys: set[ObjectKey] = field(default_factory=set[ObjectKey])
    """Those that have been pending since the mailbox was empty."""
    version: int = 0
    taking: Iterator[Event] | None = None
    """A run that the consumer is in the middle of, as an async handler, whatever happens."""

    def __post_init__(self) -> None:
        each = EventFilter(wanted, never_raises).apply if self.picky else None
        self.box = Mailbox(
            limit=self.limit, overflow=self.overflow, holds=self.holds, event_map=each
        )

    def holds(self, obj: KubeObject) -> bool:
        held = self.cache.get(obj.key)
        return held is not None and held.uid == obj.uid

    def shows(self, obj: KubeObject) -> bool:
        return self.cache.get(obj.key) is obj

    # -- what happens -----------------------------------------------------------------------

    def change(self, name: str, uid: str, *, deleted: bool) -> list[Event]:
        """Return the events of an object that is added, changed or deleted."""
        self.version += 1
        obj = pod(name, rv=str(self.version), uid=uid)
        self.keys.add(obj.key)
        old = self.cache.pop(obj.key, None)
        if deleted:
            return [] if old is None else [Deleted(old)]
        self.cache[obj.key] = obj
        if old is None:
            return [Added(obj)]
        return [Updated(old, obj)] if old.uid == obj.uid else [Deleted(old), Added(obj)]

    def live(self, changes: list[tuple[str, str, bool]]) -> None:
        """Put some changes in one batch, as far as there is room."""
        events: list[Event] = []
        for name, uid, deleted in changes:
            if self.box.free <= len(events):
                break
            events += self.change(name, uid, deleted=deleted)
        self.given += events
        self.box.put(tuple(events))
        while self.box.needs_merge:
            self.box.merge_oldest(1)
            self.take(1)  # the consumer doesn't wait for that

    def fold(self, count: int) -> None:
        """Merge some of the pending events."""
        if self.overflow == "coalesce":
            self.box.merge_oldest(count)
        while self.box.needs_merge:
            self.box.merge_oldest(1)

    def relist(self, changes: list[tuple[str, str, bool]]) -> None:
        """Put some changes as the diff of a relist."""
        while self.overflow == "coalesce" and (self.box.relist_pending or self.box.needs_merge):
            self.box.merge_oldest(2)
        while self.box.relist_pending and self.overflow == "block":
            self.take(1)
        after = {name: (uid, deleted) for name, uid, deleted in changes}
        events = [
            e
            for name, (uid, deleted) in after.items()
            for e in self.change(name, uid, deleted=deleted)
        ]
        self.given += events
        self.box.put_relist([(event,) for event in events])

    def join(self, *, early: bool) -> None:
        """Replay the cached objects."""
        self.keys |= self.cache.keys()
        found = list(self.cache.values())
        if early:
            self.box.put_relist([[Added(obj, True)] for obj in found], initial=True)
        else:
            self.box.replay(found)

    # -- what is received ----------------------------------------------------------------------

    def take(self, count: int) -> None:
        """Take some events, as ``Listener.take`` does: from a run until it has ended."""
        for _ in range(count):
            self.taking = self.taking or self.box.borrow_batch()
            event = next(self.taking, None) if self.taking else self.box.pop()
            if event is None:
                self.taking = None
            else:
                self.receive(event)

    def receive(self, event: Event) -> None:
        """Promise 2: per key Added, Updated..., Deleted; never across uids."""
        self.received.append(event)
        match event:
            case Added(obj, initial):
                assert obj.key not in self.view
                assert not (initial and (obj.key, obj.uid) in self.initial_objects), (
                    "delivered twice"
                )
                self.view[obj.key] = obj
                self.initial_objects |= {(obj.key, obj.uid)} if initial else set()
            case Updated(old, new, resync):
                assert self.view[old.key] is old
                assert old.uid == new.uid
                assert (old is new) == resync
                assert int(old.resource_version) <= int(new.resource_version)
                self.view[old.key] = new
            case Deleted(obj):
                assert self.view.pop(obj.key).uid == obj.uid

    def check(self) -> None:
        """Promise 8: the bound."""
        keys = len(self.keys | self.view.keys())
        slack = self.overflow == "block"  # a re-created object may be one too many
        bound = max(self.limit + slack, 2 * keys)
        assert self.box.pending <= bound
        assert self.box.max_pending <= max(self.limit + slack, 2 * NAMES)
        assert not self.box.needs_merge
        if self.box.empty:
            assert self.box.pending == 0
            self.keys.clear()


NAMES = 4
"""The number of ``few_names``."""

CHANGES = st.lists(
    st.tuples(
        st.one_of(st.just("a"), strategies.few_names),  # some of them often, so that much is merged
        st.one_of(st.just("1"), strategies.few_uids),
        st.sampled_from([False, False, False, True]),
    ),
    min_size=1,
    max_size=8,
)
OPERATIONS = st.one_of(
    st.tuples(st.just("live"), CHANGES),
    st.tuples(st.just("meanwhile"), CHANGES),
    st.tuples(st.just("meanwhile"), CHANGES),
    st.tuples(st.just("relist"), CHANGES),
    st.tuples(st.just("take"), st.integers(1, 4)),
    st.tuples(st.just("fold"), st.integers(1, 4)),
    st.tuples(st.just("resync"), st.just(0)),
)


@given(
    st.sampled_from(["coalesce", "block", "error"]),
    st.booleans(),
    CHANGES,
    st.booleans(),
    st.integers(1, 6),
    st.lists(OPERATIONS, min_size=5, max_size=40),
)
def test_a_listener_holds_the_cached_state_once_all_was_delivered(
    overflow: OverflowName,
    picky: bool,
    before: list[tuple[str, str, bool]],
    early: bool,
    limit: int,
    operations: list[tuple[str, Any]],
) -> None:
    """For any history and any way of listening, under every rule. The consumer stays in the middle
    of a run while anything else happens, as a handler does that awaits something.
    """
    world = World(limit, overflow, picky)
    for name, uid, deleted in before:
        world.change(name, uid, deleted=deleted)
    world.join(early=early)
    for what, value in operations:
        match what:
            case "live":
                world.live(value)
            case "meanwhile":
                world.take(1)
                world.live(value)
                world.take(1)
            case "relist":
                world.relist(value)
            case "take":
                world.take(value)
            case "fold":
                world.fold(value)
            case _:
                world.box.resync(list(world.cache.values()), world.shows)
        if world.box.overflowed:
            assert world.overflow == "error"
            return
        world.check()
    while not world.box.empty:
        world.take(1)
    world.take(1)

    assert world.view == {key: obj for key, obj in world.cache.items() if not picky or wanted(obj)}
    assert world.box.synced
    assert world.box.delivered == len(world.received)


@given(st.integers(1, 6), st.lists(CHANGES, max_size=20), st.integers(0, 3))
def test_a_listener_that_keeps_up_receives_every_event(
    limit: int, batches: list[list[tuple[str, str, bool]]], left: int
) -> None:
    """Only beyond the limit is anything merged."""
    world = World(limit + left + 2 * 8, "coalesce")  # a re-created object is two events
    for changes in batches:
        world.live(changes)
        while world.box.pending > left:
            world.take(1)
    while not world.box.empty:
        world.take(1)

    assert world.received == world.given
    assert world.box.merged == 0


# -- a filter that has it closed ---------------------------------------------------------------


@pytest.mark.parametrize("what", ["initial", "live", "relist", "resync"])
def test_a_filter_that_closes_its_listener_delivers_no_further_event(what: str) -> None:
    pods = [pod(f"p-{number}") for number in range(3)]
    asked = list[Event]()

    def closing(event: Event) -> Event:
        asked.append(event)
        if len(asked) == 2:
            box.closed = True
            for _ in box.clear():
                pass
        return event

    box = Mailbox(holds=always, event_map=closing)
    if what == "initial":
        box.replay(pods)
    elif what == "live":
        assert not box.put([Added(each) for each in pods])
    elif what == "relist":
        box.put_relist([[Added(each) for each in pods]])
    else:
        box.resync(pods, always)

    delivered = drained(box)

    assert [event.obj.name for event in delivered] == (
        ["p-0"] if what in ("initial", "resync") else []
    )
    assert (box.empty, box.state_pending) == (True, False)


def test_events_that_are_put_into_a_closed_mailbox_are_dropped() -> None:
    box = mailbox()
    box.put([Added(pod("a"))])
    box.closed = True

    box.put([Added(pod("b"))])
    box.put_relist([[Added(pod("c"))]])
    assert not box.resync([pod("d")], always)

    assert drained(box) == [Added(pod("a"))]


@pytest.mark.parametrize(("second", "overflowed"), [("a", True), ("b", False)])
def test_one_diff_of_each_scope_may_be_pending(second: str, overflowed: bool) -> None:
    box = mailbox(limit=1, overflow="error")
    box.put_relist([[Added(A1)]], scope="a")
    assert (box.has_relist_of("a"), box.has_relist_of("b")) == (True, False)
    box.put_relist([[Added(B1)]], scope=second)
    assert box.overflowed == overflowed


def test_the_end_of_the_first_state_needs_no_diff() -> None:
    box = mailbox()
    box.put_relist([[Added(A1, initial=True)]], scope="a")
    box.put_relist([], initial=True)
    assert box.pop() == Added(A1, initial=True)
    before = box.synced
    assert box.pop() is None
    assert (before, box.synced) == (False, True)
