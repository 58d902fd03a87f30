"""The settings of a replica, from the command line."""

from __future__ import annotations

import argparse
import os
import socket
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Settings"]

LEASE = "default/sample-controller"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a replica. Times are in seconds."""

    identity: str
    """The replica's unique name: a pod's name, for example."""
    kubeconfig: str | None = None
    """The kubeconfig file; by default ``$KUBECONFIG``, and so on."""
    namespace: str | None = None
    """The only namespace whose Foos are reconciled."""
    lease: str = LEASE
    """Namespace and name of the Lease for which the replicas compete."""
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    concurrency: int = 2
    """The most Foos that are reconciled at once."""

    @classmethod
    def parse(cls, arguments: Sequence[str] | None = None) -> Settings:
        """Return the settings of a command line."""
        parser = argparse.ArgumentParser(
            prog="python -m examples.sample_controller",
            description="Keep a Workload for every Foo. Of several replicas one leads.",
        )
        parser.add_argument("--identity", default=_identity(), help="this replica's own name")
        parser.add_argument("--kubeconfig", metavar="FILE", help="the kubeconfig of the cluster")
        parser.add_argument("-n", "--namespace", help="the only namespace to reconcile")
        parser.add_argument("--lease", default=LEASE, metavar="NAMESPACE/NAME")
        parser.add_argument("--lease-duration", type=float, default=15.0, metavar="SECONDS")
        parser.add_argument("--renew-deadline", type=float, default=10.0, metavar="SECONDS")
        parser.add_argument("--retry-period", type=float, default=2.0, metavar="SECONDS")
        parser.add_argument("--concurrency", type=int, default=2)
        return cls(**vars(parser.parse_args(arguments)))


def _identity() -> str:
    """Return a name that no other replica has, nor this one before its restart.

    In a pod, the host name is the pod's name.
    """
    return os.environ.get("POD_NAME") or f"{socket.gethostname()}-{uuid.uuid4().hex[:8]}"
