"""The keys whose events are being handled, for a handler with ``concurrency=N``.

Such a handler is called for up to N keys at once, never twice at once for one key, and for each key
in order. An event of a busy key waits here, in a window of a few events. No more events are taken
from the mailbox while N keys are busy or the window is full, since only events in the mailbox can
be merged. A key that changes all the time can fill the window; then the other keys wait until one
of its calls is over.
"""

from __future__ import annotations

from collections import deque

from aioinformer._core.objects.kube_object import Event, ObjectKey

LOOKAHEAD = 4
"""Events that may wait for each of the N keys: enough to look past a key that changes often."""


class KeyConcurrency:
    def __init__(self, count: int) -> None:
        """Allow ``count`` keys at once; raise ``ValueError`` for less than 1."""
        if count < 1:
            raise ValueError(f"concurrency must be at least 1, not {count}")
        self.count = count
        self.waiting = 0
        """The number of events that wait for an earlier event of their key."""
        self._busy: dict[ObjectKey, deque[Event]] = {}
        self._marked: dict[ObjectKey, int] = {}
        """By key, the number of events to finish until the key has passed the mark."""

    @property
    def full(self) -> bool:
        return len(self._busy) >= self.count or self.waiting >= self.count * LOOKAHEAD

    @property
    def marked(self) -> bool:
        """True if an event that was here at the last ``mark`` is not finished."""
        return bool(self._marked)

    def mark(self) -> None:
        self._marked = {key: len(waiting) + 1 for key, waiting in self._busy.items()}

    def start(self, event: Event) -> bool:
        """Add an event; return True if it can be handled at once, False if it waits."""
        key = event.obj.key
        waiting = self._busy.get(key)
        if waiting is None:
            self._busy[key] = deque()
            return True
        waiting.append(event)
        self.waiting += 1
        return False

    def finish(self, event: Event) -> Event | None:
        """Remove an event that was handled. Return the next one of its key, or ``None``."""
        key = event.obj.key
        if key in self._marked:
            self._marked[key] -= 1
            if not self._marked[key]:
                del self._marked[key]
        waiting = self._busy[key]
        if not waiting:
            del self._busy[key]
            return None
        self.waiting -= 1
        return waiting.popleft()

    def clear(self) -> None:
        """Discard the waiting events. Those that are being handled still need ``finish``."""
        for waiting in self._busy.values():
            waiting.clear()
        self._marked = dict.fromkeys(self._marked, 1)
        self.waiting = 0

    def __repr__(self) -> str:
        return f"<KeyConcurrency {len(self._busy)}/{self.count} busy, {self.waiting} waiting>"
