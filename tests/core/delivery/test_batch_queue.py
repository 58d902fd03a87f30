"""Batches that are shared, and a position in them."""

from __future__ import annotations

from aioinformer._core.delivery.batch_queue import FILTER_BATCH, SYNC_MARK, BatchQueue
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


def test_what_does_not_count_is_not_live_whether_it_is_open_or_not() -> None:
    queue = BatchQueue()
    queue.add_uncounted([(A, B)], 1.0, marked=False)
    seen = [(queue.live, queue.relist_pending, bool(queue))]
    queue.open()
    seen.append((queue.live, queue.relist_pending, bool(queue)))

    assert seen == [(0, True, True)] * 2


def test_a_filter_is_given_so_much_of_a_relist_at_once() -> None:
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
