"""One request under way, and what is about to happen to its bytes.

A ``Network`` makes them and strikes them, a ``Line`` sends through them. They write down what came
through: that is what the client is judged by.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from aioinformer._core.objects.resources import Resource
from aioinformer.errors import Status
from aioinformer.testing.simulation.records import Request
from aioinformer.testing.wire.encoding import INITIAL_EVENTS_END

__all__ = ["GRACE", "HEAD", "SILENCE", "Connection", "is_bookmark", "is_mark"]

SILENCE = 75.0
"""Seconds without a byte of a list after which a client gives up (``Timeouts.silence``)."""
HEAD = 90.0
"""Seconds without the head of a watch after which it does (``Timeouts.watch_start``)."""
GRACE = 30.0
"""Seconds that a watch may last beyond what was asked for (``Timeouts.grace``)."""

_BOOKMARK = b'{"type":"BOOKMARK"'
_MARK = b'"%s":"true"' % INITIAL_EVENTS_END.encode()
_MORE = re.compile(rb'"continue":"[^"]')


def is_bookmark(line: bytes) -> bool:
    """Whether a line of a watch is one, the mark behind an initial state included."""
    return line.startswith(_BOOKMARK)


def is_mark(line: bytes) -> bool:
    """Whether a line of a watch is the mark behind its initial state."""
    return line.startswith(_BOOKMARK) and _MARK in line


@dataclass(slots=True, eq=False)
class Connection:
    """One request, and what is about to happen to it."""

    request: Request
    resource: Resource
    """What is asked for."""
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when there is something to read, or something has happened."""
    allowance: int | None = None
    """Bytes until it breaks or falls silent; ``None`` if it doesn't."""
    dumb: bool = False
    """Whether it then falls silent."""
    corrupt: bool = False
    garbage: bool = False
    markless: bool = False
    """Whether the mark behind the initial state is kept back."""
    ends: bool = False
    ends_at: float | None = None
    curt: bool = False
    error: Status | None = None
    """The ERROR event that it ends with."""
    _notable: list[tuple[int, bool]] = field(default_factory=list[tuple[int, bool]])
    """Behind how many more bytes a bookmark (or else a whole state) will be through."""

    # -- breaking -----------------------------------------------------------------------------

    @property
    def broken(self) -> bool:
        """Whether nothing gets through any more, and the client knows."""
        return self.allowance == 0 and not self.dumb

    @property
    def silent(self) -> bool:
        """Whether nothing gets through any more, and the client doesn't know."""
        return self.allowance == 0 and self.dumb

    def cut(self, after: int, *, dumb: bool = False) -> None:
        """Let so many more bytes through."""
        self.allowance, self.dumb = after, dumb

    def due(self, now: float) -> bool:
        """Whether it is time for the server to end it."""
        return self.ends or (self.ends_at is not None and now >= self.ends_at)

    # -- sending ------------------------------------------------------------------------------

    def announce(self, data: bytes) -> None:
        """Look for what is worth noting when ``data``, which is sent next, is through."""
        self._notable = list(_notable(self.request.kind, data))

    def spend(self, chunk: bytes, order: int, now: float) -> bytes:
        """What of a chunk still gets through.

        Args:
            chunk: the next bytes.
            order: the number of this moment.
            now: its time.
        """
        through = chunk
        if self.allowance is not None:
            through = chunk[: self.allowance]
            self.allowance -= len(through)
        self._notable = [(left - len(through), what) for left, what in self._notable]
        while self._notable and self._notable[0][0] <= 0:
            _, bookmark = self._notable.pop(0)
            if not bookmark:
                self.request.settled = order
            elif self.request.kind == "watch" or self.request.settled:
                self.request.bookmarks.append(now)
        return through

    def __repr__(self) -> str:
        state = "broken" if self.broken else "silent" if self.silent else "open"
        return f"<Connection {self.request} {state}>"


def _notable(kind: str, data: bytes) -> Iterator[tuple[int, bool]]:
    if kind == "list":
        if not _MORE.search(data):
            yield len(data), False
        return
    if _BOOKMARK not in data or kind == "probe":
        return
    end = 0
    for line in data.splitlines(keepends=True):
        end += len(line)
        if is_mark(line):
            yield end, False
        elif is_bookmark(line):
            yield end, True
