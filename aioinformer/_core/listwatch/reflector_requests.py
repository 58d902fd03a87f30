"""The requests of a reflector, as values: the client adds selectors and credentials."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

ANY = "0"
"""The version of any state, from the server's cache: cheap, and good enough for a first list."""
NEWEST = ""


class Start(Struct, frozen=True):
    """The first read of a reflector; by default a whole state."""

    resume_from: str = ""
    """The version from which to watch without a list, because the caller knows its state."""
    not_older_than: str = ""
    """A version. The whole state that is read first is at least as new."""
    restored: bool = False
    """True if the state to resume from may be older than the server's. The server's version is read
    first, and the state is confirmed once the watch has reached this version."""
    newest: bool = False
    """True if the next whole state must be the newest one, by a consistent read."""


DEFAULT_START = Start()


PAGE_SIZE = 500
"""Items per page: client-go's default."""

Verb: TypeAlias = Literal["list", "watchlist", "watch", "freshness_check", "discovery"]
"""The kind of a request, for health and metrics. A ``freshness_check`` is a list of one object,
read only for its resourceVersion; ``discovery`` reads the resources that are served."""


class ListRequest(Struct, frozen=True):
    resource_version: str = ANY
    limit: int = PAGE_SIZE
    """Items per page; 0 requests all of them."""
    continue_token: str = ""
    restart: bool = False
    """True if the request follows a failure, or replaces a stream that ended. Such requests share a
    budget in one client. The server doesn't receive this flag."""
    freshness_check: bool = False
    exact: bool = False
    """True if the state of exactly that version is requested, and not of any later one."""

    @property
    def verb(self) -> Verb:
        return "freshness_check" if self.freshness_check else "list"

    def query(self) -> dict[str, str]:
        """Return the URL query. Servers reject a continue token together with a resourceVersion."""
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

    @property
    def verb(self) -> Verb:
        return "watchlist" if self.initial else "watch"

    def query(self) -> dict[str, str]:
        """Return the URL query, with the parameters that a WatchList must have."""
        query = {"watch": "true", "allowWatchBookmarks": "true"}
        if self.resource_version or not self.initial:
            query["resourceVersion"] = self.resource_version
        if self.initial:
            query["sendInitialEvents"] = "true"
            query["resourceVersionMatch"] = "NotOlderThan"
        query["timeoutSeconds"] = str(self.timeout)
        return query


class DiscoveryRequest(Struct, frozen=True):
    restart: bool = True

    @property
    def verb(self) -> Verb:
        return "discovery"


Request: TypeAlias = ListRequest | WatchRequest

AnyRequest: TypeAlias = Request | DiscoveryRequest
