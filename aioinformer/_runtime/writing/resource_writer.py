"""The protocol of writes to single objects, of the client and of a cluster in memory."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer._core.writing.write_requests import Patch, Propagation


class ResourceWriter(Protocol):
    """Reads and writes of single objects of one resource. ``Client.api`` makes one.

    Each call is one request, and its errors are of phase ``write``. No request is retried, since a
    request that is sent twice may take effect twice: see ``retry_on_conflict``. A method returns
    the object as the server stored it; ``await informer.wait_for(obj)`` waits until a cache
    contains that version. A writer with a namespace of its own takes bare names and objects without
    a namespace.

    Raises, from every method:
        ServerError: the server rejected the request: ``NotFound``, ``Conflict`` (the object was
            changed meanwhile), ``AlreadyExists``, ``Invalid``, ``Forbidden``...
        TransportError: no answer arrived. The request may have taken effect.
        UsageError: a name or namespace is missing, or the object is of another kind.
        NotRunning: the client is not open.
    """

    @property
    def resource(self) -> Resource:
        """The resource whose objects are written."""
        ...

    async def get(self, key: ObjectKey | str) -> KubeObject:
        """Return the object as the server has it now; a cache may be behind."""
        ...

    async def create(self, obj: Mapping[str, Any]) -> KubeObject:
        """Create an object. With ``metadata.generateName`` the server chooses the name."""
        ...

    async def update(self, obj: Mapping[str, Any], *, subresource: str = "") -> KubeObject:
        """Replace the object; raise ``Conflict`` unless it is in the version that ``obj`` names."""
        ...

    async def update_status(self, obj: Mapping[str, Any]) -> KubeObject:
        """Replace the object's status and nothing else, through the subresource ``status``."""
        ...

    async def patch(
        self, key: ObjectKey | str, patch: Patch, *, subresource: str = ""
    ) -> KubeObject:
        """Change parts of the object. With a ``resourceVersion``, it may raise ``Conflict``."""
        ...

    async def apply(
        self,
        obj: Mapping[str, Any],
        *,
        field_manager: str = "",
        force: bool = True,
        subresource: str = "",
    ) -> KubeObject:
        """Apply the fields of ``obj`` (server-side apply); create the object if it doesn't exist.

        Args:
            obj: only the fields that the program wants to set.
            field_manager: the name under which the server records the fields; by default that of
                the ``Client``. A writer without a client needs a name.
            force: True to take over fields that other managers have set: without that, an apply
                can't correct a field that someone has edited. False to raise ``Conflict`` instead.
            subresource: ``status``, for example.
        """
        ...

    async def delete(
        self,
        key: ObjectKey | str,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: Propagation | None = None,
        grace_period: int | None = None,
    ) -> KubeObject | None:
        """Delete the object.

        Args:
            key: the object's key, or its name where the writer has a namespace.
            uid: delete only the object with this uid; otherwise raise ``Conflict``.
            resource_version: delete only this version; otherwise raise ``Conflict``.
            propagation: the fate of the objects that it owns; the resource's default if ``None``.
            grace_period: seconds until a running object is killed; the object's own by default.

        Returns:
            The object if it still exists (finalizers, grace period), or if the server returns its
                last state; otherwise ``None``.
        """
        ...


@dataclass(frozen=True, slots=True)
class WrappedWriter:
    """A ``ResourceWriter`` that passes all calls to another. Subclasses change what they need."""

    writer: ResourceWriter

    def _begin(self) -> None:
        """Prepare for a write, or raise."""

    def _written(self, obj: KubeObject) -> None:
        """Take what the server has stored."""

    def _deleted(self, key: ObjectKey | str, uid: str) -> None:
        """Take what the server deletes; ``uid`` is empty if it is unknown."""

    @property
    def resource(self) -> Resource:
        return self.writer.resource

    async def get(self, key: ObjectKey | str) -> KubeObject:
        return await self.writer.get(key)

    async def create(self, obj: Mapping[str, Any]) -> KubeObject:
        self._begin()
        return await self._result(self.writer.create(obj))

    async def update(self, obj: Mapping[str, Any], *, subresource: str = "") -> KubeObject:
        self._begin()
        return await self._result(self.writer.update(obj, subresource=subresource))

    async def update_status(self, obj: Mapping[str, Any]) -> KubeObject:
        self._begin()
        return await self._result(self.writer.update_status(obj))

    async def patch(
        self, key: ObjectKey | str, patch: Patch, *, subresource: str = ""
    ) -> KubeObject:
        self._begin()
        return await self._result(self.writer.patch(key, patch, subresource=subresource))

    async def apply(
        self,
        obj: Mapping[str, Any],
        *,
        field_manager: str = "",
        force: bool = True,
        subresource: str = "",
    ) -> KubeObject:
        self._begin()
        options = {"field_manager": field_manager, "subresource": subresource}
        return await self._result(self.writer.apply(obj, force=force, **options))

    async def delete(
        self,
        key: ObjectKey | str,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: Propagation | None = None,
        grace_period: int | None = None,
    ) -> KubeObject | None:
        self._begin()
        left = await self.writer.delete(
            key,
            uid=uid,
            resource_version=resource_version,
            propagation=propagation,
            grace_period=grace_period,
        )
        self._deleted(key, uid or ("" if left is None else left.uid))
        return left

    async def _result(self, request: Awaitable[KubeObject]) -> KubeObject:
        obj = await request
        self._written(obj)
        return obj


class WriterSource(Protocol):
    """Makes the writers of resources: a ``Client``, or a cluster in memory."""

    def api(self, resource: str | Resource, *, namespace: str | None = None) -> ResourceWriter:
        """Return the reads and writes of a resource, without network. May raise
        ``UnknownResource``.
        """
        ...


@runtime_checkable
class NamesOrigin(Protocol):
    """A ``WriterSource``, or a writer, that knows its cluster."""

    @property
    def origin(self) -> object:
        """Equal for two sources of one cluster; ``None`` while the cluster is unknown."""
        ...


def origin_of(source: object) -> object:
    """Return the cluster of a client or a writer; ``None`` if it is unknown."""
    return source.origin if isinstance(source, NamesOrigin) else None
