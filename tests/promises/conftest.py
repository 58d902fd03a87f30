"""A server with pods and a client of it, with short waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from aioinformer import BackoffPolicy, Client
from aioinformer.testing import ApiServer

FAST_BACKOFF = BackoffPolicy(initial=0.01, maximum=0.05)
"""Short waits after failures, so that a test of many failures doesn't take minutes."""


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer() as server:
        yield server


@pytest.fixture
async def client(server: ApiServer) -> AsyncIterator[Client]:
    async with Client(server.url) as client:
        yield client


async def wait_until(condition: Callable[[], bool], *, timeout: float = 30.0) -> None:
    """Run the loop until a condition is true."""
    async with asyncio.timeout(timeout):
        while not condition():  # noqa: ASYNC110 - the condition is about the other side of a socket
            await asyncio.sleep(0.002)
