"""Batches that are shared, and a place in them."""

from __future__ import annotations

from aioinformer._core.delivery.batch_queue import FILTERED, MARK, Backlog
from aioinformer._core.objects.kube_object import Added, Event
from tests.core.builders import pod

A, B, C = (Added(pod(name)) for name in "abc")


def without_b(event: Event) -> Event | None:
    """A filter."""
    return None if event.obj.name == "b" else event


def opened(late: Backlog) -> list[list[Event]]:
    """What each batch that is opened brings."""
    batches: list[list[Event]] = []
    while late.open() is not None:
        batches.append(list(late.rest))
    return batches


def test_batches_are_opened_in_the_order_they_came() -> None:
    late = Backlog()
    late.add((A,), 1.0)
    late.tell([(B,)], 2.0, marked=True)
    late.add((C,), 3.0)

    assert (late.live, late.telling, late.oldest) == (2, True, 1.0)
    assert opened(late) == [[A], [B], MARK, [C]]
    assert (late.taken, bool(late), late.oldest, late.telling) == (3, False, None, False)


def test_what_does_not_count_is_not_live_whether_it_is_open_or_not() -> None:
    late = Backlog()
    late.tell([(A, B)], 1.0, marked=False)
    seen = [(late.live, late.telling, bool(late))]
    late.open()
    seen.append((late.live, late.telling, bool(late)))

    assert seen == [(0, True, True)] * 2


def test_a_filter_is_given_so_much_of_a_relist_at_once() -> None:
    late = Backlog(without_b)
    late.tell([(A, B) * FILTERED], 1.0, marked=False)

    assert opened(late) == [[A] * (FILTERED // 2)] * 2
    assert late.told == 0


def test_who_is_in_the_middle_of_a_batch_finds_its_end_when_something_goes_before() -> None:
    late = Backlog()
    late.add((A, B, C), 1.0)
    late.open()
    run = late.rest
    assert next(run) is A
    late.end_run()
    assert late.rest is run, "nobody has it"
    late.lent = True
    late.end_run()

    assert next(run, None) is None
    assert (late.live, late.taken) == (2, 1)
    assert list(late.rest) == [B, C]


def test_what_is_dropped_counts_as_taken_by_nobody() -> None:
    late = Backlog()
    late.add((A, B), 1.0)
    late.add((C,), 2.0)
    late.open()
    run = late.rest
    next(run)
    queue = late.clear()

    assert (list(queue), list(run)) == ([((C,), 2.0, 1)], [])
    assert (late.taken, late.live, bool(late)) == (1, 0, False)
    assert repr(late) == "<Backlog live=0 told=0>"
