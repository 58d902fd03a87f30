"""Registered handlers without an informer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from aioinformer import Added, Deleted, DeleteReason, Event, Handler, KubeObject, Updated
from aioinformer._core.delivery.mailbox import Mailbox
from aioinformer._core.delivery.overflow import Overflow, OverflowName
from aioinformer._runtime.delivery.handler_errors import HandlerErrors, OnHandlerError
from aioinformer._runtime.delivery.handlers import CompiledHandler, compile_handler
from aioinformer._runtime.delivery.inline_dispatch import InlineDispatcher
from aioinformer._runtime.delivery.listener import BackpressureGate, Listener
from aioinformer._runtime.delivery.options import HandlerOptions
from aioinformer._runtime.delivery.registration import Registration
from tests.runtime.scripted_source import pod, wait_until, yield_to_loop

A1, A2 = pod("a", 1), pod("a", 2)
LIFECYCLE_EVENTS: list[Event] = [Added(A1), Updated(A1, A2), Deleted(A2)]


def make_registration(
    handler: Handler | CompiledHandler,
    *,
    limit: int = 100_000,  # so that nothing is merged
    overflow: Overflow | OverflowName = "coalesce",
    concurrency: int = 1,
    timeout: float | None = None,
    run_in_thread: bool = False,
    drain: bool = False,
    fail_fast: bool = False,
    on_error: OnHandlerError | None = None,
    on_blocked: Callable[[float], None] | None = None,
    gate: BackpressureGate | None = None,
    dispatcher: InlineDispatcher | None = None,
) -> Registration:
    """Register a handler with no informer."""
    compiled = handler if isinstance(handler, CompiledHandler) else compile_handler(handler)
    options = HandlerOptions(
        concurrency=concurrency,
        timeout=timeout,
        run_in_thread=run_in_thread,
        drain=drain,
        fail_fast=fail_fast,
    )
    mailbox = Mailbox(limit=limit, overflow=overflow, holds=lambda _: True)
    listener = Listener(compiled.name, mailbox, gate or BackpressureGate(), concurrency=concurrency)
    errors = HandlerErrors(compiled.name, on_error, on_blocked)
    return Registration(compiled, options, listener, errors, dispatcher or InlineDispatcher())


@asynccontextmanager
async def running_registration(it: Registration) -> AsyncGenerator[Registration]:
    """Call a handler until the block is over; then discard the pending events."""
    async with asyncio.TaskGroup() as group:
        it.start(group)
        try:
            yield it
        finally:
            it.remove()


@asynccontextmanager
async def started_registration(handler: Handler | CompiledHandler) -> AsyncGenerator[Registration]:
    """Call a handler until every event was handled."""
    async with running_registration(make_registration(handler)) as it:
        yield it
        await wait_until(lambda: it.statistics().pending == 0)
        await yield_to_loop()


async def deliver_events(handler: Handler | CompiledHandler, *events: Event) -> Registration:
    async with started_registration(handler) as it:
        it.listener.put(events)
    return it


class RecordingHandler:
    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def on_add(self, obj: KubeObject, *, initial: bool) -> None:
        self.calls.append(("add", obj, initial))

    async def on_update(self, old: KubeObject, new: KubeObject, *, resync: bool) -> None:
        self.calls.append(("update", old, new, resync))

    def on_delete(self, obj: KubeObject, *, reason: DeleteReason) -> None:
        self.calls.append(("delete", obj, reason))
