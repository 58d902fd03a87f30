"""Redirections of every kind of request: none is followed, so that no credentials are sent on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from aioinformer import Client, SharedInformerFactory
from aioinformer.errors import InformerError, SyncTimeout
from tests.client.servers import http_server

WEB_0: dict[str, Any] = {"metadata": {"name": "web-0", "namespace": "web"}}
CODES = (301, 302, 303, 307, 308)


async def watch(client: Client) -> None:
    async with client.api("pods").watch(resource_version="5") as events:
        await anext(aiter(events))


async def read_log(client: Client) -> None:
    async with client.api("pods").log("web/web-0"):
        pass


async def inform(client: Client) -> None:
    async with SharedInformerFactory(client) as informers:
        informers.informer("pods")
        await informers.wait_synced(timeout=0.3)


REQUESTS: dict[str, Callable[[Client], Awaitable[object]]] = {
    "list": lambda client: client.api("pods").list(),
    "watch": watch,
    "get": lambda client: client.api("pods").get("web/web-0"),
    "log": read_log,
    "create": lambda client: client.api("pods").create(WEB_0),
    "patch": lambda client: client.api("pods").patch("web/web-0", {}),
    "delete": lambda client: client.api("pods").delete("web/web-0"),
    "discovery": lambda client: client.resource("widgets"),
    "raw": lambda client: client.get_raw("/version"),
    "informer": inform,
}


REPEATED = ("watch", "informer")
"""Requests that are repeated after an error, which takes a second."""


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        *((kind, code) for kind in REQUESTS if kind not in REPEATED for code in CODES),
        *((kind, 307) for kind in REPEATED),
    ],
)
async def test_a_redirection_is_not_followed_and_its_error_names_the_host(
    kind: str, code: int
) -> None:
    elsewhere: list[web.Request] = []
    received: list[web.Request] = []

    async def steal(request: web.Request) -> web.Response:
        elsewhere.append(request)
        return web.json_response({})

    async with http_server(steal) as other:

        async def redirect(request: web.Request) -> web.Response:
            received.append(request)
            return web.Response(status=code, headers={"Location": f"{other}{request.path_qs}"})

        async with http_server(redirect) as server, Client(server, token="canary") as client:
            with pytest.raises(InformerError) as caught:
                await REQUESTS[kind](client)

    assert not elsewhere
    assert received
    assert "canary" not in str(caught.value)
    assert isinstance(caught.value, SyncTimeout) or "credentials are not sent there" in str(
        caught.value
    )
