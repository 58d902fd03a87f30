"""A time limit for one test after another, in a single thread.

pytest-timeout starts and ends a thread for each test, which takes longer than many tests.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf
from threading import Condition, Thread

__all__ = ["TimeLimit"]

# Tests replace attributes of the module.
_monotonic = time.monotonic

IDLE_SECONDS = 60.0
"""Seconds that the thread sleeps while there is no limit. The limits of most tests are as long, so
that they don't wake the thread."""


class TimeLimit:
    """A function that a thread calls unless the limit is lifted in time."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._thread: Thread | None = None
        self._wakes_at = inf
        self._ends_at = inf
        self._on_expiry: Callable[[], object] | None = None

    def set(self, seconds: float, on_expiry: Callable[[], object]) -> None:
        """Call the function in ``seconds``, in place of the function of an earlier limit."""
        with self._changed:
            self._ends_at, self._on_expiry = _monotonic() + seconds, on_expiry
            if self._thread is None:
                self._thread = Thread(target=self._run, name="time limit of the tests", daemon=True)
                self._thread.start()
            elif self._ends_at < self._wakes_at:
                self._changed.notify()

    def lift(self) -> None:
        """Call no function until the next limit is set."""
        with self._changed:
            self._ends_at, self._on_expiry = inf, None

    def _run(self) -> None:
        while True:
            self._wait_for_the_end()()

    def _wait_for_the_end(self) -> Callable[[], object]:
        """Return the function of a limit that has been reached."""
        with self._changed:
            while self._on_expiry is None or self._ends_at > _monotonic():
                self._wakes_at = min(self._ends_at, _monotonic() + IDLE_SECONDS)
                self._changed.wait(max(0.0, self._wakes_at - _monotonic()))
            expired, self._ends_at, self._on_expiry = self._on_expiry, inf, None
            return expired
