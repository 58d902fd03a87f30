"""What controllers write with: the protocol that a client implements, and a cluster in memory.

Everything that acts on a cluster (an elector, a recorder of events, a reconciler) asks for no more
than this, so that all of it runs against a server, in memory and in simulated time alike. What is
sent for each of the methods is ``_core.writes``'; how, the client's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer._core.writing.write_requests import Patch, Propagation

__all__ = ["Patch", "Propagation", "ResourceWriter"]


class ResourceWriter(Protocol):
    """Reads and writes single objects of one resource. ``Client.writer`` makes them.

    Each call is one request, whose errors are of phase ``write``. Nothing is tried again, since
    what is sent twice may be done twice: see ``retry_on_conflict``. What is returned is the object
    as the server has it now; ``await informer.wait_for(obj)`` waits until a cache shows it.

    Where a writer has a namespace of its own, a key may be a bare name, and objects may leave
    theirs out.

    Raises, from every method:
        ServerError: the server refused: ``NotFound``, ``Conflict`` (someone else was faster),
            ``AlreadyExists``, ``Invalid``, ``Forbidden``...
        TransportError: there was no answer. Whether it was done is unknown.
        UsageError: no name or namespace where one is needed, or an object of another kind.
        NotRunning: the client is not open.
    """

    @property
    def resource(self) -> Resource:
        """What is written."""
        ...

    async def get(self, key: ObjectKey | str) -> KubeObject:
        """The object as the server has it now, not as a cache does."""
        ...

    async def create(self, obj: Mapping[str, Any]) -> KubeObject:
        """Create it. ``metadata.generateName`` has the server choose the name."""
        ...

    async def update(self, obj: Mapping[str, Any], *, subresource: str = "") -> KubeObject:
        """Replace it; ``Conflict`` unless it is in the version that ``obj`` names."""
        ...

    async def update_status(self, obj: Mapping[str, Any]) -> KubeObject:
        """Replace its status and nothing else, through the subresource."""
        ...

    async def patch(
        self, key: ObjectKey | str, patch: Patch, *, subresource: str = ""
    ) -> KubeObject:
        """Change parts of it. A merge patch with a ``resourceVersion`` may be a ``Conflict``."""
        ...

    async def apply(
        self, obj: Mapping[str, Any], *, manager: str, force: bool = False, subresource: str = ""
    ) -> KubeObject:
        """Server-side apply: own the fields that ``obj`` names; it is created if it isn't there.

        Args:
            obj: only what the program has an opinion on.
            manager: the name under which it owns fields.
            force: take over fields that another manager owns, instead of a ``Conflict``.
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
        """Delete it.

        Args:
            key: which.
            uid: only if it is this one; else ``Conflict``.
            resource_version: only in this version; else ``Conflict``.
            propagation: what becomes of what it owns.
            grace_period: seconds; the object's own by default.

        Returns:
            The object, if it is there still, waiting for finalizers or its grace period, or as it
            was last, if the server says so; else ``None``.
        """
        ...
