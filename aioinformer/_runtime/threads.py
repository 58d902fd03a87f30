"""Handlers that block run in threads of their own.

Each such listener has its own few threads, as many as keys may be dealt with at once. The loop's
default executor is everybody's: one slow handler could fill it, and with it each ``to_thread`` of
the program. A thread can't be stopped, so nobody here pretends to: a call is over when it returns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from inspect import isawaitable, iscoroutine
from typing import Any

from aioinformer._core.objects import Event

__all__ = ["Threads"]


class Threads:
    """Calls a function of events in threads."""

    def __init__(self, call: Callable[[Event], Any], *, count: int, name: str) -> None:
        """No thread runs before the first call.

        Args:
            call: what to call.
            count: threads at most.
            name: what they are called.
        """
        self._call = call
        self._count = count
        self._pool = ThreadPoolExecutor(count, thread_name_prefix=name)

    def __call__(self, event: Event) -> Awaitable[None]:
        """Call it in a thread."""
        return self._run(event)

    async def _run(self, event: Event) -> None:
        """Wait until the call returns, also when cancelled meanwhile: it goes on in its thread.

        Who cancelled finds it in ``task.cancelling()``, as behind a handler that swallows it.
        """
        context = copy_context()
        work = asyncio.get_running_loop().run_in_executor(
            self._pool, lambda: context.run(self._call, event)
        )
        while not work.done():
            try:
                await asyncio.wait({work})
            except asyncio.CancelledError:
                continue
        result: object = work.result()
        if iscoroutine(result):
            result.close()  # nobody will await it
        if isawaitable(result):
            raise TypeError("with run_in_thread=True the handler must not be async")

    def close(self) -> None:
        """Let the threads end; what they do now goes on."""
        self._pool.shutdown(wait=False)

    def __repr__(self) -> str:
        return f"<Threads {self._count} at most>"
