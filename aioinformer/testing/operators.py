"""Operators that run for the length of a ``with`` block, in tests and simulations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the caller has made one
    from aioinformer.operator.operator import Operator


@asynccontextmanager
async def running_operator(
    operator: Operator, *, timeout: float | None = 10.0
) -> AsyncGenerator[Operator]:
    """Run an operator that was not started yet while the block runs, and stop it afterwards.

    The block begins when the informers are synced, which may be before the operator leads: ``await
    cluster.settled(operator)`` waits for the work. ``timeout`` is in seconds of the event loop's
    time until the informers are synced; ``None`` for no limit.

    Raises:
        SyncTimeout: the informers were not synced within that time.
        NotRunning: the operator ended before; the ``__cause__`` is its error.
        Exception: after the block: the error that has ended the operator.

    Example::

        from aioinformer.testing import ClusterSource, running_operator

        async def reconcile(key: ObjectKey, run: ReconcileContext) -> None:
            child = {"apiVersion": "v1", "kind": "ConfigMap"}
            await run.apply(child | {"metadata": {"name": key.name}})

        operator = Operator(ClusterSource(cluster), name="shop-operator")
        operator.controller("pods", reconcile)
        async with running_operator(operator):
            cluster.create("pods", {"metadata": {"name": "tea"}})
            await cluster.settled(operator)
            assert cluster.get("configmaps", "tea")
    """
    task = asyncio.create_task(operator.run(), name=f"{operator!r}")
    try:
        await operator.wait_synced(timeout)
        yield operator
    finally:
        operator.stop()
        await asyncio.wait({task})
        failed = not task.cancelled() and task.exception() is not None
    if failed:
        task.result()
