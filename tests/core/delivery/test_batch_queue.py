"""Batches that are shared, and a place in them."""

from __future__ import annotations

from aioinformer._core.delivery.batch_queue import FILTER_BATCH, SYNC_MARK, BatchQueue
from aioinformer._core.objects.kube_object import Added, Event
from tests.core.builders import pod

A, B, C = (Added(pod(name)) for name in "abc")


def without_b(event: Event) -> Event | None:
    """A filter."""
    return None if event.obj.name == "b" else event


def opened(late: BatchQueue) -> list[list[Event]]:
    """What each batch that is opened brings."""
    batches: list[list[Event]] = []
    while late.open() is not None:
        batches.append(list(late.rest))
    return batches


def test_batches_are_opened_in_the_order_they_came() -> None:
    late = BatchQueue()
    late.add((A,), 1.0)
    late.add_uncounted([(B,)], 2.0, marked=True)
    late.add((C,), 3.0)

    assert (late.live, late.relist_pending, late.oldest) == (2, True, 1.0)
    assert opened(late) == [[A], [B], SYNC_MARK, [C]]
    assert (late.delivered, bool(late), late.oldest, late.relist_pending) == (3, False, None, False)


def test_what_does_not_count_is_not_live_whether_it_is_open_or_not() -> None:
    late = BatchQueue()
    late.add_uncounted([(A, B)], 1.0, marked=False)
    seen = [(late.live, late.relist_pending, bool(late))]
    late.open()
    seen.append((late.live, late.relist_pending, bool(late)))

    assert seen == [(0, True, True)] * 2


def test_a_filter_is_given_so_much_of_a_relist_at_once() -> None:
    late = BatchQueue(without_b)
    late.add_uncounted([(A, B) * FILTER_BATCH], 1.0, marked=False)

    assert opened(late) == [[A] * (FILTER_BATCH // 2)] * 2
    assert late.uncounted == 0


def test_who_is_in_the_middle_of_a_batch_finds_its_end_when_something_goes_before() -> None:
    late = BatchQueue()
    late.add((A, B, C), 1.0)
    late.open()
    run = late.rest
    assert next(run) is A
    late.split_open_batch()
    assert late.rest is run, "nobody has it"
    late.borrowed = True
    late.split_open_batch()

    assert next(run, None) is None
    assert (late.live, late.delivered) == (2, 1)
    assert list(late.rest) == [B, C]


def test_what_is_dropped_counts_as_taken_by_nobody() -> None:
    late = BatchQueue()
    late.add((A, B), 1.0)
    late.add((C,), 2.0)
    late.open()
    run = late.rest
    next(run)
    queue = late.clear()

    assert (list(queue), list(run)) == ([((C,), 2.0, 1)], [])
    assert (late.delivered, late.live, bool(late)) == (1, 0, False)
    assert repr(late) == "<BatchQueue live=0 uncounted=0>"
