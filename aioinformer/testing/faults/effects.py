"""What can go wrong with one answer, as values, and what a server does about it.

``Faults`` makes effects, an ``Exchange`` turns them into actions, ``Passage`` carries those out.
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
class Answer:
    """The answer is an error."""

    status: Status | None
    """``None`` for 403 in the words that fit the request."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection breaks, or falls silent."""

    after: int | None
    """Bytes of the body that still come; ``None`` if not even the head does."""
    silent: bool


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
class NoEndMark:
    """The bookmark that ends the initial events of a WatchList doesn't come."""


Effect: TypeAlias = Refuse | Delay | Answer | Cut | Drip | Corrupt | LateBookmarks | NoEndMark

BEFORE_THE_HEAD = (Refuse, Delay, Answer)
"""These concern requests that aren't answered yet, and no others."""
IN_WATCHES = (LateBookmarks, NoEndMark)
"""These concern watches alone."""

# -- actions -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Send:
    """Send this much: as many bytes as of what was asked about, if not the same ones."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Wait:
    """Ask again at this time, or when the faults change."""

    until: float


@dataclass(frozen=True, slots=True)
class Fail:
    """Answer with this error instead."""

    error: ServerError


@dataclass(frozen=True, slots=True)
class Break:
    """Break the connection."""

    refused: bool = False
    """As if there had never been one."""


Action: TypeAlias = Send | Wait | Fail | Break
