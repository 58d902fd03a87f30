"""The stack of code that holds the event loop, for ``report_blocking="stack"``.

No timer of a loop can notice that the loop is held. So one daemon thread for each loop asks the
loop for a callback, ten times a second. If the callback has not run after 250 ms, the thread
logs the stack of the loop's thread. Whose code that is, the stack tells.

The thread runs only in a loop whose clock is asyncio's own: in virtual time nothing takes long.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import traceback
from collections.abc import Generator
from contextlib import contextmanager, suppress
from contextvars import Context
from itertools import dropwhile
from types import FrameType

from aioinformer import _runtime as runtime
from aioinformer._runtime.tasks.blocking import BLOCKING_LIMIT

log = logging.getLogger("aioinformer.blocking")

INTERVAL = 0.1
"""Seconds between an answer of the loop and the next question."""

WAITS = 5
"""Waits for one answer. While the process is stopped or gets no CPU, only one of them passes."""

LOG_INTERVAL = 10.0
"""Seconds between two stacks in the log: a program may hold its loop all the time."""


class StackLogger:
    """The thread that watches one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Make a logger for ``loop``, which runs in the current thread."""
        self.users = 0
        """The number of informers for which the thread runs."""
        self._loop = loop
        self._loop_thread = threading.get_ident()
        self._stopped = threading.Event()

    def start(self) -> None:
        """Start the thread, where the system permits threads."""
        name = "aioinformer blocking stacks"
        thread = threading.Thread(target=self._run, name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            log.warning("no stack of code that blocks the event loop will be logged: %s", error)

    def stop(self) -> None:
        """End the thread, at once but without waiting for the thread."""
        self._stopped.set()

    def _run(self) -> None:
        wait = INTERVAL
        with suppress(RuntimeError):  # the loop was closed, and the informers were not ended
            while not self._stopped.wait(wait):
                wait = LOG_INTERVAL if self._log_if_held() else INTERVAL

    def _log_if_held(self) -> bool:
        """Log the stack of the loop's thread if the loop doesn't answer. Return True if logged."""
        if not self._loop.is_running():
            return False
        answered = threading.Event()
        self._loop.call_soon_threadsafe(answered.set, context=Context())
        if any(answered.wait(BLOCKING_LIMIT / WAITS) for _ in range(WAITS)):
            return False
        frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage] - documented
        frame = frames.get(self._loop_thread)
        stack = "" if frame is None else format_stack(frame)
        if answered.is_set() or not self._loop.is_running():
            return False
        log.warning(
            "the event loop has been held for more than %g s, while nothing else runs, in\n%s",
            BLOCKING_LIMIT,
            stack.rstrip(),
        )
        return True

    def __repr__(self) -> str:
        return f"<StackLogger {'stopped' if self._stopped.is_set() else 'running'}>"


_LOOP_FRAMES = {(asyncio.events.__file__, "_run"), (asyncio.runners.__file__, "run")}
"""Frames of asyncio that run callbacks, and a whole loop where callbacks have no frame (uvloop)."""

_RUNTIME_FOLDER = runtime.__path__[0]


def format_stack(frame: FrameType) -> str:
    """Return the stack of a running frame as text, from the program's own code on.

    The frames of the event loop and of the library that lead to the program's code are left out.
    """
    stack = traceback.extract_stack(frame)
    loop = max((i for i, each in enumerate(stack) if _is_loop(each)), default=-1)
    own = dropwhile(lambda each: each.filename.startswith(_RUNTIME_FOLDER), stack[loop + 1 :])
    return "".join(traceback.format_list(list(own) or stack))


def _is_loop(entry: traceback.FrameSummary) -> bool:
    return (entry.filename, entry.name) in _LOOP_FRAMES


_loggers: dict[asyncio.AbstractEventLoop, StackLogger] = {}
"""The logger of each loop in which an informer with the option runs."""


@contextmanager
def log_stacks() -> Generator[None]:
    """Watch the running loop for the length of a block. All blocks of a loop share one thread."""
    loop = asyncio.get_running_loop()
    if not _has_real_time(loop):
        yield
        return
    logger = _loggers.get(loop)
    if logger is None:
        logger = _loggers[loop] = StackLogger(loop)
        logger.start()
    logger.users += 1
    try:
        yield
    finally:
        logger.users -= 1
        if not logger.users:
            del _loggers[loop]
            logger.stop()


def _has_real_time(loop: asyncio.AbstractEventLoop) -> bool:
    """Return False for a loop with a clock of its own, such as a simulated one."""
    return (
        not isinstance(loop, asyncio.BaseEventLoop) or type(loop).time is asyncio.BaseEventLoop.time
    )
