"""What goes wrong in a handler, told once to everybody: the log, the count, the program's hook.

An exception is one line under the handler's name, with a traceback once a second at most: a
handler with a wrong signature raises at each of 100,000 objects. Whether anything ends because of
it is for ``registration`` to say.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeAlias

from aioinformer._core.objects.kube_object import Event, KubeObject
from aioinformer._runtime.reporting.error_hook import LogThrottle, call_hook
from aioinformer._runtime.reporting.health import describe_error
from aioinformer.errors import HandlerCancelled, HandlerTimeout, ModelMismatch, ObjectDecodeError

__all__ = ["HandlerErrors", "OnHandlerError"]

log = logging.getLogger("aioinformer.handlers")

SLOW_WARNING_INTERVAL = 10.0
"""Seconds between two warnings that one handler is slow: with ``concurrency=100`` all of its calls
may be, for the same reason."""

OnHandlerError: TypeAlias = Callable[[str, Exception], None]
"""Is told the name of a listener and what went wrong in it."""


class HandlerErrors:
    """Tells of one listener's failures."""

    def __init__(self, name: str, on_error: OnHandlerError | None = None) -> None:
        """Nothing has failed yet.

        Args:
            name: the listener's.
            on_error: is told of each failure. What it raises is logged.
        """
        self.count = 0
        """Failures that are the handler's."""
        self._name = name
        self._on_error = on_error
        self._traceback_throttle = LogThrottle()
        self._slow_throttle = LogThrottle(SLOW_WARNING_INTERVAL)

    def report_exception(self, event: Event, error: BaseException) -> Exception:
        """The handler raised ``error``; what to call that where only an Exception will do."""
        if isinstance(error, ObjectDecodeError | ModelMismatch):  # not the handler's doing
            log.error("handler %s: %s", self._name, describe_error(error))
            self._call_hook(error)
            return error
        self._log_exception("handler %s raised at %s of %r: %s", event, error)
        return self._call_hook(error)

    def report_self_cancel(self) -> Exception:
        """The handler has cancelled the task that it runs in, and returned."""
        error = HandlerCancelled(f"{self._name} cancelled the task that it runs in; it goes on")
        self.count += 1
        log.error("handler %s", error)
        return self._call_hook(error)

    def report_timeout(self, event: Event, seconds: float, *, consequence: str) -> HandlerTimeout:
        """A call took longer than ``seconds``; ``consequence`` says what becomes of it."""
        error = HandlerTimeout(
            f"{self._name} took longer than {seconds:g} s at {type(event).__name__} of "
            f"{event.obj!r}; {consequence}"
        )
        self.count += 1
        log.error("handler %s", error)
        self._call_hook(error)
        return error

    def report_filter_exception(self, obj: KubeObject, error: BaseException) -> None:
        """The listener's filter raised at ``obj``, which is taken to pass."""
        self.count += not isinstance(error, ModelMismatch)
        in_full = self._traceback_throttle.allows()
        log.error(
            "the filter of %s raised at %r, which is taken to pass: %s",
            self._name,
            obj,
            describe_error(error),
            exc_info=error if in_full else None,
        )
        self._call_hook(error)

    def report_end(self, error: Exception) -> None:
        """The registration has come to an end that nobody asked for."""
        self.count += 1
        log.error("handler %s: %s", self._name, error)
        self._call_hook(error)

    def report_slow_call(self, event: Event, what: str) -> None:
        """A call takes long: ``what`` says how long, and what may be done."""
        if self._slow_throttle.allows():
            of = f"{type(event).__name__} of {event.obj!r}"
            log.warning("handler %s %s, at %s", self._name, what, of)

    def _log_exception(self, message: str, event: Event, error: BaseException) -> None:
        self.count += 1
        log.error(
            message,
            self._name,
            type(event).__name__,
            event.obj,
            describe_error(error),
            exc_info=error if self._traceback_throttle.allows() else None,
        )

    def _call_hook(self, error: BaseException) -> Exception:
        if not isinstance(error, Exception):
            cancelled = HandlerCancelled(f"{self._name} raised a {type(error).__name__} of its own")
            cancelled.__cause__ = error
            error = cancelled
        call_hook(self._on_error, log, self._name, error)
        return error

    def __repr__(self) -> str:
        return f"<HandlerErrors of {self._name}: {self.count}>"
