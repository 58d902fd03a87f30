"""The DeltaFIFO with somebody waiting at both ends."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer import Bookmark, Delta, DeltaQueue, KubeObject, ObjectKey, Replaced
from aioinformer._core.cache.delta_fifo import HIGH_BYTES, HIGH_MARK
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
