"""The queue of an informer, as the reflector of one namespace feeds it."""

from __future__ import annotations

import asyncio

from aioinformer import Bookmark, Delta, DeltaQueue, Replaced
from aioinformer._core.cache.delta_fifo import HIGH_MARK
from aioinformer._core.objects.deltas import Confirmed
from aioinformer.namespaces.scope_set import ScopeQueue
from tests.runtime.scripted_source import pod, yield_to_loop


def changes(count: int) -> list[Delta | Bookmark]:
    return [Delta("Added", pod(f"web-{n}", n)) for n in range(count)]


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
