"""``run_in_thread``: blocking work in a daemon thread for which no pool and no exit has to wait.

Credentials are stored in files, and a file system may hang: NFS without its server, a FIFO without
a writer. The threads of asyncio's and anyio's pools are joined when the loop or the interpreter
ends, so a program that has given up could not exit. These small pools may also be full of a web
service's endpoints that wait for the very cache whose credentials are being read. Therefore each
call gets a daemon thread of its own, at a cost of some tens of microseconds.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from threading import Thread
from typing import TypeVar

T = TypeVar("T")

NO_THREAD = "no thread can be started, because this program or the machine has reached its limit"


async def run_in_thread(function: Callable[[], T]) -> T:
    """Call ``function`` in a thread and return its result or raise its exception.

    After a cancellation the thread continues, and its result is discarded.

    Raises:
        BlockingIOError: the system starts no more threads.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def set_outcome(outcome: Callable[[asyncio.Future[T]], None]) -> None:
        if not done.done():  # done already if the waiting task was cancelled
            outcome(done)

    def run() -> None:
        outcome = _capture_outcome(function)
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(set_outcome, outcome)

    context = copy_context()
    thread = Thread(target=context.run, args=(run,), name="aioinformer: off the loop", daemon=True)
    try:
        thread.start()
    except RuntimeError as error:
        raise BlockingIOError(errno.EAGAIN, NO_THREAD) from error
    return await done


async def compute_in_thread(function: Callable[[], T]) -> T:
    """Call a function that reads nothing; on the loop if the system starts no more threads."""
    try:
        return await run_in_thread(function)
    except BlockingIOError:
        return function()


def _capture_outcome(function: Callable[[], T]) -> Callable[[asyncio.Future[T]], None]:
    try:
        result = function()
    except BaseException as error:  # noqa: BLE001 - raised by the task that awaits the future
        failure = error
        return lambda done: done.set_exception(failure)
    return lambda done: done.set_result(result)
