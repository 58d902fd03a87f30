"""Tracing: the protocols through which informers and controllers make spans.

``aioinformer.adapters.opentelemetry`` implements them, or a program for another library.

Example::

    from contextlib import nullcontext

    from aioinformer.tracing import InformerTrace, Span, Tracing

    requests = []

    class LoggedRequests(InformerTrace):
        def asked(self, verb):
            requests.append(verb)

    class LoggedRun:
        def current(self):
            return nullcontext()

        def ended(self, error):
            print("the run ended", error)

    class Log:
        def informer(self, informer: str, resource: str) -> InformerTrace:
            return LoggedRequests()

        def handler(self, informer: str, listener: str):
            return None  # no spans of handlers

        def reconcile(self, controller: str) -> Span:
            return LoggedRun()

    tracing: Tracing = Log()
    nodes = informers.informer("nodes", tracing=tracing)
    await nodes.wait_synced(timeout=30)
    assert requests[0] in ("list", "watchlist")
"""

from aioinformer._core.instrumentation import InformerTrace, Span, Tracing

__all__ = ["InformerTrace", "Span", "Tracing"]
