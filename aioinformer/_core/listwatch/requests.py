"""The requests of a reflector: a page of a list, a watch, a read of discovery.

Values only. The state machine chooses the next request; the client adds selectors and credentials
and sends it.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

__all__ = [
    "ANY",
    "NEWEST",
    "PAGE_SIZE",
    "AnyRequest",
    "DiscoveryRequest",
    "ListRequest",
    "Request",
    "Verb",
    "WatchRequest",
]

ANY = "0"
"""The resourceVersion of any state, from the server's cache: cheap, and good enough for a first
list."""
NEWEST = ""
"""The resourceVersion of the newest state, by a consistent read."""

PAGE_SIZE = 500
"""Items per page: client-go's default."""

Verb: TypeAlias = Literal["list", "watchlist", "watch", "freshness_check", "discovery"]
"""The kind of a request, for health and metrics. A ``freshness_check`` is a list of one
object, read only for its resourceVersion; ``discovery`` reads the resources that are served."""


class ListRequest(Struct, frozen=True):
    """One page of a list."""

    resource_version: str = ANY
    limit: int = PAGE_SIZE
    """Items per page; 0 requests all of them."""
    continue_token: str = ""
    restart: bool = False
    """True if the request follows a failure, or replaces a stream that ended. Such requests share a
    budget in one client. The server doesn't receive this flag."""
    freshness_check: bool = False
    """True if only the resourceVersion of the response matters."""
    exact: bool = False
    """True if the state of exactly that version is requested, and not of any later one."""

    @property
    def verb(self) -> Verb:
        """The kind of the request."""
        return "freshness_check" if self.freshness_check else "list"

    def query(self) -> dict[str, str]:
        """Return the URL query.

        A continue token contains a resourceVersion, and servers reject a request with both.
        """
        query: dict[str, str] = {}
        if self.limit:
            query["limit"] = str(self.limit)
        if self.continue_token:
            query["continue"] = self.continue_token
        elif self.resource_version:
            query["resourceVersion"] = self.resource_version
            if self.exact:
                query["resourceVersionMatch"] = "Exact"
        return query


class WatchRequest(Struct, frozen=True):
    """A stream of the changes after a resourceVersion; as a WatchList, of the whole state first."""

    resource_version: str
    timeout: int
    """Seconds after which the server is asked to end the stream."""
    initial: bool = False
    """True if the stream begins with the whole state (KEP-3157). The state is at least as new as
    ``resource_version``; without a version, it is the newest."""
    restart: bool = False
    """True if the request follows a failure, or replaces a stream that ended."""

    @property
    def verb(self) -> Verb:
        """The kind of the request."""
        return "watchlist" if self.initial else "watch"

    def query(self) -> dict[str, str]:
        """Return the URL query, with the parameters that a WatchList must have (recording 34)."""
        query = {"watch": "true", "allowWatchBookmarks": "true"}
        if self.resource_version or not self.initial:
            query["resourceVersion"] = self.resource_version
        if self.initial:
            query["sendInitialEvents"] = "true"
            query["resourceVersionMatch"] = "NotOlderThan"
        query["timeoutSeconds"] = str(self.timeout)
        return query


class DiscoveryRequest(Struct, frozen=True):
    """A read of the server's discovery documents, which show if the resource is served."""

    restart: bool = True
    """True: the request always follows a failure."""

    @property
    def verb(self) -> Verb:
        """The kind of the request."""
        return "discovery"


Request: TypeAlias = ListRequest | WatchRequest
"""A request for the resource itself."""

AnyRequest: TypeAlias = Request | DiscoveryRequest
"""Any request of a reflector."""
