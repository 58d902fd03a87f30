"""The HTTP server of an operator: probes for the kubelet, and metrics for Prometheus.

    /healthz, /livez   503 if an informer or a shard group has failed, so that a restart helps
    /readyz            503 until all caches are filled, and while one is not known to be up to date
                       or this replica is no member of a group of ``shards=``
    /metrics           the metrics, if the operator has ``PrometheusMetrics``

A replica that waits for the lease is ready: in a rolling update, the old replica ends when the new
one is ready. Each probe answers with JSON: ``ok``, ``wrong`` (the reasons by name) and ``health``.

Any ``Host`` is answered: a kubelet sends the pod's IP or a header of the probe, Prometheus an IP or
the name of a Service. A request of a web page of another site is refused by its ``Origin``, which
only browsers send.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Protocol, runtime_checkable

import msgspec
from aiohttp import web

from aioinformer._core.instrumentation import Metrics
from aioinformer._runtime.reporting.readiness import HasHealth, alive, ready
from aioinformer.errors import UsageError
from aioinformer.operator.health import OperatorHealth

SHUTDOWN_TIMEOUT = 1.0
"""Seconds for requests under way when the operator ends. A scrape takes milliseconds."""

UNREADY_STATES = ("new", "starting", "failed", "stopped")


@web.middleware
async def _refuse_foreign_pages(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    origin = request.headers.get("Origin")
    if origin is None or origin.partition("://")[2] == request.headers.get("Host"):
        return await handler(request)
    return web.Response(
        status=403,
        text="this operator answers no web page of another site: request it without `Origin`\n",
    )


@runtime_checkable
class ExposesMetrics(Protocol):
    """Metrics that Prometheus can scrape: ``PrometheusMetrics``."""

    def exposition(self, accept: str = "") -> tuple[bytes, str]:
        """Return the metrics as text and their content type, in a format of ``accept``."""
        ...


class ProbeServer:
    """Answers probes and scrapes for one operator."""

    def __init__(
        self,
        informers: Callable[[], Iterable[HasHealth]],
        health: Callable[[], OperatorHealth],
        metrics: Metrics | None,
    ) -> None:
        self._informers = informers
        self._health = health
        self._metrics: object = metrics

    @asynccontextmanager
    async def serving(self, host: str | None, port: int) -> AsyncGenerator[int]:
        """Listen while the block runs, and give the port. Raises ``UsageError`` if it can't be
        opened.
        """
        app = web.Application(middlewares=[_refuse_foreign_pages])
        for path, respond in (
            ("/healthz", self._live),
            ("/livez", self._live),
            ("/readyz", self._ready),
            ("/metrics", self._expose),
        ):
            app.router.add_get(path, respond)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_TIMEOUT)
        await runner.setup()
        try:
            site = web.TCPSite(runner, host, port)
            try:
                await site.start()
            except OSError as error:
                raise UsageError(
                    f"the operator can't listen on port {port}: {error.strerror or error}; each "
                    "replica on one machine needs a port= of its own, or port=0 for a free one"
                ) from error
            yield int(runner.addresses[0][1])
        finally:
            await runner.cleanup()

    async def _live(self, _: web.Request) -> web.Response:
        groups = self._health().groups
        failed = {
            f"group {name}": str(each) for name, each in groups.items() if each.state == "failed"
        }
        return self._answer(alive(self._informers()) | failed)

    async def _ready(self, _: web.Request) -> web.Response:
        health = self._health()
        wrong = ready(self._informers())
        for name, group in health.groups.items():
            if group.state != "member":
                wrong[f"group {name}"] = str(group)
        if health.state in UNREADY_STATES:
            wrong = {"operator": str(health)}  # informers that are not entered yet aren't the cause
        return self._answer(wrong)

    def _answer(self, wrong: Mapping[str, str]) -> web.Response:
        health = self._health()
        shown = {"operator": str(health)}
        shown |= {name: str(each) for name, each in health.informers.items()}
        body = msgspec.json.encode({"ok": not wrong, "wrong": wrong, "health": shown})
        status = 503 if wrong else 200
        return web.Response(status=status, body=body, content_type="application/json")

    async def _expose(self, request: web.Request) -> web.Response:
        if not isinstance(self._metrics, ExposesMetrics):
            return web.Response(
                status=404, text="this operator has no metrics: pass metrics=PrometheusMetrics()\n"
            )
        body, content_type = self._metrics.exposition(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})

    def __repr__(self) -> str:
        return f"<ProbeServer of {list(self._informers())!r}>"
