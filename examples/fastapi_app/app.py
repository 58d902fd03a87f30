"""The application: what it is made of, and how it answers when something is wrong."""

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
from aioinformer.adapters.asgi import EventFeed, Probe, alive, ready
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
"""Seconds between two sends to one page: eyes see no more, and a busy object is sent once."""
PULSE = 1.0
"""Seconds between two times that pages are told of the informers themselves."""
OUTAGE = 5.0
"""Seconds that the embedded API server is gone when somebody asks for it."""

HEADERS = (
    # Scripts and styles from here alone; nothing inline, nothing from another host, no frames.
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    b"img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def create_app(settings: Settings) -> FastAPI:
    """The application, for one lifespan."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with live(settings, PrometheusMetrics(registry), feed) as running:
            app.state.live = running
            yield

    def informers() -> Iterable[SharedInformer]:
        running: Live = app.state.live
        return running.informers.values()

    registry = CollectorRegistry()
    app = FastAPI(
        title="aioinformer", lifespan=lifespan, docs_url=None, redoc_url=None
    )  # those pages come from another host
    feed = EventFeed(
        informers,
        encode=row,
        interval=INTERVAL,
        heartbeat=PULSE,
        pulse=lambda: app.state.live.news.frame(),
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
    app.add_middleware(Sealed)
    return app


async def _explain(status: int, request: Request, error: Exception) -> JSONResponse:
    """The library's own words: they name what was wrong, and no secret."""
    del request
    headers = {"Retry-After": "1"} if status == 503 else None
    return JSONResponse({"detail": str(error)}, status_code=status, headers=headers)


class Sealed:
    """Middleware: browsers take nothing from elsewhere, and guess no types."""

    def __init__(self, inner: ASGIApp) -> None:
        """Serve with ``inner``."""
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message.get("headers", []),
                    (b"content-security-policy", HEADERS),
                    (b"x-content-type-options", b"nosniff"),
                    (b"referrer-policy", b"no-referrer"),
                ]
            await send(message)

        await self._inner(scope, receive, sealed)


router = APIRouter()


@router.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
async def page() -> FileResponse:
    """The page."""
    return FileResponse(STATIC / "page.html", headers={"Cache-Control": "no-cache"})


@router.get("/metrics", include_in_schema=False)
def metrics(request: Request) -> Response:
    """For Prometheus; in a thread, since its library may take its time."""
    return Response(generate_latest(request.app.state.registry), media_type=CONTENT_TYPE_LATEST)


@router.get("/history", include_in_schema=False)
async def history(live: Running) -> Response:
    """The last minute, for the charts of a page that is opened."""
    body = msgspec.json.encode(list(live.history.samples))
    return Response(body, media_type="application/json")


@router.post("/embedded/outage", status_code=202)
async def outage(live: Running, request: Request) -> Response:
    """Stop the embedded API server for a while, to see what happens. Never a cluster's.

    The header keeps other web sites out: their pages can't send it here.
    """
    if live.embedded is None or request.headers.get("x-requested-with") != "page":
        return Response(status_code=403)
    live.embedded.stop_for(OUTAGE)
    return Response(status_code=202)


app = create_app(Settings.from_environment())
