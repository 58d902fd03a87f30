"""An operator as a program of its own, for the tests of signals and exit codes.

    python -m tests.operator.program SERVER [--seconds N] [--grace N] [--lease NS/NAME] [...]
                                     [--member IDENTITY]

Each run of the reconciler takes ``--seconds``, and prints a line when it begins and when it ends.
"""

from __future__ import annotations

import argparse
import asyncio

from aioinformer import Client, ObjectKey, Operator, ReconcileContext


def main() -> None:
    """Run the operator."""
    parser = argparse.ArgumentParser()
    parser.add_argument("server")
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--grace", type=float, default=20.0)
    parser.add_argument("--lease")
    parser.add_argument("--port", type=int)
    parser.add_argument("--resource", default="configmaps")
    parser.add_argument("--member", help="divide the objects in a group, under this identity")
    given = parser.parse_args()

    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        print("began", key, flush=True)  # noqa: T201 - read by the test
        await asyncio.sleep(given.seconds)
        print("ended", key, flush=True)  # noqa: T201

    client = Client(given.server)
    operator = Operator(
        client,
        name="program",
        leader_election=given.lease,
        port=given.port,
        shutdown_timeout=given.grace,
    )
    if given.member is None:
        operator.controller(given.resource, reconcile)
    else:
        from aioinformer import ShardGroup

        group = ShardGroup(client, "program", namespace="default", identity=given.member, shards=8)
        operator.controller(given.resource, reconcile, shards=group)
    operator.main()


if __name__ == "__main__":
    main()
