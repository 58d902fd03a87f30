"""A handler that is traced: another one, which does the same inside a span.

It stays what it is, a plain function or an async one, so that it is called in the same way. A call
with an event that the handler does nothing about has no span. When a handler is called, and what
becomes of what it raises, is ``attempts``'.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any

from aioinformer._core.objects import Event
from aioinformer._runtime.handlers import Handler, dispatch, is_async, kinds_of
from aioinformer._runtime.tracing import GuardedSpan, awaited

__all__ = ["traced"]


def traced(handler: Handler[Any], begin: Callable[[str], GuardedSpan]) -> Handler[Any]:
    """A handler that calls ``handler`` inside a span, which ``begin`` begins.

    Raises:
        TypeError: as ``dispatch``.
    """
    call, kinds = dispatch(handler), kinds_of(handler)

    def on_event(event: Event[Any]) -> Awaitable[None] | None:
        if not isinstance(event, kinds):
            nothing: Awaitable[None] | None = call(event)
            return nothing
        span = begin(type(event).__name__.lower())
        try:
            with span.current():
                result = call(event)
        except BaseException as error:
            span.ended(error)
            raise
        if result is not None and isawaitable(result):
            return awaited(result, span)
        span.ended(None)
        return None

    async def on_event_async(event: Event[Any]) -> None:
        if (rest := on_event(event)) is not None:
            await rest

    return on_event_async if is_async(handler) else on_event
