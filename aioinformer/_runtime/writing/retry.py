"""Repetition of a read-change-write cycle after a conflict.

The server rejects an update with ``Conflict`` if the object was changed since it was read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import TypeVar

from aioinformer.errors import AlreadyExists, Conflict

T = TypeVar("T")

ATTEMPTS = 5
DELAY = 0.01
JITTER = 0.1
"""client-go's ``retry.DefaultRetry``: 5 attempts, 10 ms apart, each wait up to a tenth longer.
Another writer of the same object either finishes within milliseconds or writes all the time."""

_random = Random()


async def retry_on_conflict(
    attempt: Callable[[], Awaitable[T]],
    *,
    attempts: int = ATTEMPTS,
    delay: float = DELAY,
    jitter: float = JITTER,
) -> T:
    """Await ``attempt()``, repeat it after a ``Conflict``, and return its result.

        async def grow() -> KubeObject:
            foo = (await foos.get(key)).to_dict()  # from the server: a cache may be behind
            foo["spec"]["replicas"] += 1
            return await foos.update(foo)

        await retry_on_conflict(grow)

    Args:
        attempt: reads the object, changes it and writes it, at each call. Other exceptions pass
            through at once.
        attempts: the most calls.
        delay: seconds between two calls.
        jitter: the most by which a delay is lengthened at random, as a fraction of it.

    Raises:
        Conflict: the last attempt's. At once if repeating can't help: ``AlreadyExists``, and an
            apply to fields of another manager.
        ValueError: ``attempts`` is less than 1.
    """
    if attempts < 1:
        raise ValueError(f"an attempt is made at least once, not {attempts} times")
    for left in range(attempts - 1, -1, -1):
        try:
            return await attempt()
        except Conflict as error:
            if not left or not _is_retryable(error):
                raise
        await asyncio.sleep(delay * (1 + jitter * _random.random()))
    raise AssertionError("the last attempt returns or raises")


def _is_retryable(conflict: Conflict) -> bool:
    """Return True if reading the object again may resolve the conflict."""
    return not (isinstance(conflict, AlreadyExists) or conflict.status.is_apply_conflict)
