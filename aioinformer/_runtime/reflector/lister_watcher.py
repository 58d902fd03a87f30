"""The protocols of a source of lists and watches, which clients and clusters in memory implement.

``ListerWatcher`` is all that a reflector needs. The further protocols are optional abilities.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol, Self, runtime_checkable

from msgspec import Struct

from aioinformer._core.listwatch.reflector_requests import ListRequest, WatchRequest
from aioinformer._core.objects.resources import Resource


class ListerWatcher(Protocol):
    """A source of lists and watches of one resource in one scope, such as
    ``Client.lister_watcher``.

    Entering a context sends the request, and raises a ``FetchError`` unless the server answers with
    200. The iterator yields the bytes of the body, cut anywhere, and raises a ``TransportError`` if
    the connection breaks. Leaving the context early closes the connection.
    """

    @property
    def resource(self) -> Resource: ...

    @property
    def watch_lists(self) -> bool:
        """True if a WatchList may be requested: a watch that begins with the whole state."""
        ...

    def list(self, request: ListRequest) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Request a page of the list."""
        ...

    def watch(self, request: WatchRequest) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Request the stream of changes."""
        ...


class Source(Protocol):
    """A source of lists and watches for informers: a ``Client``, or a cluster in memory."""

    def lister_watcher(
        self, resource: Resource, *, namespace: str | None, labels: str, fields: str
    ) -> ListerWatcher: ...


def check_source(source: Source) -> Source:
    """Return ``source``; raise ``TypeError`` unless it can be the source of informers."""
    given: object = source  # a program without a type checker may pass anything
    if isinstance(given, type) or not hasattr(given, "lister_watcher"):
        shown = f"the class {given.__name__}" if isinstance(given, type) else repr(given)
        raise TypeError(f"a factory takes a Client, or another source of informers, not {shown}")
    return source


@runtime_checkable
class SupportsDiscovery(Protocol):
    """A ``ListerWatcher`` that can find out if its resource is served."""

    async def discover(self) -> Resource | None:
        """Return the resource as it is served now, perhaps in another version, or ``None``.

        Raises:
            FetchError: discovery failed.
        """
        ...

    def with_resource(self, resource: Resource) -> Self: ...


@runtime_checkable
class SharesAnswers(Protocol):
    """A ``ListerWatcher`` that learns when the server answers another informer.

    After an outage, the first informer that reaches the server so ends the waits of all others.
    """

    @property
    def answers(self) -> int:
        """The number of answers of the server to all informers so far."""
        ...

    async def wait_for_answer(self, timeout: float, *, success: bool = False) -> bool:
        """Wait until the server answers any informer; return False if ``timeout`` seconds pass.

        With ``success``, answers with 429 or 5xx don't count.
        """
        ...


@runtime_checkable
class RenewsCredentials(Protocol):
    """A ``ListerWatcher`` that learns when there are other credentials, such as a new token."""

    async def wait_for_credentials(self, timeout: float) -> bool:
        """Wait for other credentials; return False if ``timeout`` seconds pass."""
        ...


@runtime_checkable
class ServesNamespace(Protocol):
    """A ``ListerWatcher`` that knows its scope. Objects in another namespace are rejected."""

    @property
    def namespace(self) -> str | None:
        """The only namespace of the objects; ``None`` if there may be several."""
        ...


def served_namespace(source: ListerWatcher) -> str | None:
    return (source.namespace or None) if isinstance(source, ServesNamespace) else None


@runtime_checkable
class NamesSelectors(Protocol):
    """A ``ListerWatcher`` that knows which objects of its namespace it selects."""

    @property
    def selectors(self) -> Mapping[str, str]:
        """The query parameters ``labelSelector`` and ``fieldSelector``, and perhaps others."""
        ...


@runtime_checkable
class SupportsMetadataOnly(Protocol):
    """A ``ListerWatcher`` that can ask the server for the metadata of objects only.

    Without this ability, and from a server that sends whole objects all the same, the metadata is
    cut out of whole objects.
    """

    def with_metadata_only(self) -> Self: ...


@runtime_checkable
class SupportsListOptions(Protocol):
    """A ``ListerWatcher`` whose requests can have further query parameters."""

    def with_list_options(self, options: Mapping[str, str]) -> Self: ...


class ClusterIdentity(Struct, frozen=True):
    uid: str = ""
    """The UID of the namespace ``kube-system``, which exists once in each cluster; empty if the
    program may not read the namespace."""
    endpoint: str = ""
    """A hash of the server's URL and of the certificate authorities that the client trusts."""

    def matches(self, other: ClusterIdentity) -> bool:
        """Return True if the UIDs are equal, or, where one is unknown, the endpoints."""
        if self.uid and other.uid:
            return self.uid == other.uid
        return bool(self.endpoint) and self.endpoint == other.endpoint


@runtime_checkable
class NamesOrigin(Protocol):
    """A ``ListerWatcher`` that names the origin of its objects, so that they can be stored."""

    @property
    def selection(self) -> Mapping[str, str]:
        """The namespace, the selectors and the other options that select the objects."""
        ...

    async def cluster_identity(self) -> ClusterIdentity:
        """Return the identity of the cluster, as far as it can be found in a few seconds."""
        ...


@runtime_checkable
class SharesListSlots(Protocol):
    """A ``ListerWatcher`` that limits the initial lists that are read at the same time.

    Such a source can see for itself where a list ends, but not where a WatchList becomes a watch.
    """

    def release_list_slot(self) -> None:
        """Let another informer begin: the initial list of the open WatchList is complete."""
