"""Detection of handlers and reconcilers that block the event loop.

An async function that calls ``time.sleep``, a synchronous client or a long computation holds the
event loop: no other task runs, and no timer of the loop can notice that. So one daemon thread for
each loop looks at the task that runs in the loop, twenty times a second. If the task belongs to a
handler or a reconciler, the thread asks the loop for a callback and looks again until the callback
has run. A task that was running at every look for 250 ms has held the loop, and the thread reports
the stack of the loop's thread. The loop itself does nothing for each event or each task.

The owner of a task is read from the context of the task, in which ``add_handler`` and the
controller have set ``BLOCKING_REPORTER``. So a task that a handler starts belongs to the handler.

Time in which the loop's thread waited for a CPU does not count, where the kernel tells that time
(Linux). The thread runs only in a loop whose clock is asyncio's own: in virtual time, seconds of
the clock say nothing.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from contextvars import Context, ContextVar
from io import FileIO
from itertools import dropwhile
from types import FrameType
from typing import Any, Protocol, TypeAlias

from aioinformer import _runtime as runtime

__all__ = [
    "BLOCKING_LIMIT",
    "BLOCKING_REPORTER",
    "BlockingDetector",
    "BlockingReporter",
    "HeldTime",
    "describe_blocking",
    "detect_blocking",
    "format_stack",
]

log = logging.getLogger("aioinformer.blocking")

BLOCKING_LIMIT = 0.25
"""Seconds after which a step that holds the event loop is reported. A probe of the kubelet times
out after one second, and a lease is renewed every two."""

INTERVAL = 0.05
"""Seconds between two looks at the running task. A look takes about 20 µs."""

MAX_GAP = 1.0
"""Seconds between two looks that count at most, unless the loop's thread has computed meanwhile:
in a longer gap the process was probably stopped."""


class BlockingReporter(Protocol):
    """The receiver of the reports about one handler or reconciler."""

    def report_blocking(self, stack: str) -> None:
        """Report a step that still holds the loop. Called in the detector's thread."""
        ...

    def record_blocking(self, seconds: float) -> None:
        """Record a reported step that has ended. Called in the event loop."""
        ...


BLOCKING_REPORTER: ContextVar[BlockingReporter | None] = ContextVar(
    "aioinformer_blocking_reporter", default=None
)
"""The reporter of the handler or reconciler that this code belongs to."""


# -- time ----------------------------------------------------------------------------------------

ReadScheduler: TypeAlias = Callable[[], tuple[float, float] | None]
"""Returns the seconds for which a thread has run, and for which the thread was ready to run and
waited for a CPU; ``None`` where the kernel doesn't tell."""


def scheduler_of(native_id: int) -> ReadScheduler:
    """Return a function that reads the scheduler's statistics of a thread of this process."""
    path = f"/proc/self/task/{native_id}/schedstat"

    def read() -> tuple[float, float] | None:
        try:
            with FileIO(path) as file:  # pathlib would take a fiftieth of the library's import
                ran, waited, *_ = file.read().split()
        except (OSError, ValueError):
            return None
        return int(ran) / 1e9, int(waited) / 1e9

    return read


class HeldTime:
    """The seconds for which one step has held the loop, without the time of a starved process."""

    def __init__(self, now: float, read_scheduler: ReadScheduler) -> None:
        """Begin at ``now``, a time of the monotonic clock."""
        self.seconds = 0.0
        """The seconds between the first look and the last one that count."""
        self._at = now
        self._read = read_scheduler
        self._times = read_scheduler()

    def update(self, now: float) -> None:
        """Add the time since the last look, since the step still holds the loop."""
        gap, self._at = now - self._at, now
        before, self._times = self._times, self._read()
        if before is None or self._times is None:
            # The looks came late if the process was starved, so that only their number counts.
            self.seconds += min(gap, 2 * INTERVAL)
            return
        ran, waited = self._times[0] - before[0], self._times[1] - before[1]
        # While a C function holds the GIL, the detector can't look: then the thread has run.
        self.seconds += max(min(gap, MAX_GAP) - waited, ran)

    def __repr__(self) -> str:
        return f"<HeldTime {self.seconds:.3f} s>"


# -- stacks --------------------------------------------------------------------------------------

_LOOP_FRAMES = {(asyncio.events.__file__, "_run"), (asyncio.runners.__file__, "run")}
"""Frames of asyncio that run callbacks, and a whole loop where callbacks have no frame (uvloop)."""

_RUNTIME_FOLDER = runtime.__path__[0]


def format_stack(frame: FrameType) -> str:
    """Return the stack of a running frame as text, from the program's own code on.

    The frames of the event loop and of the library that lead to the program's code are left out.
    """
    # One step of the interpreter, before the source files are read: the frames go on running.
    stack = list(traceback.walk_stack(frame))[::-1]
    loop = max((i for i, each in enumerate(stack) if _is_loop(each)), default=-1)
    own = list(dropwhile(_is_runtime, stack[loop + 1 :]))
    return "".join(traceback.StackSummary.extract(iter(own or stack)).format())


def describe_blocking(stack: str) -> str:
    """Return a report for the log, to be put after the name of the handler or reconciler."""
    return (
        f"has held the event loop for more than {BLOCKING_LIMIT:g} s, while nothing else runs: "
        f"await an async function, or asyncio.to_thread(), instead of the call in\n{stack}"
    ).rstrip()


def _is_loop(entry: tuple[FrameType, int]) -> bool:
    code = entry[0].f_code
    return (code.co_filename, code.co_name) in _LOOP_FRAMES


def _is_runtime(entry: tuple[FrameType, int]) -> bool:
    return entry[0].f_code.co_filename.startswith(_RUNTIME_FOLDER)


def _context_of(task: asyncio.Task[Any]) -> Context | None:
    get_context: Callable[[], Context] | None = getattr(task, "get_context", None)
    if get_context is not None:  # since Python 3.12
        return get_context()
    # A task of Python 3.11 has no such method. The garbage collector knows what the task refers
    # to, its own context first.
    return next((each for each in gc.get_referents(task) if isinstance(each, Context)), None)


_read_frames: Callable[[], dict[int, FrameType]] = vars(sys)["_current_frames"]
"""Returns the running frame of each thread. The function is documented, although its name is that
of a private one."""


# -- the thread ----------------------------------------------------------------------------------


class BlockingDetector:
    """The thread that watches one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Make a detector for ``loop``, which runs in the current thread."""
        self.users = 0
        """The number of informers for which the detector runs."""
        self._loop = loop
        self._loop_thread = threading.get_ident()
        self._read_scheduler = scheduler_of(threading.get_native_id())
        self._stopped = threading.Event()

    def start(self) -> None:
        """Start the thread, where the system permits threads."""
        name = "aioinformer blocking detector"
        thread = threading.Thread(target=self._run, name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            log.warning("handlers that block the event loop will not be reported: %s", error)

    def stop(self) -> None:
        """End the thread, at once but without waiting for the thread."""
        self._stopped.set()

    def _run(self) -> None:
        with suppress(RuntimeError):  # the loop was closed, and the informers were not ended
            while not self._stopped.wait(INTERVAL):
                self._look()

    def _look(self) -> None:
        """Watch the running task if it has a reporter.

        A method of its own, so that nothing refers to the task until the next look.
        """
        task = asyncio.current_task(self._loop)
        context = None if task is None else _context_of(task)
        reporter = None if context is None else context.get(BLOCKING_REPORTER)
        if task is not None and reporter is not None:
            self._watch(task, reporter)

    def _watch(self, task: asyncio.Task[Any], reporter: BlockingReporter) -> None:
        """Watch the running step of ``task`` until the step has ended."""
        ended = threading.Event()
        held, reported = HeldTime(time.monotonic(), self._read_scheduler), False
        self._loop.call_soon_threadsafe(ended.set, context=Context())
        while not ended.wait(INTERVAL) and asyncio.current_task(self._loop) is task:
            held.update(time.monotonic())
            if held.seconds > BLOCKING_LIMIT and not reported:
                reported = self._report(task, reporter)
            if self._stopped.is_set():
                break
        if reported:
            self._loop.call_soon_threadsafe(reporter.record_blocking, held.seconds)

    def _report(self, task: asyncio.Task[Any], reporter: BlockingReporter) -> bool:
        """Report the running step, unless the step has just ended."""
        frame = _read_frames().get(self._loop_thread)
        stack = "" if frame is None else format_stack(frame)
        if asyncio.current_task(self._loop) is not task:
            return False
        reporter.report_blocking(stack)
        return True

    def __repr__(self) -> str:
        return f"<BlockingDetector {'stopped' if self._stopped.is_set() else 'running'}>"


_detectors: dict[asyncio.AbstractEventLoop, BlockingDetector] = {}
"""The detector of each loop in which informers run."""


@contextmanager
def detect_blocking() -> Generator[None]:
    """Watch the running loop for the length of a block. All blocks of a loop share one thread."""
    loop = asyncio.get_running_loop()
    if not _has_real_time(loop):
        yield
        return
    detector = _detectors.get(loop)
    if detector is None:
        detector = _detectors[loop] = BlockingDetector(loop)
        detector.start()
    detector.users += 1
    try:
        yield
    finally:
        detector.users -= 1
        if not detector.users:
            del _detectors[loop]
            detector.stop()


def _has_real_time(loop: asyncio.AbstractEventLoop) -> bool:
    """Return False for a loop with a clock of its own, such as a simulated one."""
    return (
        not isinstance(loop, asyncio.BaseEventLoop) or type(loop).time is asyncio.BaseEventLoop.time
    )
