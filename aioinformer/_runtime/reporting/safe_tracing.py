"""Spans that never raise. Without a ``Tracing`` of the program, no span is made."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

from aioinformer._core.instrumentation import BeginSpan, InformerTrace, Span, Tracing
from aioinformer._runtime.reporting.safe_call import SafeCall

log = logging.getLogger("aioinformer.tracing")

R = TypeVar("R")


def _safe_call(name: str) -> SafeCall:
    message = "the tracing of %s raised: spans are missing; further errors from it are not logged"
    return SafeCall(log, message, name)


class SafeSpan:
    """One span, or nothing if it couldn't be begun."""

    def __init__(self, span: Span | None, safe_call: SafeCall) -> None:
        self._span = span
        self._safe_call = safe_call

    @contextmanager
    def current(self) -> Generator[None]:
        if self._span is None:
            yield
            return
        with ExitStack() as stack:
            context = self._safe_call(self._span.current)
            if context is not None:
                self._safe_call(context.__enter__)
                # Left without the block's exception, which the context could suppress.
                stack.callback(self._safe_call, context.__exit__, None, None, None)
            yield

    def ended(self, error: BaseException | None) -> None:
        if self._span is not None:
            self._safe_call(self._span.ended, error)

    def __repr__(self) -> str:
        return f"<SafeSpan {self._span!r}>"


async def await_in_span(awaitable: Awaitable[R], span: SafeSpan) -> R:
    """Await the rest of a span's work, then end the span."""
    try:
        with span.current():
            result = await awaitable
    except BaseException as error:
        span.ended(error)
        raise
    span.ended(None)
    return result


class SafeTrace(InformerTrace):
    def __init__(self, trace: InformerTrace, safe_call: SafeCall) -> None:
        self._trace = trace
        safe_call.wrap(trace, InformerTrace, self)

    def __repr__(self) -> str:
        return f"<SafeTrace {self._trace!r}>"


def make_informer_trace(tracing: Tracing | None, label: str, resource: str) -> InformerTrace:
    """Return the trace of an informer's requests; one that does nothing without tracing."""
    if tracing is None:
        return InformerTrace()
    safe_call = _safe_call(f"the informer of {label}")
    trace = safe_call(tracing.informer, label, resource)
    return InformerTrace() if trace is None else SafeTrace(trace, safe_call)


def handler_span_factory(
    tracing: Tracing | None, label: str, listener: str
) -> Callable[[str], SafeSpan] | None:
    """Return a function that begins the span of a handler's call; ``None`` for no spans."""
    if tracing is None:
        return None
    safe_call = _safe_call(f"handler {listener}")
    begin: BeginSpan | None = safe_call(tracing.handler, label, listener)
    if begin is None:
        return None
    known: Any = begin
    return lambda kind: SafeSpan(safe_call(known, kind), safe_call)


def reconcile_span_factory(
    tracing: Tracing | None, controller: str
) -> Callable[[], SafeSpan] | None:
    """Return a function that begins the span of a controller's run; ``None`` without tracing."""
    if tracing is None:
        return None
    safe_call = _safe_call(f"controller {controller}")
    return lambda: SafeSpan(safe_call(tracing.reconcile, controller), safe_call)
