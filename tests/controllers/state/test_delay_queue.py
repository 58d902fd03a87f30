"""Keys whose time has not come yet."""

from __future__ import annotations

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from aioinformer.controllers.state.delay_queue import MIN_STALE, DelayQueue
from aioinformer.controllers.state.queue_items import Priority

LOW, NORMAL = Priority.LOW, Priority.NORMAL


def popped(delays: DelayQueue[str], now: float) -> list[str]:
    found: list[str] = []
    while (ready := delays.pop(now)) is not None:
        found.append(ready[0])
    return found


def popped_numbers(delays: DelayQueue[int], now: float) -> list[int]:
    found: list[int] = []
    while (ready := delays.pop(now)) is not None:
        found.append(ready[0])
    return found


def test_keys_of_the_same_time_are_popped_in_the_order_of_their_adds() -> None:
    delays = DelayQueue[object]()
    first, second = object(), object()  # not to be compared
    delays.add(second, 1.0, NORMAL)
    delays.add(first, 1.0, NORMAL)
    assert delays.pop(1.0) == (second, NORMAL)
    assert delays.pop(1.0) == (first, NORMAL)


def test_the_highest_of_two_priorities_wins_independently_of_the_times() -> None:
    delays = DelayQueue[str]()
    delays.add("a", 2.0, LOW)
    delays.add("a", 5.0, NORMAL)
    delays.add("b", 5.0, NORMAL)
    delays.add("b", 3.0, LOW)
    assert delays.pop(2.0) == ("a", NORMAL)
    assert delays.pop(3.0) == ("b", NORMAL)


def test_a_key_that_is_moved_forward_many_times_takes_bounded_memory() -> None:
    delays = DelayQueue[str]()
    delays.add("b", 1e6, NORMAL)
    tracemalloc.start()
    for ready in range(50_000, 0, -1):
        delays.add("a", float(ready), NORMAL)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 100 * (MIN_STALE + 100)
    assert popped(delays, 1.0) == ["a"]
    assert popped(delays, 1e6) == ["b"]


def test_keys_come_in_order_while_the_heap_moves_over() -> None:
    delays = DelayQueue[int]()
    keys = range(1000)
    for key in keys:
        delays.add(key, 10_000.0 - key, NORMAL)
    for key in keys:
        delays.add(key, 5000.0 - key, NORMAL)
    delays.add(keys[-1], 100.0, NORMAL)  # one more is left than there are keys
    delays.add(1000, 6000.0, NORMAL)
    order: list[int] = []
    while (ready := delays.pop(1e6)) is not None:
        order.append(ready[0])
        if len(order) == 500:  # in the midst of it
            delays.add(2000, 4500.5, NORMAL)
    assert order == [*reversed(keys[500:]), 2000, *reversed(keys[:500]), 1000]


class Counted(float):
    """A time that counts how often times are compared."""

    comparisons = 0

    def __lt__(self, other: float) -> bool:
        Counted.comparisons += 1
        return float(self) < float(other)

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return float(self) == other

    __hash__ = float.__hash__


def test_no_add_moves_more_than_a_few_of_thousands() -> None:
    delays, most = DelayQueue[int](), 0
    for _ in range(4):  # the second time they are left, in the third they move over
        for key in range(5000):
            before = Counted.comparisons
            delays.add(key, Counted(1e6 - Counted.comparisons), NORMAL)
            most = max(most, Counted.comparisons - before)
    assert most < 500
    assert len(delays) == 5000


def test_drop_removes_a_few_keys_at_a_time() -> None:
    delays = DelayQueue[int]()
    for key in range(10):
        delays.add(key, 2.0 + key, NORMAL)
        delays.add(key, 1.0 + key, NORMAL)
    steps = 1
    while delays.drop(3):
        steps += 1
    assert steps == 7
    assert (len(delays), delays.next_due, delays.pop(99.0)) == (0, None, None)
    assert not delays.drop(3)


def test_drop_continues_in_the_old_heap_and_releases_it() -> None:
    delays = DelayQueue[int]()
    for round_ in range(2):
        for key in range(MIN_STALE + 2):
            delays.add(key, 1e6 - round_ * 1000 - key, NORMAL)
    delays.add(0, 1.0, NORMAL)  # a new heap is begun, and the old one is not empty
    assert delays.drop(10_000) is False
    assert (len(delays), delays.next_due) == (0, None)
    delays.add(7, 3.0, NORMAL)
    assert popped_numbers(delays, 3.0) == [7]


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 50)), max_size=400))
def test_each_key_is_popped_once_at_its_earliest_time_after_any_adds(
    adds: list[tuple[str, int]],
) -> None:
    delays, earliest = DelayQueue[str](), dict[str, int]()
    for key, ready in adds:
        delays.add(key, ready, NORMAL)
        earliest[key] = min(ready, earliest.get(key, ready))
    for now in range(51):
        assert set(popped(delays, now)) == {key for key, at in earliest.items() if at == now}
