"""The writer of a run of a reconciler.

It reports its successful writes, so that the next run of the key waits for the caches. A write
whose answer is lost is not reported: no version is known to wait for.

It never changes an object that was created again under the name of the run's object. The server
tests the uid in the same step as it writes: a JSON patch, an update, a deletion, and a patch or an
apply of the main resource name it. A server ignores the uid in a merge patch or an apply of a
custom object's status, so that these name the resourceVersion, which no two objects share. If it
has changed, and the object is still the same, they are sent again for the newest one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer._runtime.writing.resource_writer import WrappedWriter, WriteCall
from aioinformer.errors import Conflict, Forbidden, Status, server_error

ATTEMPTS = 5
"""Requests for one write of a subresource, as in client-go's ``retry.DefaultRetry``."""


class WriteRecorder(Protocol):
    """The run that writes."""

    def own_state(self, resource: Resource, key: ObjectKey) -> KubeObject | None:
        """Return the newest known state of the run's object; ``None`` if ``key`` is that of another
        object, or if the run has no state.
        """
        ...

    def record_write(self, resource: Resource, obj: KubeObject) -> None:
        """Note that the server stored ``obj``."""

    def record_deletion(self, resource: Resource, key: ObjectKey, uid: str) -> None:
        """Note that the server accepted a deletion. ``uid`` is empty if it is unknown."""


def other_object(resource: Resource, key: ObjectKey) -> Exception:
    """Return the error of a write for an object that was deleted and created again."""
    text = f"{resource} {key}: the object of this run was deleted, and another one has its name"
    return server_error(Status(409, "Conflict", text), phase="write")


@dataclass(frozen=True, slots=True)
class ReconcileWriter(WrappedWriter):
    """A ``ResourceWriter`` of one run."""

    run: WriteRecorder
    namespace: str = ""
    """The namespace of keys without one; empty if each key names its own."""

    async def _send(self, call: WriteCall) -> KubeObject | None:
        key = self._key_of(call.arguments[0])
        own = None if call.method == "create" else self.run.own_state(self.resource, key)
        answer = await (call.on(self.writer) if own is None else self._send_for(own, key, call))
        if call.method == "delete":
            uid = call.options["uid"] or ("" if answer is None else answer.uid)
            self.run.record_deletion(self.resource, key, str(uid))
        elif answer is not None:
            self.run.record_write(self.resource, answer)
        return answer

    def _key_of(self, target: object) -> ObjectKey:
        """Return the key of a key or a body; without a name if it is invalid."""
        found = target
        with suppress(ValueError):
            found = ObjectKey.parse(target) if isinstance(target, str) else target
        if isinstance(found, Mapping):
            metadata = _metadata_of(cast("Mapping[str, Any]", found)) or {}
            found = ObjectKey(metadata.get("namespace") or "", metadata.get("name") or "")
        if not isinstance(found, ObjectKey):
            found = ObjectKey("", "")
        return ObjectKey(found.namespace or self.namespace, found.name)

    async def _send_for(
        self, own: KubeObject, key: ObjectKey, call: WriteCall
    ) -> KubeObject | None:
        """Send a write for the run's object alone."""
        body = call.arguments[-1]
        if call.method == "delete":
            uid = call.options["uid"] or own.uid
            call = replace(call, options={**call.options, "uid": uid})
        elif not isinstance(body, Mapping):
            call = _with_body(call, _with_test(own.uid, body))
        elif (metadata := _metadata_of(cast("Mapping[str, Any]", body))) is None:
            pass  # the writer rejects the body
        elif call.method in ("patch", "apply") and call.options["subresource"]:
            if not metadata.get("resourceVersion"):
                return await self._send_for_version(own, key, call)
        elif (metadata.get("uid") or own.uid) != own.uid:
            raise other_object(self.resource, key)
        else:
            call = _with_metadata(call, uid=own.uid)
        return await call.on(self.writer)

    async def _send_for_version(
        self, own: KubeObject, key: ObjectKey, call: WriteCall
    ) -> KubeObject | None:
        for attempt in range(1, ATTEMPTS + 1):
            version = own.resource_version
            try:
                return await _with_metadata(call, resourceVersion=version).on(self.writer)
            except Conflict as error:
                try:
                    newest = await self.writer.get(key)
                except Forbidden:
                    raise error from None  # the next run has a newer cache
                if newest.uid != own.uid:
                    raise other_object(self.resource, key) from error
                if attempt == ATTEMPTS or newest.resource_version == version:
                    raise
                own = newest
        raise AssertionError("the last attempt returns or raises")


def _with_test(uid: str, patch: object) -> object:
    """Return a JSON patch that begins with a test of the uid; the writer rejects anything else."""
    if not isinstance(patch, Sequence) or isinstance(patch, str | bytes):
        return patch
    operations = cast("Sequence[object]", patch)
    return [{"op": "test", "path": "/metadata/uid", "value": uid}, *operations]


def _metadata_of(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the metadata of a body; ``None`` if they aren't a mapping."""
    found: object = body.get("metadata", {})
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else None


def _with_metadata(call: WriteCall, **fields: str) -> WriteCall:
    """Return the call with further metadata in its body."""
    body = call.arguments[-1]
    return _with_body(call, {**body, "metadata": {**body.get("metadata", {}), **fields}})


def _with_body(call: WriteCall, body: object) -> WriteCall:
    return replace(call, arguments=(*call.arguments[:-1], body))
