"""OpenTelemetry spans of informers and controllers.

    state pods in web         from the first request for a full state to its last page
      list pods in web        one page; or
      watchlist pods in web   the stream that brings the full state, and goes on as the watch
    watch pods in web         a watch; its span is exported when the watch has ended
    handle audit              one call of a handler, with ``handlers=True``
    reconcile shop            one run of a controller's reconciler

Full states, watches, calls and runs begin traces of their own. Otherwise all of them would belong
to the span that was current when the program started, in one trace that never ends. The span of
each full state and each watch links to the one before it. A call of a handler has no link to the
watch that delivered its event: merged events would need several links, and every event would have
to carry one.

The attributes are numbers and words from small, fixed sets: never an object's name, a selector or a
URL. Of aioinformer's own errors a span has the class, the text and the server's status code; of
errors from the program's code only the class.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import Token

from opentelemetry.context import Context, attach, detach
from opentelemetry.propagate import inject
from opentelemetry.trace import (
    Link,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    TracerProvider,
    get_tracer_provider,
    set_span_in_context,
    use_span,
)

from aioinformer._core.instrumentation import InformerTrace
from aioinformer._core.listwatch.reflector_requests import Verb
from aioinformer.adapters.opentelemetry.instruments import SCOPE
from aioinformer.errors import ServerError

STATE_VERBS = frozenset({"list", "watchlist"})


def trace_headers() -> dict[str, str]:
    """Return the headers that name a request's trace, such as ``traceparent``.

    For ``Client(..., headers=trace_headers)``. An API server that makes spans itself may continue
    the trace. The program's propagators choose the headers, W3C's by default. Without a current
    span there are none.
    """
    headers: dict[str, str] = {}
    inject(headers)
    return headers


class OpenTelemetryTracing:
    """``Tracing`` that makes OpenTelemetry spans. May be shared by any number of factories.

    A span costs about 20 µs with an SDK. Handlers are called once for every event, so they have no
    spans unless ``handlers`` is true. While a request, call or run is under way, its span is
    current: spans that the handler makes become its children, and so do those of an instrumentation
    of aiohttp's client (``opentelemetry-instrumentation-aiohttp-client``). The API server receives
    no trace unless the client has ``headers=trace_headers``.

    Args:
        tracer_provider: makes the spans; the process's provider by default, which may be set later.
        handlers: True if calls of handlers have spans.
    """

    def __init__(
        self, tracer_provider: TracerProvider | None = None, *, handlers: bool = False
    ) -> None:
        self._tracer = (tracer_provider or get_tracer_provider()).get_tracer(SCOPE)
        self._handlers = handlers

    def informer(self, informer: str, resource: str) -> _InformerSpans:
        """Return the tracer of one informer's requests."""
        return _InformerSpans(self._tracer, informer, resource)

    def handler(self, informer: str, listener: str) -> Callable[[str], _CallSpan] | None:
        """Return a function that starts the span of a handler's call, or ``None`` for no spans."""
        if not self._handlers:
            return None
        attributes = {"aioinformer.informer": informer, "aioinformer.listener": listener}
        return lambda kind: _CallSpan(
            self._tracer, f"handle {listener}", {**attributes, "aioinformer.event": kind}
        )

    def reconcile(self, controller: str) -> _CallSpan:
        """Start the span of a run."""
        attributes = {"aioinformer.controller": controller}
        return _CallSpan(self._tracer, f"reconcile {controller}", attributes)

    def __repr__(self) -> str:
        return f"<OpenTelemetryTracing handlers={self._handlers}>"


class _CallSpan:
    def __init__(self, tracer: Tracer, name: str, attributes: dict[str, str]) -> None:
        self._span = tracer.start_span(name, context=Context(), attributes=attributes)

    def current(self) -> AbstractContextManager[Span]:
        return use_span(self._span, record_exception=False, set_status_on_exception=False)

    def ended(self, error: BaseException | None) -> None:
        if error is not None:
            self._span.set_attribute("error.type", type(error).__name__)
            self._span.set_status(Status(StatusCode.ERROR))
        self._span.end()


class _RequestSpan:
    """A span, and the bytes and events that were received in it."""

    def __init__(self, span: Span) -> None:
        self.span = span
        self.size = self.events = self.requests = 0

    def end(self, error: Exception | None, **attributes: str | int) -> None:
        span = self.span
        for name, value in attributes.items():
            span.set_attribute(f"aioinformer.{name}", value)
        span.set_attribute("aioinformer.received.bytes", self.size)
        span.set_attribute("aioinformer.received.events", self.events)
        if error is not None:
            span.set_attribute("error.type", type(error).__name__)
            if isinstance(error, ServerError):
                span.set_attribute("aioinformer.status_code", error.status.code)
            span.set_status(Status(StatusCode.ERROR, str(error)))
        span.end()


class _InformerSpans(InformerTrace):
    """The spans of one informer: at most one request and one full state are under way."""

    def __init__(self, tracer: Tracer, informer: str, resource: str) -> None:
        self._tracer = tracer
        self._informer = informer
        self._resource = resource
        self._state: _RequestSpan | None = None
        self._request: _RequestSpan | None = None
        self._token: Token[Context] | None = None
        self._previous: SpanContext | None = None

    def asked(self, verb: Verb) -> None:
        parent = Context()
        if verb in STATE_VERBS:
            if self._state is None:
                self._state = _RequestSpan(self._start_span("state", SpanKind.INTERNAL))
            self._state.requests += 1
            parent = set_span_in_context(self._state.span, parent)
        span = self._start_span(verb, SpanKind.CLIENT, parent)
        self._request = _RequestSpan(span)
        self._token = attach(set_span_in_context(span))

    def _start_span(self, verb: str, kind: SpanKind, parent: Context | None = None) -> Span:
        root = not parent
        span = self._tracer.start_span(
            f"{verb} {self._informer}",
            # An empty context makes a root span, whatever span is current.
            context=Context() if parent is None else parent,
            kind=kind,
            attributes={
                "aioinformer.informer": self._informer,
                "aioinformer.resource": self._resource,
                "aioinformer.verb": verb,
            },
            links=[Link(self._previous)] if root and self._previous is not None else None,
        )
        if root:
            self._previous = span.get_span_context()
        return span

    def received(self, size: int, events: int) -> None:
        for each in (self._request, self._state):
            if each is not None:
                each.size += size
                each.events += events

    def complete(self) -> None:
        state, self._state = self._state, None
        if state is not None:
            state.end(None, requests=state.requests)
            if self._request is not None:
                self._request.span.add_event("state complete")

    def ended(self, cause: str, error: Exception | None) -> None:
        token, self._token = self._token, None
        if token is not None:
            detach(token)
        request, self._request = self._request, None
        if request is not None:
            request.end(error, outcome=cause)
        state = self._state
        # After a normal end the state goes on with the next page.
        if state is not None and (error is not None or cause == "cancelled"):
            self._state = None
            state.end(error, requests=state.requests, outcome=cause)

    def closed(self) -> None:
        self._token = None  # a token can be detached only in the task that attached it
        self.ended("cancelled", None)

    def __repr__(self) -> str:
        return f"<_InformerSpans of {self._informer}>"
