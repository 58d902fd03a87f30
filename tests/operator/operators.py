"""Operators of a cluster in memory, and their runs in simulated time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from aioinformer import ObjectKey, Operator, ReconcileContext


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
