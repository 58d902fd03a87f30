"""The application: its lifespan, its routes, and its responses to errors."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import msgspec
from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import FileResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aioinformer import SharedInformer
from aioinformer.adapters.asgi import EventFeed, Probe, alive, closing_on_signals, ready
from aioinformer.adapters.prometheus import PrometheusMetrics
from aioinformer.errors import InvalidPath, InvalidSelector, NotSynced
from examples.fastapi_app import reads
from examples.fastapi_app.dependencies import Running
from examples.fastapi_app.live import Live, live
from examples.fastapi_app.rows import row
from examples.fastapi_app.settings import Settings

__all__ = ["app", "create_app"]

STATIC = Path(__file__).parent / "static"

INTERVAL = 0.1
"""Seconds between two sends to one page. Users see no shorter interval, and several changes of one
object in that time are sent as one."""
PULSE = 1.0
"""Seconds between two reports of the informers' status to a page."""
OUTAGE = 5.0
"""Seconds for which the button stops the embedded API server."""

HEADERS = (
    # Scripts and styles of this service only: nothing inline, nothing from another host, no frames.
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    b"img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def create_app(settings: Settings) -> FastAPI:
    """Create the application, for one lifespan."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with live(settings, PrometheusMetrics(registry), feed) as running:
            app.state.live = running
            with closing_on_signals(feed):  # the server waits for responses, which must end first
                yield

    def informers() -> Iterable[SharedInformer]:
        running: Live = app.state.live
        return running.informers.values()

    registry = CollectorRegistry()
    # FastAPI's documentation pages load scripts from another host, so they are off.
    app = FastAPI(title="aioinformer", lifespan=lifespan, docs_url=None, redoc_url=None)
    feed = EventFeed(
        informers,
        encode=row,
        interval=INTERVAL,
        heartbeat=PULSE,
        pulse=lambda: app.state.live.status.frame(),
    )
    app.state.feed = feed
    app.state.registry = registry
    is_ready = partial(ready, within=settings.fresh_within)
    app.router.routes += [
        Route("/events", feed, methods=["GET"]),
        Route("/healthz", Probe(informers, alive), methods=["GET"]),
        Route("/readyz", Probe(informers, is_ready), methods=["GET"]),
    ]
    app.include_router(router)
    app.include_router(reads.router)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    for error, status in ((InvalidSelector, 400), (InvalidPath, 400), (NotSynced, 503)):
        app.add_exception_handler(error, partial(_explain, status))
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(settings.hosts))
    app.add_middleware(SecurityHeaders)
    return app


async def _explain(status: int, request: Request, error: Exception) -> JSONResponse:
    """Respond with the mistake in a query, or with the state of the service.

    Texts about queries are the library's: they name the mistake and no secret. The text of
    ``NotSynced`` tells developers what to call, so clients receive another text.
    """
    if not isinstance(error, NotSynced):
        return JSONResponse({"detail": str(error)}, status_code=status)
    resource = request.path_params.get("resource", "pods")
    detail = f"the service has not read all {resource} from the API server yet; try again later"
    return JSONResponse({"detail": detail}, status_code=status, headers={"Retry-After": "1"})


class SecurityHeaders:
    """Middleware that adds headers: browsers load nothing from other hosts and guess no types."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap ``app``."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message.get("headers", []),
                    (b"content-security-policy", HEADERS),
                    (b"x-content-type-options", b"nosniff"),
                    (b"referrer-policy", b"no-referrer"),
                ]
            await send(message)

        await self._app(scope, receive, send_with_headers)


router = APIRouter()


@router.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
async def page() -> FileResponse:
    """Serve the page."""
    return FileResponse(STATIC / "page.html", headers={"Cache-Control": "no-cache"})


@router.get("/metrics", include_in_schema=False)
def metrics(request: Request) -> Response:
    """Serve the metrics to Prometheus, in a thread because the library may need some time."""
    return Response(generate_latest(request.app.state.registry), media_type=CONTENT_TYPE_LATEST)


@router.get("/history", include_in_schema=False)
async def history(live: Running) -> Response:
    """Serve the numbers of the last minute, for the charts of a new page."""
    body = msgspec.json.encode(list(live.history.samples))
    return Response(body, media_type="application/json")


@router.post("/embedded/outage", status_code=202)
async def outage(live: Running, request: Request) -> Response:
    """Stop the embedded API server for a while. The server of a real cluster is never stopped.

    The required header rejects requests from pages of other web sites, which can't send the header.
    """
    if live.embedded is None or request.headers.get("x-requested-with") != "page":
        return Response(status_code=403)
    live.embedded.stop_for(OUTAGE)
    return Response(status_code=202)


app = create_app(Settings.from_environment())
