"""A writer that checks leadership before each request that writes.

After a pause of the process of any length, and in tasks that are not cancelled yet, no further
write is sent. Only the written side can reject a request that was sent in time and takes effect
later: by the number of the term (``Fencing``), or by the resourceVersion in an update.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer._core.writing.write_requests import Patch, Propagation
from aioinformer._runtime.writing.resource_writer import ResourceWriter, WriterSource, origin_of


@dataclass(frozen=True, slots=True)
class GuardedWriter:
    """A ``ResourceWriter`` that calls ``check`` before each write; reads are not checked."""

    writer: ResourceWriter
    check: Callable[[], object]
    """Raises if no write is allowed."""

    @property
    def resource(self) -> Resource:
        """See ``ResourceWriter``."""
        return self.writer.resource

    async def get(self, key: ObjectKey | str) -> KubeObject:
        """See ``ResourceWriter``."""
        return await self.writer.get(key)

    async def create(self, obj: Mapping[str, Any]) -> KubeObject:
        """See ``ResourceWriter``."""
        self.check()
        return await self.writer.create(obj)

    async def update(self, obj: Mapping[str, Any], *, subresource: str = "") -> KubeObject:
        """See ``ResourceWriter``."""
        self.check()
        return await self.writer.update(obj, subresource=subresource)

    async def update_status(self, obj: Mapping[str, Any]) -> KubeObject:
        """See ``ResourceWriter``."""
        self.check()
        return await self.writer.update_status(obj)

    async def patch(
        self, key: ObjectKey | str, patch: Patch, *, subresource: str = ""
    ) -> KubeObject:
        """See ``ResourceWriter``."""
        self.check()
        return await self.writer.patch(key, patch, subresource=subresource)

    async def apply(
        self,
        obj: Mapping[str, Any],
        *,
        field_manager: str = "",
        force: bool = True,
        subresource: str = "",
    ) -> KubeObject:
        """See ``ResourceWriter``."""
        self.check()
        return await self.writer.apply(
            obj, field_manager=field_manager, force=force, subresource=subresource
        )

    async def delete(
        self,
        key: ObjectKey | str,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: Propagation | None = None,
        grace_period: int | None = None,
    ) -> KubeObject | None:
        """See ``ResourceWriter``."""
        self.check()
        return await self.writer.delete(
            key,
            uid=uid,
            resource_version=resource_version,
            propagation=propagation,
            grace_period=grace_period,
        )


@dataclass(frozen=True, slots=True)
class GuardedClient:
    """A ``WriterSource`` whose writers call ``check`` before each write."""

    client: WriterSource
    check: Callable[[], object]
    """Raises if no write is allowed."""

    def api(self, resource: str | Resource, *, namespace: str | None = None) -> GuardedWriter:
        """See ``WriterSource``."""
        return GuardedWriter(self.client.api(resource, namespace=namespace), self.check)

    @property
    def origin(self) -> object:
        """See ``NamesOrigin``."""
        return origin_of(self.client)
