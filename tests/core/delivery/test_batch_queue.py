"""Batches that are shared, and a position in them."""

from __future__ import annotations

import pytest

from aioinformer._core.delivery.batch_queue import (
    FILTER_BATCH,
    POSITION_MARK,
    SYNC_MARK,
    BatchQueue,
)
from aioinformer._core.objects.kube_object import Added, Event
from tests.core.builders import pod

A, B, C = (Added(pod(name)) for name in "abc")


def without_b(event: Event) -> Event | None:
    """Exclude the object b."""
    return None if event.obj.name == "b" else event


def opened(queue: BatchQueue) -> list[list[Event]]:
    """Open all batches, and return their events, with the rest of the open batch."""
    batches = [list(queue.rest)] if queue.rest.__length_hint__() else []
    while queue.open() is not None:
        batches.append(list(queue.rest))
    return batches


def test_batches_are_opened_in_the_order_they_came() -> None:
    queue = BatchQueue()
    queue.add((A,), 1.0)
    queue.add_uncounted([(B,)], 2.0, marked=True)
    queue.add((C,), 3.0)

    assert (queue.live, queue.relist_pending, queue.oldest) == (2, True, 1.0)
    assert opened(queue) == [[A], [B], SYNC_MARK, [C]]
    assert (queue.delivered, bool(queue), queue.oldest, queue.relist_pending) == (
        3,
        False,
        None,
        False,
    )


def test_events_are_opened_at_once_if_none_come_before() -> None:
    queue = BatchQueue()
    queue.add((A,), 1.0)
    first = queue.rest
    queue.borrowed = True
    queue.add((B,), 2.0)
    assert (queue.live, queue.oldest, list(first), queue.rest is first) == (2, 1.0, [A], True)
    queue.open()
    second = queue.rest
    assert (list(second), queue.live, queue.oldest) == ([B], 0, None)

    queue.add((C,), 3.0)

    assert (queue.live, queue.oldest, queue.borrowed, queue.relist_pending) == (
        1,
        3.0,
        False,
        False,
    )
    assert (list(second), list(queue.rest), queue.delivered) == ([], [C], 3)


def test_events_behind_a_relist_are_not_opened_before_it() -> None:
    queue = BatchQueue()
    queue.add_uncounted([(A, B)], 1.0, marked=False)
    queue.open()
    next(queue.rest)
    queue.add((C,), 2.0)

    assert (queue.live, list(queue.rest)) == (1, [B])
    assert queue.open() == (C,)


def test_an_uncounted_batch_is_not_live_before_and_after_it_is_opened() -> None:
    queue = BatchQueue()
    queue.add_uncounted([(A, B)], 1.0, marked=False)
    seen = [(queue.live, queue.relist_pending, bool(queue))]
    queue.open()
    seen.append((queue.live, queue.relist_pending, bool(queue)))

    assert seen == [(0, True, True)] * 2


def test_a_relist_passes_its_filter_in_parts_of_limited_size() -> None:
    queue = BatchQueue(without_b)
    queue.add_uncounted([(A, B) * FILTER_BATCH], 1.0, marked=False)

    assert opened(queue) == [[A] * (FILTER_BATCH // 2)] * 2
    assert queue.uncounted == 0


def test_a_borrowed_batch_ends_when_other_events_go_before() -> None:
    queue = BatchQueue()
    queue.add((A, B, C), 1.0)
    run = queue.rest
    assert next(run) is A
    queue.split_open_batch()
    assert queue.rest is run, "no consumer holds the run"
    queue.borrowed = True
    queue.split_open_batch()

    assert next(run, None) is None
    assert (queue.live, queue.delivered) == (2, 1)
    assert list(queue.rest) == [B, C]


def test_discarded_events_are_not_delivered() -> None:
    queue = BatchQueue()
    queue.add((A, B), 1.0)  # opened at once
    queue.add((C,), 2.0)
    run = queue.rest
    next(run)
    queued = queue.clear()

    assert (list(queued), list(run)) == ([((C,), 2.0, 1)], [])
    assert (queue.delivered, queue.live, bool(queue)) == (1, 0, False)
    assert repr(queue) == "<BatchQueue live=0 uncounted=0>"


def test_an_empty_queue_has_nothing_pending() -> None:
    queue = BatchQueue()

    assert queue.open() is None
    assert list(queue.rest) == []
    assert (queue.live, queue.uncounted, queue.delivered, queue.dropped) == (0, 0, 0, 0)
    assert (queue.oldest, queue.relist_pending, queue.borrowed, bool(queue)) == (
        None,
        False,
        False,
        False,
    )


def test_adding_returns_the_number_of_live_events_with_the_rest_of_the_open_batch() -> None:
    queue = BatchQueue()

    assert queue.add((A, B, C), 1.0) == queue.live == 3
    next(queue.rest)
    assert queue.add((A,), 2.0) == queue.live == 3
    queue.open()
    assert queue.live == 1


def test_the_rest_of_a_relist_is_not_live() -> None:
    queue = BatchQueue()
    queue.add_uncounted([(A, B)], 1.0, marked=False)
    queue.open()

    assert queue.add((C,), 2.0) == queue.live == 1
    assert (queue.uncounted, queue.relist_pending) == (0, True)


def test_the_rest_of_the_open_batch_is_the_oldest() -> None:
    queue = BatchQueue()
    queue.add((A,), 1.0)
    queue.add((B,), 2.0)

    assert queue.oldest == 1.0
    next(queue.rest)
    assert (queue.oldest, bool(queue)) == (2.0, True)
    queue.open()
    assert (queue.oldest, bool(queue)) == (2.0, True), "the open batch has an event"


def test_a_mark_of_a_position_is_no_part_of_a_relist() -> None:
    queue = BatchQueue(without_b)
    queue.add_mark()

    assert (queue.live, queue.uncounted, queue.relist_pending) == (0, 0, False)
    assert queue.queue[0] == (POSITION_MARK, 0.0, 0)
    assert queue.open() is POSITION_MARK
    assert (queue.uncounted, queue.delivered, bool(queue)) == (0, 0, False)


def test_a_mark_of_a_relist_is_opened_as_such_behind_a_filter() -> None:
    queue = BatchQueue(without_b)
    queue.add_uncounted([(A, B), (B,)], 4.0, marked=True)

    assert queue.uncounted == 3
    assert [len(batch) for batch, at, count in queue.queue if (at, count) == (4.0, 0)] == [2, 1, 0]
    assert queue.open() == (A,)
    assert queue.open() == ()
    assert queue.open() is SYNC_MARK
    assert queue.uncounted == 0


def test_the_batches_of_several_relists_add_up() -> None:
    queue = BatchQueue()
    queue.add_uncounted([(A,), (B,)], 1.0, marked=True)
    queue.add_uncounted([(C,)], 2.0, marked=False)

    assert queue.uncounted == 4
    opened(queue)
    assert queue.uncounted == 0


def test_a_filter_does_not_see_live_events() -> None:
    queue = BatchQueue(without_b)
    queue.add((A, B), 1.0)

    assert opened(queue) == [[A, B]]


@pytest.mark.parametrize("more", [0, 1])
def test_the_rest_of_a_long_relist_is_queued_first(more: int) -> None:
    queue = BatchQueue(lambda event: event)
    queue.add_uncounted([(A,) * (FILTER_BATCH + more), (C,)], 5.0, marked=False)

    assert queue.open() == (A,) * FILTER_BATCH
    assert (queue.uncounted, list(queue.queue)) == (
        1 + more,
        [((A,), 5.0, 0)] * more + [((C,), 5.0, 0)],
    )


def test_a_filter_that_closes_its_own_listener_ends_the_batch() -> None:
    def close(event: Event) -> Event | None:
        queue.clear()
        return event

    queue = BatchQueue(close)
    queue.add_uncounted([(A,)], 1.0, marked=False)

    assert queue.open() == ()
    assert (queue.delivered, queue.live, queue.uncounted, bool(queue)) == (0, 0, 0, False)


def test_an_opened_batch_is_not_borrowed() -> None:
    queue = BatchQueue()
    queue.add((C,), 1.0)
    queue.add((A, B), 2.0)
    next(queue.rest)
    queue.borrowed = True
    queue.open()
    run = queue.rest
    queue.split_open_batch()

    assert queue.rest is run
    queue.borrowed = True
    queue.split_open_batch()
    assert not queue.borrowed


def test_discarded_events_add_up() -> None:
    queue = BatchQueue()
    for _ in range(2):
        queue.add((A, B, C), 1.0)
        queue.open()
        next(queue.rest)
        queue.clear()

    assert (queue.dropped, queue.delivered) == (4, 2)
    queue.add_uncounted([(A,)], 1.0, marked=False)
    queue.clear()
    assert (queue.uncounted, queue.relist_pending) == (0, False)
