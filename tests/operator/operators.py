"""Operators of a cluster in memory, and their runs in simulated time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from aioinformer import ObjectKey, Operator, ReconcileContext, SharedInformerFactory
from aioinformer.operator.builder import ControllerBuilder
from aioinformer.testing import ClusterSource


@asynccontextmanager
async def running(operator: Operator) -> AsyncGenerator[asyncio.Task[None]]:
    """Run an operator until the block ends; then stop it, and wait for its end."""
    task = asyncio.create_task(operator.run())
    try:
        yield task
    finally:
        operator.stop()
        await asyncio.wait({task})


async def succeed(key: ObjectKey, ctx: ReconcileContext) -> None:
    """Reconcile nothing."""


def make_operator(source: ClusterSource, **keywords: Any) -> Operator:
    return Operator(source, name="foo-operator", **keywords)


def make_builder(source: ClusterSource, resource: Any, **keywords: Any) -> ControllerBuilder:
    return ControllerBuilder(SharedInformerFactory(source), resource, succeed, **keywords)


async def get(operator: Operator, path: str) -> tuple[int, Any]:
    """Return the status and the JSON of an answer."""
    url = f"http://127.0.0.1:{operator.port}{path}"
    async with aiohttp.ClientSession() as http, http.get(url) as response:
        return response.status, await response.json()


async def opened(operator: Operator) -> None:
    async with asyncio.timeout(20):
        while operator.port is None:  # noqa: ASYNC110 - a port has no event
            await asyncio.sleep(0.01)


async def answered(
    operator: Operator, expected: Callable[[dict[str, str]], bool], *, path: str = "/readyz"
) -> Any:
    """Wait for an answer with expected reasons, and return the JSON."""
    async with asyncio.timeout(30):
        while True:
            status, answer = await get(operator, path)
            assert status == (503 if answer["wrong"] else 200)
            if expected(answer["wrong"]):
                return answer
            await asyncio.sleep(0.05)
