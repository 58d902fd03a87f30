"""The settings of the application: the cluster, the resources to show, and limits."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from aioinformer import BackoffPolicy
from aioinformer.adapters.asgi import FRESH

__all__ = ["Settings"]

RESOURCES = ("pods", "deployments", "services", "nodes")
LOCAL = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one run of the application."""

    cluster: bool = False
    """True to show kubectl's current cluster, False for an embedded one."""
    kubeconfig: str | None = None
    """The kubeconfig file; by default found as in kubectl."""
    namespace: str | None = None
    """The only namespace to show; ``None`` for all."""
    resources: tuple[str, ...] = RESOURCES
    """Names of resources, as in kubectl. Only the metadata of a Secret is ever served."""
    hosts: tuple[str, ...] = LOCAL
    """Host names that the application accepts. Others are rejected, because a web site could
    resolve its own name to this machine and read the data, which no login protects."""
    fresh_within: float | None = FRESH
    """Seconds without proof of freshness after which ``/readyz`` fails; see ``ready``."""
    backoff: BackoffPolicy | None = None
    """Waits after failures. By default the library's own, or short ones for an embedded cluster."""
    objects: int = 250
    """The approximate number of pods in the embedded cluster."""
    rate: float = 12.0
    """Writes a second in the embedded cluster."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """Return the settings of ``uvicorn examples.fastapi_app.app:app``.

        With ``KUBECONFIG``, or inside a cluster, the application shows that cluster.
        ``APP_NAMESPACE`` is the only namespace, ``APP_RESOURCES`` the resources to show, and
        ``APP_HOSTS`` further host names; the latter two are separated by commas.
        """
        kubeconfig = environment.get("KUBECONFIG") or None
        return cls(
            cluster=kubeconfig is not None or "KUBERNETES_SERVICE_HOST" in environment,
            namespace=environment.get("APP_NAMESPACE") or None,
            resources=_names(environment.get("APP_RESOURCES", "")) or RESOURCES,
            hosts=(*LOCAL, *_names(environment.get("APP_HOSTS", ""))),
        )


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
