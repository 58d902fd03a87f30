"""One watch: what its client has yet to read, and what is due by time alone.

A ``Watch`` neither waits nor sends. Whoever serves it takes lines until there are none, then waits
for ``on_ready`` or ``next_deadline``, whichever is first:

    while not watch.ended:
        lines = watch.take(now)
        ...send them, or wait if there are none...
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from aioinformer.testing.cluster.history import StoredChange
from aioinformer.testing.cluster.selection import Selection
from aioinformer.testing.wire.encoding import Encoding, ObjectEncoder

__all__ = ["Watch", "WatchSchedule"]

MAX_BATCH_LINES = 500
"""Lines a ``take`` returns at most, so that a long initial state is never built as a whole."""

BOOKMARK_INTERVAL = 60.0
"""Time between bookmarks (the cacher's ``defaultBookmarkFrequency``)."""
FINAL_BOOKMARK_SECONDS = (2.0, 1.0)
"""Times between the last bookmarks and the end of a watch. One is meant, two seconds before; the
server keeps its watches in buckets of whole seconds and usually comes upon one twice (recordings
30, 39 and 51; in 33 once). Here it is always twice."""


@dataclass(slots=True)
class WatchSchedule:
    """When bookmarks are due, and when the watch ends."""

    deadline: float
    bookmarks: bool
    next_bookmark: float = float("inf")
    """``inf`` if none is."""

    @classmethod
    def start(cls, now: float, timeout: float, *, bookmarks: bool) -> WatchSchedule:
        """The schedule of a watch that starts now and lasts ``timeout`` seconds."""
        schedule = cls(now + timeout, bookmarks)
        if bookmarks and timeout > FINAL_BOOKMARK_SECONDS[0]:
            schedule.plan_next_bookmark(now)
        return schedule

    def plan_next_bookmark(self, now: float) -> None:
        """Plan the bookmark after one at ``now``."""
        last = [self.deadline - seconds for seconds in FINAL_BOOKMARK_SECONDS]
        due = (now + BOOKMARK_INTERVAL, *last)
        self.next_bookmark = min(
            (moment for moment in due if now < moment <= last[-1]), default=float("inf")
        )


class Watch:
    """What one client has asked to be told. Made by ``Cluster.watch``."""

    def __init__(
        self,
        encoding: Encoding,
        selection: Selection,
        *,
        encoder: ObjectEncoder,
        start_version: int,
        schedule: WatchSchedule,
        buffer: int,
        current_version: Callable[[], int],
        on_close: Callable[[Watch], None],
    ) -> None:
        """Make a watch.

        Args:
            encoding: how its objects are written.
            selection: which objects it is about.
            encoder: how they are shown.
            start_version: changes up to this resourceVersion are not told.
            schedule: bookmarks and the end.
            buffer: lines that may wait to be taken; one more and the watch is dropped.
            current_version: the newest resourceVersion.
            on_close: called once, when it takes no more changes.
        """
        self.encoding = encoding
        self.on_ready: Callable[[], None] | None = None
        """Called when lines become available where there were none, and when the watch ends."""
        self.bookmark_delay: Callable[[], float] | None = None
        """Asked when a bookmark is due: by how many seconds it is late; ``inf`` for never."""
        self._selection = selection
        self._encoder = encoder
        self._bookmark_delayed = False
        self._first_line_taken = False
        self._initial_lines: Iterator[bytes] = iter(())
        self._pending: deque[bytes] = deque()
        self._start_version = start_version
        self._schedule = schedule
        self._buffer = buffer
        self._current_version = current_version
        self._on_close = on_close
        self._open = True
        self._drained = False

    # -- the reading side ---------------------------------------------------------------------

    def take(self, now: float) -> list[bytes]:
        """The next lines, each with its newline; none if there is nothing to send yet.

        Args:
            now: seconds on the clock that the watch was started with.
        """
        lines = list(islice(self._initial_lines, MAX_BATCH_LINES))
        while self._pending and len(lines) < MAX_BATCH_LINES:
            lines.append(self._pending.popleft())
        if len(lines) < MAX_BATCH_LINES:
            lines.extend(self._due_bookmarks(now))
            if now >= self._schedule.deadline:
                self.finish()
            self._drained = not self._open
        if lines and not self._first_line_taken:
            self._first_line_taken = True
            lines[0] = self._encoder.as_first_event(lines[0])
        return lines

    def _due_bookmarks(self, now: float) -> Iterator[bytes]:
        if self._open and now >= self._schedule.next_bookmark:
            late = 0.0
            if self.bookmark_delay is not None and not self._bookmark_delayed:
                late = self.bookmark_delay()
            self._bookmark_delayed = 0 < late < float("inf")
            if self._bookmark_delayed:
                self._schedule.next_bookmark = now + late
                return
            self._schedule.plan_next_bookmark(now)
            bookmark = self._encode_bookmark()
            if bookmark is not None and not late:
                yield bookmark

    def _encode_bookmark(self) -> bytes | None:
        """A bookmark of the present; none if that is where the watch started, or before it.

        Nothing new, no bookmark: apiserver's ``cacheWatcher.process``, recording 42.
        """
        version = self._current_version()
        return self._encoder.encode_bookmark(version) if version > self._start_version else None

    @property
    def next_deadline(self) -> float:
        """When something will be due with time alone: a bookmark, or the end."""
        return min(self._schedule.next_bookmark, self._schedule.deadline)

    @property
    def ended(self) -> bool:
        """Whether every line was taken and none will come."""
        return self._drained

    @property
    def waiting(self) -> int:
        """Lines of changes that wait to be taken."""
        return len(self._pending)

    def close(self) -> None:
        """End at once; what was not taken is dropped."""
        self._initial_lines = iter(())
        self._pending.clear()
        self._drained = True
        self.finish()

    # -- the cluster's side -------------------------------------------------------------------

    def set_initial_lines(self, lines: Iterable[bytes]) -> None:
        """Tell these first: the state or changes up to now. They are built as they are taken."""
        self._initial_lines = iter(lines)

    def add_change(self, change: StoredChange) -> None:
        """Tell of a change, if it is this watch's business.

        A watch that nobody reads is dropped when its buffer is full, as a real server drops it.
        """
        if not self._open or change.version <= self._start_version:
            return
        selection = self._selection
        line = change.encode_event(
            self._encoder,
            selected_before=selection.matches(change.old),
            selected_after=selection.matches(change.new),
        )
        if line is None:
            return
        if len(self._pending) >= self._buffer:
            self.close()
            return
        self._pending.append(line)
        if len(self._pending) == 1:
            self._notify_ready()

    def finish(self, *, bookmark: bool = False) -> None:
        """Take no more changes; what waits can still be taken.

        Args:
            bookmark: end with one, if the client asked for bookmarks (recording 52).
        """
        if not self._open:
            return
        self._open = False
        if bookmark and self._schedule.bookmarks:
            self._pending.append(self._encoder.encode_bookmark(self._current_version()))
        self._on_close(self)
        self._notify_ready()

    def _notify_ready(self) -> None:
        if self.on_ready is not None:
            self.on_ready()

    def __repr__(self) -> str:
        state = "ended" if self.ended else "open" if self._open else "ending"
        where = f"{self.encoding.resource} after rv={self._start_version}"
        return f"<Watch {where} {state} {self.waiting} waiting>"
