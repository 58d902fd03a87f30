"""Pending events merged by object."""

from __future__ import annotations

import pytest

from aioinformer._core.delivery.coalescing import CoalescedEvents, Mark, PendingChange
from aioinformer._core.objects.kube_object import Added, Deleted, Event, Updated
from tests.core.builders import pod

A1, A2, A3, A4 = (pod("a", rv=rv) for rv in "1234")
B1, B2 = (pod("b", rv=rv) for rv in "56")
REBORN, REBORN2 = (pod("a", rv=rv, uid="another") for rv in "78")


def coalesced(*events: Event) -> CoalescedEvents:
    """Add these events, one a second."""
    pending = CoalescedEvents()
    for at, event in enumerate(events):
        pending.add(event, float(at))
    return pending


def drained(pending: CoalescedEvents) -> list[Event | Mark]:
    """Everything that is pending."""
    events: list[Event | Mark] = []
    while (event := pending.pop()) is not None:
        events.append(event)
    return events


@pytest.mark.parametrize(
    ("happened", "delivered"),
    [
        pytest.param([Added(A1)], [Added(A1)], id="one event stays"),
        pytest.param([Added(A1), Updated(A1, A2)], [Added(A2)], id="add+update"),
        pytest.param(
            [Added(A1, True), Updated(A1, A2)], [Added(A2, True)], id="initial survives an update"
        ),
        pytest.param([Added(A1), Deleted(A2)], [], id="add+delete"),
        pytest.param([Added(A1, True), Deleted(A1)], [], id="initial add+delete"),
        pytest.param(
            [Updated(A1, A2), Updated(A2, A3), Updated(A3, A4)],
            [Updated(A1, A4)],
            id="update+update, from the first old to the last new",
        ),
        pytest.param([Updated(A1, A2), Deleted(A3)], [Deleted(A3)], id="update+delete"),
        pytest.param(
            [Updated(A1, A2), Deleted(A2, "vanished")],
            [Deleted(A2, "vanished")],
            id="the reason of a deletion stays",
        ),
        pytest.param(
            [Deleted(A2), Added(REBORN)], [Deleted(A2), Added(REBORN)], id="different uids"
        ),
        pytest.param(
            [Updated(A1, A2), Deleted(A2), Added(REBORN), Updated(REBORN, REBORN2)],
            [Deleted(A2), Added(REBORN2)],
            id="a re-created object that changes",
        ),
        pytest.param(
            [Deleted(A2), Added(REBORN), Deleted(REBORN)],
            [Deleted(A2)],
            id="a re-created object that goes again",
        ),
        pytest.param(
            [Deleted(A2), Added(A3)], [Deleted(A2), Added(A3)], id="left a selector and came back"
        ),
        pytest.param(
            [Deleted(A1, "vanished"), Added(A2), Deleted(A3)],
            [Deleted(A3)],
            id="the last deletion of one object",
        ),
        pytest.param([Updated(A1, A2), Updated(A2, A2, True)], [Updated(A1, A2)], id="real+resync"),
        pytest.param([Updated(A1, A1, True), Updated(A1, A2)], [Updated(A1, A2)], id="resync+real"),
        pytest.param(
            [Updated(A1, A1, True), Updated(A1, A1, True)],
            [Updated(A1, A1, True)],
            id="resync+resync",
        ),
    ],
)
def test_events_of_one_object_are_merged(happened: list[Event], delivered: list[Event]) -> None:
    pending = coalesced(*happened)

    assert pending.count == len(delivered)
    assert pending.merged == len(happened) - len(delivered)
    assert drained(pending) == delivered
    assert not pending


def test_a_key_keeps_the_place_of_its_oldest_change() -> None:
    pending = coalesced(Updated(A1, A2), Updated(B1, B2), Updated(A2, A3))

    assert drained(pending) == [Updated(A1, A3), Updated(B1, B2)]


def test_an_object_that_was_added_and_deleted_loses_its_place() -> None:
    pending = coalesced(Added(A1), Added(B1), Deleted(A1), Added(A2))

    assert drained(pending) == [Added(B1), Added(A2)]


def test_a_re_created_object_is_two_events() -> None:
    pending = coalesced(Deleted(A1), Added(REBORN))

    assert pending.pop() == Deleted(A1)
    pending.add(Deleted(REBORN), 2.0)

    assert (pending.pop(), pending.count, pending.merged) == (None, 0, 2)


def test_oldest_is_the_time_of_the_oldest_change() -> None:
    pending = coalesced(Updated(A1, A2), Added(B1), Updated(A2, A3))

    assert pending.oldest == 0.0
    pending.pop()
    assert pending.oldest == 1.0
    pending.pop()
    assert pending.oldest is None


def test_a_mark_is_popped_in_its_place() -> None:
    pending = coalesced(Added(A1))
    pending.add_mark(Mark.SYNC)
    pending.add(Added(B1), 1.0)
    pending.add(Updated(A1, A2), 2.0)

    assert [pending.pop() for _ in range(3)] == [Added(A2), Mark.SYNC, Added(B1)]
    assert not pending


def test_a_mark_is_no_pending_change() -> None:
    pending = CoalescedEvents()
    pending.add_mark(Mark.SYNC)

    assert (pending.count, pending.oldest, bool(pending)) == (0, None, True)


def test_the_number_of_merged_events_goes_on_from_a_given_number() -> None:
    pending = CoalescedEvents(merged=5)
    pending.add(Updated(A1, A2), 0.0)
    pending.add(Updated(A2, A3), 1.0)

    assert pending.merged == 6


def test_each_delivered_event_no_longer_counts() -> None:
    pending = coalesced(Deleted(A1), Added(REBORN), Added(B1))
    pending.add_mark(Mark.SYNC)

    counts: list[int] = []
    while pending:
        pending.pop()
        counts.append(pending.count)

    assert counts == [2, 1, 0, 0]


def test_a_new_collection_is_empty() -> None:
    pending = CoalescedEvents()

    assert (pending.count, pending.merged, pending.oldest, pending.pop()) == (0, 0, None, None)


def test_a_second_mark_moves_the_first() -> None:
    pending = CoalescedEvents()
    pending.add_mark(Mark.SYNC)
    pending.add(Added(A1), 0.0)
    pending.add_mark(Mark.SYNC)

    assert [pending.pop() for _ in range(2)] == [Added(A1), Mark.SYNC]
    assert not pending


def test_a_second_mark_of_a_position_moves_the_first() -> None:
    pending = CoalescedEvents()
    assert not pending.add_mark(Mark.POSITION)
    pending.add(Added(A1), 7.0)
    pending.add_mark(Mark.SYNC)
    assert pending.add_mark(Mark.POSITION), "replaces the mark before the addition"

    assert list(pending.changes)[-2:] == [Mark.SYNC, Mark.POSITION]
    assert (pending.oldest, pending.count) == (7.0, 1)
    assert [pending.pop() for _ in range(3)] == [Added(A1), Mark.SYNC, Mark.POSITION]
    assert not pending


def test_the_events_of_an_object_with_another_uid_are_not_discarded() -> None:
    pending = coalesced(Deleted(REBORN), Added(A1))

    assert not pending.discard(A1)
    assert not pending.discard(pod("a", rv="9", uid="a third"))
    assert drained(pending) == [Deleted(REBORN), Added(A1)]


def test_a_discarded_event_no_longer_counts() -> None:
    pending = coalesced(Updated(A1, A2), Added(B1))

    pending.discard(A1)

    assert (pending.count, len(pending.changes)) == (1, 1)


def test_undelivered_events_are_discarded_up_to_the_deletion() -> None:
    pending = coalesced(Deleted(A1), Added(REBORN))

    assert pending.discard(A1), "its deletion was among it"
    assert drained(pending) == [Added(REBORN)]


def test_undelivered_events_are_discarded_before_the_deletion() -> None:
    pending = coalesced(Updated(A1, A2), Added(B1))

    assert not pending.discard(A1), "its deletion is still to come"
    assert drained(pending) == [Added(B1)]


def test_discarding_an_object_keeps_the_events_of_other_objects() -> None:
    pending = coalesced(Updated(REBORN, REBORN2))

    assert not pending.discard(A1)
    assert not pending.discard(B1)
    assert drained(pending) == [Updated(REBORN, REBORN2)]


def test_many_merged_events_are_dropped_in_steps() -> None:
    pending = coalesced(Deleted(A1), Added(REBORN), Added(B1))
    pending.drop(1)
    assert (pending.count, bool(pending)) == (1, True)
    pending.add(Updated(B1, B2), 3.0)
    pending.drop(5)

    assert (pending.pop(), pending.count, bool(pending)) == (None, 0, False)


def test_the_repr_shows_the_numbers_of_pending_and_merged_events() -> None:
    assert repr(coalesced(Added(A1), Updated(A1, A2))) == "<CoalescedEvents pending=1 merged=1>"


def test_a_change_counts_its_events() -> None:
    change = PendingChange(0.0)
    assert change.size == 0
    change.merge(Deleted(A1))
    change.merge(Added(REBORN))
    assert change.size == 2
