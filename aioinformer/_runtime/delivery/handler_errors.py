"""Reports of failed handler calls: to the log, the statistics and the program's error hook.

The log has the first failure of a type in full, and the number of further ones every ten seconds: a
handler with a mistake raises at each of 100,000 objects. A report ends nothing: the caller of the
handler decides that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeAlias

from aioinformer._core.objects.decode_errors import hide_secret
from aioinformer._core.objects.kube_object import Event, KubeObject
from aioinformer._runtime.reporting.error_hook import FailureLog, LogThrottle, call_hook
from aioinformer._runtime.reporting.error_texts import describe_error
from aioinformer._runtime.tasks.blocking import describe_blocking
from aioinformer.errors import HandlerCancelled, HandlerTimeout, ModelMismatch, ObjectDecodeError

log = logging.getLogger("aioinformer.handlers")

SLOW_WARNING_INTERVAL = 10.0
"""Seconds between two warnings that one handler is slow: with ``concurrency=100`` all of its calls
may be, for the same reason."""

OnHandlerError: TypeAlias = Callable[[str, Exception], None]
"""Called with the name of a listener and the error of its handler or filter."""


class HandlerErrors:
    """The failures of one listener."""

    def __init__(
        self,
        name: str,
        on_error: OnHandlerError | None = None,
        on_blocked: Callable[[float], None] | None = None,
    ) -> None:
        """Make a report with no failure.

        Args:
            name: the name of the listener.
            on_error: called with each failure. An exception of this function is logged.
            on_blocked: called with the seconds of each step that held the event loop; ``None`` for
                a handler whose steps are not timed.
        """
        self.count = 0
        """The number of failures of the handler or its filter."""
        self.blocking_calls = 0
        """Times that a call has held the event loop for longer than ``BLOCKING_LIMIT``."""
        self.on_blocked = on_blocked
        """See ``on_blocked`` above."""
        self._name = name
        self._on_error = on_error
        self._failures = FailureLog(log)
        self._slow_throttle = LogThrottle(SLOW_WARNING_INTERVAL)

    def report_exception(self, event: Event, error: BaseException) -> Exception:
        """Report an exception of the handler.

        Returns:
            The error itself; a ``HandlerCancelled`` in place of a BaseException.
        """
        # A body that is no JSON is not the handler's fault: it isn't counted.
        self.count += not isinstance(error, ObjectDecodeError)
        if isinstance(error, ObjectDecodeError | ModelMismatch):
            self._failures.failed(
                error, "handler %s: %s", self._name, describe_error(error), traceback=False
            )
            return self._call_hook(error)
        self._failures.failed(
            error,
            "handler %s raised at %s of %r: %s",
            self._name,
            type(event).__name__,
            event.obj,
            describe_error(error),
        )
        return self._call_hook(error)

    def report_self_cancel(self) -> Exception:
        """Report that the handler has cancelled its own task and returned."""
        error = HandlerCancelled(f"{self._name} cancelled the task that it runs in; it goes on")
        self.count += 1
        self._failures.failed(error, "handler %s", error)
        return self._call_hook(error)

    def report_timeout(self, event: Event, seconds: float, *, consequence: str) -> HandlerTimeout:
        """Report a call that took longer than ``seconds``; ``consequence`` says what follows."""
        error = HandlerTimeout(
            f"{self._name} took longer than {seconds:g} s at {type(event).__name__} of "
            f"{event.obj!r}; {consequence}"
        )
        self.count += 1
        self._failures.failed(error, "handler %s", error)
        self._call_hook(error)
        return error

    def report_filter_exception(self, obj: KubeObject, error: BaseException) -> None:
        """Report that the filter raised at ``obj``, which counts as passing."""
        self.count += not isinstance(error, ModelMismatch)
        error = hide_secret(obj.resource, error)
        self._failures.failed(
            error,
            "the filter of %s raised at %r, which is taken to pass: %s",
            self._name,
            obj,
            describe_error(error),
        )
        self._call_hook(error)

    def report_end(self, error: Exception) -> None:
        """Report an error that has closed the registration."""
        self.count += 1
        log.error("handler %s: %s", self._name, error)
        self._call_hook(error)

    def flush(self) -> None:
        """Log the failures that were only counted so far: no further call follows."""
        self._failures.flush()

    def report_slow_call(self, event: Event, what: str) -> bool:
        """Warn of a slow call; ``what`` says how long it takes, and what to do. Return True unless
        another warning was logged just before.
        """
        if not self._slow_throttle.allows():
            return False
        of = f"{type(event).__name__} of {event.obj!r}"
        log.warning("handler %s %s, at %s", self._name, what, of)
        return True

    def report_return(self, event: Event, seconds: float) -> None:
        """Say that a call of which ``report_slow_call`` has warned is over."""
        log.info(
            "handler %s is done after %.1f s, at %s of %r",
            *(self._name, seconds, type(event).__name__, event.obj),
        )

    def report_blocking(self, seconds: float) -> None:
        """Report a step of a call that has held the event loop."""
        self.blocking_calls += 1
        if self._slow_throttle.allows():
            log.warning("handler %s %s", self._name, describe_blocking(seconds))
        if self.on_blocked is not None:
            self.on_blocked(seconds)

    def _call_hook(self, error: BaseException) -> Exception:
        failure = as_exception(error, self._name)
        call_hook(self._on_error, log, self._name, failure)
        return failure

    def __repr__(self) -> str:
        return f"<HandlerErrors of {self._name}: {self.count}>"


def as_exception(error: BaseException, name: str) -> Exception:
    """Return an error of the program's function ``name`` as one that ends no task."""
    if isinstance(error, Exception):
        return error
    cancelled = HandlerCancelled(f"{name} raised a {type(error).__name__} of its own")
    cancelled.__cause__ = error
    return cancelled
