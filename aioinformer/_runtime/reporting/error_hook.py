"""The program's error hook, and the limits on what is logged.

The hook is the program's code: its exceptions are logged and stop nothing. A handler with a mistake
may raise at each of 100,000 objects: repeated failures are logged in full once per interval, and
the others are counted in one line at its end. Each failure still counts in statistics and metrics,
and is passed to the hook.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable
from contextvars import Context
from typing import Concatenate, ParamSpec, TypeVar

from msgspec import Struct

from aioinformer._core.callables import is_async
from aioinformer._core.quantities import quantity

P = ParamSpec("P")
S = TypeVar("S")

TRACEBACK_INTERVAL = 1.0
"""Seconds between two tracebacks of one controller."""

FAILURE_INTERVAL = 10.0
"""Seconds in which one failure of a type is logged in full."""


def check_hook(on_error: object) -> None:
    """Raise unless ``on_error`` can be called with problems.

    Raises:
        TypeError: it is no function, or it is async: its coroutine would never be awaited.
    """
    if on_error is None:
        return
    if isinstance(on_error, type) or not callable(on_error):
        raise TypeError(f"on_error is a function of a Problem, not {on_error!r}")
    if is_async(on_error):
        raise TypeError(f"on_error is called, not awaited: {on_error!r} must not be async")


def call_hook(
    hook: Callable[Concatenate[S, P], None] | None,
    log: logging.Logger | FailureLog,
    subject: S,
    *args: P.args,
    **kwargs: P.kwargs,
) -> None:
    """Call an error hook, if there is one; log what it raises.

    A ``FailureLog`` is for a hook that may raise often; its record names ``subject``, the hook's
    first argument.
    """
    if hook is None:
        return
    try:
        hook(subject, *args, **kwargs)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # also a CancelledError of the hook's: nobody has cancelled this task
        log.exception("the error hook raised when it was called with %s", subject)


class LogThrottle:
    """Allows one log record, or one traceback, per interval."""

    def __init__(self, interval: float = TRACEBACK_INTERVAL) -> None:
        """Allow the first record at once; ``interval`` is in seconds."""
        self._interval = interval
        self._allowed_at = float("-inf")

    def allows(self) -> bool:
        """Return True if the interval has passed since this last returned True."""
        now = asyncio.get_running_loop().time()
        if now - self._allowed_at < self._interval:
            return False
        self._allowed_at = now
        return True

    def __repr__(self) -> str:
        return f"<LogThrottle interval={self._interval:g}>"


class Outage:
    """The time since a first warning, for one line that says when all is well again."""

    __slots__ = ("_log", "_since", "_warned")

    def __init__(self, log: logging.Logger) -> None:
        """Log to ``log``: the warnings of ``warn``, and the ends at level INFO."""
        self._log = log
        self._since: float | None = None
        self._warned = ""

    def begin(self) -> None:
        """Begin an outage, unless it has begun: a warning was logged."""
        if self._since is None:
            self._since = _now()

    def warn(self, message: str, *args: object) -> None:
        """Log a warning, unless it repeats the last one, and begin an outage."""
        if (text := message % args) != self._warned:
            self._warned = text
            self.begin()
            self._log.warning(message, *args)

    def end(self, message: str, *args: object) -> None:
        """End the outage, if there is one; ``message`` is the format of what is well again."""
        self._warned = ""
        if self._since is not None:
            lasted, self._since = _now() - self._since, None
            self._log.info(f"{message}, %.1f s after the first warning", *args, lasted)

    def __repr__(self) -> str:
        return f"<Outage since={self._since}>"


def _now() -> float:
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return time.monotonic()


class _Further(Struct):
    count: int = 0
    last: str = ""


class FailureLog:
    """Logs the failures of one function of a program.

    The log refers to no object of the informer, since the event loop keeps it for the interval.
    """

    __slots__ = ("_further", "_interval", "_log", "_timer")

    def __init__(self, log: logging.Logger, interval: float = FAILURE_INTERVAL) -> None:
        """Log to ``log`` at level ERROR; ``interval`` is in seconds."""
        self._log = log
        self._interval = interval
        self._further: dict[type[BaseException], _Further] = {}
        self._timer: asyncio.TimerHandle | None = None

    def failed(
        self, error: BaseException, message: str, *args: object, traceback: bool = True
    ) -> None:
        """Log a failure in full, or count it after another one of its type.

        ``message`` is the format of the record. A ``traceback`` is logged if there is one.
        """
        further = self._further.get(type(error))
        if further is not None:
            further.count += 1
            further.last = message % args
            return
        shown = error if traceback and error.__traceback__ is not None else None
        self._log.error(message, *args, exc_info=shown)
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # nothing would end the interval
            return
        self._further[type(error)] = _Further()
        if self._timer is None:
            # Not the context of a handler's call, which the timer would keep.
            self._timer = loop.call_later(self._interval, self.flush, context=Context())

    def exception(self, message: str, *args: object) -> None:
        """Log the exception that is being handled, as ``failed`` does."""
        error = sys.exception()
        if error is not None:
            self.failed(error, message, *args)

    def flush(self) -> None:
        """Log the failures that were counted, and end the interval."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        ended, self._further = self._further, {}
        for kind, further in ended.items():
            if further.count:
                failures = quantity(further.count, "further failure")
                self._log.error(
                    "%s with %s, the last of them: %s", failures, kind.__name__, further.last
                )

    def __repr__(self) -> str:
        counted = sum(each.count for each in self._further.values())
        return f"<FailureLog {self._log.name} interval={self._interval:g} counted={counted}>"
