"""The status of a reflector, kept up to date by the reporter; ``Health`` is a snapshot of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a health is made when a program reads it
    from aioinformer._runtime.reporting.health import InformerState

CUTS = 3
"""Watches in a row that are cut after the same time and so show the timeout of a proxy."""


class ReflectorStatus:
    def __init__(self) -> None:
        self.state: InformerState = "new"
        self.error: Exception | None = None
        self.absent = False
        """True if the server is known not to serve the resource."""
        self.watch_refusal: Exception | None = None
        """The error with which the server refuses watches, while lists refresh the cache."""
        self.fresh_at: float | None = None
        """The time at which the server last proved that the received state is up to date."""
        self.ignored = 0
        self.excluded = 0
        """Objects and events that have arrived and were dropped by the reflector's filter."""
        self._excluded_before = 0
        """The same number when the last read of the whole state began."""
        self._cuts: tuple[float, ...] = ()
        """Seconds for which the last watches have lasted, if each of them was cut."""
        self._clock: Callable[[], float] = float
        self._since = 0.0
        self._retry_at: float | None = None

    def start(self, clock: Callable[[], float]) -> None:
        """Start; ``clock`` returns monotonic seconds."""
        self._clock = clock
        self._since = clock()

    def set_state(self, state: InformerState) -> None:
        """Change the state, and forget a scheduled retry."""
        if state != self.state:
            self.state, self._since = state, self._clock()
        self._retry_at = None

    def clear_error(self) -> None:
        """Forget the error, since a list or a watch has succeeded."""
        self.error = self.watch_refusal
        if self.state == "waiting":  # the next request follows at once
            self.set_state("listing" if self.watch_refusal is None else "polling")

    def record_error(self, error: Exception) -> None:
        self.error = error

    def replace_error(self, copy_error: Callable[[Exception], Exception]) -> None:
        if self.error is not None:
            self.error = copy_error(self.error)

    def schedule_retry(self, delay: float) -> None:
        """Record that the next request is due in ``delay`` seconds."""
        healthy = self.watch_refusal is not None and self.error is self.watch_refusal
        self.set_state("absent" if self.absent else "polling" if healthy else "waiting")
        self._retry_at = self._clock() + delay

    def begin_state(self) -> None:
        """Record that the whole state is read anew, perhaps from another server."""
        self._excluded_before = self.excluded

    @property
    def excludes(self) -> bool:
        """True if objects were dropped since the last read of the whole state began."""
        return self.excluded > self._excluded_before

    def record_watch_end(self, seconds: float, *, cut: bool) -> None:
        self._cuts = (*self._cuts[1 - CUTS :], seconds) if cut else ()

    @property
    def watches_cut_after(self) -> float | None:
        """Seconds after which each of the last watches was cut, if these were about equal."""
        cuts = self._cuts
        if len(cuts) < CUTS or max(cuts) - min(cuts) > max(1.0, 0.1 * max(cuts)):
            return None
        return min(cuts)

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
        """Seconds to the next request, while waiting."""
        return None if self._retry_at is None else max(0.0, self._retry_at - self._clock())

    def __repr__(self) -> str:
        return f"<ReflectorStatus {self.state} error={self.error!r}>"
