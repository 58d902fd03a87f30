"""The applications behind middleware that changes the headers of a response in place."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from http.cookies import SimpleCookie
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from aioinformer import SharedInformerFactory
from aioinformer.adapters.asgi import EventFeed, MetricsEndpoint, Probe, ready
from aioinformer.adapters.asgi.asgi_messages import Message, Receive, Scope, Send
from aioinformer.testing import Cluster, ClusterSource
from tests.adapters.asgi_clients import Application, AsgiClient, connected, make_scope

USERS = ("ann", "ben", "cid")


class SessionCookies:
    """Middleware that adds a cookie in place, as ``SessionMiddleware`` of Starlette does."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                user = MutableHeaders(scope=scope).get("x-user", "")
                MutableHeaders(scope=message).append("Set-Cookie", f"session={user}")
            await send(message)

        await self.app(scope, receive, send_with_cookie)


class UserCookies(BaseHTTPMiddleware):
    """Middleware with a response object of its own."""

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        response = await call_next(request)
        response.set_cookie("user", request.headers.get("x-user", ""))
        return response


STACKS: dict[str, list[Middleware]] = {
    "base": [Middleware(UserCookies)],
    "session": [Middleware(SessionCookies)],
    "gzip": [Middleware(GZipMiddleware, minimum_size=1)],
    "cors": [Middleware(CORSMiddleware, allow_origins=["*"], allow_credentials=True)],
    "all": [
        Middleware(CORSMiddleware, allow_origins=["*"], allow_credentials=True),
        Middleware(GZipMiddleware, minimum_size=1),
        Middleware(SessionCookies),
        Middleware(UserCookies),
    ],
}


@pytest.fixture
async def informers() -> AsyncIterator[SharedInformerFactory]:
    cluster = Cluster()
    cluster.create("pods", {"metadata": {"name": "a"}}, namespace="web")
    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        informers.informer("pods")
        await informers.wait_synced(30)
        yield informers


Make = Callable[[SharedInformerFactory], Application]


def make_closed_feed(informers: SharedInformerFactory) -> Application:
    feed = EventFeed(lambda: informers)
    feed.close()
    return feed


APPLICATIONS: dict[str, tuple[str, Make]] = {
    "probe": ("GET", lambda informers: Probe(lambda: informers, ready, details=False)),
    "metrics": ("GET", lambda _: MetricsEndpoint(lambda _: (b"metric 1\n" * 9, "text/plain"))),
    "head of a feed": ("HEAD", lambda informers: EventFeed(lambda: informers)),
    "feed without informers": ("GET", lambda _: EventFeed(list)),
    "closed feed": ("GET", make_closed_feed),
}


async def request(app: Any, method: str, headers: dict[str, str]) -> httpx.Response:
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        return await client.request(method, "/", headers=headers)


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("name", APPLICATIONS)
async def test_what_middleware_adds_to_a_response_is_in_no_other_response(
    informers: SharedInformerFactory, name: str, stack: str
) -> None:
    method, make = APPLICATIONS[name]
    app = make(informers)
    before = await request(app, method, {"Accept-Encoding": "identity"})
    wrapped = Starlette(routes=[Route("/", app, methods=["GET", "HEAD"])], middleware=STACKS[stack])
    lengths = set[int]()
    for user in USERS:
        headers = {"X-User": user, "Origin": f"https://{user}.example", "Cookie": "a=b"}
        answer = await request(wrapped, method, headers)
        cookies = SimpleCookie("; ".join(answer.headers.get_list("set-cookie")))
        assert {cookie.value for cookie in cookies.values() if cookie.value in USERS} <= {user}
        assert answer.headers.get("access-control-allow-origin", headers["Origin"]) in (
            "*",
            headers["Origin"],
        )
        lengths.add(len(answer.headers.multi_items()))
        assert answer.content == before.content  # httpx has undone the compression
    assert len(lengths) == 1  # the list doesn't grow
    for another in (app, make(informers)):
        after = await request(another, method, {"Accept-Encoding": "identity"})
        assert after.headers.multi_items() == before.headers.multi_items()
        assert after.content == before.content


@pytest.mark.parametrize("name", APPLICATIONS)
async def test_a_list_of_headers_that_was_sent_belongs_to_its_receiver(
    informers: SharedInformerFactory, name: str
) -> None:
    method, make = APPLICATIONS[name]
    app = make(informers)
    seen: list[list[Any]] = []

    async def empty(message: Message) -> None:
        if message["type"] == "http.response.start":
            seen.append(list(message["headers"]))
            message["headers"].clear()

    for _ in range(2):
        await app(make_scope(method), AsgiClient().receive, empty)
    assert seen[0] == seen[1] != []


async def test_a_cookie_of_one_client_of_a_feed_reaches_no_other_client(
    informers: SharedInformerFactory,
) -> None:
    feed = EventFeed(lambda: informers)

    async def with_cookies(scope: Scope, receive: Receive, send: Send) -> None:
        await SessionCookies(feed)(scope, receive, send)

    async with connected(with_cookies) as first, connected(feed) as other:
        assert first.headers["set-cookie"].startswith("session=")
        assert "set-cookie" not in other.headers
