"""A member of a group as a program: ``python -m tests.operator.member SERVER IDENTITY SECONDS``.

Each run of its reconciler takes this time, as in ``tests.operator.program``.
"""

from __future__ import annotations

import sys

from aioinformer import Client, Operator, ShardGroup
from tests.operator.program import make_reconcile


def main() -> None:
    """Run the operator."""
    server, identity, seconds = sys.argv[1:]
    client = Client(server)
    group = ShardGroup(client, "program", namespace="default", identity=identity, shards=8)
    operator = Operator(client, name="program")
    operator.controller("configmaps", make_reconcile(float(seconds)), shards=group)
    operator.main()


if __name__ == "__main__":
    main()
