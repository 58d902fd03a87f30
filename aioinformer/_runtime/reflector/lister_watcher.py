"""What a reflector reads from: the protocols that a client implements, and a cluster in memory.

Somebody else's network fits too: ``ListerWatcher`` is all that an informer needs. What it may do
beyond that is found out by looking.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol, Self, runtime_checkable

from aioinformer._core.listwatch.requests import ListRequest, WatchRequest
from aioinformer._core.objects.resources import Resource

__all__ = ["ListerWatcher", "SharesListSlots", "SupportsDiscovery"]


class ListerWatcher(Protocol):
    """Lists and watches one resource in one scope. ``Client.lister_watcher`` makes them.

    Entering a context sends the request; it raises a ``FetchError`` unless the server answers
    with 200. What is iterated are the bytes of the body, cut as they happened to arrive; a
    connection that breaks raises a ``TransportError`` there. Leaving the context early closes
    the connection.
    """

    @property
    def resource(self) -> Resource:
        """What is listed and watched."""
        ...

    @property
    def watch_lists(self) -> bool:
        """Whether it may be asked for a WatchList: a watch that begins with the whole state."""
        ...

    def list(self, request: ListRequest) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Ask for a page of the list."""
        ...

    def watch(self, request: WatchRequest) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Ask for the stream of changes."""
        ...


@runtime_checkable
class SupportsDiscovery(Protocol):
    """A ``ListerWatcher`` that knows how to look whether its resource is served."""

    async def discover(self) -> Resource | None:
        """The resource as it is served now, in another version perhaps; ``None`` if it isn't.

        Raises:
            FetchError: it can't be known.
        """
        ...

    def with_resource(self, resource: Resource) -> Self:
        """The same for the resource in another version."""
        ...


@runtime_checkable
class SharesListSlots(Protocol):
    """A ``ListerWatcher`` that limits the initial lists that are read at the same time.

    Such a source can see for itself where a list ends, but not where a WatchList becomes a watch.
    """

    def release_list_slot(self) -> None:
        """Let another informer begin: the initial list of the open WatchList is complete."""
        ...
