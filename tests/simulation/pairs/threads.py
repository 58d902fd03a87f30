"""Threads whose calls take virtual time.

The loop of a simulation has no threads. A handler or reconciler with ``run_in_thread=True`` is
called in a thread of its own all the same, at a virtual moment after the call was asked for, and
the loop waits until it has returned: so it is called outside of the loop's thread, in an order that
the seed decides, and never at the same time as the loop. The thread of a cache file works in the
same way, but in the loop's thread, since SQLite binds a connection to its thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import contextmanager
from random import Random
from typing import Any, TypeVar
from unittest.mock import patch

from aioinformer._runtime.delivery import thread_pool
from aioinformer.cachefile import file_access

R = TypeVar("R")

_SECONDS = (0.0, 0.001, 0.2)
"""Virtual seconds that a call waits for its thread."""


@contextmanager
def simulated_threads(chance: Random) -> Generator[None]:
    """Let the threads of the library take virtual time."""

    def make_queue() -> _Jobs:
        return _Jobs(chance)

    def make_executor(*_: object) -> _Executor:
        return _Executor(chance)

    with (
        patch.object(thread_pool, "SimpleQueue", make_queue),
        patch.object(thread_pool, "Thread", _IdleThread),
        patch.object(file_access, "ThreadPoolExecutor", make_executor),
    ):
        yield


class _IdleThread:
    """In the place of a thread that takes jobs from a queue: ``_Jobs`` runs them."""

    def __init__(self, **_: object) -> None:
        """Take the arguments of a thread."""

    def start(self) -> None:
        """Do nothing."""


class _Jobs:
    """In the place of the queue of such threads."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance

    def put(self, job: Callable[[], None] | None) -> None:
        """Run the job in a thread, some time later."""
        if job is not None:
            loop = asyncio.get_running_loop()
            loop.call_later(self._chance.choice(_SECONDS), _run_in_thread, job)


def _run_in_thread(job: Callable[[], None]) -> None:
    thread = threading.Thread(target=job)
    thread.start()
    thread.join()


class _Executor:
    """In the place of an executor with one thread: runs its work in order, some time later."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._free_at = 0.0

    def submit(self, work: Callable[..., R], *arguments: Any) -> Future[R]:
        """Run the work after what was submitted before."""
        loop = asyncio.get_running_loop()
        future: Future[R] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = work(*arguments)
            except Exception as error:  # noqa: BLE001 - passed on
                future.set_exception(error)
            else:
                future.set_result(result)

        begin = max(self._free_at, loop.time())
        self._free_at = begin + 1e-6 + self._chance.choice(_SECONDS)
        loop.call_at(self._free_at, run)
        return future

    def shutdown(self, wait: bool = True) -> None:
        """Do nothing: what was submitted runs all the same."""
