"""The body of a refusal, read as far as it is worth, in simulated time; and any body and header."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from aiohttp.base_protocol import BaseProtocol
from hypothesis import given, settings
from hypothesis import strategies as st

from aioinformer._client.http.error_responses import (
    ERROR_BODY_TIMEOUT,
    MAX_ERROR_BYTES,
    build_status,
    read_error_body,
)
from tests.client.virtual_time import in_virtual_time


def body() -> aiohttp.StreamReader:
    """Return an open body without data."""
    loop = asyncio.get_running_loop()
    protocol = BaseProtocol(loop)
    protocol.connection_made(asyncio.Transport())
    return aiohttp.StreamReader(protocol, 2 * MAX_ERROR_BYTES, loop=loop)


async def drip(content: aiohttp.StreamReader) -> None:
    while True:
        content.feed_data(b"x")
        await asyncio.sleep(0.4)


@in_virtual_time
async def test_a_slow_body_is_read_for_a_few_seconds() -> None:
    content, start = body(), asyncio.get_running_loop().time()
    dripping = asyncio.create_task(drip(content))

    read, whole = await read_error_body(content)

    dripping.cancel()
    assert asyncio.get_running_loop().time() - start == pytest.approx(ERROR_BODY_TIMEOUT)
    assert (read, whole) == (b"x" * 13, False)


@in_virtual_time
async def test_a_body_without_data_is_awaited_for_a_few_seconds() -> None:
    start = asyncio.get_running_loop().time()

    assert await read_error_body(body()) == (b"", False)

    assert asyncio.get_running_loop().time() - start == pytest.approx(ERROR_BODY_TIMEOUT)


@in_virtual_time
async def test_a_body_that_ends_is_not_waited_for() -> None:
    content, start = body(), asyncio.get_running_loop().time()
    content.feed_data(b"no")
    content.feed_eof()

    assert await read_error_body(content) == (b"no", True)

    assert asyncio.get_running_loop().time() == start


def test_a_well_known_sentence_in_a_page_is_shown() -> None:
    page = b"<html>400 The plain HTTP request was sent to HTTPS port hunter2</html>"

    assert build_status(400, {}, page).message == "The plain HTTP request was sent to HTTPS port"


@given(st.text() | st.integers().map(str) | st.from_regex(r"\w{3}, \d+ Oct \d+ \d+:\d\d [+-]\d+"))
@settings(deadline=None)
def test_any_wait_is_a_finite_number_or_none(header: str) -> None:
    waits = build_status(503, {"Retry-After": header}, b"").retry_after

    assert waits is None or 0 <= waits < float("inf")


@given(st.binary() | st.binary().map(lambda rest: b'{"kind":"Status","details":' + rest))
@settings(deadline=None)
def test_every_body_becomes_a_status(body: bytes) -> None:
    assert build_status(500, {}, body).message
