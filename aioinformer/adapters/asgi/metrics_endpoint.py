"""Answers for scrapes: the metrics of the process, as Prometheus reads them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias, cast

from aioinformer._client.auth.off_loop import run_in_thread
from aioinformer._core.callables import check_not_async, check_signature
from aioinformer.adapters.asgi.asgi_messages import Receive, Scope, Send, check_http, send_response

Expose: TypeAlias = Callable[[str], tuple[bytes, str]]
"""Returns the metrics and their content type. The argument is the ``Accept`` header, or ``""``."""


class MetricsEndpoint:
    """An ASGI application that answers scrapes, for the path ``/metrics``.

    The metrics are written in a thread, since those of a large program take several milliseconds.

    Example::

        from aioinformer.adapters.asgi import Expose, MetricsEndpoint
        from aioinformer.adapters.prometheus import PrometheusMetrics
        from prometheus_client import CollectorRegistry

        metrics = PrometheusMetrics(CollectorRegistry())
        expose: Expose = metrics.exposition
        scrape = MetricsEndpoint(expose)
    """

    def __init__(self, expose: Expose) -> None:
        """Make an endpoint.

        Args:
            expose: called in a thread for each scrape, such as ``PrometheusMetrics.exposition``.

        Raises:
            TypeError: ``expose`` can't be called so.
        """
        if not callable(cast("object", expose)):
            raise TypeError(
                "a MetricsEndpoint takes a function that returns the metrics: write "
                f"MetricsEndpoint(metrics.exposition), not {expose!r}"
            )
        check_not_async(expose, "the function of a MetricsEndpoint")
        check_signature(expose, "the function of a MetricsEndpoint", "accept")
        self._expose = expose

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        del receive
        check_http(scope)
        accepted: dict[bytes, bytes] = dict(scope["headers"])
        accept = accepted.get(b"accept", b"").decode("latin-1")
        body, content_type = await run_in_thread(partial(self._expose, accept))
        headers = ((b"content-type", content_type.encode("latin-1")),)
        await send_response(send, 200, headers, body)

    def __repr__(self) -> str:
        return f"<MetricsEndpoint {getattr(self._expose, '__qualname__', self._expose)}>"
