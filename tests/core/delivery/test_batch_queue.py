"""The counts of the batches of a mailbox."""

from __future__ import annotations

from aioinformer._core.delivery.batch_queue import BatchQueue
from aioinformer._core.objects.kube_object import Added
from tests.core.builders import pod

A, B, C = (Added(pod(name)) for name in "abc")


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
