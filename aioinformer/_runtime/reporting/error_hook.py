"""The program's error hook, and the limit on logged tracebacks.

Whatever goes wrong is passed to the hook as a ``Problem``. The hook is the program's code: what it
raises is logged and stops nothing. Errors that repeat, such as those of a handler with a wrong
signature, which raises at each of 100,000 objects, are logged in full once per interval only.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from aioinformer._core.callables import is_async

__all__ = ["LogThrottle", "call_hook", "check_hook"]

P = ParamSpec("P")
S = TypeVar("S")

TRACEBACK_INTERVAL = 1.0
"""Seconds between two tracebacks of one handler or controller."""


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
    log: logging.Logger,
    subject: S,
    *args: P.args,
    **kwargs: P.kwargs,
) -> None:
    """Call an error hook, if there is one; log what it raises.

    Args:
        hook: the function to call.
        log: receives the traceback of what the hook raises.
        subject: the hook's first argument, which that log record names.
        *args: the hook's other arguments.
        **kwargs: the hook's keyword arguments.
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

    def allows(self, now: float | None = None) -> bool:
        """Return True if the interval has passed since this last returned True.

        Args:
            now: the time, for a thread that runs no loop; by default the running loop's time.
        """
        if now is None:
            now = asyncio.get_running_loop().time()
        if now - self._allowed_at < self._interval:
            return False
        self._allowed_at = now
        return True

    def __repr__(self) -> str:
        return f"<LogThrottle interval={self._interval:g}>"
