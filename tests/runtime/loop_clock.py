"""A clock for an event loop whose time passes by the work of a test alone.

A test of time slices that measures real work fails on a machine that is faster, or slower, than the
one on which the test was written. With this clock, the work of a test takes the time that the test
states.
"""

from __future__ import annotations

__all__ = ["LoopClock"]


class LoopClock:
    """The time of the running loop, which passes only by ``work``."""

    def __init__(self) -> None:
        """Begin at 0 seconds."""
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def work(self, seconds: float) -> None:
        """Let time pass, as a task does that computes."""
        self.now += seconds

    def __repr__(self) -> str:
        return f"<LoopClock {self.now:g} s>"
