"""What a reflector asks a server for: a page of a list, a watch, or whether there is anything.

Values only. Which one is next is ``cursor``'s decision; the client adds selectors and credentials
and sends it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

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
"""Any state, from the server's cache: cheap, and good enough for a first list."""
NEWEST = ""
"""The newest state, by a consistent read."""

PAGE_SIZE = 500
"""Items a page: client-go's default."""

Verb: TypeAlias = Literal["list", "watchlist", "watch", "probe", "lookup"]
"""What a request is, for health and metrics. A ``freshness_check`` is a list of one object, read only for
the resourceVersion that it carries; a ``lookup`` asks whether the resource is served."""


@dataclass(frozen=True, slots=True)
class ListRequest:
    """One page of a list."""

    resource_version: str = ANY
    limit: int = PAGE_SIZE
    """Items a page; 0 asks for all of them."""
    continue_token: str = ""
    restart: bool = field(default=False, compare=False)
    """Whether it follows something that went wrong. Those share a budget in one client; it is no
    part of what is asked."""
    freshness_check: bool = False
    """Whether only the resourceVersion of the answer matters."""
    exact: bool = False
    """Whether the state of just that version is meant, and not of any later one."""

    @property
    def verb(self) -> Verb:
        """What it is."""
        return "probe" if self.freshness_check else "list"

    def query(self) -> dict[str, str]:
        """The URL query. A continue token carries its own resourceVersion; both is an error."""
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


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """A stream of what changed after a resourceVersion; as a WatchList, of the state first."""

    resource_version: str
    timeout: int
    """Seconds after which the server shall end the stream."""
    initial: bool = False
    """Whether the stream shall begin with the whole state (KEP-3157). It is then at least as new
    as ``resource_version``; without one, it is the newest."""
    restart: bool = field(default=False, compare=False)
    """Whether it follows something that went wrong, or replaces a stream that ended."""

    @property
    def verb(self) -> Verb:
        """What it is."""
        return "watchlist" if self.initial else "watch"

    def query(self) -> dict[str, str]:
        """The URL query, with what the server insists on for a WatchList (recording 34)."""
        query = {"watch": "true", "allowWatchBookmarks": "true"}
        if self.resource_version or not self.initial:
            query["resourceVersion"] = self.resource_version
        if self.initial:
            query["sendInitialEvents"] = "true"
            query["resourceVersionMatch"] = "NotOlderThan"
        query["timeoutSeconds"] = str(self.timeout)
        return query


@dataclass(frozen=True, slots=True)
class DiscoveryRequest:
    """Whether the resource is served at all, asked of the server's discovery documents."""

    restart: bool = field(default=True, compare=False)
    """It always follows a failure."""

    @property
    def verb(self) -> Verb:
        """What it is."""
        return "lookup"


Request: TypeAlias = ListRequest | WatchRequest
"""What a resource itself is asked."""

AnyRequest: TypeAlias = Request | DiscoveryRequest
"""What a reflector asks."""
