"""What follows when a request has ended: one table.

The rules are client-go's reflector (its error table is the first column of ours) with the
deviations that its users have paid for. ``cursor`` looks them up and turns them into requests.
"""

from __future__ import annotations

from enum import Enum, auto

from msgspec import Struct

from aioinformer._core.listwatch.outcomes import Outcome

__all__ = ["RULES", "UNFIT", "Goto", "Pause", "Phase", "Rule"]


class Phase(Enum):
    """What the last request was."""

    STREAM = auto()
    """A WatchList, up to the mark behind its initial state. From there on it is a watch."""
    LIST = auto()
    """The first page of a list."""
    PAGE = auto()
    """A further page."""
    WATCH = auto()
    """A watch."""
    PROBE = auto()
    """A consistent read of one object, to see how new the server's state is."""
    LOOKUP = auto()
    """A look into the server's discovery documents, to see whether the resource is served."""


class Goto(Enum):
    """What to ask for next."""

    STATE = auto()
    """The whole state, at least as new as the last one known: by a WatchList, or by a list where
    those are known not to be served."""
    STATE_NEWEST = auto()
    """The same by consistent read, and so until one succeeds."""
    LIST = auto()
    """The whole state by a list, and by lists for a while: no WatchList comes to an end here."""
    LIST_WHOLE = auto()
    """Start the list again without pages, at the version first asked for (client-go's
    FullListIfExpired): pages that outlive their token would never come to an end. The fresh token
    that the server offers (recording 62) would make a state of two moments."""
    PAGE = auto()
    """The next page, or the same one again if that is what failed."""
    WATCH = auto()
    """Watch from the last resourceVersion known."""
    PROBE = auto()
    """Look how new the server's state is."""
    LOOKUP = auto()
    """Look whether the resource is served; where there is no way to look, get the state."""


class Pause(Enum):
    """Whether to wait first."""

    NONE = auto()
    IF_AGAIN = auto()
    """Not for the first failure since a quiet time: trying another way once is no storm."""
    SPACED = auto()
    """Not the first time; then so long that watches begin twenty seconds apart."""
    ALWAYS = auto()


class Rule(Struct, frozen=True):
    """What follows an outcome."""

    goto: Goto
    pause: Pause


_AGAIN = Rule(Goto.STATE, Pause.ALWAYS)
_WATCH_AGAIN = Rule(Goto.WATCH, Pause.ALWAYS)
_LOOK = Rule(Goto.LOOKUP, Pause.ALWAYS)

_READING = {
    Outcome.EXPIRED: Rule(Goto.STATE_NEWEST, Pause.IF_AGAIN),
    Outcome.AHEAD: Rule(Goto.STATE_NEWEST, Pause.IF_AGAIN),
    Outcome.BUSY: _AGAIN,
    Outcome.UNREACHABLE: _AGAIN,
    Outcome.SEVERED: _AGAIN,
    Outcome.DENIED: _AGAIN,
    Outcome.MISSING: _LOOK,
    Outcome.FAILED: _AGAIN,
    Outcome.REJECTED: _AGAIN,
    Outcome.BROKEN: _AGAIN,
}
"""What LIST and STREAM have in common."""

_LISTING = _READING | {
    Outcome.REWOUND: Rule(Goto.STATE_NEWEST, Pause.IF_AGAIN),  # older than what was asked for
    Outcome.MORE: Rule(Goto.PAGE, Pause.NONE),
    Outcome.COMPLETE: Rule(Goto.WATCH, Pause.NONE),
}

RULES: dict[Phase, dict[Outcome, Rule]] = {
    Phase.STREAM: _READING
    | {
        # What isn't understood, and what the storage behind it can't do (recording 43).
        Outcome.REJECTED: Rule(Goto.LIST, Pause.IF_AGAIN),
        Outcome.ERRED: Rule(Goto.LIST, Pause.IF_AGAIN),
        Outcome.OVERDUE: Rule(Goto.LIST, Pause.IF_AGAIN),
        # A stream that ended early is discarded; a list after STUBBORN of them.
        Outcome.ENDED: _AGAIN,
        Outcome.BRIEF: _AGAIN,
        Outcome.UNSERVED: _AGAIN,
    },
    Phase.LIST: _LISTING,
    Phase.PAGE: _LISTING
    | {
        Outcome.EXPIRED: Rule(Goto.LIST_WHOLE, Pause.IF_AGAIN),
        # What was listed so far still counts while the token lives.
        Outcome.BUSY: Rule(Goto.PAGE, Pause.ALWAYS),
        Outcome.UNREACHABLE: Rule(Goto.PAGE, Pause.ALWAYS),
        Outcome.SEVERED: Rule(Goto.PAGE, Pause.ALWAYS),
        Outcome.FAILED: Rule(Goto.PAGE, Pause.ALWAYS),
    },
    Phase.WATCH: {
        Outcome.ENDED: Rule(Goto.WATCH, Pause.NONE),
        Outcome.BRIEF: Rule(Goto.WATCH, Pause.SPACED),
        Outcome.UNSERVED: _WATCH_AGAIN,  # the state after STUBBORN of them
        Outcome.SILENT: Rule(Goto.PROBE, Pause.NONE),
        Outcome.EXPIRED: Rule(Goto.STATE, Pause.IF_AGAIN),
        Outcome.AHEAD: Rule(Goto.STATE_NEWEST, Pause.IF_AGAIN),
        Outcome.BUSY: _WATCH_AGAIN,
        Outcome.UNREACHABLE: _WATCH_AGAIN,
        Outcome.SEVERED: _WATCH_AGAIN,
        Outcome.DENIED: _WATCH_AGAIN,
        Outcome.FAILED: _WATCH_AGAIN,  # the state after STUBBORN of them
        Outcome.MISSING: _LOOK,
        Outcome.REJECTED: _AGAIN,
        Outcome.ERRED: _AGAIN,
        Outcome.BROKEN: _AGAIN,
    },
    # Whatever the probe yields, the watch goes on from where it was; it is not asked twice.
    Phase.PROBE: {
        Outcome.COMPLETE: Rule(Goto.WATCH, Pause.NONE),
        Outcome.REWOUND: Rule(Goto.STATE_NEWEST, Pause.NONE),
        Outcome.EXPIRED: _WATCH_AGAIN,
        Outcome.AHEAD: _WATCH_AGAIN,
        Outcome.BUSY: _WATCH_AGAIN,
        Outcome.UNREACHABLE: _WATCH_AGAIN,
        Outcome.SEVERED: _WATCH_AGAIN,
        Outcome.DENIED: _WATCH_AGAIN,
        Outcome.MISSING: _WATCH_AGAIN,
        Outcome.FAILED: _WATCH_AGAIN,
        Outcome.REJECTED: _WATCH_AGAIN,
        Outcome.BROKEN: _WATCH_AGAIN,
    },
    # A single 404 may come from a replica that lags behind, or from something in between.
    Phase.LOOKUP: {
        Outcome.SERVED: _AGAIN,
        # Not a past one: what was there before it was gone must not come back for a moment.
        Outcome.APPEARED: Rule(Goto.STATE_NEWEST, Pause.NONE),
        Outcome.MOVED: _AGAIN,
        Outcome.ABSENT: _LOOK,
        # Where discovery can't say, the resource itself is asked again.
        Outcome.EXPIRED: _AGAIN,
        Outcome.AHEAD: _AGAIN,
        Outcome.BUSY: _AGAIN,
        Outcome.UNREACHABLE: _AGAIN,
        Outcome.DENIED: _AGAIN,
        Outcome.MISSING: _AGAIN,
        Outcome.FAILED: _AGAIN,
        Outcome.REJECTED: _AGAIN,
        Outcome.BROKEN: _AGAIN,
    },
}
"""What follows which outcome. client-go differs where it lists after any failed start of a watch
(here the watch is tried again: its resourceVersion is still good until the server says 410), where
it waits before the first list after 410, where it tries a WatchList anew in every cycle, and in
that it has no ``SILENT``, ``BRIEF``, ``OVERDUE`` and ``PROBE``."""

UNFIT: dict[Phase, frozenset[Outcome]] = {
    Phase.STREAM: frozenset(
        {
            Outcome.ENDED,
            Outcome.BRIEF,
            Outcome.UNSERVED,
            Outcome.SEVERED,
            Outcome.FAILED,
            Outcome.BROKEN,
        }
    ),
    Phase.WATCH: frozenset({Outcome.UNSERVED, Outcome.FAILED}),
}
"""Outcomes that, several times in a row, say that this way doesn't work with this server: some
close a watch from a stale resourceVersion without saying 410 (fabric8#7896), some proxies cut
every long answer."""
