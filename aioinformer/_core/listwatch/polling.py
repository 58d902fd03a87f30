"""The refresh of a cache by lists, where the server serves lists and refuses watches.

A role may allow ``list`` and not ``watch``, and an aggregated API may serve lists only. Such a
refusal (403, 404 or 405) leads to a list in the same cycle. If the list works and the next watch is
refused again, lists refresh the cache at an interval. The watch is tried again behind the first
such list, then behind every second, fourth and eighth one, since a role can change.
"""

from __future__ import annotations

from aioinformer._core.listwatch.outcomes import Outcome

POLL_INTERVAL = 60.0
"""Seconds between two lists, by default: a list costs the server more than a watch, and a minute is
also the time after which a watch proves that its cache is up to date."""

JITTER = 0.2
"""The part of the interval that is random, so that informers that began together spread."""

MAX_POLLS_PER_WATCH = 8
"""The most lists between two tries of a watch."""

REFUSALS = frozenset({Outcome.ACCESS_DENIED, Outcome.NOT_FOUND, Outcome.METHOD_NOT_ALLOWED})


class Polling:
    def __init__(self, interval: float = POLL_INTERVAL) -> None:
        self.active = False
        self.listing = False
        """True if a list reads the next state, because a watch or WatchList was refused."""
        self._interval = interval
        self._state_listed = False
        self._polls = 0
        self._polls_per_watch = 1

    def is_refusal(self, outcome: Outcome) -> bool:
        """Return True if ``outcome``, of a watch, means that lists must refresh the cache.

        A list has to work right before: a server that has just started refuses requests too.
        """
        return outcome in REFUSALS and self._state_listed

    def start(self) -> None:
        self._polls_per_watch = (
            min(2 * self._polls_per_watch, MAX_POLLS_PER_WATCH) if self.active else 1
        )
        self.active, self._polls = True, 0

    def finish_list(self) -> bool:
        """Record that a list was read to its end. Return True if a watch is to follow."""
        self._state_listed, self.listing = True, False
        if not self.active:
            return True
        self._polls += 1
        return self._polls >= self._polls_per_watch

    def open_watch(self) -> None:
        self.active = self.listing = self._state_listed = False

    def delay(self, jitter: float) -> float:
        """Return the seconds before the next list; ``jitter`` is a random number in [0, 1)."""
        return self._interval * (1 + JITTER * (jitter - 0.5))

    def __repr__(self) -> str:
        state = f"active, {self._polls} of {self._polls_per_watch} lists" if self.active else "idle"
        return f"<Polling every {self._interval:g} s {state}>"
