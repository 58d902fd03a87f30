"""The body of a refusal, read as far as it is worth: in simulated time."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from aiohttp.base_protocol import BaseProtocol

from aioinformer._client.http.error_responses import ERROR_CAP, ERROR_SECONDS, beginning
from tests.client.virtual import virtually


def body() -> aiohttp.StreamReader:
    """An open one, of which nothing has come yet."""
    loop = asyncio.get_running_loop()
    protocol = BaseProtocol(loop)
    protocol.connection_made(asyncio.Transport())
    return aiohttp.StreamReader(protocol, 2 * ERROR_CAP, loop=loop)


async def drip(content: aiohttp.StreamReader) -> None:
    while True:
        content.feed_data(b"x")
        await asyncio.sleep(0.4)


@virtually
async def test_a_body_that_drips_is_read_for_a_few_seconds() -> None:
    content, start = body(), asyncio.get_running_loop().time()
    dripping = asyncio.create_task(drip(content))

    read, whole = await beginning(content)

    dripping.cancel()
    assert asyncio.get_running_loop().time() - start == pytest.approx(ERROR_SECONDS)
    assert (read, whole) == (b"x" * 13, False)


@virtually
async def test_a_body_that_never_comes_is_waited_for_as_long() -> None:
    start = asyncio.get_running_loop().time()

    assert await beginning(body()) == (b"", False)

    assert asyncio.get_running_loop().time() - start == pytest.approx(ERROR_SECONDS)


@virtually
async def test_a_body_that_ends_is_not_waited_for() -> None:
    content, start = body(), asyncio.get_running_loop().time()
    content.feed_data(b"no")
    content.feed_eof()

    assert await beginning(content) == (b"no", True)

    assert asyncio.get_running_loop().time() == start


@virtually
async def test_of_a_long_body_the_beginning_is_kept() -> None:
    content = body()
    content.feed_data(b"x" * (ERROR_CAP + 1))
    content.feed_eof()

    assert await beginning(content) == (b"x" * ERROR_CAP, False)
