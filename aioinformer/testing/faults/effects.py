"""Effects of faults on one answer, and the actions of a server that follow from them, as values.

The switches of ``Faults`` create effects. A ``FaultedRequest`` combines the effects on one request
to the next action, and the server carries that action out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from aioinformer.errors import ServerError, Status

# -- effects -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Refuse:
    """Connections are refused."""


@dataclass(frozen=True, slots=True)
class Delay:
    """The answer begins late."""

    seconds: float


@dataclass(frozen=True, slots=True)
class ErrorStatus:
    """The answer is an error."""

    status: Status | None
    """``None`` for a 403 with the server's text for the request."""


@dataclass(frozen=True, slots=True)
class ForeignBody:
    """The answer is 200 with a body that is not from an API server."""

    body: bytes
    content_type: str


@dataclass(frozen=True, slots=True)
class StaleList:
    """A list shows an older state than the one that was requested."""

    versions: int
    """The difference of the two states in resourceVersions."""


@dataclass(frozen=True, slots=True)
class EndlessPages:
    """Each page of a list has a continue token; after the last page comes the first."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection breaks, or stalls."""

    after: int | None
    """Bytes of the body that are sent before; ``None`` if not even the head is sent."""
    stalled: bool
    """True if the connection stays open, but sends nothing more."""


@dataclass(frozen=True, slots=True)
class Drip:
    size: int
    every: float
    """Seconds between two pieces."""


@dataclass(frozen=True, slots=True)
class Corrupt:
    after: int
    put: bytes
    find: bytes = b""
    """The first occurrence from ``after`` on is overwritten; any bytes if empty."""


@dataclass(frozen=True, slots=True)
class LateBookmarks:
    """Bookmarks are sent late; never if ``seconds`` is ``inf``."""

    seconds: float


@dataclass(frozen=True, slots=True)
class NoInitialEventsEnd:
    """The bookmark that ends the initial events of a WatchList isn't sent."""


@dataclass(frozen=True, slots=True)
class EndWatch:
    """The watch ends properly."""

    status: Status | None = None
    """The content of an ERROR event before the end; ``None`` for no event."""
    after: float = 0.0
    """Seconds of a watch before the end; those before the fault began count as well."""
    idle: bool = False
    """True if a watch ends as soon as it has no event to send, after a bookmark."""


@dataclass(frozen=True, slots=True)
class RepeatBookmarks:
    """Each bookmark is sent twice."""


RewriteLine: TypeAlias = Callable[[bytes], Iterable[bytes]]
"""Returns the lines that are sent in the place of one line of a watch, each with its newline."""


@dataclass(frozen=True, slots=True)
class RewriteEvents:
    """Other lines are sent in the place of those of a watch."""

    rewrite: RewriteLine


Effect: TypeAlias = (
    Refuse
    | Delay
    | ErrorStatus
    | ForeignBody
    | StaleList
    | EndlessPages
    | Cut
    | Drip
    | Corrupt
    | LateBookmarks
    | NoInitialEventsEnd
    | EndWatch
    | RepeatBookmarks
    | RewriteEvents
)

RESPONSE_START_EFFECTS = (Refuse, Delay, ErrorStatus, ForeignBody)
"""The effects on requests that aren't answered yet. Answers under way don't feel them."""
IMMEDIATE_EFFECTS = (Cut, Corrupt, EndWatch)
"""The effects on answers under way at the moment at which the fault is switched on."""
WATCH_EFFECTS = (LateBookmarks, NoInitialEventsEnd, EndWatch, RepeatBookmarks, RewriteEvents)
LIST_EFFECTS = (StaleList, EndlessPages)

# -- actions -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SendBytes:
    """Send these bytes in place of the same number of bytes of the body."""

    data: bytes


@dataclass(frozen=True, slots=True)
class WaitUntil:
    """Ask for the next action at this time, or when the faults change."""

    until: float


@dataclass(frozen=True, slots=True)
class RespondWithError:
    error: ServerError


@dataclass(frozen=True, slots=True)
class RespondWithBody:
    body: bytes
    content_type: str


@dataclass(frozen=True, slots=True)
class BreakConnection:
    """Break the connection."""

    refused: bool = False
    """True if the client sees a connection that was never made."""


FaultAction: TypeAlias = (
    SendBytes | WaitUntil | RespondWithError | RespondWithBody | BreakConnection
)
