"""Tracing that can do no harm.

A ``Tracing`` is a program's code, called in the middle of the informer's work. What it raises must
not end an informer, nor a handler's call: the first is logged, and that is all. Without one,
nothing is asked and nothing is made.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import Any, ParamSpec, TypeVar

from aioinformer._core.instrumentation import BeginSpan, InformerTrace, Span, Tracing
from aioinformer._core.listwatch.requests import Verb

__all__ = [
    "NoTrace",
    "SafeCall",
    "SafeSpan",
    "await_in_span",
    "handler_span_factory",
    "make_informer_trace",
    "reconcile_span_factory",
]

log = logging.getLogger("aioinformer.tracing")

P = ParamSpec("P")
R = TypeVar("R")


class SafeCall:
    """Calls a program's code, and goes on when that raises."""

    def __init__(self, name: str) -> None:
        """Nothing has gone wrong yet; ``name`` is whose spans they are."""
        self._name = name
        self._logged = False

    def __call__(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R | None:
        """What it returns; ``None`` if it raised."""
        try:
            return function(*args, **kwargs)
        except Exception:
            if not self._logged:
                self._logged = True
                said = "the tracing of %s raised; spans are missing from now on, no more is said"
                log.exception(said, self._name)
            return None

    def __repr__(self) -> str:
        return f"<SafeCall of {self._name}>"


class SafeSpan:
    """One span, or none where it couldn't be begun."""

    def __init__(self, span: Span | None, safe_call: SafeCall) -> None:
        """It has begun."""
        self._span = span
        self._safe_call = safe_call

    @contextmanager
    def current(self) -> Generator[None]:
        """What runs inside belongs to it."""
        if self._span is None:
            yield
            return
        with ExitStack() as inside:
            made = self._safe_call(self._span.current)
            if made is not None:
                self._safe_call(made.__enter__)
                # Not with what was raised inside: that isn't its to swallow.
                inside.callback(self._safe_call, made.__exit__, None, None, None)
            yield

    def ended(self, error: BaseException | None) -> None:
        """It is over."""
        if self._span is not None:
            self._safe_call(self._span.ended, error)

    def __repr__(self) -> str:
        return f"<SafeSpan {self._span!r}>"


async def await_in_span(awaitable: Awaitable[R], span: SafeSpan) -> R:
    """Await the rest of what ``span`` is about, which ends with it."""
    try:
        with span.current():
            result = await awaitable
    except BaseException as error:
        span.ended(error)
        raise
    span.ended(None)
    return result


class NoTrace:
    """Nobody traces an informer's requests."""

    __slots__ = ()

    def asked(self, verb: Verb) -> None:
        """Nobody listens."""

    def received(self, size: int, events: int) -> None:
        """Nobody listens."""

    def complete(self) -> None:
        """Nobody listens."""

    def ended(self, cause: str, error: Exception | None) -> None:
        """Nobody listens."""

    def closed(self) -> None:
        """Nobody listens."""

    def __repr__(self) -> str:
        return "<NoTrace>"


class _SafeTrace:
    """Passes on what it is told, and goes on when that raises."""

    def __init__(self, trace: InformerTrace, safe_call: SafeCall) -> None:
        self._trace = trace
        self._safe_call = safe_call

    def asked(self, verb: Verb) -> None:
        self._safe_call(self._trace.asked, verb)

    def received(self, size: int, events: int) -> None:
        self._safe_call(self._trace.received, size, events)

    def complete(self) -> None:
        self._safe_call(self._trace.complete)

    def ended(self, cause: str, error: Exception | None) -> None:
        self._safe_call(self._trace.ended, cause, error)

    def closed(self) -> None:
        self._safe_call(self._trace.closed)

    def __repr__(self) -> str:
        return f"<_GuardedTrace {self._trace!r}>"


def make_informer_trace(tracing: Tracing | None, label: str, resource: str) -> InformerTrace:
    """Of an informer's requests: spans that don't raise, or the silence in their place."""
    if tracing is None:
        return NoTrace()
    guard = SafeCall(f"the informer of {label}")
    made = guard(tracing.informer, label, resource)
    return NoTrace() if made is None else _SafeTrace(made, guard)


def handler_span_factory(
    tracing: Tracing | None, label: str, listener: str
) -> Callable[[str], SafeSpan] | None:
    """The same of the calls of a handler; ``None`` if there shall be no spans."""
    if tracing is None:
        return None
    guard = SafeCall(f"handler {listener}")
    begin: BeginSpan | None = guard(tracing.handler, label, listener)
    if begin is None:
        return None
    known: Any = begin
    return lambda kind: SafeSpan(guard(known, kind), guard)


def reconcile_span_factory(
    tracing: Tracing | None, controller: str
) -> Callable[[], SafeSpan] | None:
    """The same of a controller's runs; ``None`` without tracing."""
    if tracing is None:
        return None
    guard = SafeCall(f"controller {controller}")
    return lambda: SafeSpan(guard(tracing.reconcile, controller), guard)
