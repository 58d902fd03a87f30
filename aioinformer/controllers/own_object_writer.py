"""A writer that never changes an object that was created again under the name of a run's object.

The server tests the uid in the same step as it writes: a JSON patch, an update, a deletion, and a
patch or an apply of the main resource name it. A server ignores the uid in a merge patch or an
apply of a custom object's status, so that these name the resourceVersion, which no two objects
share. If it has changed, and the object is still the same, they are sent again for the newest one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, cast

from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer._core.writing.write_requests import Patch, Propagation
from aioinformer._runtime.writing.resource_writer import WrappedWriter
from aioinformer.errors import Conflict, Forbidden, Status, server_error

ATTEMPTS = 5
"""Requests for one write of a subresource, as in client-go's ``retry.DefaultRetry``."""


class OwnObject(Protocol):
    """The object of a run."""

    @property
    def key(self) -> ObjectKey:
        """The key that is reconciled."""
        ...

    @property
    def state(self) -> KubeObject | None:
        """The newest known state of the object; ``None`` if the run has none."""
        ...


def other_object(resource: Resource, key: ObjectKey) -> Exception:
    """Return the error of a write for an object that was deleted and created again."""
    text = f"{resource} {key}: the object of this run was deleted, and another one has its name"
    return server_error(Status(409, "Conflict", text), phase="write")


@dataclass(frozen=True, slots=True)
class OwnObjectWriter(WrappedWriter):
    """A ``ResourceWriter`` of the resource of a run's object."""

    run: OwnObject
    namespace: str = ""
    """The namespace of keys without one; empty if each key names its own."""

    async def update(self, obj: Mapping[str, Any], *, subresource: str = "") -> KubeObject:
        return await self.writer.update(self._with_uid(obj, _key_of(obj)), subresource=subresource)

    async def update_status(self, obj: Mapping[str, Any]) -> KubeObject:
        return await self.writer.update_status(self._with_uid(obj, _key_of(obj)))

    async def patch(
        self, key: ObjectKey | str, patch: Patch, *, subresource: str = ""
    ) -> KubeObject:
        own = self._own(key)
        if own is None or not isinstance(patch, Mapping):
            guarded = patch if own is None else _with_test(own.uid, patch)
            return await self.writer.patch(key, guarded, subresource=subresource)
        if not subresource:
            return await self.writer.patch(key, self._with_uid(patch, key))
        return await self._send_for_version(
            own, patch, lambda body: self.writer.patch(key, body, subresource=subresource)
        )

    async def apply(
        self,
        obj: Mapping[str, Any],
        *,
        field_manager: str = "",
        force: bool = True,
        subresource: str = "",
    ) -> KubeObject:

        def send(body: Mapping[str, Any]) -> Awaitable[KubeObject]:
            return self.writer.apply(
                body, field_manager=field_manager, force=force, subresource=subresource
            )

        own = self._own(_key_of(obj))
        if own is None or not subresource:
            return await send(self._with_uid(obj, _key_of(obj)))
        return await self._send_for_version(own, obj, send)

    async def delete(
        self,
        key: ObjectKey | str,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: Propagation | None = None,
        grace_period: int | None = None,
    ) -> KubeObject | None:
        own = self._own(key)
        return await self.writer.delete(
            key,
            uid=uid or ("" if own is None else own.uid),
            resource_version=resource_version,
            propagation=propagation,
            grace_period=grace_period,
        )

    def _own(self, key: ObjectKey | str) -> KubeObject | None:
        """Return the state of the run's object if this is its key."""
        found: object = key
        with suppress(ValueError):
            found = ObjectKey.parse(key) if isinstance(key, str) else key
        if not isinstance(found, ObjectKey):
            return None
        if ObjectKey(found.namespace or self.namespace, found.name) != self.run.key:
            return None
        return self.run.state

    def _with_uid(self, body: Mapping[str, Any], key: ObjectKey | str) -> Mapping[str, Any]:
        """Return a body that names the uid, if it is that of the run's object."""
        own, metadata = self._own(key), _metadata_of(body)
        if own is None or metadata is None:
            return body
        if (metadata.get("uid") or own.uid) != own.uid:
            raise other_object(self.resource, self.run.key)
        return {**body, "metadata": {**metadata, "uid": own.uid}}

    async def _send_for_version(
        self,
        own: KubeObject,
        body: Mapping[str, Any],
        send: Callable[[Mapping[str, Any]], Awaitable[KubeObject]],
    ) -> KubeObject:
        """Send a write for the newest version of the run's object, unless it names a version."""
        metadata = _metadata_of(body)
        if metadata is None or metadata.get("resourceVersion"):
            return await send(body)
        for attempt in range(1, ATTEMPTS + 1):
            version = own.resource_version
            try:
                return await send({**body, "metadata": {**metadata, "resourceVersion": version}})
            except Conflict as error:
                try:
                    newest = await self.writer.get(self.run.key)
                except Forbidden:
                    raise error from None  # the next run has a newer cache
                if newest.uid != own.uid:
                    raise other_object(self.resource, self.run.key) from error
                if attempt == ATTEMPTS or newest.resource_version == version:
                    raise
                own = newest
        raise AssertionError("the last attempt returns or raises")

    def __repr__(self) -> str:
        return f"<OwnObjectWriter of {self.resource} {self.run.key}>"


def _with_test(uid: str, patch: object) -> Any:
    """Return a JSON patch that begins with a test of the uid; the writer rejects anything else."""
    if not isinstance(patch, Sequence) or isinstance(patch, str | bytes):
        return patch
    operations = cast("Sequence[object]", patch)
    return [{"op": "test", "path": "/metadata/uid", "value": uid}, *operations]


def _metadata_of(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the metadata of a body; ``None`` if they aren't a mapping."""
    found: object = body.get("metadata", {})
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else None


def _key_of(body: Mapping[str, Any]) -> ObjectKey:
    metadata = _metadata_of(body) or {}
    return ObjectKey(metadata.get("namespace") or "", metadata.get("name") or "")
