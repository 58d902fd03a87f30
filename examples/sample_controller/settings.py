"""The settings of a replica, from the command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Settings"]

LEASE = "default/sample-controller"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a replica."""

    kubeconfig: str | None = None
    """The kubeconfig file; by default ``$KUBECONFIG``, and so on."""
    concurrency: int = 2
    """The most Foos that are reconciled at once."""
    operator: dict[str, Any] = field(default_factory=dict[str, Any])
    """The options of the ``Operator``."""

    @classmethod
    def parse(cls, arguments: Sequence[str] | None = None) -> Settings:
        """Return the settings of a command line."""
        parser = argparse.ArgumentParser(
            prog="python -m examples.sample_controller",
            description="Keep a Workload for every Foo. Of several replicas one leads.",
        )
        parser.add_argument("--kubeconfig", metavar="FILE", help="the kubeconfig of the cluster")
        parser.add_argument("--concurrency", type=int, default=2)
        operator = parser.add_argument_group("options of the operator")
        operator.add_argument("--identity", default="", help="this replica's own name")
        operator.add_argument("-n", "--namespace", help="the only namespace to reconcile")
        operator.add_argument(
            "--lease", dest="leader_election", default=LEASE, metavar="NAMESPACE/NAME"
        )
        operator.add_argument("--port", type=int, help="the port of the probes")
        for name, seconds in (
            ("--lease-duration", 15.0), ("--renew-deadline", 10.0), ("--retry-period", 2.0),
        ):  # fmt: skip
            operator.add_argument(name, type=float, default=seconds, metavar="SECONDS")
        given = vars(parser.parse_args(arguments))
        kubeconfig, concurrency = given.pop("kubeconfig"), given.pop("concurrency")
        return cls(kubeconfig=kubeconfig, concurrency=concurrency, operator=given)
