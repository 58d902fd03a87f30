"""What can go wrong with one answer, as values, and what a server does about it.

``Faults`` makes effects, an ``FaultedRequest`` turns them into actions, ``RequestDriver`` carries those out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from aioinformer.errors import ServerError, Status

# -- effects -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Refuse:
    """No connection is made."""


@dataclass(frozen=True, slots=True)
class Delay:
    """The answer begins late."""

    seconds: float


@dataclass(frozen=True, slots=True)
class ErrorStatus:
    """The answer is an error."""

    status: Status | None
    """``None`` for 403 in the words that fit the request."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection breaks, or falls silent."""

    after: int | None
    """Bytes of the body that still come; ``None`` if not even the head does."""
    stalled: bool


@dataclass(frozen=True, slots=True)
class Drip:
    """The body comes a few bytes at a time."""

    size: int
    every: float


@dataclass(frozen=True, slots=True)
class Corrupt:
    """Bytes of the body are overwritten on their way."""

    after: int
    put: bytes


@dataclass(frozen=True, slots=True)
class LateBookmarks:
    """Bookmarks come late; ``inf`` for never."""

    seconds: float


@dataclass(frozen=True, slots=True)
class NoInitialEventsEnd:
    """The bookmark that ends the initial events of a WatchList doesn't come."""


Effect: TypeAlias = (
    Refuse | Delay | ErrorStatus | Cut | Drip | Corrupt | LateBookmarks | NoInitialEventsEnd
)

RESPONSE_START_EFFECTS = (Refuse, Delay, ErrorStatus)
"""These concern requests that aren't answered yet, and no others."""
WATCH_EFFECTS = (LateBookmarks, NoInitialEventsEnd)
"""These concern watches alone."""

# -- actions -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SendBytes:
    """Send this much: as many bytes as of what was asked about, if not the same ones."""

    data: bytes


@dataclass(frozen=True, slots=True)
class WaitUntil:
    """Ask again at this time, or when the faults change."""

    until: float


@dataclass(frozen=True, slots=True)
class RespondWithError:
    """Answer with this error instead."""

    error: ServerError


@dataclass(frozen=True, slots=True)
class BreakConnection:
    """Break the connection."""

    refused: bool = False
    """As if there had never been one."""


FaultAction: TypeAlias = SendBytes | WaitUntil | RespondWithError | BreakConnection
