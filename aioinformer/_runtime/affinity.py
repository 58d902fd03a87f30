"""Which event loop this is.

Everything but reading belongs to the loop that an informer runs in. asyncio doesn't notice a call
from a thread, or from another loop: an event is set and nobody wakes up. So what would go wrong
silently asks here first.
"""

from __future__ import annotations

import asyncio
from typing import Any

from aioinformer.errors import UsageError

__all__ = ["check_loop", "this_loop", "this_task"]

NOT_HERE = (
    "this must be called in the event loop, not from a thread: a thread reads caches, and has the "
    "loop do the rest with asyncio.run_coroutine_threadsafe()"
)
"""Said to those who are in a thread."""


def this_loop() -> asyncio.AbstractEventLoop:
    """The running event loop.

    Raises:
        UsageError: there is none, in a thread for example.
    """
    try:
        return asyncio.get_running_loop()
    except RuntimeError as error:
        raise UsageError(NOT_HERE) from error


def check_loop(own: asyncio.AbstractEventLoop | None, name: str) -> None:
    """Raise unless this is the loop that ``name`` runs in, or it runs in none yet.

    Raises:
        UsageError: it is another loop, or a thread without one.
    """
    if own is not None and own is not this_loop():
        raise UsageError(
            f"{name} runs in another event loop; use it from there, or from a thread with "
            "asyncio.run_coroutine_threadsafe()"
        )


def this_task() -> asyncio.Task[Any]:
    """The running task.

    Raises:
        UsageError: there is none: this is a callback, or a thread.
    """
    this_loop()
    task = asyncio.current_task()
    if task is None:
        raise UsageError("this must be called in a task, not from a callback")
    return task
