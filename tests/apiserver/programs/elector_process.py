"""A candidate for a Lease in a process of its own, which prints the progress of its election.

    python -m tests.apiserver.programs.elector_process KUBECONFIG NAME

It prints ``leading 3/b``, then ``step`` with the time of the system's monotonic clock, twenty times
a second, and ``lost`` when it has lost the lease. Tests kill this process, or stop it for a while.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from aioinformer import Client, LeaderElector
from aioinformer._core.objects.resources import find_built_in
from aioinformer.errors import LeadershipLost

LEASE_DURATION = 3.0
RENEW_DEADLINE = 2.0
RETRY_PERIOD = 0.3


def make_elector(client: Client, identity: str) -> LeaderElector:
    """Return a candidate with durations that are short enough for a test."""
    return LeaderElector(
        client.api(find_built_in("leases"), namespace="default"),
        "controller",
        identity=identity,
        lease_duration=LEASE_DURATION,
        renew_deadline=RENEW_DEADLINE,
        retry_period=RETRY_PERIOD,
    )


def print_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def main(kubeconfig: str, identity: str) -> None:
    async with Client.connect(kubeconfig=Path(kubeconfig)) as client:
        elector = make_elector(client, identity)

        async def body() -> None:
            print_line(f"leading {elector.fencing}")
            while True:
                print_line(f"step {time.monotonic()}")
                await asyncio.sleep(0.05)

        try:
            await elector.run(body)
        except LeadershipLost:
            print_line("lost")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
