"""When a stream that says nothing is to be given up.

A connection may die without a word: a router forgets it, a peer vanishes. TCP notices some of
that; for the rest there are bookmarks. A server that sends them does so about once a minute, so
where they were seen, silence for longer than they are apart means that nobody is there. Where
none were seen, silence means nothing, and only the deadline of the watch ends it.

Sans-I/O: told what happens, ``IdleTimeout`` says until when to wait. Waiting is the runtime's.
"""

from __future__ import annotations

from dataclasses import dataclass

from aioinformer._core.listwatch.server_profile import ServerProfile

__all__ = ["FINAL_BOOKMARK_WINDOW", "IdleTimeout", "LivenessPolicy"]

FINAL_BOOKMARK_WINDOW = 5.0
"""Seconds before the deadline of a watch within which bookmarks say nothing of how often they
come: a server sends one or two just before the end (recording 39)."""

DEADLINE_GRACE = 60.0
"""Seconds that a watch may last beyond its deadline. A client that knows the network has noticed
before; this is for those that don't."""

MIN_TIMEOUT = 15.0
"""Seconds that silence must last in any case. A server under load is late with its bookmarks."""

NEVER = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class LivenessPolicy:
    """How long silence is borne. Times in seconds."""

    idle_factor: float = 1.25
    """A stream is given up when it was silent for this many times the distance of bookmarks:
    75 s on a kube-apiserver, which sends one a minute. 0 never gives up before the deadline."""
    initial_silence: float = 30.0
    """What a WatchList may be silent before the mark behind its initial state. Servers write it
    as fast as it is read; one that doesn't know WatchLists sends all objects and then nothing."""
    initial_total: float = 300.0
    """What a WatchList may take up to that mark, changes coming in or not."""
    list_total: float = 600.0
    """What a page of a list may take from its first byte to its last. kube-apiserver gives it a
    minute; this is for what drips."""

    def __post_init__(self) -> None:
        if self.idle_factor < 0 or 0 < self.idle_factor < 1:
            raise ValueError(f"idle_factor must be 0 or at least 1, not {self.idle_factor:g}")
        if min(self.initial_silence, self.initial_total, self.list_total) <= 0:
            raise ValueError("initial_silence, initial_total and list_total must be above 0")


class IdleTimeout:
    """Watches over one stream."""

    def __init__(
        self,
        policy: LivenessPolicy,
        profile: ServerProfile,
        *,
        now: float,
        timeout: float,
        initial: bool,
    ) -> None:
        """The head of an answer has come.

        Args:
            policy: how long to bear silence.
            profile: what is known of this resource; learns from this stream.
            now: seconds of a monotonic clock.
            timeout: seconds after which the server was asked to end the stream.
            initial: whether it is a WatchList, whose initial state has yet to come.
        """
        self.initial_list_complete = not initial
        """Whether the initial state is complete, or was not asked for."""
        self.last_data = now
        """The time of the last data, of whatever kind. An attribute, since it is set per chunk."""
        self._policy = policy
        self._profile = profile
        self._watch_deadline = now + timeout
        self._initial_deadline = now + policy.initial_total
        self._interval_start: float | None = now
        self._first_bookmark = True
        self._paused = False

    def complete_initial_list(self, now: float) -> None:
        """The initial state is complete."""
        self.initial_list_complete = True
        self._interval_start = now

    def record_bookmark(self, now: float) -> None:
        """A bookmark came."""
        if self._interval_start is not None and now < self._watch_deadline - FINAL_BOOKMARK_WINDOW:
            self._profile.record_bookmark(now - self._interval_start, first=self._first_bookmark)
        self._interval_start, self._first_bookmark = now, False

    def pause(self) -> None:
        """Nobody reads for now: what a slow consumer takes is not the server's silence."""
        self._paused = True

    def resume(self, now: float) -> None:
        """Reading goes on. What waits in the socket has yet to be seen."""
        self._paused = False
        self.last_data = now
        self._watch_deadline = max(self._watch_deadline, now)
        self._interval_start = None  # who reads late can't tell when things were sent
        self._initial_deadline = max(self._initial_deadline, now + self._policy.initial_silence)

    @property
    def timeout(self) -> float:
        """Seconds of silence that are borne now."""
        if not self.initial_list_complete:
            return self._policy.initial_silence
        cadence, factor = self._profile.bookmark_interval, self._policy.idle_factor
        return NEVER if cadence is None or not factor else max(MIN_TIMEOUT, factor * cadence)

    @property
    def deadline(self) -> float:
        """When to give up unless something comes before: a time of the clock. Infinity while
        nobody reads.
        """
        if self._paused:
            return NEVER
        due = self.last_data + self.timeout
        return min(
            due,
            self._watch_deadline + DEADLINE_GRACE
            if self.initial_list_complete
            else self._initial_deadline,
        )

    def past_deadline(self, now: float) -> bool:
        """Whether the stream has outlived its time, rather than been silent."""
        return self.initial_list_complete and now >= self._watch_deadline + DEADLINE_GRACE

    def __repr__(self) -> str:
        state = "held" if self._paused else "settled" if self.initial_list_complete else "initial"
        return f"<IdleTimeout {state} limit={self.timeout:g} s>"
