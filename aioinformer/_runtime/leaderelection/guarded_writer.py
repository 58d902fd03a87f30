"""A writer that asks before each request whether it may send it.

For what is written in a leader's name: after a pause of any length, and in tasks that nobody has
cancelled yet, nothing more is sent. A request that was sent in time may still be carried out
later: only what is written to can refuse that, by the number of the term (``Fencing``) or by the
resourceVersion that an update carries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer._runtime.writing.resource_writer import Patch, Propagation, ResourceWriter

__all__ = ["GuardedWriter"]


@dataclass(frozen=True, slots=True)
class GuardedWriter:
    """A ``ResourceWriter`` over another one. Reading is always allowed."""

    writer: ResourceWriter
    check: Callable[[], object]
    """Raises if nothing may be written."""

    @property
    def resource(self) -> Resource:
        """What is written."""
        return self.writer.resource

    async def get(self, key: ObjectKey | str) -> KubeObject:
        """The object as the server has it now."""
        return await self.writer.get(key)

    async def create(self, obj: Mapping[str, Any]) -> KubeObject:
        """Create it, if that is allowed."""
        self.check()
        return await self.writer.create(obj)

    async def update(self, obj: Mapping[str, Any], *, subresource: str = "") -> KubeObject:
        """Replace it, if that is allowed."""
        self.check()
        return await self.writer.update(obj, subresource=subresource)

    async def update_status(self, obj: Mapping[str, Any]) -> KubeObject:
        """Replace its status, if that is allowed."""
        self.check()
        return await self.writer.update_status(obj)

    async def patch(
        self, key: ObjectKey | str, patch: Patch, *, subresource: str = ""
    ) -> KubeObject:
        """Change parts of it, if that is allowed."""
        self.check()
        return await self.writer.patch(key, patch, subresource=subresource)

    async def apply(
        self, obj: Mapping[str, Any], *, manager: str, force: bool = False, subresource: str = ""
    ) -> KubeObject:
        """Server-side apply, if that is allowed."""
        self.check()
        return await self.writer.apply(obj, manager=manager, force=force, subresource=subresource)

    async def delete(
        self,
        key: ObjectKey | str,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: Propagation | None = None,
        grace_period: int | None = None,
    ) -> KubeObject | None:
        """Delete it, if that is allowed."""
        self.check()
        return await self.writer.delete(
            key,
            uid=uid,
            resource_version=resource_version,
            propagation=propagation,
            grace_period=grace_period,
        )
