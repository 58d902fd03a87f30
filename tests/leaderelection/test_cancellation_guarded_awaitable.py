"""A coroutine that asks before each step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any

import pytest

from aioinformer.leaderelection.cancellation import GuardedAwaitable


def refusing_after(steps: int) -> Callable[[], str]:
    """Says no once, before the step of that number."""
    asked = 0

    def refusal() -> str:
        nonlocal asked
        asked += 1
        return "no more" if asked == steps + 1 else ""

    return refusal


def never() -> str:
    return ""


async def count(seen: list[int], steps: int) -> int:
    for number in range(steps):
        seen.append(number)
        await asyncio.sleep(0)
    return steps


async def test_a_guarded_awaitable_returns_the_result_of_the_coroutine() -> None:
    seen = list[int]()
    assert await GuardedAwaitable(count(seen, 3), never) == 3
    assert seen == [0, 1, 2]


async def test_a_guarded_awaitable_raises_the_exception_of_the_coroutine() -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await GuardedAwaitable(fail(), never)


@pytest.mark.parametrize("steps", [0, 1, 2])
async def test_a_denied_step_cancels_the_coroutine(steps: int) -> None:
    seen = list[int]()
    with pytest.raises(asyncio.CancelledError, match="no more"):
        await GuardedAwaitable(count(seen, 5), refusing_after(steps))
    assert seen == list(range(steps))


async def test_a_coroutine_may_end_as_it_likes_once_it_is_cancelled() -> None:
    async def body() -> str:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        return "ended well"

    assert await GuardedAwaitable(body(), refusing_after(1)) == "ended well"


async def test_exceptions_thrown_into_the_task_reach_the_coroutine() -> None:
    seen = list[str]()

    async def body() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError as error:
            seen.append(str(error))
            raise

    async def drive() -> None:
        await GuardedAwaitable(body(), never)

    task = asyncio.create_task(drive())
    await asyncio.sleep(0)
    task.cancel("from outside")
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["from outside"]


def test_a_coroutine_that_is_not_continued_is_closed() -> None:
    class Pause:
        def __await__(self) -> Generator[None, Any, None]:
            yield

    closed = list[bool]()

    async def body() -> None:
        try:
            await Pause()
        finally:
            closed.append(True)

    steps = GuardedAwaitable(body(), never).__await__()
    next(steps)
    steps.close()
    assert closed == [True]
