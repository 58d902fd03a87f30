"""A controller on a shard group in a process of its own, which prints when it reconciles.

    python -m tests.apiserver.programs.sharded_process KUBECONFIG NAME

For each widget it writes its name and the widget's label ``version`` into an annotation. It prints
the key, and the times of the system's monotonic clock at which the reconcile began and at which
the write was sent, once the write has succeeded. Tests kill this process, or stop it for a while.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from aioinformer import (
    Client,
    Controller,
    ObjectKey,
    ReconcileContext,
    ShardGroup,
)

ANNOTATION = "example.com/reconciled"
LEASE_DURATION = 4.0
RENEW_DEADLINE = 2.5
RETRY_PERIOD = 0.4


async def main(kubeconfig: str, identity: str) -> None:
    async with (
        Client.connect(kubeconfig=Path(kubeconfig)) as client,
        ShardGroup(
            client,
            "work",
            namespace="default",
            identity=identity,
            shards=16,
            lease_duration=LEASE_DURATION,
            renew_deadline=RENEW_DEADLINE,
            retry_period=RETRY_PERIOD,
        ) as group,
    ):
        widgets = await client.resource("widgets.example.com")

        async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
            if ctx.obj is None:
                return
            wanted = f"{identity} {ctx.obj.labels.get('version', '')}"
            if ctx.obj.annotations.get(ANNOTATION) == wanted:
                return
            began = time.monotonic()
            await asyncio.sleep(0.05)
            patch = {"metadata": {"annotations": {ANNOTATION: wanted}}}
            sent = time.monotonic()
            await ctx.api(widgets).patch(key, patch)
            sys.stdout.write(f"{key} {began} {sent}\n")
            sys.stdout.flush()

        await Controller(widgets, reconcile, shards=group, name="sharded").run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
