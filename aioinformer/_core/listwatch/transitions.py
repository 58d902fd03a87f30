"""The transition table of the list/watch state machine.

A row says everything that follows from one outcome in one phase. A new outcome is a member of
``Outcome`` and its rows here. The rules are those of client-go's reflector, with deviations for
problems that its users met.
"""

from __future__ import annotations

from enum import Enum, Flag, auto
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.reflector_requests import AnyRequest


class Phase(Enum):
    WATCHLIST = auto()
    """A WatchList, up to the end mark of its initial state. After the mark, it is a watch."""
    LIST = auto()
    PAGE = auto()
    WATCH = auto()
    FRESHNESS_CHECK = auto()
    """A consistent read of one object, which shows how new the server's state is."""
    DISCOVERY = auto()


class NextRequest(Enum):
    FULL_STATE = auto()
    """The whole state, at least as new as the last known one: by a WatchList, or by a list where
    the server is known not to serve WatchLists."""
    NEWEST_STATE = auto()
    """The whole state by a consistent read. Retries of the read are consistent reads too."""
    LIST = auto()
    """The whole state by a list, and later reads too for a while: WatchLists don't complete here.
    """
    TRIAL_LIST = auto()
    """The same for a shorter while, if this list works. If it fails, a WatchList follows again.
    After WatchLists that were not answered at all, the list is the only one: the server may be down
    behind a load balancer."""
    SINGLE_LIST = auto()
    """The whole state by a list, this time: the server refused a watch or a WatchList, and may
    allow a list. If the list is refused too, the next read is a WatchList again."""
    UNPAGED_LIST = auto()
    """The list again without pages, at the version first requested (client-go's FullListIfExpired).
    Pages that outlive their token would never reach the end. The server offers a fresh token, but
    the pages would then be of two different moments."""
    PAGE = auto()
    """The next page, or the same page again if reading the page failed."""
    WATCH = auto()
    FRESHNESS_CHECK = auto()
    DISCOVERY = auto()
    """A look into discovery; a read of the whole state if the source doesn't support discovery."""


class Wait(Enum):
    NONE = auto()
    SKIP_ONCE = auto()
    """A backoff, but no wait the first time in an outage: the next request is of another kind, and
    one more request doesn't overload a server."""
    AS_REQUESTED = auto()
    """The wait that the server asked for; a backoff if the server asked for none."""
    SPACED = auto()
    """A wait that makes watches begin 3 seconds apart, and 20 seconds once the trouble has lasted
    for two minutes. No wait the first time."""
    POLL = auto()
    ALWAYS = auto()


class Ending(Enum):
    """The kind of a request's end, which decides the next wait and the health."""

    CONTINUED = auto()
    """The request did its part. The next one completes the same work and needs no token of the
    client's rate limit."""
    NORMAL = auto()
    """The request ended as it is meant to. The next request replaces it."""
    SHORT = auto()
    """A watch ended early without a change."""
    FAILED = auto()

    @property
    def healthy(self) -> bool:
        return self in (Ending.CONTINUED, Ending.NORMAL)


class Learn(Flag):
    NOTHING = 0
    LIST_WORKS = auto()
    """A list completed. If a WatchList failed before, the failure is the WatchList's own, and the
    server profile remembers to list for a while."""
    WATCH_IDLE = auto()
    """The freshness check after an idle timeout ended. Unless the check has shown that the server
    had a bookmark to send, the server profile doubles the expected interval of bookmarks."""
    SERVED = auto()
    NOT_SERVED = auto()
    """The server doesn't serve the resource. The next read is of the newest state, also if further
    reads of discovery fail: objects that were deleted with the resource must not reappear."""


LogLevel: TypeAlias = Literal["info", "warning"]


class Transition(Struct, frozen=True):
    """One row: everything that follows from an outcome."""

    next_request: NextRequest
    wait: Wait
    ending: Ending = Ending.FAILED
    fallback: NextRequest | None = None
    """The next request after ``MAX_CONSECUTIVE_FAILURES`` such outcomes in a row: this kind of
    request doesn't work with this server. Some servers close a watch from a stale resourceVersion
    without a 410 (fabric8#7896), some proxies cut every long response. ``None`` if the outcome
    doesn't count as such a failure."""
    learn: Learn = Learn.NOTHING
    log: LogLevel = "warning"
    """The level at which the error is logged: info for an end that an older server must cause."""
    is_problem: bool = True
    """False if the error states a property of the server that the reflector handles: the error is
    logged, and reaches neither health nor the error hook."""

    @property
    def tries_list(self) -> bool:
        """True if a list shows next if the error concerns watches only, or the resource."""
        if not self.is_problem:
            return True
        return self.next_request is NextRequest.SINGLE_LIST and self.wait is not Wait.POLL


UNTIL_ANSWER = frozenset(
    {
        Outcome.UNREACHABLE,
        Outcome.CONNECTION_LOST,
        Outcome.LOST_AT_ONCE,
        Outcome.EMPTY_WATCH,
        Outcome.UNAVAILABLE,
        Outcome.SERVER_ERROR,
        Outcome.ERROR_EVENT,
        Outcome.WATCHLIST_REFUSED,
        Outcome.WATCHLIST_UNANSWERED,
    }
)
"""The outcomes after which an answer to another informer ends the wait, unless the server asked for
it: an outage of the server, as far as one informer can see. Waits after 401, 403, 404 and 429
concern one resource or one client."""


class ScheduledRequest(Struct, frozen=True):
    """The next request, and the table row that led to it."""

    request: AnyRequest
    transition: Transition
    delay: float = 0.0
    """Seconds to wait before the request."""
    until_answer: bool = False
    """True if an answer to another informer ends the wait: the server is back."""
    until_success: bool = False
    """True if that answer has to be a 200: the server had failed and not the network."""
    until_credentials: bool = False
    """True if other credentials end the wait."""


TransitionTable: TypeAlias = dict[Phase, dict[Outcome, Transition]]

_RETRY_STATE = Transition(NextRequest.FULL_STATE, Wait.ALWAYS)
_RETRY_WATCH = Transition(NextRequest.WATCH, Wait.ALWAYS)
_RETRY_PAGE = Transition(NextRequest.PAGE, Wait.ALWAYS)
_DELAY_STATE = Transition(NextRequest.FULL_STATE, Wait.AS_REQUESTED)
_DELAY_WATCH = Transition(NextRequest.WATCH, Wait.AS_REQUESTED)
_DELAY_PAGE = Transition(NextRequest.PAGE, Wait.AS_REQUESTED)
_ASK_DISCOVERY = Transition(NextRequest.DISCOVERY, Wait.ALWAYS)

# A server that could not be reached may have been restored from a backup meanwhile. That server
# accepts a watch from a version that it hasn't reached, and is silent. So a check of its version
# precedes the watch, which follows the check at once.
_CHECK_THEN_WATCH = Transition(NextRequest.FRESHNESS_CHECK, Wait.ALWAYS)

# So may one whose watch broke: a load balancer connects the next request to another server.
_CHECK_LOST_WATCH = Transition(NextRequest.FRESHNESS_CHECK, Wait.SPACED)

_CHECKED = Transition(
    NextRequest.WATCH, Wait.NONE, Ending.CONTINUED, learn=Learn.SERVED | Learn.WATCH_IDLE
)
_RETRY_AFTER_CHECK = Transition(NextRequest.WATCH, Wait.ALWAYS, learn=Learn.WATCH_IDLE)
_DELAY_AFTER_CHECK = Transition(NextRequest.WATCH, Wait.AS_REQUESTED, learn=Learn.WATCH_IDLE)

_READ_NEWEST = Transition(NextRequest.NEWEST_STATE, Wait.SKIP_ONCE)

# The role may allow lists and no watches, and an aggregated API may serve lists only. If the list
# is refused too, the refusal concerns the resource.
_TRY_LIST = Transition(NextRequest.SINGLE_LIST, Wait.SKIP_ONCE)

# The server has no WatchList: an older one, or one whose storage can't do it.
# Such a server costs one attempt. If the request itself is wrong, the list that follows fails as
# well.
_LIST_INSTEAD = Transition(NextRequest.LIST, Wait.SKIP_ONCE, log="info")
_NO_WATCHLIST = Transition(NextRequest.LIST, Wait.SKIP_ONCE, log="info", is_problem=False)
_RETRY_WATCHLIST = Transition(NextRequest.FULL_STATE, Wait.ALWAYS, fallback=NextRequest.TRIAL_LIST)
_RETRY_CUT_WATCHLIST = replace(_RETRY_WATCHLIST, ending=Ending.SHORT)
_READ_NEWEST_WATCHLIST = replace(_READ_NEWEST, fallback=NextRequest.TRIAL_LIST)

# A 410, as a response or as an ERROR event, is Outcome.EXPIRED in all rows below.
_STATE_READS = {
    Outcome.EXPIRED: _READ_NEWEST,
    Outcome.VERSION_TOO_LARGE: _READ_NEWEST,
    Outcome.THROTTLED: _DELAY_STATE,
    Outcome.UNAVAILABLE: _DELAY_STATE,
    Outcome.UNREACHABLE: _RETRY_STATE,
    Outcome.CONNECTION_LOST: _RETRY_STATE,
    Outcome.UNAUTHORIZED: _RETRY_STATE,
    Outcome.ACCESS_DENIED: _RETRY_STATE,
    Outcome.NOT_FOUND: _ASK_DISCOVERY,
    Outcome.METHOD_NOT_ALLOWED: _RETRY_STATE,
    Outcome.SERVER_ERROR: _RETRY_STATE,
    Outcome.BAD_REQUEST: _RETRY_STATE,
    Outcome.PROTOCOL_ERROR: _RETRY_STATE,
}
"""The rows that lists and WatchLists share."""

_LIST_READS = _STATE_READS | {
    Outcome.REWOUND: _READ_NEWEST,  # the list is older than the request allowed
    Outcome.MORE: Transition(NextRequest.PAGE, Wait.NONE, Ending.CONTINUED),
    Outcome.COMPLETE: Transition(
        NextRequest.WATCH, Wait.NONE, Ending.CONTINUED, learn=Learn.LIST_WORKS | Learn.SERVED
    ),
    Outcome.POLLED: Transition(
        NextRequest.SINGLE_LIST, Wait.POLL, Ending.NORMAL, learn=Learn.LIST_WORKS | Learn.SERVED
    ),
}

TRANSITIONS: TransitionTable = {
    Phase.WATCHLIST: _STATE_READS
    | {
        Outcome.EXPIRED: _READ_NEWEST_WATCHLIST,
        Outcome.VERSION_TOO_LARGE: _READ_NEWEST_WATCHLIST,
        Outcome.ACCESS_DENIED: _TRY_LIST,
        Outcome.NOT_FOUND: _TRY_LIST,
        Outcome.METHOD_NOT_ALLOWED: _TRY_LIST,
        Outcome.UNAVAILABLE: replace(_RETRY_WATCHLIST, wait=Wait.AS_REQUESTED),
        Outcome.WATCHLIST_REFUSED: _RETRY_WATCHLIST,
        Outcome.WATCHLIST_UNANSWERED: _RETRY_WATCHLIST,
        Outcome.WATCHLIST_UNSUPPORTED: _NO_WATCHLIST,
        Outcome.BAD_REQUEST: _LIST_INSTEAD,
        Outcome.ERROR_EVENT: _LIST_INSTEAD,
        Outcome.WATCHLIST_TIMEOUT: _LIST_INSTEAD,
        # A WatchList that breaks off is discarded as a whole.
        Outcome.CONNECTION_LOST: _RETRY_WATCHLIST,
        Outcome.SERVER_ERROR: _RETRY_WATCHLIST,
        Outcome.PROTOCOL_ERROR: _RETRY_WATCHLIST,
        Outcome.ENDED: _RETRY_WATCHLIST,
        Outcome.SHORT_WATCH: _RETRY_CUT_WATCHLIST,
        Outcome.EMPTY_WATCH: _RETRY_CUT_WATCHLIST,
    },
    Phase.LIST: _LIST_READS,
    Phase.PAGE: _LIST_READS
    | {
        Outcome.EXPIRED: Transition(NextRequest.UNPAGED_LIST, Wait.SKIP_ONCE),
        # The pages that were read stay valid while the token lives.
        Outcome.THROTTLED: _DELAY_PAGE,
        Outcome.UNAVAILABLE: _DELAY_PAGE,
        Outcome.UNREACHABLE: _RETRY_PAGE,
        Outcome.CONNECTION_LOST: _RETRY_PAGE,
        Outcome.SERVER_ERROR: _RETRY_PAGE,
    },
    Phase.WATCH: {
        Outcome.ENDED: Transition(NextRequest.WATCH, Wait.NONE, Ending.NORMAL),
        # Where bookmarks come, an idle timeout is sooner.
        Outcome.SILENT_WATCH: Transition(NextRequest.FRESHNESS_CHECK, Wait.NONE, Ending.NORMAL),
        Outcome.SHORT_WATCH: Transition(NextRequest.WATCH, Wait.SPACED, Ending.SHORT),
        Outcome.EMPTY_WATCH: Transition(
            NextRequest.WATCH, Wait.ALWAYS, Ending.SHORT, fallback=NextRequest.FULL_STATE
        ),
        Outcome.IDLE_TIMEOUT: Transition(NextRequest.FRESHNESS_CHECK, Wait.NONE),
        Outcome.EXPIRED: Transition(NextRequest.FULL_STATE, Wait.SKIP_ONCE),
        Outcome.VERSION_TOO_LARGE: _READ_NEWEST,
        Outcome.THROTTLED: _DELAY_WATCH,
        Outcome.UNAVAILABLE: _DELAY_WATCH,
        Outcome.UNREACHABLE: _CHECK_THEN_WATCH,
        Outcome.CONNECTION_LOST: _CHECK_LOST_WATCH,
        Outcome.LOST_AT_ONCE: replace(_CHECK_THEN_WATCH, fallback=NextRequest.FULL_STATE),
        Outcome.UNAUTHORIZED: _RETRY_WATCH,
        Outcome.ACCESS_DENIED: _TRY_LIST,
        Outcome.METHOD_NOT_ALLOWED: _TRY_LIST,
        Outcome.WATCH_REFUSED: Transition(NextRequest.SINGLE_LIST, Wait.POLL),
        Outcome.SERVER_ERROR: Transition(
            NextRequest.WATCH, Wait.ALWAYS, fallback=NextRequest.FULL_STATE
        ),
        Outcome.NOT_FOUND: _TRY_LIST,
        Outcome.BAD_REQUEST: _RETRY_STATE,
        Outcome.ERROR_EVENT: _RETRY_STATE,
        Outcome.PROTOCOL_ERROR: _RETRY_STATE,
    },
    # Unless the check shows an older state, the watch continues where it was. A check that the
    # server has rejected is not repeated: the role may allow watches only. A check that the network
    # did not carry says that the idle connection was dead, too.
    Phase.FRESHNESS_CHECK: {
        Outcome.COMPLETE: _CHECKED,
        Outcome.ALIVE: _CHECKED,
        Outcome.REWOUND: Transition(NextRequest.NEWEST_STATE, Wait.NONE),
        Outcome.EXPIRED: _RETRY_AFTER_CHECK,
        Outcome.VERSION_TOO_LARGE: _RETRY_AFTER_CHECK,
        Outcome.THROTTLED: _DELAY_AFTER_CHECK,
        Outcome.UNAVAILABLE: _DELAY_AFTER_CHECK,
        Outcome.UNREACHABLE: _CHECK_THEN_WATCH,
        Outcome.CONNECTION_LOST: _RETRY_WATCH,
        Outcome.UNAUTHORIZED: _RETRY_AFTER_CHECK,
        Outcome.ACCESS_DENIED: _RETRY_AFTER_CHECK,
        Outcome.NOT_FOUND: _RETRY_AFTER_CHECK,
        Outcome.METHOD_NOT_ALLOWED: _RETRY_AFTER_CHECK,
        Outcome.SERVER_ERROR: _RETRY_AFTER_CHECK,
        Outcome.BAD_REQUEST: _RETRY_AFTER_CHECK,
        Outcome.PROTOCOL_ERROR: _RETRY_AFTER_CHECK,
    },
    # A single 404 may come from a replica that lags behind, or from a proxy.
    Phase.DISCOVERY: {
        Outcome.SERVED: Transition(NextRequest.FULL_STATE, Wait.ALWAYS, learn=Learn.SERVED),
        # The newest state: objects that were deleted with the resource must not reappear.
        Outcome.APPEARED: Transition(NextRequest.NEWEST_STATE, Wait.NONE, learn=Learn.SERVED),
        Outcome.API_VERSION_CHANGED: Transition(
            NextRequest.FULL_STATE, Wait.ALWAYS, learn=Learn.SERVED
        ),
        Outcome.NOT_SERVED: Transition(NextRequest.DISCOVERY, Wait.ALWAYS, learn=Learn.NOT_SERVED),
        # Discovery failed, so the resource itself is requested again.
        Outcome.EXPIRED: _RETRY_STATE,
        Outcome.VERSION_TOO_LARGE: _RETRY_STATE,
        Outcome.THROTTLED: _DELAY_STATE,
        Outcome.UNAVAILABLE: _DELAY_STATE,
        Outcome.UNREACHABLE: _RETRY_STATE,
        Outcome.UNAUTHORIZED: _RETRY_STATE,
        Outcome.ACCESS_DENIED: _RETRY_STATE,
        Outcome.NOT_FOUND: _RETRY_STATE,
        Outcome.METHOD_NOT_ALLOWED: _RETRY_STATE,
        Outcome.SERVER_ERROR: _RETRY_STATE,
        Outcome.BAD_REQUEST: _RETRY_STATE,
        Outcome.PROTOCOL_ERROR: _RETRY_STATE,
    },
}
"""The rows by phase and outcome. client-go differs in these points: it lists after any failed start
of a watch (here the watch is tried again, because its resourceVersion stays valid until the server
answers 410), it waits before the first list after a 410, it lets its backoff grow with each 429, it
tries a WatchList again in every cycle, it lists at the pace of its backoff where watches are
refused, it compares no version after an outage, and it has no ``IDLE_TIMEOUT``, ``SHORT_WATCH``,
``SILENT_WATCH``, ``WATCHLIST_TIMEOUT`` and ``FRESHNESS_CHECK``."""

WATCH_ONLY_TRANSITIONS: TransitionTable = TRANSITIONS | {
    Phase.WATCH: TRANSITIONS[Phase.WATCH]
    | {
        Outcome.SERVER_ERROR: _RETRY_WATCH,
        Outcome.ERROR_EVENT: _RETRY_WATCH,
        Outcome.LOST_AT_ONCE: _CHECK_THEN_WATCH,
    }
}
"""The rows of a reflector whose consumer keeps no state, so that a read of the whole state is the
end of its watch. As in client-go's RetryWatcher, a server that fails is watched again from the last
version until it answers that the version has expired."""
