"""Replay of the cached state, without a copy."""

from __future__ import annotations

from collections import deque
from operator import length_hint

from aioinformer._core.delivery.coalescing import CoalescedEvents
from aioinformer._core.delivery.replay import (
    FREE_STEP,
    UnseenDeletions,
    addition_events,
    free_in_steps,
    initial_events,
    map_events,
    resync_events,
)
from aioinformer._core.objects.kube_object import Added, Deleted, Event, KubeObject, Updated
from tests.core.builders import pod

A1, A2, B1 = pod("a", rv="1"), pod("a", rv="2"), pod("b", rv="3")


def only_a(event: Event) -> Event | None:
    """Exclude the object b."""
    return event if event.obj.name == "a" else None


def test_each_object_is_an_initial_addition() -> None:
    assert list(addition_events([A1, B1])) == [Added(A1, True), Added(B1, True)]


def test_an_object_that_is_no_longer_cached_is_skipped() -> None:
    cached, skipped = {"a", "b"}, list[KubeObject]()
    events = initial_events(
        addition_events([A1, B1]), None, lambda obj: obj.name in cached, skipped.append
    )

    assert next(events) == Added(A1, True)
    cached.clear()
    assert (next(events), skipped) == (None, [B1])


def test_an_object_that_the_filter_excludes_is_not_looked_up() -> None:
    """It is not compared with the cache, since no event of it is pending."""
    skipped: list[KubeObject] = []

    assert list(initial_events(addition_events([B1]), only_a, lambda _: False, skipped.append)) == [
        None
    ]
    assert skipped == []


def test_a_first_list_behind_changes_is_delivered_with_its_deletions() -> None:
    events: list[Event] = [Deleted(A1, "vanished"), Updated(A1, A2), Added(B1, True)]

    assert list(initial_events(events, None, lambda _: False, lambda _: None)) == [
        *events[:2],
        None,
    ]


def test_a_resync_leaves_out_changed_and_excluded_objects() -> None:
    again = resync_events(iter([A1, B1, A2]), only_a, lambda obj: obj is not A1)

    assert list(again.events) == [None, None, Updated(A2, A2, True)]


def test_a_filter_may_replace_an_event() -> None:
    events: list[Event] = [Updated(A1, A2), Added(B1)]

    assert map_events(events, None) is events
    assert list(map_events(events, lambda event: Deleted(event.obj))) == [Deleted(A2), Deleted(B1)]
    assert list(map_events(events, only_a)) == [Updated(A1, A2)]


def test_events_of_a_deleted_object_are_discarded_up_to_its_deletion() -> None:
    unseen = UnseenDeletions()
    assert not unseen.objects
    unseen.add(A1)

    assert [unseen.discard_event(each) for each in (Updated(A1, A2), Added(B1), Deleted(A2))] == [
        True,
        False,
        True,
    ]
    assert not unseen.discard_event(Added(A1)), "it came back"
    assert repr(unseen) == "<UnseenDeletions 0>"


def test_a_replay_has_a_step_for_each_object() -> None:
    objects = iter([A1, B1])
    replay = resync_events(objects, None, lambda obj: obj is B1)

    assert (replay.queued_at, replay.full, replay.finished, replay.source is objects) == (
        0.0,
        True,
        False,
        True,
    )
    assert (replay.next(), replay.finished) == (None, False), "the first object is skipped"
    assert (replay.next(), replay.finished) == (Updated(B1, B1, True), False)
    assert (replay.next(), replay.finished) == (None, True)


def test_only_the_deletion_of_the_same_object_ends_the_discarding() -> None:
    unseen = UnseenDeletions()
    unseen.add(A1)
    reborn = pod("a", uid="another")

    assert not unseen.discard_event(Deleted(reborn))
    assert unseen.objects
    assert repr(unseen) == "<UnseenDeletions 1>"
    assert unseen.discard_event(Added(A1))
    assert unseen.objects, "an addition ends nothing"
    assert unseen.discard_event(Deleted(A2, "vanished"))
    assert not unseen.objects


def test_pending_events_are_freed_in_steps() -> None:
    merged = CoalescedEvents()
    for number in range(FREE_STEP + 1):
        merged.add(Added(pod(f"p{number}")), 0.0)
    queue = deque(["a batch", "another"])
    objects = iter([A1] * (2 * FREE_STEP))
    replay = resync_events(objects, None, lambda _: True)
    steps = free_in_steps(merged, queue, None, replay)

    left = [(merged.count, len(queue), length_hint(objects)) for _ in steps]

    assert left == [
        (1, 2, 2 * FREE_STEP),
        (0, 2, 2 * FREE_STEP),
        (0, 1, 2 * FREE_STEP),
        (0, 0, 2 * FREE_STEP),
        (0, 0, FREE_STEP),
        (0, 0, 0),
    ]
