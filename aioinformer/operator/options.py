"""The options of an operator, checked, in one object that its parts share."""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import dataclass

from aioinformer._core.arguments import check_field_manager, check_int, check_seconds
from aioinformer._core.instrumentation import Metrics, Tracing
from aioinformer._core.objects.kube_object import ObjectKey
from aioinformer._runtime.reporting.error_hook import check_hook
from aioinformer._runtime.reporting.problem import OnError
from aioinformer.errors import UsageError
from aioinformer.leaderelection.state.election import ElectionTimes

SHUTDOWN_TIMEOUT = 25.0
"""Seconds that runs may take to finish after a signal: the kubelet kills a pod after 30 s by
default, and Events and the lease are sent in between."""

MAX_PORT = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorOptions:
    """The arguments of ``Operator``, checked."""

    name: str
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
