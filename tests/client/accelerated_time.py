"""Tests with real sockets, in which timers fire early because nothing comes meanwhile.

The clock of such a loop stands still while tasks run and data comes. It passes a timer only after
the sockets were silent for a part of the timer's time, so that a machine that stalls changes no
time that a test measures.
"""

from __future__ import annotations

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

__all__ = ["AcceleratedLoop", "in_accelerated_time", "run_accelerated"]

P = ParamSpec("P")
T = TypeVar("T")

SPEED = 200.0
"""The seconds of the loop that pass in one second in which nothing comes."""


class _IdleSelector(selectors.DefaultSelector):
    """A selector whose waits are shortened, and which counts the waits in which nothing came."""

    def __init__(self, speed: float) -> None:
        super().__init__()
        self.idle_seconds = 0.0
        self._speed = speed

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if not timeout:
            return super().select(timeout)
        ready = super().select(timeout / self._speed)
        if not ready:
            self.idle_seconds += timeout
        return ready


class AcceleratedLoop(asyncio.SelectorEventLoop):
    """A loop with real sockets, whose time passes only while it waits in vain."""

    def __init__(self, speed: float) -> None:
        self._idle_selector = _IdleSelector(speed)
        super().__init__(self._idle_selector)

    def time(self) -> float:
        return self._idle_selector.idle_seconds


def run_accelerated(scenario: Coroutine[Any, Any, T], *, speed: float = SPEED) -> T:
    """Run a scenario on such a loop."""
    with asyncio.Runner(loop_factory=lambda: AcceleratedLoop(speed)) as runner:
        return runner.run(scenario)


def in_accelerated_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run an asynchronous test on such a loop."""

    @functools.wraps(test)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        run_accelerated(test(*args, **kwargs))

    return wrapped
