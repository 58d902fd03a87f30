"""Where a reflector stands between the list and the watch, as one table.

An outcome goes in, the next request comes out: which page or stream to ask for, from which
resourceVersion, and after what wait. The rules are client-go's reflector with the deviations
that its users have paid for; ``RULES`` is the whole of them. This module knows no network (the
client renders requests), no clock and no chance (they are arguments), and no objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

from aioinformer._core.backoff import Backoff
from aioinformer._core.outcomes import Outcome
from aioinformer.errors import ProtocolError

__all__ = [
    "RULES",
    "Cursor",
    "ListRequest",
    "Phase",
    "Request",
    "Rule",
    "Step",
    "WatchRequest",
]

ANY = "0"
"""Any state, from the server's cache: cheap, and good enough for a first list."""
NEWEST = ""
"""The newest state, by a consistent read."""

PAGE_SIZE = 500
"""Items a page: client-go's default."""
WATCH_SECONDS = (300, 600)
"""How long a watch is asked to last: random, so that streams opened together don't end together
(client-go)."""
SHORT_WATCH = 1.0
"""A watch that ends sooner, with nothing in it, was not served (client-go's VeryShortWatch)."""
STUBBORN = 3
"""After so many watches in a row that were not served, list again: some servers close a watch
from a stale resourceVersion without saying 410 (fabric8#7896)."""


# -- requests ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ListRequest:
    """One page of a list."""

    resource_version: str = ANY
    limit: int = PAGE_SIZE
    """Items a page; 0 asks for all of them."""
    continue_token: str = ""

    def query(self) -> dict[str, str]:
        """The URL query. A continue token carries its own resourceVersion; both is an error."""
        query: dict[str, str] = {}
        if self.limit:
            query["limit"] = str(self.limit)
        if self.continue_token:
            query["continue"] = self.continue_token
        elif self.resource_version:
            query["resourceVersion"] = self.resource_version
        return query


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """A stream of what changed after a resourceVersion."""

    resource_version: str
    timeout: int
    """Seconds after which the server shall end the stream."""

    def query(self) -> dict[str, str]:
        """The URL query."""
        return {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self.resource_version,
            "timeoutSeconds": str(self.timeout),
        }


Request: TypeAlias = ListRequest | WatchRequest


@dataclass(frozen=True, slots=True)
class Step:
    """What to do next."""

    request: Request
    delay: float = 0.0
    """Seconds to wait first."""


# -- the table ---------------------------------------------------------------------------------


class Phase(Enum):
    """What the last request was."""

    LIST = auto()
    """The first page of a list."""
    PAGE = auto()
    """A further page."""
    WATCH = auto()


class Goto(Enum):
    """What to ask for next."""

    LIST = auto()
    """Start a list, at the last resourceVersion known (at 'any' if none is)."""
    LIST_NEWEST = auto()
    """Start a list by consistent read, and do so until one succeeds."""
    LIST_WHOLE = auto()
    """Start the list again without pages, at the version first asked for (client-go's
    FullListIfExpired): pages that outlive their token would never come to an end."""
    PAGE = auto()
    """The next page, or the same one again if that is what failed."""
    WATCH = auto()
    """Watch from the last resourceVersion known."""


class Pause(Enum):
    """Whether to wait first."""

    NONE = auto()
    IF_AGAIN = auto()
    """Not for the first failure since a quiet time: trying another way once is no storm."""
    ALWAYS = auto()


@dataclass(frozen=True, slots=True)
class Rule:
    """What follows an outcome."""

    goto: Goto
    pause: Pause


_LISTING = {
    Outcome.MORE: Rule(Goto.PAGE, Pause.NONE),
    Outcome.COMPLETE: Rule(Goto.WATCH, Pause.NONE),
    Outcome.EXPIRED: Rule(Goto.LIST_NEWEST, Pause.IF_AGAIN),
    Outcome.AHEAD: Rule(Goto.LIST_NEWEST, Pause.IF_AGAIN),
    Outcome.BUSY: Rule(Goto.LIST, Pause.ALWAYS),
    Outcome.UNREACHABLE: Rule(Goto.LIST, Pause.ALWAYS),
    Outcome.DENIED: Rule(Goto.LIST, Pause.ALWAYS),
    Outcome.FAILED: Rule(Goto.LIST, Pause.ALWAYS),
    Outcome.REJECTED: Rule(Goto.LIST, Pause.ALWAYS),
    Outcome.BROKEN: Rule(Goto.LIST, Pause.ALWAYS),
}

RULES: dict[Phase, dict[Outcome, Rule]] = {
    Phase.LIST: _LISTING,
    Phase.PAGE: _LISTING
    | {
        Outcome.EXPIRED: Rule(Goto.LIST_WHOLE, Pause.IF_AGAIN),
        # What was listed so far still counts while the token lives.
        Outcome.BUSY: Rule(Goto.PAGE, Pause.ALWAYS),
        Outcome.UNREACHABLE: Rule(Goto.PAGE, Pause.ALWAYS),
        Outcome.FAILED: Rule(Goto.PAGE, Pause.ALWAYS),
    },
    Phase.WATCH: {
        Outcome.ENDED: Rule(Goto.WATCH, Pause.NONE),
        Outcome.UNSERVED: Rule(Goto.WATCH, Pause.ALWAYS),  # a list after STUBBORN of them
        Outcome.EXPIRED: Rule(Goto.LIST, Pause.IF_AGAIN),
        Outcome.AHEAD: Rule(Goto.LIST_NEWEST, Pause.IF_AGAIN),
        Outcome.BUSY: Rule(Goto.WATCH, Pause.ALWAYS),
        Outcome.UNREACHABLE: Rule(Goto.WATCH, Pause.ALWAYS),
        Outcome.DENIED: Rule(Goto.WATCH, Pause.ALWAYS),
        Outcome.FAILED: Rule(Goto.WATCH, Pause.ALWAYS),  # a list after STUBBORN of them
        Outcome.REJECTED: Rule(Goto.LIST, Pause.ALWAYS),
        Outcome.BROKEN: Rule(Goto.LIST, Pause.ALWAYS),
    },
}
"""What follows which outcome. client-go differs where it lists after any failed start of a watch
(here the watch is tried again: its resourceVersion is still good until the server says 410), and
where it waits before the first list after 410."""


class Cursor:
    """The state: the last request, the last resourceVersion, and what is known of the server."""

    def __init__(self, *, backoff: Backoff | None = None, page_size: int = 0) -> None:
        """Make a cursor that starts with a list.

        Args:
            backoff: the waits after failures.
            page_size: items a page, 0 for client-go's rule: 500, and no limit for a list at a
                known resourceVersion, since a limit would bypass the server's cache.
        """
        self.backoff = backoff or Backoff()
        self.resource_version = ""
        """The last one received; where the next watch starts. Empty until the first list."""
        self.request: Request = ListRequest(ANY, page_size or PAGE_SIZE)
        """The request under way."""
        self._page_size = page_size
        self._list_version = ANY
        self._needs_newest = False
        self._cache_off = False
        self._token = ""
        self._unserved = 0

    @property
    def phase(self) -> Phase:
        """What the request under way is."""
        if isinstance(self.request, WatchRequest):
            return Phase.WATCH
        return Phase.PAGE if self.request.continue_token else Phase.LIST

    def page(self, resource_version: str, continue_token: str) -> Outcome:
        """A page came; the outcome to advance with.

        Raises:
            ProtocolError: it has no version. A watch from none would begin with everything.
        """
        if not resource_version:
            raise ProtocolError("the list has no resourceVersion to watch from", phase="list")
        self._token = continue_token
        if continue_token:
            # A list from the cache is never cut into pages, so this server has no cache.
            self._cache_off = self._cache_off or self._list_version == ANY
            return Outcome.MORE
        self.resource_version = resource_version
        self._needs_newest = False
        return Outcome.COMPLETE

    def saw(self, resource_version: str) -> None:
        """The stream delivered an event or bookmark. An empty version is no version."""
        if resource_version:
            self.resource_version = resource_version
            self._unserved = 0

    def advance(
        self, outcome: Outcome, *, now: float, jitter: float, retry_after: float | None = None
    ) -> Step:
        """The request under way ended so; what comes next.

        Args:
            outcome: how it ended.
            now: seconds of a monotonic clock.
            jitter: chance in [0, 1), for the wait and the length of a watch.
            retry_after: the least wait that the server asked for, in seconds.
        """
        rule = RULES[self.phase][outcome]
        goto = self._unless_stubborn(rule.goto, outcome)
        delay = self._pause(rule.pause, now, jitter, retry_after or 0.0)
        self.request = self._request(goto, jitter)
        return Step(self.request, delay)

    def _unless_stubborn(self, goto: Goto, outcome: Outcome) -> Goto:
        if outcome is Outcome.ENDED:
            self._unserved = 0
        if goto is not Goto.WATCH or outcome not in (Outcome.UNSERVED, Outcome.FAILED):
            return goto
        self._unserved += 1
        if self._unserved < STUBBORN:
            return goto
        self._unserved = 0
        return Goto.LIST

    def _pause(self, pause: Pause, now: float, jitter: float, least: float) -> float:
        if pause is Pause.NONE:
            return 0.0
        if pause is Pause.IF_AGAIN and not least and self.backoff.first(now):
            return self.backoff.skip(now)
        return self.backoff.next(now, jitter, least=least)

    def _request(self, goto: Goto, jitter: float) -> Request:
        match goto:
            case Goto.WATCH:
                low, high = WATCH_SECONDS
                return WatchRequest(self.resource_version, int(low + (high - low) * jitter))
            case Goto.PAGE:
                return ListRequest(self._list_version, self._limit(), self._token)
            case Goto.LIST_WHOLE:
                return ListRequest(self._list_version, 0)
            case Goto.LIST | Goto.LIST_NEWEST:
                self._needs_newest = self._needs_newest or goto is Goto.LIST_NEWEST
                known = self.resource_version or ANY
                self._list_version = NEWEST if self._needs_newest else known
                return ListRequest(self._list_version, self._limit())

    def _limit(self) -> int:
        if self._page_size:
            return self._page_size
        from_cache = self._list_version not in (ANY, NEWEST) and not self._cache_off
        return 0 if from_cache else PAGE_SIZE

    def __repr__(self) -> str:
        known = self.resource_version or "none"
        return f"<Cursor {self.phase.name} rv={known} failures={self.backoff.failures}>"
