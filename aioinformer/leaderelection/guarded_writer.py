"""A writer that checks leadership before each request that writes.

After a pause of the process of any length, and in tasks that are not cancelled yet, no further
write is sent. Only the written side can reject a request that was sent in time and takes effect
later: by the number of the term (``Fencing``), or by the resourceVersion in an update.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from aioinformer._core.objects.resources import Resource
from aioinformer._runtime.writing.resource_writer import WrappedWriter, WriterSource, origin_of


@dataclass(frozen=True, slots=True)
class GuardedWriter(WrappedWriter):
    """A ``ResourceWriter`` that calls ``check`` before each write; reads are not checked."""

    check: Callable[[], object]
    """Raises if no write is allowed."""

    def _begin(self) -> None:
        self.check()


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
