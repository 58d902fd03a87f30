"""A rate of writes: as many steps of a workload as are due at a time."""

from __future__ import annotations

from aioinformer.testing.workload.workload import PodWorkload

MAX_SECONDS_AT_ONCE = 0.1
"""The most seconds of writes that one call makes up for: more would block the event loop."""


class WriteRate:
    """Makes the writes of a workload at a rate. The caller owns the clock."""

    def __init__(self, workload: PodWorkload, per_second: float, now: float) -> None:
        """Begin at ``now``, in seconds on any clock."""
        self._workload = workload
        self._per_second = per_second
        self._start = now
        self._made = 0

    def make_due(self, now: float) -> int:
        """Make the writes that are due, at most those of a tenth of a second; return the number."""
        due = int((now - self._start) * self._per_second)
        count = min(due - self._made, max(1, int(self._per_second * MAX_SECONDS_AT_ONCE)))
        for _ in range(count):
            self._workload.step()
        self._made = due
        return count

    def __repr__(self) -> str:
        return f"<WriteRate of {self._per_second:g}/s for {self._workload!r}>"
