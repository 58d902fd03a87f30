"""An operator as a program of its own, for the tests of signals and exit codes.

    python -m tests.operator.program SERVER [--seconds N] [--grace N] [--lease NS/NAME] [...]

Each run of the reconciler takes ``--seconds``, and prints a line when it begins and when it ends.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable

from aioinformer import Client, ObjectKey, Operator, ReconcileContext


def make_reconcile(seconds: float) -> Callable[[ObjectKey, ReconcileContext], Awaitable[None]]:
    async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> None:
        print("began", key, flush=True)  # noqa: T201 - read by the test
        await asyncio.sleep(seconds)
        print("ended", key, flush=True)  # noqa: T201

    return reconcile


def main() -> None:
    """Run the operator."""
    parser = argparse.ArgumentParser()
    parser.add_argument("server")
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--grace", type=float, default=20.0)
    parser.add_argument("--lease")
    parser.add_argument("--port", type=int)
    parser.add_argument("--resource", default="configmaps")
    given = parser.parse_args()
    operator = Operator(
        Client(given.server),
        name="program",
        leader_election=given.lease,
        port=given.port,
        shutdown_timeout=given.grace,
    )
    operator.controller(given.resource, make_reconcile(given.seconds))
    operator.main()


if __name__ == "__main__":
    main()
