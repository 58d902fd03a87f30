"""``ClientWriter``: the ``ResourceWriter`` of a client, or of a cluster in memory.

``WriteRequestBuilder`` builds each request and decodes its answer. ``send`` is the only part that
differs between a server and a cluster in memory.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from aioinformer._core.objects.decode_errors import discard_input
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer._core.writing.write_requests import (
    Patch,
    Propagation,
    WriteRequest,
    WriteRequestBuilder,
)
from aioinformer.errors import FetchError

__all__ = ["ClientWriter"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, repr=False)
class ClientWriter:
    """A ``ResourceWriter`` over a function that sends one request."""

    builder: WriteRequestBuilder
    send: Callable[[WriteRequest], Awaitable[bytes]] = field(compare=False)
    """Sends a request once and returns the body of a successful answer. Raises ``FetchError``
    (phase ``write``) and ``NotRunning``."""

    @property
    def resource(self) -> Resource:
        """See ``ResourceWriter``."""
        return self.builder.resource

    @property
    def namespace(self) -> str | None:
        """The namespace of all requests; ``None`` if keys and objects name theirs."""
        return self.builder.namespace

    async def get(self, key: ObjectKey | str) -> KubeObject:
        """See ``ResourceWriter``."""
        return await self._send(self.builder.get(key), self.builder.decode)

    async def create(self, obj: Mapping[str, Any]) -> KubeObject:
        """See ``ResourceWriter``."""
        return await self._send(self.builder.create(obj), self.builder.decode)

    async def update(self, obj: Mapping[str, Any], *, subresource: str = "") -> KubeObject:
        """See ``ResourceWriter``."""
        return await self._send(self.builder.update(obj, subresource), self.builder.decode)

    async def update_status(self, obj: Mapping[str, Any]) -> KubeObject:
        """See ``ResourceWriter``."""
        return await self.update(obj, subresource="status")

    async def patch(
        self, key: ObjectKey | str, patch: Patch, *, subresource: str = ""
    ) -> KubeObject:
        """See ``ResourceWriter``."""
        return await self._send(self.builder.patch(key, patch, subresource), self.builder.decode)

    async def apply(
        self, obj: Mapping[str, Any], *, manager: str, force: bool = False, subresource: str = ""
    ) -> KubeObject:
        """See ``ResourceWriter``."""
        request = self.builder.apply(obj, manager, force=force, subresource=subresource)
        return await self._send(request, self.builder.decode)

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
        request = self.builder.delete(
            key,
            uid=uid,
            resource_version=resource_version,
            propagation=propagation,
            grace_period=grace_period,
        )
        return await self._send(request, self.builder.decode_deleted)

    async def _send(self, request: WriteRequest, decode: Callable[[bytes], T]) -> T:
        body = await self.send(request)
        try:
            return decode(body)
        except FetchError as error:
            del body  # a traceback refers to the variables of this frame
            discard_input(error)
            raise

    def __repr__(self) -> str:
        where = f" in {self.namespace}" if self.namespace else ""
        return f"<ClientWriter of {self.resource}{where}>"
