"""The options of an operator: checked once, in one frozen object that its parts share."""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import dataclass
from typing import TypedDict

from aioinformer._core.arguments import check_field_manager, check_int, check_seconds
from aioinformer._core.instrumentation import Metrics, Tracing
from aioinformer._core.objects.kube_object import ObjectKey
from aioinformer._informers.options import InformerKeywords
from aioinformer._runtime.reporting.error_hook import check_hook
from aioinformer._runtime.reporting.problem import OnError
from aioinformer.errors import UsageError
from aioinformer.leaderelection.state.election import ElectionTimes

MAX_PORT = 65535


class OperatorKeywords(TypedDict, total=False):
    """The options as keywords, which ``OperatorOptions`` documents."""

    namespace: str | None
    leader_election: str | None
    identity: str
    lease_duration: float
    renew_deadline: float
    retry_period: float
    port: int | None
    host: str | None
    shutdown_timeout: float
    metrics: Metrics | None
    tracing: Tracing | None
    on_error: OnError | None
    informer_options: InformerKeywords | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorOptions:
    """The options of an ``Operator``, which it takes as keywords."""

    name: str
    """The name for Events and logs. It is also the field manager of ``ctx.apply``, so two operators
    need two names, and a renamed operator leaves the fields of its old name behind."""
    namespace: str | None = None
    """The only namespace whose objects are read; ``None`` for all."""
    leader_election: str | None = None
    """``namespace/name`` of the Lease for which the replicas compete; ``None`` for one replica, or
    if all controllers have ``shards=``."""
    identity: str = ""
    """The replica's own name; by default ``$POD_NAME`` or the host's name, and a random part."""
    lease_duration: float = 15.0
    """As for ``LeaderElector``."""
    renew_deadline: float = 10.0
    """As for ``LeaderElector``."""
    retry_period: float = 2.0
    """As for ``LeaderElector``."""
    port: int | None = None
    """The port that serves ``/healthz``, ``/livez``, ``/readyz`` and ``/metrics`` over HTTP; 0 for
    a free port; ``None`` for no server."""
    host: str | None = None
    """The address of the port; ``None`` for all addresses, which a kubelet needs."""
    shutdown_timeout: float = 25.0
    """Seconds that runs may take to finish after ``stop``. Choose less than the
    ``terminationGracePeriodSeconds`` of the pod, which is 30 s by default: Events and the lease are
    sent in between."""
    metrics: Metrics | None = None
    """Receives the numbers of informers, queues and controllers; ``/metrics`` serves those of a
    ``PrometheusMetrics``."""
    tracing: Tracing | None = None
    """Makes spans of requests and runs."""
    on_error: OnError | None = None
    """Called in the event loop with every ``Problem``. Must be quick."""
    informer_options: InformerKeywords | None = None
    """The options of the informers; see ``InformerOptions``."""

    def __post_init__(self) -> None:
        if not self.name:
            raise UsageError("an Operator needs a name: Events and the lease show it")
        check_field_manager("name", self.name)  # the field manager of the applies of reconcilers
        if self.leader_election is not None:
            _check_lease(self.leader_election)
        ElectionTimes(
            lease_duration=self.lease_duration,
            renew_deadline=self.renew_deadline,
            retry_period=self.retry_period,
        )
        if self.port is not None:
            check_int("port", self.port)
            if not 0 <= self.port <= MAX_PORT:
                raise ValueError(f"port must be from 0 to {MAX_PORT}, not {self.port}")
        check_seconds("shutdown_timeout", self.shutdown_timeout, zero="no wait")
        check_hook(self.on_error)


def _check_lease(lease: object) -> None:
    namespace, _, name = lease.partition("/") if isinstance(lease, str) else ("", "", "")
    if not (namespace and name):
        raise UsageError(
            f"leader_election must be the namespace and the name of a Lease, such as "
            f"'default/{name or namespace or 'my-operator'}', not {lease!r}"
        )
    ObjectKey.parse(str(lease))


def default_identity() -> str:
    """Return a name that no other replica has, nor this one before its restart: with its old name,
    it would have to wait for its own old lease.
    """
    host = os.environ.get("POD_NAME") or socket.gethostname() or "unknown"
    return f"{host}_{uuid.uuid4().hex[:12]}"
