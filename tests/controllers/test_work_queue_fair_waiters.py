"""Waiters that are woken in FIFO order, with an item reserved for each."""

from __future__ import annotations

import asyncio

from aioinformer.controllers.work_queue import FairWaiters
from tests.runtime.scripted_source import yield_to_loop


class Shelf:
    """A list of items, and the tasks that wait for them."""

    def __init__(self) -> None:
        self.items: list[str] = []
        self.waiters = FairWaiters(self.items)

    async def take(self) -> str:
        if len(self.items) <= self.waiters.reserved:
            has_item = await self.waiters.wait(asyncio.get_running_loop())
            if not has_item:
                return "nothing"
        return self.items.pop(0)

    def put(self, *items: str) -> None:
        self.items.extend(items)
        self.waiters.wake()

    async def waiting(self, count: int) -> list[asyncio.Task[str]]:
        tasks = [asyncio.create_task(self.take()) for _ in range(count)]
        await yield_to_loop()
        return tasks


async def test_waiters_are_woken_in_fifo_order_one_for_each_item() -> None:
    shelf = Shelf()
    tasks = await shelf.waiting(3)
    shelf.put("a", "b")
    assert repr(shelf.waiters) == "<FairWaiters waiting=1 reserved=2>"
    await yield_to_loop()
    assert [task.done() for task in tasks] == [True, True, False]
    shelf.put("c")
    assert [await task for task in tasks] == ["a", "b", "c"]
    assert repr(shelf.waiters) == "<FairWaiters waiting=0 reserved=0>"


async def test_a_later_waiter_does_not_overtake() -> None:
    shelf = Shelf()
    (first,) = await shelf.waiting(1)
    late = asyncio.create_task(shelf.take())  # runs before the waiter that is woken next
    shelf.put("a")
    assert await first == "a"
    shelf.put("b")
    assert await late == "b"


async def test_an_item_reserved_for_a_cancelled_waiter_goes_to_the_next() -> None:
    shelf = Shelf()
    first, second = await shelf.waiting(2)
    shelf.put("a")
    first.cancel()
    assert await second == "a"
    assert first.cancelled()


async def test_a_waiter_that_was_cancelled_first_is_not_woken() -> None:
    shelf = Shelf()
    first, second = await shelf.waiting(2)
    first.cancel()
    shelf.put("a")
    assert await second == "a"
    assert first.cancelled()


async def test_an_item_left_by_the_last_cancelled_waiter_can_be_taken() -> None:
    shelf = Shelf()
    (only,) = await shelf.waiting(1)
    shelf.put("a")
    only.cancel()
    await yield_to_loop()
    assert repr(shelf.waiters) == "<FairWaiters waiting=0 reserved=0>"
    assert await shelf.take() == "a"


async def test_wake_all_empty_wakes_every_waiter_without_a_reserved_item() -> None:
    shelf = Shelf()
    first, second, third = await shelf.waiting(3)
    shelf.put("a")
    third.cancel()
    shelf.waiters.wake_all_empty()
    assert [await first, await second] == ["a", "nothing"]
    await yield_to_loop()
    assert third.cancelled()
    assert shelf.waiters.reserved == 0
