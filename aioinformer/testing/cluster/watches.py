"""One watch: the lines that its client has yet to read, and the lines that are due by time.

A ``Watch`` neither waits nor sends. The code that serves a watch takes lines until there are none,
then waits for ``on_ready`` or ``next_deadline``, whichever is first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from aioinformer._core.objects.resources import Resource
from aioinformer.testing.cluster.history import StoredChange
from aioinformer.testing.wire.encoding import ObjectEncoder
from aioinformer.testing.wire.selection import Selection

MAX_BATCH_LINES = 500
"""Lines that one ``take`` returns at most: a long initial state is never built as a whole."""

BOOKMARK_INTERVAL = 60.0
"""Seconds between bookmarks (the cacher's ``defaultBookmarkFrequency``)."""
REQUESTED_BOOKMARK_INTERVAL = 10.0
"""Seconds between bookmarks once bookmarks were requested. A client measures the interval, and
replaces a watch that has none for longer; an informer waits for at least 15 s."""
FINAL_BOOKMARK_SECONDS = (2.0, 1.0)
"""Seconds from the last bookmarks to the end of a watch. The server plans one bookmark, two seconds
before the end, but keeps its watches in buckets of whole seconds and mostly visits a watch twice.
Here a watch is always visited twice."""


@dataclass(slots=True)
class WatchSchedule:
    """The times of the next bookmark and of the end of a watch."""

    deadline: float
    bookmarks: bool
    next_bookmark: float = float("inf")
    """``inf`` if no bookmark is planned."""
    interval: float = BOOKMARK_INTERVAL

    @classmethod
    def start(cls, now: float, timeout: float, *, bookmarks: bool) -> WatchSchedule:
        """Return the schedule of a watch that starts now and lasts ``timeout`` seconds."""
        schedule = cls(now + timeout, bookmarks)
        if bookmarks and timeout > FINAL_BOOKMARK_SECONDS[0]:
            schedule.plan_next_bookmark(now)
        return schedule

    def plan_next_bookmark(self, now: float) -> None:
        """Plan the bookmark after a bookmark at ``now``."""
        last = [self.deadline - seconds for seconds in FINAL_BOOKMARK_SECONDS]
        due = (now + self.interval, *last)
        self.next_bookmark = min(
            (moment for moment in due if now < moment <= last[-1]), default=float("inf")
        )


@dataclass(frozen=True, slots=True)
class WatchView:
    """The objects that a watch selects, and the form in which it shows them."""

    resource: Resource
    selection: Selection
    encoder: ObjectEncoder

    def encode_change(self, change: StoredChange) -> bytes | None:
        """Return the event of a change, or ``None`` if the change isn't visible to this watch."""
        return change.encode_event(
            self.encoder,
            selected_before=self.selection.matches(change.old),
            selected_after=self.selection.matches(change.new),
        )


class Watch:
    """The stream of events for one client. ``Cluster.watch`` makes it."""

    def __init__(
        self,
        view: WatchView,
        *,
        start_version: int,
        schedule: WatchSchedule,
        buffer: int,
        current_version: Callable[[], int],
        on_close: Callable[[Watch], None],
    ) -> None:
        """Make a watch without lines.

        Changes up to ``start_version`` are not sent. ``buffer`` is the number of lines that can
        wait to be taken; with one more the watch is dropped. ``on_close`` is called once, when the
        watch accepts no more changes.
        """
        self.on_ready: Callable[[], None] | None = None
        """Called when lines become available where there were none, and when the watch ends."""
        self.bookmark_delay: Callable[[], float] | None = None
        """Returns the seconds by which a bookmark that is due is late, or ``inf`` for never."""
        self._view = view
        self._bookmark_delayed = False  # True while the next bookmark waits for its second time
        self._bookmark_requested = False
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

    @property
    def view(self) -> WatchView:
        return self._view

    # -- the reading side ----------------------------------------------------------------------

    def take(self, now: float) -> list[bytes]:
        """Return the next lines with their newlines; ``now`` is on the clock of the start."""
        lines = list(islice(self._initial_lines, MAX_BATCH_LINES))
        while self._pending and len(lines) < MAX_BATCH_LINES:
            lines.append(self._pending.popleft())
        if len(lines) < MAX_BATCH_LINES:  # all that was pending is taken
            lines.extend(self._due_bookmarks(now))
            if now >= self._schedule.deadline:
                self.finish()
            self._drained = not self._open
        if lines and not self._first_line_taken:
            self._first_line_taken = True
            lines[0] = self._view.encoder.as_first_event(lines[0])
        return lines

    def _due_bookmarks(self, now: float) -> Iterator[bytes]:
        """Yield the bookmark that is due, and plan the next one."""
        if self._bookmark_requested:
            self._bookmark_requested = False
            self._schedule.interval = REQUESTED_BOOKMARK_INTERVAL
            self._schedule.plan_next_bookmark(now)
            if self._open and (self.bookmark_delay is None or not self.bookmark_delay()):
                yield self._view.encoder.encode_bookmark(self._current_version())
            return
        if not self._open or now < self._schedule.next_bookmark:
            return
        late = 0.0
        # A bookmark is delayed once: at its second time it is sent.
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
        """Return a bookmark, or ``None`` if nothing is new (``cacheWatcher.process``)."""
        version = self._current_version()
        encoder = self._view.encoder
        requested = self._schedule.interval == REQUESTED_BOOKMARK_INTERVAL
        new = version > self._start_version
        return encoder.encode_bookmark(version) if new or requested else None

    def take_bookmark(self) -> list[bytes]:
        """Return a bookmark of the present version, if a line was taken or anything was written."""
        version = self._current_version()
        if not self._first_line_taken and version <= self._start_version:
            return []
        return [self._view.encoder.encode_bookmark(version)]

    def request_bookmark(self) -> None:
        """Send a bookmark soon, if the client takes bookmarks and no fault delays or drops them."""
        if self._open and self._schedule.bookmarks:
            self._bookmark_requested = True
            self._notify_ready()

    @property
    def next_deadline(self) -> float:
        """The time of the next bookmark or of the end, whichever is first."""
        return min(self._schedule.next_bookmark, self._schedule.deadline)

    @property
    def ended(self) -> bool:
        """True if every line was taken and no line will follow."""
        return self._drained

    @property
    def waiting(self) -> int:
        """Lines that wait to be taken, without the initial ones."""
        return len(self._pending)

    def close(self) -> None:
        """End the watch at once, and discard the lines that were not taken."""
        self._initial_lines = iter(())
        self._pending.clear()
        self._drained = True
        self.finish()

    # -- the cluster's side --------------------------------------------------------------------

    def set_initial_lines(self, lines: Iterable[bytes]) -> None:
        """Set the lines to send before all others. Each line is encoded when it is taken."""
        self._initial_lines = iter(lines)

    def add_line(self, version: int, line: bytes) -> None:
        """Add the event of the change at a version; drop the watch if its buffer is full."""
        # A watch from a version that is not reached yet skips the changes up to that version.
        if not self._open or version <= self._start_version:
            return
        if len(self._pending) >= self._buffer:
            self.close()
            return
        self._pending.append(line)
        if len(self._pending) == 1:  # the reader takes all lines when it is notified once
            self._notify_ready()

    def finish(self, *, bookmark: bool = False) -> None:
        """End after the waiting lines, with a bookmark if wanted and the client takes bookmarks."""
        if not self._open:
            return
        self._open = False
        if bookmark and self._schedule.bookmarks:
            self._pending.append(self._view.encoder.encode_bookmark(self._current_version()))
        self._on_close(self)
        self._notify_ready()

    def _notify_ready(self) -> None:
        if self.on_ready is not None:
            self.on_ready()

    def __repr__(self) -> str:
        state = "ended" if self.ended else "open" if self._open else "ending"
        position = f"{self._view.resource} after rv={self._start_version}"
        return f"<Watch {position} {state} {self.waiting} waiting>"


class OpenWatches:
    """Attached watches: those with the same view share the selection and encoding of a change."""

    def __init__(self) -> None:
        self._views: dict[Resource, dict[WatchView, list[Watch]]] = {}

    def add(self, watch: Watch) -> None:
        views = self._views.setdefault(watch.view.resource, {})
        views.setdefault(watch.view, []).append(watch)

    def discard(self, watch: Watch) -> None:
        views = self._views.get(watch.view.resource, {})
        watches = views.get(watch.view, [])
        if watch in watches:
            watches.remove(watch)
        if not watches:
            views.pop(watch.view, None)
        if not views:
            self._views.pop(watch.view.resource, None)

    def of(self, resource: Resource) -> list[Watch]:
        return [watch for each in self._views.get(resource, {}).values() for watch in each]

    def add_change(self, change: StoredChange) -> None:
        views = self._views.get(change.resource)
        # A watch whose buffer is full detaches itself while the loops run: hence the copies.
        for view, watches in list(views.items()) if views else ():
            line = view.encode_change(change)
            if line is not None:
                for watch in list(watches):
                    watch.add_line(change.version, line)

    def __iter__(self) -> Iterator[Watch]:
        return (watch for resource in list(self._views) for watch in self.of(resource))

    def __len__(self) -> int:
        return sum(len(each) for views in self._views.values() for each in views.values())
