"""The DeltaFIFO with somebody waiting at both ends."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer import Bookmark, Delta, DeltaQueue, KubeObject, ObjectKey, Replaced
from aioinformer._core.cache.delta_fifo import HIGH_BYTES, HIGH_MARK
from aioinformer._core.objects.deltas import Confirmed
from aioinformer._runtime.reflector.delta_queue import ScopeQueue
from tests.runtime.scripted_source import PODS, pod, yield_to_loop


def changes(count: int) -> list[Delta | Bookmark]:
    return [Delta("Added", pod(f"web-{n}", n)) for n in range(count)]


async def test_entries_are_popped_in_the_order_in_which_they_were_fed() -> None:
    queue, entries = DeltaQueue(), [*changes(2), Bookmark("9")]

    queue.feed(entries)
    queue.replace([pod("web-7", 10)], "10")

    assert [queue.pop() for _ in range(5)] == [*entries, Replaced([pod("web-7", 10)], "10"), None]


async def test_a_deletion_of_something_unknown_is_dropped() -> None:
    queue = DeltaQueue({ObjectKey("web", "web-1")})

    queue.feed([Delta("Deleted", pod("web-0", 5)), Delta("Deleted", pod("web-1", 6))])

    assert queue.pop() == Delta("Deleted", pod("web-1", 6))
    assert queue.pop() is None


async def test_the_consumer_sleeps_until_something_is_fed() -> None:
    queue = DeltaQueue()
    waiting = asyncio.create_task(queue.ready())
    await yield_to_loop()
    assert not waiting.done()

    queue.feed(changes(1))
    await waiting


async def test_a_whole_state_wakes_the_consumer_too() -> None:
    queue = DeltaQueue()
    waiting = asyncio.create_task(queue.ready())
    await yield_to_loop()
    queue.replace([], "10")
    await waiting


async def test_an_empty_feed_does_not_wake_the_consumer() -> None:
    queue = DeltaQueue()
    waiting = asyncio.create_task(queue.ready())

    queue.feed([])
    await yield_to_loop()
    assert not waiting.done()

    queue.feed(changes(1))
    await waiting


async def test_the_producer_waits_at_the_high_mark_and_continues_below_it() -> None:
    queue = DeltaQueue()
    queue.feed(changes(HIGH_MARK + 1))
    waiting = asyncio.create_task(queue.room())
    await yield_to_loop()

    queue.pop()
    await yield_to_loop()
    assert not waiting.done()

    queue.pop()
    await waiting


async def test_the_producer_waits_at_the_high_mark_of_bytes() -> None:
    queue = DeltaQueue()
    big = KubeObject(ObjectKey("web", "big"), "uid", "1", b"x" * HIGH_BYTES, PODS)
    queue.feed([Delta("Added", big)])
    waiting = asyncio.create_task(queue.room())
    await yield_to_loop()
    assert not waiting.done()

    queue.pop()
    await waiting


async def test_room_returns_at_once_if_the_queue_is_not_full() -> None:
    await DeltaQueue().room()


@pytest.mark.client_go(89)
async def test_a_consumer_that_is_cancelled_as_the_entry_comes_leaves_it() -> None:
    queue = DeltaQueue()
    waiting = asyncio.create_task(queue.ready())
    await yield_to_loop()

    queue.feed(changes(1))
    waiting.cancel()
    await asyncio.wait({waiting})

    assert queue.pop() == changes(1)[0]


async def test_the_repr_of_a_delta_queue_shows_the_number_of_entries() -> None:
    queue = DeltaQueue()
    queue.feed(changes(2))

    assert repr(queue) == f"<DeltaQueue {queue.fifo!r}>"
    assert "entries=2" in repr(queue)


async def test_entries_of_a_namespace_carry_its_name() -> None:
    queue = DeltaQueue()
    scoped = ScopeQueue(queue, "web")
    change = changes(1)[0]

    scoped.feed([change, Bookmark("9")])
    scoped.put(Replaced([], "10"))
    scoped.put(Confirmed())
    scoped.remove()
    scoped.feed([change])
    scoped.put(Replaced([], "11"))

    assert [queue.pop() for _ in range(6)] == [
        change,
        Bookmark("9", scope="web"),
        Replaced([], "10", scope="web"),
        Confirmed("web"),
        Replaced((), "", "scope_removed", "web"),
        None,
    ]


async def test_producers_of_all_namespaces_wait_for_room_and_then_continue() -> None:
    queue = DeltaQueue()
    first, second = ScopeQueue(queue, "a"), ScopeQueue(queue, "b")
    first.feed(changes(HIGH_MARK))
    waiting = [asyncio.create_task(each.room()) for each in (first, second)]
    await yield_to_loop()
    assert not any(task.done() for task in waiting)

    queue.pop()
    await asyncio.wait_for(asyncio.gather(*waiting), 5)

    second.feed(changes(1))
    assert queue.fifo.full
