"""What informers and controllers tell those who make spans of what they do: three protocols.

Metrics count; a trace shows which request led to what, and how long each part took. So it is told
of the beginning as well, before anything happens, and may make itself current, so that what is
done meanwhile (an HTTP request, a query of the handler's) belongs to it. What a span looks like
and where it goes is an adapter's business (``aioinformer.adapters.opentelemetry``).

The words are those of ``metrics``: never an object's name, a selector or a URL.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias

from aioinformer._core.requests import Verb

__all__ = ["BeginSpan", "InformerTrace", "Span", "Tracing"]


class Span(Protocol):
    """A piece of a program's own work: one call of a handler, one reconcile."""

    def current(self) -> AbstractContextManager[object]:
        """What runs inside belongs to it. Entered twice, one after the other, where a function
        is called and then awaited, perhaps in another task.
        """
        ...

    def ended(self, error: BaseException | None) -> None:
        """It is over; ``error`` is what it raised. What that says is the program's, and may hold
        anything: its class is safe to show.
        """
        ...


BeginSpan: TypeAlias = Callable[[str], Span]
"""Begins one for a call of a handler, given the kind of the event: ``added``, ``updated`` or
``deleted``."""


class InformerTrace(Protocol):
    """The requests of one informer, one after the other. All is told in one task."""

    def asked(self, verb: Verb) -> None:
        """A request is asked for; it is current until it has ended. With ``list`` or
        ``watchlist`` a whole state begins to be read, unless one is being read: several pages, and
        what is asked again, are one state.
        """
        ...

    def received(self, size: int, events: int) -> None:
        """A chunk of its answer was read. Called for each chunk: keep it cheap."""
        ...

    def complete(self) -> None:
        """The whole state was read. The request has ended just before, or goes on, as the watch
        of a WatchList does. Told of every watch that opens as well.
        """
        ...

    def ended(self, cause: str, error: Exception | None) -> None:
        """The request has ended. ``cause`` is as for ``Metrics.request_ended``; ``error`` is the
        library's own, whose text holds no secret.
        """
        ...

    def closed(self) -> None:
        """The informer is no more, in whatever task: what has not ended ends."""
        ...


class Tracing(Protocol):
    """Makes spans. Every method is called in the event loop, in the middle of work: it must return
    at once and must not raise. Handlers that run in threads call theirs there.
    """

    def informer(self, informer: str, resource: str) -> InformerTrace:
        """Of the requests of an informer with that label, which reads that resource."""
        ...

    def handler(self, informer: str, listener: str) -> BeginSpan | None:
        """Of the calls of a handler; ``None`` for no spans, which then cost nothing."""
        ...

    def reconcile(self, controller: str) -> Span:
        """Of one run of a controller's reconciler, which begins now."""
        ...
