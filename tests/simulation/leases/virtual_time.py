"""Virtual time for state machines without I/O: scheduled calls, faults, and processes with clocks.

``VirtualTime`` calls what is scheduled in the order of time, and decides from a seed if a request
fails. ``Process`` is a clock that runs at a rate of its own. A process dies, starts again and stops
for a while; what was scheduled by its clock is dropped at its death and delayed by its pauses.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from random import Random

MAX_CLOCK_DRIFT = 0.05
"""The most by which a clock runs too fast or too slow."""


class VirtualTime:
    """The time of one history."""

    def __init__(
        self, random: Random, *, duration: float, calm_seconds: float, failure_rate: float
    ) -> None:
        """Begin at 0 s.

        Args:
            random: decides everything.
            duration: the seconds of the history.
            calm_seconds: the seconds at its end in which nothing goes wrong any more.
            failure_rate: the part of requests that fail, are lost, or arrive late.
        """
        self.random = random
        self.now = 0.0
        self.calm_at = duration - calm_seconds
        """The time at which the faults end."""
        self._duration = duration
        self._failure_rate = failure_rate
        self._order = count()
        self._scheduled: list[tuple[float, float, int, Callable[[], None]]] = []

    def schedule(self, when: float, do: Callable[[], None]) -> None:
        """Call ``do`` then. Calls that are due together come in any order."""
        order = (max(when, self.now), self.random.random(), next(self._order), do)
        heapq.heappush(self._scheduled, order)

    def run(self) -> None:
        """Call everything that is due before the end."""
        while self._scheduled and self._scheduled[0][0] <= self._duration:
            self.now, _, _, do = heapq.heappop(self._scheduled)
            do()

    @property
    def calm(self) -> bool:
        """True if there are no more faults."""
        return self.now > self.calm_at

    def draw_failure(self) -> bool:
        """Return True if a request fails now."""
        return not self.calm and self.random.random() < self._failure_rate

    def __repr__(self) -> str:
        return f"<VirtualTime at {self.now:.3f} s, {len(self._scheduled)} scheduled>"


class Process:
    """A process with a clock of its own, which dies, starts again, and stops for a while."""

    def __init__(self, time: VirtualTime, *, rate: float, offset: float) -> None:
        """Create a process that was not started.

        Args:
            time: the time of the history.
            rate: the seconds of the process's clock in one second.
            offset: the time of that clock at the begin of the history.
        """
        self.time = time
        self.rate = rate
        self.alive = False
        self.life = 0
        """The number of starts."""
        self.paused_until = -1.0
        """The time, of the history, at which the process goes on."""
        self._offset = offset

    @property
    def now(self) -> float:
        """The time of the process's clock."""
        return self._offset + self.time.now * self.rate

    def start(self) -> None:
        """Begin a new life."""
        self.life += 1
        self.alive = True
        self.paused_until = -1.0

    def end(self) -> None:
        """End this life, with all that was scheduled in it."""
        self.alive = False

    def history_time(self, clock: float) -> float:
        """Return the time of the history at which the process's clock shows a time."""
        return (clock - self._offset) / self.rate

    def schedule(self, clock: float, do: Callable[[], None]) -> None:
        """Call ``do`` when the clock shows that, or after the pause in which it does."""
        life = self.life

        def run() -> None:
            if self.life != life or not self.alive:
                return
            if self.time.now < self.paused_until:
                self.time.schedule(self.paused_until, run)
            else:
                do()

        # Rounded up, so that the clock is never just before the time.
        self.time.schedule(self.history_time(clock) + 1e-9, run)

    def schedule_in(self, seconds: float, do: Callable[[], None]) -> None:
        """Call ``do`` after so many seconds of the history."""
        self.schedule(self.now + seconds * self.rate, do)

    def __repr__(self) -> str:
        return f"<Process life={self.life} alive={self.alive} at {self.now:.3f} s>"
