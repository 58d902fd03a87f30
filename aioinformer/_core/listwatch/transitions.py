"""What follows when a request has ended: one table.

The rules are client-go's reflector (its error table is the first column of ours) with the
deviations that its users have paid for. ``cursor`` looks them up and turns them into requests.
"""

from __future__ import annotations

from enum import Enum, auto

from msgspec import Struct

from aioinformer._core.listwatch.outcomes import Outcome

__all__ = ["STRATEGY_FAILURES", "TRANSITIONS", "NextRequest", "Phase", "Transition", "Wait"]


class Phase(Enum):
    """What the last request was."""

    WATCHLIST = auto()
    """A WatchList, up to the mark behind its initial state. From there on it is a watch."""
    LIST = auto()
    """The first page of a list."""
    PAGE = auto()
    """A further page."""
    WATCH = auto()
    """A watch."""
    FRESHNESS_CHECK = auto()
    """A consistent read of one object, to see how new the server's state is."""
    DISCOVERY = auto()
    """A look into the server's discovery documents, to see whether the resource is served."""


class NextRequest(Enum):
    """What to ask for next."""

    FULL_STATE = auto()
    """The whole state, at least as new as the last one known: by a WatchList, or by a list where
    those are known not to be served."""
    NEWEST_STATE = auto()
    """The same by consistent read, and so until one succeeds."""
    LIST = auto()
    """The whole state by a list, and by lists for a while: no WatchList comes to an end here."""
    UNPAGED_LIST = auto()
    """Start the list again without pages, at the version first asked for (client-go's
    FullListIfExpired): pages that outlive their token would never come to an end. The fresh token
    that the server offers (recording 62) would make a state of two moments."""
    PAGE = auto()
    """The next page, or the same one again if that is what failed."""
    WATCH = auto()
    """Watch from the last resourceVersion known."""
    FRESHNESS_CHECK = auto()
    """Look how new the server's state is."""
    DISCOVERY = auto()
    """Look whether the resource is served; where there is no way to look, get the state."""


class Wait(Enum):
    """Whether to wait first."""

    NONE = auto()
    UNLESS_FIRST = auto()
    """Not for the first failure since a quiet time: trying another way once is no storm."""
    SPACED = auto()
    """Not the first time; then so long that watches begin twenty seconds apart."""
    ALWAYS = auto()


class Transition(Struct, frozen=True):
    """What follows an outcome."""

    next_request: NextRequest
    wait: Wait


_RETRY_STATE = Transition(NextRequest.FULL_STATE, Wait.ALWAYS)
_RETRY_WATCH = Transition(NextRequest.WATCH, Wait.ALWAYS)
_ASK_DISCOVERY = Transition(NextRequest.DISCOVERY, Wait.ALWAYS)

_STATE_READS = {
    Outcome.EXPIRED: Transition(NextRequest.NEWEST_STATE, Wait.UNLESS_FIRST),
    Outcome.VERSION_TOO_LARGE: Transition(NextRequest.NEWEST_STATE, Wait.UNLESS_FIRST),
    Outcome.THROTTLED: _RETRY_STATE,
    Outcome.UNREACHABLE: _RETRY_STATE,
    Outcome.CONNECTION_LOST: _RETRY_STATE,
    Outcome.ACCESS_DENIED: _RETRY_STATE,
    Outcome.NOT_FOUND: _ASK_DISCOVERY,
    Outcome.SERVER_ERROR: _RETRY_STATE,
    Outcome.BAD_REQUEST: _RETRY_STATE,
    Outcome.PROTOCOL_ERROR: _RETRY_STATE,
}
"""What LIST and STREAM have in common."""

_LIST_READS = _STATE_READS | {
    Outcome.REWOUND: Transition(
        NextRequest.NEWEST_STATE, Wait.UNLESS_FIRST
    ),  # older than what was asked for
    Outcome.MORE: Transition(NextRequest.PAGE, Wait.NONE),
    Outcome.COMPLETE: Transition(NextRequest.WATCH, Wait.NONE),
}

TRANSITIONS: dict[Phase, dict[Outcome, Transition]] = {
    Phase.WATCHLIST: _STATE_READS
    | {
        # What isn't understood, and what the storage behind it can't do (recording 43).
        Outcome.BAD_REQUEST: Transition(NextRequest.LIST, Wait.UNLESS_FIRST),
        Outcome.ERROR_EVENT: Transition(NextRequest.LIST, Wait.UNLESS_FIRST),
        Outcome.WATCHLIST_TIMEOUT: Transition(NextRequest.LIST, Wait.UNLESS_FIRST),
        # A stream that ended early is discarded; a list after STUBBORN of them.
        Outcome.ENDED: _RETRY_STATE,
        Outcome.SHORT_WATCH: _RETRY_STATE,
        Outcome.EMPTY_WATCH: _RETRY_STATE,
    },
    Phase.LIST: _LIST_READS,
    Phase.PAGE: _LIST_READS
    | {
        Outcome.EXPIRED: Transition(NextRequest.UNPAGED_LIST, Wait.UNLESS_FIRST),
        # What was listed so far still counts while the token lives.
        Outcome.THROTTLED: Transition(NextRequest.PAGE, Wait.ALWAYS),
        Outcome.UNREACHABLE: Transition(NextRequest.PAGE, Wait.ALWAYS),
        Outcome.CONNECTION_LOST: Transition(NextRequest.PAGE, Wait.ALWAYS),
        Outcome.SERVER_ERROR: Transition(NextRequest.PAGE, Wait.ALWAYS),
    },
    Phase.WATCH: {
        Outcome.ENDED: Transition(NextRequest.WATCH, Wait.NONE),
        Outcome.SHORT_WATCH: Transition(NextRequest.WATCH, Wait.SPACED),
        Outcome.EMPTY_WATCH: _RETRY_WATCH,  # the state after STUBBORN of them
        Outcome.IDLE_TIMEOUT: Transition(NextRequest.FRESHNESS_CHECK, Wait.NONE),
        Outcome.EXPIRED: Transition(NextRequest.FULL_STATE, Wait.UNLESS_FIRST),
        Outcome.VERSION_TOO_LARGE: Transition(NextRequest.NEWEST_STATE, Wait.UNLESS_FIRST),
        Outcome.THROTTLED: _RETRY_WATCH,
        Outcome.UNREACHABLE: _RETRY_WATCH,
        Outcome.CONNECTION_LOST: _RETRY_WATCH,
        Outcome.ACCESS_DENIED: _RETRY_WATCH,
        Outcome.SERVER_ERROR: _RETRY_WATCH,  # the state after STUBBORN of them
        Outcome.NOT_FOUND: _ASK_DISCOVERY,
        Outcome.BAD_REQUEST: _RETRY_STATE,
        Outcome.ERROR_EVENT: _RETRY_STATE,
        Outcome.PROTOCOL_ERROR: _RETRY_STATE,
    },
    # Whatever the probe yields, the watch goes on from where it was; it is not asked twice.
    Phase.FRESHNESS_CHECK: {
        Outcome.COMPLETE: Transition(NextRequest.WATCH, Wait.NONE),
        Outcome.REWOUND: Transition(NextRequest.NEWEST_STATE, Wait.NONE),
        Outcome.EXPIRED: _RETRY_WATCH,
        Outcome.VERSION_TOO_LARGE: _RETRY_WATCH,
        Outcome.THROTTLED: _RETRY_WATCH,
        Outcome.UNREACHABLE: _RETRY_WATCH,
        Outcome.CONNECTION_LOST: _RETRY_WATCH,
        Outcome.ACCESS_DENIED: _RETRY_WATCH,
        Outcome.NOT_FOUND: _RETRY_WATCH,
        Outcome.SERVER_ERROR: _RETRY_WATCH,
        Outcome.BAD_REQUEST: _RETRY_WATCH,
        Outcome.PROTOCOL_ERROR: _RETRY_WATCH,
    },
    # A single 404 may come from a replica that lags behind, or from something in between.
    Phase.DISCOVERY: {
        Outcome.SERVED: _RETRY_STATE,
        # Not a past one: what was there before it was gone must not come back for a moment.
        Outcome.APPEARED: Transition(NextRequest.NEWEST_STATE, Wait.NONE),
        Outcome.API_VERSION_CHANGED: _RETRY_STATE,
        Outcome.NOT_SERVED: _ASK_DISCOVERY,
        # Where discovery can't say, the resource itself is asked again.
        Outcome.EXPIRED: _RETRY_STATE,
        Outcome.VERSION_TOO_LARGE: _RETRY_STATE,
        Outcome.THROTTLED: _RETRY_STATE,
        Outcome.UNREACHABLE: _RETRY_STATE,
        Outcome.ACCESS_DENIED: _RETRY_STATE,
        Outcome.NOT_FOUND: _RETRY_STATE,
        Outcome.SERVER_ERROR: _RETRY_STATE,
        Outcome.BAD_REQUEST: _RETRY_STATE,
        Outcome.PROTOCOL_ERROR: _RETRY_STATE,
    },
}
"""What follows which outcome. client-go differs where it lists after any failed start of a watch
(here the watch is tried again: its resourceVersion is still good until the server says 410), where
it waits before the first list after 410, where it tries a WatchList anew in every cycle, and in
that it has no ``SILENT``, ``BRIEF``, ``OVERDUE`` and ``FRESHNESS_CHECK``."""

STRATEGY_FAILURES: dict[Phase, frozenset[Outcome]] = {
    Phase.WATCHLIST: frozenset(
        {
            Outcome.ENDED,
            Outcome.SHORT_WATCH,
            Outcome.EMPTY_WATCH,
            Outcome.CONNECTION_LOST,
            Outcome.SERVER_ERROR,
            Outcome.PROTOCOL_ERROR,
        }
    ),
    Phase.WATCH: frozenset({Outcome.EMPTY_WATCH, Outcome.SERVER_ERROR}),
}
"""Outcomes that, several times in a row, say that this way doesn't work with this server: some
close a watch from a stale resourceVersion without saying 410 (fabric8#7896), some proxies cut
every long answer."""
