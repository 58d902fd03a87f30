"""The protocol of writes to single objects, of the client and of a cluster in memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, cast, runtime_checkable

from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer._core.writing.write_requests import Patch, Propagation

WriteMethod: TypeAlias = Literal["create", "update", "update_status", "patch", "apply", "delete"]


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
class WriteCall:
    """A call of a method of ``ResourceWriter`` that writes, with all of its arguments."""

    method: WriteMethod
    arguments: tuple[Any, ...] = field(repr=False)
    """A key, a body, or a key and a patch. A body may be a Secret, so no ``repr`` shows it."""
    options: Mapping[str, object]

    def on(self, writer: ResourceWriter) -> Awaitable[KubeObject | None]:
        """Call the method of a writer. Only a deletion may return ``None``."""
        method: Callable[..., Awaitable[KubeObject | None]] = getattr(writer, self.method)
        return method(*self.arguments, **self.options)


class WriterMethods:
    """The methods of a ``ResourceWriter`` that write, for a class that sends a ``WriteCall``."""

    __slots__ = ()

    async def _send(self, call: WriteCall) -> KubeObject | None:
        raise NotImplementedError

    async def create(self, obj: Mapping[str, Any]) -> KubeObject:
        """See ``ResourceWriter``."""
        return await self._write("create", obj)

    async def update(self, obj: Mapping[str, Any], *, subresource: str = "") -> KubeObject:
        """See ``ResourceWriter``."""
        return await self._write("update", obj, subresource=subresource)

    async def update_status(self, obj: Mapping[str, Any]) -> KubeObject:
        """See ``ResourceWriter``."""
        return await self._write("update_status", obj)

    async def patch(
        self, key: ObjectKey | str, patch: Patch, *, subresource: str = ""
    ) -> KubeObject:
        """See ``ResourceWriter``."""
        return await self._write("patch", key, patch, subresource=subresource)

    async def apply(
        self,
        obj: Mapping[str, Any],
        *,
        field_manager: str = "",
        force: bool = True,
        subresource: str = "",
    ) -> KubeObject:
        """See ``ResourceWriter``."""
        options = {"field_manager": field_manager, "subresource": subresource}
        return await self._write("apply", obj, force=force, **options)

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
        preconditions = {"uid": uid, "resource_version": resource_version}
        options = {"propagation": propagation, "grace_period": grace_period}
        return await self._send(WriteCall("delete", (key,), {**preconditions, **options}))

    async def _write(
        self, method: WriteMethod, *arguments: object, **options: object
    ) -> KubeObject:
        return cast("KubeObject", await self._send(WriteCall(method, arguments, options)))


@dataclass(frozen=True, slots=True)
class WrappedWriter(WriterMethods):
    """A ``ResourceWriter`` that writes through another one. Subclasses change a call before it is
    sent, or take the answer.
    """

    writer: ResourceWriter
    """Of a client, of a cluster in memory, or a class of the program."""

    @property
    def resource(self) -> Resource:
        return self.writer.resource

    async def get(self, key: ObjectKey | str) -> KubeObject:
        return await self.writer.get(key)


@dataclass(frozen=True, slots=True)
class CheckedWriter(WrappedWriter):
    """A ``ResourceWriter`` that calls ``check`` before each write; reads are not checked."""

    check: Callable[[], object]
    """Raises if no write is allowed."""

    async def _send(self, call: WriteCall) -> KubeObject | None:
        self.check()
        return await call.on(self.writer)


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


@dataclass(frozen=True, slots=True)
class CheckedClient:
    """A ``WriterSource`` whose writers call ``check`` before each write."""

    client: WriterSource
    check: Callable[[], object]
    """Raises if no write is allowed."""

    def api(self, resource: str | Resource, *, namespace: str | None = None) -> ResourceWriter:
        """See ``WriterSource``."""
        return CheckedWriter(self.client.api(resource, namespace=namespace), self.check)

    @property
    def origin(self) -> object:
        """See ``NamesOrigin``."""
        return origin_of(self.client)


def origin_of(source: object) -> object:
    """Return the cluster of a client or a writer; ``None`` if it is unknown."""
    return source.origin if isinstance(source, NamesOrigin) else None
