"""Tests in virtual time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

from aioinformer.testing.simulation.loop import run

P = ParamSpec("P")


def in_virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a test on an event loop in which waiting takes no real time."""

    @functools.wraps(test)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        run(test(*args, **kwargs), seed=0)

    return wrapped
