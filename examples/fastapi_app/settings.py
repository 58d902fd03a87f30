"""What the application shows, and of which cluster."""

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
    """One way to run the application."""

    cluster: bool = False
    """Whether to show the cluster that kubectl would speak to, rather than an embedded one."""
    kubeconfig: str | None = None
    """The file that names the cluster; by default what ``$KUBECONFIG`` says, and so on."""
    namespace: str | None = None
    """The only one to show; ``None`` for all of them."""
    resources: tuple[str, ...] = RESOURCES
    """Names as kubectl takes them. Of a Secret, nothing but its metadata is ever served."""
    hosts: tuple[str, ...] = LOCAL
    """Names that the application answers to. Others are refused: a web site could resolve its
    own name to this machine, and read what no login protects."""
    fresh_within: float | None = FRESH
    """Seconds without proof of freshness after which it isn't ready; see ``ready``."""
    backoff: BackoffPolicy | None = None
    """Waits after failures; the library's own for a cluster, short ones for an embedded one."""
    objects: int = 250
    """About how many pods the embedded cluster has."""
    rate: float = 12.0
    """Writes a second in the embedded cluster."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """The settings of ``uvicorn examples.fastapi_app.app:app``.

        With ``KUBECONFIG``, or inside a cluster, it shows that cluster. ``APP_NAMESPACE`` is the
        only namespace, ``APP_RESOURCES`` what to show, ``APP_HOSTS`` more names to answer to; the
        latter two with commas.
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
