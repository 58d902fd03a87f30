"""``ClientWriter``: single objects of one resource, read and written.

The runtime's ``ResourceWriter``, over whatever sends a request and returns the body of its answer:
a ``Client``, or a cluster in memory. What is sent, and what an answer means, is ``_core.writes``'.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer._core.writing.write_requests import (
    Patch,
    Propagation,
    WriteRequest,
    WriteRequestBuilder,
)

__all__ = ["ClientWriter"]


@dataclass(frozen=True, slots=True, repr=False)
class ClientWriter:
    """Reads and writes single objects of one resource. See ``aioinformer.ResourceWriter``, which
    has what each method takes, returns and raises.
    """

    builder: WriteRequestBuilder
    send: Callable[[WriteRequest], Awaitable[bytes]] = field(compare=False)
    """Sends a request once; the body of an answer that says that it was done. Raises
    ``FetchError`` (phase ``write``) and ``NotRunning``."""

    @property
    def resource(self) -> Resource:
        """What is written."""
        return self.builder.resource

    @property
    def namespace(self) -> str | None:
        """Where; ``None`` for wherever a key or an object says."""
        return self.builder.namespace

    async def get(self, key: ObjectKey | str) -> KubeObject:
        """The object as the server has it now, not as a cache does."""
        return self.builder.decode(await self.send(self.builder.get(key)))

    async def create(self, obj: Mapping[str, Any]) -> KubeObject:
        """Create it. ``metadata.generateName`` has the server choose the name."""
        return self.builder.decode(await self.send(self.builder.create(obj)))

    async def update(self, obj: Mapping[str, Any], *, subresource: str = "") -> KubeObject:
        """Replace it; ``Conflict`` unless it is in the version that ``obj`` names."""
        return self.builder.decode(await self.send(self.builder.update(obj, subresource)))

    async def update_status(self, obj: Mapping[str, Any]) -> KubeObject:
        """Replace its status and nothing else, through the subresource."""
        return await self.update(obj, subresource="status")

    async def patch(
        self, key: ObjectKey | str, patch: Patch, *, subresource: str = ""
    ) -> KubeObject:
        """Change parts of it. A merge patch with a ``resourceVersion`` may be a ``Conflict``."""
        return self.builder.decode(await self.send(self.builder.patch(key, patch, subresource)))

    async def apply(
        self, obj: Mapping[str, Any], *, manager: str, force: bool = False, subresource: str = ""
    ) -> KubeObject:
        """Server-side apply: own the fields that ``obj`` names."""
        request = self.builder.apply(obj, manager, force=force, subresource=subresource)
        return self.builder.decode(await self.send(request))

    async def delete(
        self,
        key: ObjectKey | str,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: Propagation | None = None,
        grace_period: int | None = None,
    ) -> KubeObject | None:
        """Delete it; what is left of it, if the server says."""
        request = self.builder.delete(
            key,
            uid=uid,
            resource_version=resource_version,
            propagation=propagation,
            grace_period=grace_period,
        )
        return self.builder.decode_deleted(await self.send(request))

    def __repr__(self) -> str:
        where = f" in {self.namespace}" if self.namespace else ""
        return f"<ClientWriter of {self.resource}{where}>"
