"""Headers that a program adds to requests, fixed or asked for each."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Mapping
from itertools import count

import pytest
from aiohttp import web

from aioinformer import Client
from aioinformer.errors import FetchError
from tests.client.kubeconfigs import error_chain_text
from tests.client.servers import http_server

CANARY = "hunter2"


async def test_fixed_headers_are_copied_when_they_are_given() -> None:
    async def team(request: web.Request) -> web.Response:
        return web.Response(text=request.headers["X-Team"])

    given = {"X-Team": "shop"}
    async with http_server(team) as server, Client(server, headers=given) as client:
        given["X-Team"] = "other"

        assert await client.get_raw("/") == b"shop"


@pytest.mark.parametrize("name", ["X Team", "X-Team ", "", "X-Team:", "X-Té", "X(Team)"])
def test_a_name_that_no_header_can_have_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match="is no name of a header"):
        Client("http://127.0.0.1:1", headers={name: "shop"})


async def test_a_function_is_called_for_each_request() -> None:
    async def number(request: web.Request) -> web.Response:
        return web.Response(text=request.headers["X-Number"])

    numbers = count(1)
    headers = lambda: {"X-Number": str(next(numbers))}  # noqa: E731 - as programs write it
    async with http_server(number) as server, Client(server, headers=headers) as client:
        assert [await client.get_raw("/"), await client.get_raw("/")] == [b"1", b"2"]


async def test_the_authorization_and_the_accept_header_are_not_overwritten() -> None:
    async def shown(request: web.Request) -> web.Response:
        return web.Response(text=request.headers["Authorization"])

    def headers() -> Mapping[str, str]:
        return {"authorization": "Bearer other", "accept": "text/html"}

    async with (
        http_server(shown) as server,
        Client(server, token="mine", headers=headers) as client,
    ):
        assert await client.get_raw("/") == b"Bearer mine"


@pytest.mark.parametrize("returned", [{"X-Key": f"{CANARY}\r\nX-Evil: 1"}, None, {"X-Key": 1}])
async def test_a_function_that_fails_keeps_the_request_from_being_sent(returned: object) -> None:
    requests: list[str] = []

    async def ask(request: web.Request) -> web.Response:
        requests.append(request.path)
        return web.Response()

    def headers() -> Mapping[str, str]:
        return returned  # type: ignore[return-value]  # what a program without types may do

    async with http_server(ask) as server, Client(server, headers=headers) as client:
        with pytest.raises(
            FetchError, match=r"headers= failed with \w+Error; nothing was"
        ) as caught:
            await client.get_raw("/")

    assert (requests, caught.value.phase) == ([], "credentials")
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize("kind", [ValueError, asyncio.CancelledError, BaseException])
async def test_an_error_of_a_function_that_quotes_a_token_is_named_by_class_and_line(
    kind: type[BaseException],
) -> None:
    def headers() -> Mapping[str, str]:
        raise kind(f"cannot parse token {CANARY}")

    async with Client("http://127.0.0.1:1", headers=headers) as client:
        with pytest.raises(FetchError) as caught:
            await client.get_raw("/version")

    shown = "".join(traceback.format_exception(caught.value))
    assert CANARY not in shown + error_chain_text(caught.value)
    line = headers.__code__.co_firstlineno + 1
    assert str(caught.value).endswith(
        f"failed with {kind.__name__}; nothing was sent (raised at test_headers.py:{line})"
    )
