"""Lanes: several keys at once, none of them twice, each in its order."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.delivery.key_concurrency import LOOKAHEAD, KeyConcurrency
from aioinformer._core.objects.kube_object import Added, Event
from tests.core.builders import pod

A1, A2, A3 = (Added(pod("a", rv=str(number))) for number in (1, 2, 3))
B1, C1 = Added(pod("b")), Added(pod("c"))


def test_the_next_event_of_a_busy_key_waits() -> None:
    lanes = KeyConcurrency(2)

    assert [lanes.start(A1), lanes.start(A2)] == [True, False]
    assert (lanes.full, lanes.waiting) == (False, 1)
    assert [lanes.start(B1), lanes.full] == [True, True]
    assert lanes.finish(A1) is A2
    assert (lanes.full, lanes.waiting) == (True, 0)
    assert lanes.finish(A2) is None
    assert [lanes.full, lanes.start(A3)] == [False, True]


def test_the_number_of_events_that_wait_for_one_key_has_a_limit() -> None:
    lanes = KeyConcurrency(2)
    lanes.start(A1)

    full = [lanes.full for _ in range(2 * LOOKAHEAD) if not lanes.start(A2)]

    assert full == [False] * (2 * LOOKAHEAD - 1) + [True]
    lanes.clear()
    assert (lanes.full, lanes.waiting) == (False, 0)
    assert lanes.finish(A1) is None


def test_a_mark_is_passed_when_all_earlier_events_are_finished() -> None:
    lanes = KeyConcurrency(3)
    marked = [lanes.marked]
    for event in (A1, A2, B1):
        lanes.start(event)

    lanes.mark()
    for event in (C1, A3):
        lanes.start(event)

    for event in (B1, C1, A1, A2):
        marked.append(lanes.marked)
        lanes.finish(event)
    marked.append(lanes.marked)

    assert marked == [False, True, True, True, True, False]


def test_a_mark_does_not_wait_for_dropped_events() -> None:
    lanes = KeyConcurrency(2)
    lanes.start(A1)
    lanes.start(A2)
    lanes.mark()

    lanes.clear()
    lanes.finish(A1)

    assert not lanes.marked


def test_the_concurrency_is_at_least_one() -> None:
    with pytest.raises(ValueError, match="concurrency must be at least 1, not 0"):
        KeyConcurrency(0)


@given(st.integers(1, 4), st.lists(st.sampled_from("abcdef"), max_size=40), st.randoms())
def test_the_events_of_each_key_are_handled_in_order(
    count: int, history: list[str], chance: Random
) -> None:
    pending: list[Event] = [Added(pod(name, rv=str(at))) for at, name in enumerate(history)]
    taken_in = list(pending)
    lanes, at_work, done = KeyConcurrency(count), list[Event](), list[Event]()

    while pending or at_work:
        if pending and not lanes.full and chance.randrange(2):
            event = pending.pop(0)
            at_work += [event] if lanes.start(event) else []
        elif at_work:
            event = at_work.pop(chance.randrange(len(at_work)))
            following = lanes.finish(event)
            at_work += [following] if following else []
            done.append(event)
        assert len({each.obj.key for each in at_work}) == len(at_work) <= count
        assert lanes.waiting <= count * LOOKAHEAD

    for name in set(history):
        in_order = [each for each in done if each.obj.name == name]
        assert in_order == [each for each in taken_in if each.obj.name == name]
