"""The identity of a cluster: the UID of kube-system, and the endpoint with its authorities."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import trustme
from aiohttp import web

from aioinformer import Client
from tests.client.accelerated_time import in_accelerated_time
from tests.client.servers import http_server

BODY = b'{"kind":"Namespace","metadata":{"name":"kube-system","uid":"u-1"}}'


class Server:
    """A server with this answer about kube-system; without one, it does not answer."""

    body: bytes | None = BODY
    code = 200

    async def answer(self, request: web.Request) -> web.Response:
        assert request.path == "/api/v1/namespaces/kube-system"
        if self.body is None:
            await asyncio.Event().wait()
        return web.Response(body=self.body, status=self.code)


@asynccontextmanager
async def running() -> AsyncGenerator[tuple[Server, Client]]:
    server = Server()
    async with http_server(server.answer) as url, Client(url) as client:
        yield server, client


async def endpoint(server: str, *authorities: trustme.CA) -> str:
    """Return the endpoint of a client of a server that does not listen."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for each in authorities:
        context.load_verify_locations(cadata=each.cert_pem.bytes().decode())
    async with Client(server, ssl=context) as client:
        found = await client.cluster_identity()
    assert found.uid == ""
    return found.endpoint


async def test_a_cluster_is_known_by_the_uid_of_kube_system() -> None:
    async with running() as (_, client):
        assert (await client.cluster_identity()).uid == "u-1"


@pytest.mark.parametrize(
    ("code", "body"),
    [
        *((200, each) for each in (b"<html>", b"{}", b'{"metadata":{"uid":7}}', b"\xff")),
        (200, b'{"a":' + b"[" * 50_000),
        (200, b'{"metadata":{"uid":"\xff"}}'),
        (403, BODY),
    ],
    ids=["page", "empty", "number", "no UTF-8", "deep", "no UTF-8 inside", "refused"],
)
async def test_an_answer_that_is_no_namespace_leaves_the_endpoint(code: int, body: bytes) -> None:
    async with running() as (server, client):
        known = await client.cluster_identity()
        server.code, server.body = code, body
        found = await client.cluster_identity()

    assert (found.uid, found.endpoint) == ("", known.endpoint)


@in_accelerated_time
async def test_a_server_that_does_not_answer_leaves_the_endpoint_after_a_few_seconds() -> None:
    async with running() as (server, client):
        server.body, start = None, asyncio.get_running_loop().time()
        assert (await client.cluster_identity()).uid == ""
    assert asyncio.get_running_loop().time() - start == pytest.approx(3.0, abs=0.5)


async def test_url_and_authorities_identify_the_endpoint() -> None:
    first, second = trustme.CA(), trustme.CA()
    one, two = "https://127.0.0.1:1", "https://127.0.0.1:2"
    endpoints = {
        await endpoint(server, *authorities)
        for server in (one, two)
        for authorities in ((), (first,), (second,), (first, second))
    }

    assert len(endpoints) == 8
    assert await endpoint(one, first, second) == await endpoint(one, second, first)
