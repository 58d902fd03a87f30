"""``run_in_thread``: work that may block, in a thread that nobody has to wait for.

Credentials lie in files, and a file system may hang: NFS without its server, a FIFO without a
writer. No thread can be stopped that waits for one. Those of asyncio's and anyio's pools are
joined when the loop or the interpreter ends, so that a program which gave up long ago could not
exit; and they are few, and may all be endpoints of a web service that waits for the very cache
which needs one of them to be filled. So each piece of work gets a daemon thread of its own, some
tens of microseconds each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from threading import Thread
from typing import TypeVar

__all__ = ["run_in_thread"]

T = TypeVar("T")


async def run_in_thread(function: Callable[[], T]) -> T:
    """What ``function`` returns or raises, run in a thread.

    A cancellation leaves it behind: it runs on, and what comes of it is dropped.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(returned: Callable[[asyncio.Future[T]], None]) -> None:
        if not done.done():  # else it was left behind
            returned(done)

    def run() -> None:
        returned = _capture_outcome(function)
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, returned)

    context = copy_context()
    Thread(target=context.run, args=(run,), name="aioinformer: off the loop", daemon=True).start()
    return await done


def _capture_outcome(function: Callable[[], T]) -> Callable[[asyncio.Future[T]], None]:
    """Run it; what gives its end to a future."""
    try:
        result = function()
    except BaseException as error:  # noqa: BLE001 - it is raised where it is awaited
        failure = error
        return lambda done: done.set_exception(failure)
    return lambda done: done.set_result(result)
