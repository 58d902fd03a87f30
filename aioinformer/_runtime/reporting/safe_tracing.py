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
    "Guard",
    "GuardedSpan",
    "Untraced",
    "awaited",
    "handler_spans",
    "informer_trace",
    "reconcile_spans",
]

log = logging.getLogger("aioinformer.tracing")

P = ParamSpec("P")
R = TypeVar("R")


class Guard:
    """Calls a program's code, and goes on when that raises."""

    def __init__(self, name: str) -> None:
        """Nothing has gone wrong yet; ``name`` is whose spans they are."""
        self._name = name
        self._told = False

    def __call__(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R | None:
        """What it returns; ``None`` if it raised."""
        try:
            return call(*args, **kwargs)
        except Exception:
            if not self._told:
                self._told = True
                said = "the tracing of %s raised; spans are missing from now on, no more is said"
                log.exception(said, self._name)
            return None

    def __repr__(self) -> str:
        return f"<Guard of {self._name}>"


class GuardedSpan:
    """One span, or none where it couldn't be begun."""

    def __init__(self, span: Span | None, guard: Guard) -> None:
        """It has begun."""
        self._span = span
        self._guard = guard

    @contextmanager
    def current(self) -> Generator[None]:
        """What runs inside belongs to it."""
        if self._span is None:
            yield
            return
        with ExitStack() as inside:
            made = self._guard(self._span.current)
            if made is not None:
                self._guard(made.__enter__)
                # Not with what was raised inside: that isn't its to swallow.
                inside.callback(self._guard, made.__exit__, None, None, None)
            yield

    def ended(self, error: BaseException | None) -> None:
        """It is over."""
        if self._span is not None:
            self._guard(self._span.ended, error)

    def __repr__(self) -> str:
        return f"<GuardedSpan {self._span!r}>"


async def awaited(rest: Awaitable[R], span: GuardedSpan) -> R:
    """Await the rest of what ``span`` is about, which ends with it."""
    try:
        with span.current():
            result = await rest
    except BaseException as error:
        span.ended(error)
        raise
    span.ended(None)
    return result


class Untraced:
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
        return "<Untraced>"


class _GuardedTrace:
    """Passes on what it is told, and goes on when that raises."""

    def __init__(self, trace: InformerTrace, guard: Guard) -> None:
        self._trace = trace
        self._guard = guard

    def asked(self, verb: Verb) -> None:
        self._guard(self._trace.asked, verb)

    def received(self, size: int, events: int) -> None:
        self._guard(self._trace.received, size, events)

    def complete(self) -> None:
        self._guard(self._trace.complete)

    def ended(self, cause: str, error: Exception | None) -> None:
        self._guard(self._trace.ended, cause, error)

    def closed(self) -> None:
        self._guard(self._trace.closed)

    def __repr__(self) -> str:
        return f"<_GuardedTrace {self._trace!r}>"


def informer_trace(tracing: Tracing | None, label: str, resource: str) -> InformerTrace:
    """Of an informer's requests: spans that don't raise, or the silence in their place."""
    if tracing is None:
        return Untraced()
    guard = Guard(f"the informer of {label}")
    made = guard(tracing.informer, label, resource)
    return Untraced() if made is None else _GuardedTrace(made, guard)


def handler_spans(
    tracing: Tracing | None, label: str, listener: str
) -> Callable[[str], GuardedSpan] | None:
    """The same of the calls of a handler; ``None`` if there shall be no spans."""
    if tracing is None:
        return None
    guard = Guard(f"handler {listener}")
    begin: BeginSpan | None = guard(tracing.handler, label, listener)
    if begin is None:
        return None
    known: Any = begin
    return lambda kind: GuardedSpan(guard(known, kind), guard)


def reconcile_spans(tracing: Tracing | None, controller: str) -> Callable[[], GuardedSpan] | None:
    """The same of a controller's runs; ``None`` without tracing."""
    if tracing is None:
        return None
    guard = Guard(f"controller {controller}")
    return lambda: GuardedSpan(guard(tracing.reconcile, controller), guard)
