"""Pending events merged by object."""

from __future__ import annotations

import pytest

from aioinformer._core.delivery.coalescing import CoalescedEvents, Mark
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


def test_the_number_of_merged_events_goes_on_from_a_given_number() -> None:
    pending = CoalescedEvents(merged=5)
    pending.add(Updated(A1, A2), 0.0)
    pending.add(Updated(A2, A3), 1.0)

    assert pending.merged == 6


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


def test_undelivered_events_are_discarded_up_to_the_deletion() -> None:
    pending = coalesced(Deleted(A1), Added(REBORN))

    assert pending.discard(A1), "its deletion was among it"
    assert drained(pending) == [Added(REBORN)]


def test_undelivered_events_are_discarded_before_the_deletion() -> None:
    pending = coalesced(Updated(A1, A2), Added(B1))

    assert not pending.discard(A1), "its deletion is still to come"
    assert drained(pending) == [Added(B1)]


def test_a_mark_is_no_pending_change() -> None:
    pending = CoalescedEvents()
    pending.add_mark(Mark.SYNC)

    assert (pending.count, pending.oldest, bool(pending)) == (0, None, True)
