"""A writer that reports its successful writes, so that the next run of a key waits for the caches.

A write whose answer is lost is not reported: no version is known to wait for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer._core.writing.write_requests import Patch, Propagation
from aioinformer._runtime.writing.resource_writer import ResourceWriter


class WriteRecorder(Protocol):
    """Receives the writes that a server has accepted."""

    def record_write(self, resource: Resource, obj: KubeObject) -> None:
        """Note that the server stored ``obj``."""

    def record_deletion(self, resource: Resource, key: ObjectKey, uid: str) -> None:
        """Note that the server accepted a deletion. ``uid`` is empty if it is unknown."""


@dataclass(frozen=True, slots=True)
class RecordedWriter:
    """A ``ResourceWriter`` that passes each successful write to a recorder."""

    writer: ResourceWriter
    recorder: WriteRecorder
    namespace: str = ""
    """The namespace of keys without one; empty if each key names its own."""

    @property
    def resource(self) -> Resource:
        """See ``ResourceWriter``."""
        return self.writer.resource

    async def get(self, key: ObjectKey | str) -> KubeObject:
        """See ``ResourceWriter``."""
        return await self.writer.get(key)

    async def create(self, obj: Mapping[str, Any]) -> KubeObject:
        """See ``ResourceWriter``."""
        return self._record(await self.writer.create(obj))

    async def update(self, obj: Mapping[str, Any], *, subresource: str = "") -> KubeObject:
        """See ``ResourceWriter``."""
        return self._record(await self.writer.update(obj, subresource=subresource))

    async def update_status(self, obj: Mapping[str, Any]) -> KubeObject:
        """See ``ResourceWriter``."""
        return self._record(await self.writer.update_status(obj))

    async def patch(
        self, key: ObjectKey | str, patch: Patch, *, subresource: str = ""
    ) -> KubeObject:
        """See ``ResourceWriter``."""
        return self._record(await self.writer.patch(key, patch, subresource=subresource))

    async def apply(
        self,
        obj: Mapping[str, Any],
        *,
        field_manager: str = "",
        force: bool = True,
        subresource: str = "",
    ) -> KubeObject:
        """See ``ResourceWriter``."""
        return self._record(
            await self.writer.apply(
                obj, field_manager=field_manager, force=force, subresource=subresource
            )
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
        left = await self.writer.delete(
            key,
            uid=uid,
            resource_version=resource_version,
            propagation=propagation,
            grace_period=grace_period,
        )
        found = ObjectKey.parse(key) if isinstance(key, str) else key
        full_key = ObjectKey(found.namespace or self.namespace, found.name)
        known = uid or ("" if left is None else left.uid)
        self.recorder.record_deletion(self.resource, full_key, known)
        return left

    def _record(self, obj: KubeObject) -> KubeObject:
        self.recorder.record_write(self.resource, obj)
        return obj
