"""A member of a group in a process of its own, which prints its shards whenever they change.

    python -m tests.apiserver.programs.group_process KUBECONFIG NAME

Tests kill this process, or stop it for a while.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from aioinformer import Client, ShardGroup

LEASE_DURATION = 4.0


def make_group(client: Client, identity: str) -> ShardGroup:
    """Return a member with durations that are short enough for a test."""
    return ShardGroup(
        client,
        "shop",
        namespace="default",
        identity=identity,
        lease_duration=LEASE_DURATION,
        renew_deadline=3.0,
        retry_period=0.5,
    )


async def main(kubeconfig: str, identity: str) -> None:
    async with (
        Client.connect(kubeconfig=Path(kubeconfig)) as client,
        make_group(client, identity) as group,
    ):
        shards = group.subscribe("printer")
        held = frozenset[int]()
        while True:
            held = await shards.wait_changed(held)
            shards.acknowledge(held)
            sys.stdout.write(" ".join(map(str, sorted(held))) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
