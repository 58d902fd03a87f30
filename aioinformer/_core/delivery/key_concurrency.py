"""Which keys are being dealt with, where several are at once.

A handler with ``concurrency=N`` is called for N keys at a time, never for one key twice, and for
each key in order. What comes for a key that is busy waits here, in a window of a few events: the
mailbox stays the place where events wait, and are merged, so nothing is taken out of it while
every lane is busy or the window is full. A key that changes all the time can fill the window, and
then the others wait until one of its calls is over.
"""

from __future__ import annotations

from collections import deque

from aioinformer._core.objects.kube_object import Event, ObjectKey

__all__ = ["KeyConcurrency"]

LOOKAHEAD = 4
"""Events that may wait beside each lane: enough to look past a key that changes often."""


class KeyConcurrency:
    """At most so many keys at once, each with its events in order."""

    def __init__(self, count: int) -> None:
        """``count`` free lanes.

        Raises:
            ValueError: there must be at least one.
        """
        if count < 1:
            raise ValueError(f"concurrency must be at least 1, not {count}")
        self.count = count
        self.waiting = 0
        """Events that wait for an earlier one of their key."""
        self._busy: dict[ObjectKey, deque[Event]] = {}
        self._marked: dict[ObjectKey, int] = {}
        """How many events each key has yet to leave until it has passed the mark."""

    @property
    def full(self) -> bool:
        """Whether another event must not be taken yet."""
        return len(self._busy) >= self.count or self.waiting >= self.count * LOOKAHEAD

    @property
    def marked(self) -> bool:
        """Whether something that was here at the last ``mark`` still is."""
        return bool(self._marked)

    def mark(self) -> None:
        """Remember what is here now."""
        self._marked = {key: len(waiting) + 1 for key, waiting in self._busy.items()}

    def start(self, event: Event) -> bool:
        """Take an event in; whether it can be dealt with at once."""
        key = event.obj.key
        waiting = self._busy.get(key)
        if waiting is None:
            self._busy[key] = deque()
            return True
        waiting.append(event)
        self.waiting += 1
        return False

    def finish(self, event: Event) -> Event | None:
        """An event was dealt with. What is to follow in its lane; ``None`` if the lane is free."""
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
        """Drop what waits. What is being dealt with still has to leave."""
        for waiting in self._busy.values():
            waiting.clear()
        self._marked = dict.fromkeys(self._marked, 1)
        self.waiting = 0

    def __repr__(self) -> str:
        return f"<KeyConcurrency {len(self._busy)}/{self.count} busy, {self.waiting} waiting>"
