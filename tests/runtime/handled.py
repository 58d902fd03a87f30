"""Handlers to be called outside of any informer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from aioinformer import Added, Deleted, DeleteReason, Event, Handler, KubeObject, Updated
from aioinformer._core.delivery.mailbox import Mailbox, Overflow
from aioinformer._runtime.delivery.handler_errors import Failed, Failures
from aioinformer._runtime.delivery.handlers import Terms, handler_name
from aioinformer._runtime.delivery.inline_dispatch import Rounds
from aioinformer._runtime.delivery.listener import Gate
from aioinformer._runtime.delivery.registration import Registration
from tests.runtime.sources import pod, settle, until

A1, A2 = pod("a", 1), pod("a", 2)
STORY: list[Event] = [Added(A1), Updated(A1, A2), Deleted(A2)]


def registration(
    handler: Handler,
    *,
    limit: int = 100_000,  # so that nothing is merged
    overflow: Overflow = "coalesce",
    concurrency: int = 1,
    timeout: float | None = None,
    run_in_thread: bool = False,
    drain: bool = False,
    fail_fast: bool = False,
    failed: Failed | None = None,
) -> Registration:
    """A handler on terms."""
    name = handler_name(handler)
    terms = Terms(
        concurrency=concurrency,
        timeout=timeout,
        run_in_thread=run_in_thread,
        drain=drain,
        fail_fast=fail_fast,
    )
    mailbox = Mailbox(limit=limit, overflow=overflow, holds=lambda _: True)
    return Registration(
        handler,
        name,
        mailbox,
        Gate(),
        terms=terms,
        failures=Failures(name, failed),
        rounds=Rounds(),
    )


@asynccontextmanager
async def running(it: Registration) -> AsyncGenerator[Registration]:
    """A handler that is called, until the block is over; what is pending then is dropped."""
    async with asyncio.TaskGroup() as group:
        it.start(group)
        try:
            yield it
        finally:
            it.remove()


@asynccontextmanager
async def started(handler: Handler) -> AsyncGenerator[Registration]:
    """A handler that is called until everything that it was told is dealt with."""
    async with running(registration(handler)) as it:
        yield it
        await until(lambda: it.statistics().pending == 0)
        await settle()


async def told(handler: Handler, *events: Event) -> Registration:
    async with started(handler) as it:
        it.put(events)
    return it


class Diary:
    def __init__(self) -> None:
        self.lines: list[tuple[object, ...]] = []

    def on_add(self, obj: KubeObject, *, initial: bool) -> None:
        self.lines.append(("add", obj, initial))

    async def on_update(self, old: KubeObject, new: KubeObject, *, resync: bool) -> None:
        self.lines.append(("update", old, new, resync))

    def on_delete(self, obj: KubeObject, *, reason: DeleteReason) -> None:
        self.lines.append(("delete", obj, reason))
