"""Tasks that live together, and of which none ends alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest

from aioinformer._runtime.tasks.task_group import StrictTaskGroup
from tests.runtime.scripted_source import yield_to_loop


async def for_ever() -> None:
    await asyncio.Event().wait()


async def at_work(
    group: StrictTaskGroup, then: Callable[[asyncio.Task[None]], Awaitable[None]]
) -> None:
    """Run a group of two tasks and apply ``then`` to the first."""
    async with group:
        group.start(for_ever(), name="second")
        first = group.group.create_task(for_ever(), name="first")
        group.monitor(first)
        await yield_to_loop()
        await then(first)


async def test_a_task_that_is_cancelled_alone_ends_the_group_with_an_error() -> None:
    group = StrictTaskGroup("informer")

    async def cancel(first: asyncio.Task[None]) -> None:
        first.cancel()

    with pytest.raises(ExceptionGroup) as caught:
        await at_work(group, cancel)

    (error,) = caught.value.exceptions
    assert isinstance(error, RuntimeError)
    assert str(error) == "the first was cancelled, but not by the informer"
    assert group.is_ending()


async def test_a_failure_is_the_only_error_although_the_other_tasks_are_cancelled() -> None:
    async def fail() -> None:
        raise KeyError("mine")

    group = StrictTaskGroup("informer")

    async def add_a_failure(_first: asyncio.Task[None]) -> None:
        group.start(fail(), name="third")

    with pytest.raises(ExceptionGroup) as caught:
        await at_work(group, add_a_failure)

    assert [repr(error) for error in caught.value.exceptions] == ["KeyError('mine')"]


async def test_tasks_that_a_failure_cancels_are_not_reported_as_failures() -> None:
    async def fail() -> None:
        raise KeyError("mine")

    group = StrictTaskGroup("informer")

    async def add_a_failure(_first: asyncio.Task[None]) -> None:
        group.start(fail(), name="third")
        await for_ever()

    with pytest.raises(ExceptionGroup) as caught:
        await at_work(group, add_a_failure)

    assert [repr(error) for error in caught.value.exceptions] == ["KeyError('mine')"]


async def test_the_first_failure_is_reported_before_the_other_tasks_have_ended() -> None:
    reported: list[BaseException] = []
    group, finish, mine = (
        StrictTaskGroup("informer", reported.append),
        asyncio.Event(),
        KeyError("mine"),
    )

    async def fail(error: Exception) -> None:
        raise error

    async def deaf() -> None:
        while not finish.is_set():
            with suppress(asyncio.CancelledError):
                await finish.wait()
        raise ValueError("another")

    async def work() -> None:
        async with group:
            group.start(deaf(), name="deaf")
            group.start(fail(mine), name="clumsy")

    owner = asyncio.create_task(work())
    await yield_to_loop()
    assert reported == [mine]
    assert group.failure is mine
    assert not owner.done()
    finish.set()
    await asyncio.wait({owner})

    assert isinstance(owner.exception(), ExceptionGroup)
    assert reported == [mine]


async def test_the_fail_method_ends_the_group_with_the_first_given_error() -> None:
    reported: list[BaseException] = []
    group, mine = StrictTaskGroup("informer", reported.append), KeyError("mine")

    async def fail(_first: asyncio.Task[None]) -> None:
        group.fail(mine)
        group.fail(ValueError("another"))
        await for_ever()

    with pytest.raises(ExceptionGroup) as caught:
        await at_work(group, fail)

    assert caught.value.exceptions == (mine,)
    assert reported == [mine]


async def test_the_cancellation_of_the_owner_is_no_failure_of_the_tasks() -> None:
    group = StrictTaskGroup("informer")

    async def wait(_first: asyncio.Task[None]) -> None:
        await for_ever()

    owner = asyncio.create_task(at_work(group, wait))
    await yield_to_loop()
    states = [repr(group)]
    owner.cancel()
    states.append(repr(group))
    await asyncio.wait({owner})

    assert owner.cancelled()
    assert states == [
        "<StrictTaskGroup of informer running>",
        "<StrictTaskGroup of informer ending>",
    ]


def test_a_group_that_was_not_entered_is_new() -> None:
    group = StrictTaskGroup("informer")

    assert not group.entered
    assert not group.is_ending()
    assert repr(group) == "<StrictTaskGroup of informer new>"


async def test_a_task_that_is_cancelled_on_purpose_ends_no_other_one() -> None:
    ended = asyncio.Event()

    async def wait() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.set()

    group = StrictTaskGroup("informer")
    with pytest.raises(RuntimeError, match="the second was cancelled, but not by the informer"):
        await _enter_and_cancel(group, wait, ended)


async def _enter_and_cancel(
    group: StrictTaskGroup, wait: Callable[[], Coroutine[Any, Any, None]], ended: asyncio.Event
) -> None:
    try:
        async with group:
            first, second = (group.start(wait(), name=name) for name in ("first", "second"))
            await asyncio.sleep(0)
            group.cancel(first)
            await ended.wait()
            await asyncio.sleep(0)
            assert group.failure is None
            assert not group.is_ending()
            second.cancel()
            await asyncio.get_running_loop().create_future()
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
