"""What an informer says about itself: for readiness probes, time-outs and people.

A ``ReflectorStatus`` is what the reflector keeps up to date; a ``Health`` is a snapshot of it with what
the cache adds. Times are seconds relative to the snapshot, so that they mean something in a log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["Health", "InformerState", "ReflectorStatus", "describe_error", "error_text"]

InformerState: TypeAlias = Literal[
    "new", "listing", "watching", "waiting", "absent", "stopped", "failed"
]
"""``new``: not started. ``waiting``: something went wrong, the next attempt is due in
``retry_in``. ``absent``: the server doesn't serve the resource; it is looked for again in
``retry_in``. ``failed``: a task of the informer ended that should not; a bug, or ``fail_fast``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """An informer at one moment."""

    state: InformerState
    since: float
    """Seconds in this state."""
    error: Exception | None
    """What went wrong last, with the server's own Status in it if it had one; ``None`` once a
    list or a watch has worked again."""
    retry_in: float | None
    """Seconds to the next attempt, while waiting."""
    synced: bool
    """Whether the cache has held a full state. It stays true."""
    resource_version: str
    """Up to where the cache has applied everything."""
    objects: int
    """How many objects are cached."""
    rejected: tuple[str, ...]
    """Keys of objects whose newest version was rejected, a hundred at most: it doesn't fit
    ``model=``, or ``transform=`` or an index function raised. What was cached of them stays; they
    are listed until they fit again, or are deleted."""
    blocked_by: tuple[str, ...]
    """Names of the listeners whose full mailbox keeps the watch from being read."""
    rejections: int = 0
    """How many objects are rejected."""
    unconverted: int = 0
    """How many times ``convert=`` has raised: it is asked whenever somebody looks."""
    fresh: float | None = None
    """Seconds since the server last proved that the cache is up to date: the end of a list, an
    event, a bookmark. ``None`` before the first. Bookmarks come about once a minute, so that up
    to 75 s say nothing; a server without them may be silent for as long as nothing happens."""
    strategy: Literal["watchlist", "list"] = "list"
    """How the state is, or was last, read."""
    rewinds: int = 0
    """How many times the server has gone back in time (restored from a backup)."""
    verified: float | None = None
    """Seconds since the cache was last compared with the server and found to be right
    (``verify``, ``verify_every=``); ``None`` before the first time."""
    differences: int = 0
    """In how many objects it differed when it was compared last."""

    def __str__(self) -> str:
        if self.state == "new":
            return "not started: enter the factory with `async with`, or await run()"
        doing = "waiting for the resource" if self.state == "absent" else self.state
        parts = [f"{doing} for {self.since:.1f} s"]
        if self.error is not None:
            parts.append(f"last error: {error_text(self.error)}")
        if self.retry_in is not None:
            parts.append(f"next attempt in {self.retry_in:.1f} s")
        if self.rewinds:
            parts.append(f"the server went back in time {self.rewinds} times")
        if self.differences:
            parts.append(f"{self.differences} objects differ from the server's")
        if self.rejections:
            parts.append(f"{self.rejections} objects rejected")
        if self.unconverted:
            parts.append(f"convert= failed {self.unconverted} times")
        if self.blocked_by:
            parts.append(f"blocked by {', '.join(self.blocked_by)}")
        return ", ".join(parts)


class ReflectorStatus:
    """The state of a reflector, as it changes."""

    def __init__(self) -> None:
        """A reflector that has not started."""
        self.state: InformerState = "new"
        self.error: Exception | None = None
        self.absent = False
        """Whether the server is known not to serve the resource."""
        self.fresh_at: float | None = None
        """When the server last proved that what was read is up to date."""
        self.differences = 0
        """In how many objects the cache differed when it was compared last."""
        self._verified_at: float | None = None
        self._clock: Callable[[], float] = float
        self._since = 0.0
        self._retry_at: float | None = None

    def start(self, clock: Callable[[], float]) -> None:
        """The reflector has started; ``clock`` gives monotonic seconds."""
        self._clock = clock
        self._since = clock()

    def set_state(self, state: InformerState) -> None:
        """The reflector now does this."""
        if state != self.state:
            self.state, self._since = state, self._clock()
        self._retry_at = None

    def clear_error(self) -> None:
        """A list or a watch works."""
        self.error = None

    def record_error(self, error: Exception) -> None:
        """Something went wrong."""
        self.error = error

    def schedule_retry(self, delay: float) -> None:
        """The next attempt is due in ``delay`` seconds."""
        self.set_state("absent" if self.absent else "waiting")
        self._retry_at = self._clock() + delay

    def record_comparison(self, differences: int) -> None:
        """The cache was compared with the server, and differed in so many objects."""
        self.differences = differences
        if not differences:
            self._verified_at = self._clock()

    @property
    def verified(self) -> float | None:
        """Seconds since the cache was last found to be right."""
        return None if self._verified_at is None else self._clock() - self._verified_at

    @property
    def since(self) -> float:
        """Seconds in this state."""
        return self._clock() - self._since

    @property
    def fresh(self) -> float | None:
        """Seconds since the last proof of freshness."""
        return None if self.fresh_at is None else self._clock() - self.fresh_at

    @property
    def retry_in(self) -> float | None:
        """Seconds to the next attempt, while waiting."""
        return None if self._retry_at is None else max(0.0, self._retry_at - self._clock())

    def __repr__(self) -> str:
        return f"<ReflectorStatus {self.state} error={self.error!r}>"


def error_text(error: BaseException) -> str:
    """What an exception says, which is a program's code and may fail."""
    try:
        return str(error)
    except Exception as failed:  # noqa: BLE001 - a program's code
        return f"<its __str__ raised {type(failed).__name__}>"


def describe_error(error: BaseException) -> str:
    """An exception in one line, for logs."""
    return f"{type(error).__name__}: {error_text(error)}"
