"""Responses that are small on the wire and huge once they are decompressed.

A proxy, or an aggregated API server, can send such a response to each kind of request. None takes
more memory than a few chunks, or holds the event loop.
"""

from __future__ import annotations

import tracemalloc
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache

import pytest
from aiohttp import web

from aioinformer import Client, KubeObject
from aioinformer.errors import InformerError
from tests.client.servers import http_server
from tests.cpu_time import short_turns

HUGE = 96 * 1024 * 1024
"""Bytes of a decompressed response: half as many again as the longest that is read."""
MAX_MEMORY = 80 * 1024 * 1024
"""Bytes, of which a response that is read as a whole may take 64 MB."""
LONG_TURN = 0.5
"""Seconds of CPU time of a turn of the loop, with tracemalloc, which slows it down."""

HEAD = b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":['
ITEM = b'{"metadata":{"name":"a","namespace":"web","uid":"u","resourceVersion":"5"},"data":"'


@cache  # of some hundred kB each
def bomb(begin: bytes, filling: bytes, end: bytes) -> bytes:
    """Return the gzip form of a document with ``filling`` for almost all of ``HUGE`` bytes."""
    packer = zlib.compressobj(1, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    chunk = filling * (1024 * 1024 // len(filling))
    parts = [packer.compress(begin)]
    parts += [packer.compress(chunk) for _ in range(HUGE // len(chunk))]
    return b"".join([*parts, packer.compress(end), packer.flush()])


@asynccontextmanager
async def serving(body: bytes, status: int) -> AsyncGenerator[Client]:
    async def answer(request: web.Request) -> web.Response:
        headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
        return web.Response(body=body, status=status, headers=headers)

    async with http_server(answer) as server, Client(server) as client:
        yield client


async def read_list(client: Client) -> int:
    return len(await client.api("pods").list())


async def read_object(client: Client) -> KubeObject:
    return await client.api("pods").get("web/a")


async def read_watch(client: Client) -> None:
    async with client.api("pods").watch(resource_version="5") as watch:
        async for _ in watch:
            pass


async def create(client: Client) -> KubeObject:
    return await client.api("pods", namespace="web").create({"metadata": {"name": "a"}})


async def discover(client: Client) -> object:
    return await client.resource("widgets")


async def read_raw(client: Client) -> bytes:
    return await client.get_raw("/version")


Read = Callable[[Client], Awaitable[object]]
READS: dict[str, Read] = {
    "list": read_list,
    "object": read_object,
    "watch": read_watch,
    "write": create,
    "discovery": discover,
    "raw": read_raw,
}
BODIES: dict[str, tuple[bytes, bytes, bytes]] = {
    "white space": (b"{", b" ", b"}"),
    "a text": (b'{"metadata":{"name":"', b"a", b'"}}'),
    "nothing that ends": (b'{"type":"ADDED","object":{"x":', b"[", b""),
}


@pytest.mark.parametrize(
    ("filling", "status"), [*((each, 200) for each in BODIES), ("a text", 403)]
)
@pytest.mark.parametrize("kind", READS)
async def test_a_response_that_is_huge_when_it_is_decompressed_is_an_error_of_its_request(
    kind: str, filling: str, status: int
) -> None:
    async with serving(bomb(*BODIES[filling]), status) as client:
        tracemalloc.start()
        try:
            async with short_turns(LONG_TURN):
                with pytest.raises(InformerError) as caught:
                    await READS[kind](client)
            assert tracemalloc.get_traced_memory()[1] < MAX_MEMORY
        finally:
            tracemalloc.stop()
    assert len(str(caught.value)) < 2_000


async def test_a_list_with_much_white_space_between_its_items_is_read() -> None:
    item = ITEM + b'x"}'
    async with serving(bomb(HEAD + item + b",", b" ", item + b"]}"), 200) as client:
        tracemalloc.start()
        try:
            assert await read_list(client) == 2
            assert tracemalloc.get_traced_memory()[1] < MAX_MEMORY
        finally:
            tracemalloc.stop()
