"""``retry_on_conflict``: read, change, write, and once more if somebody else was faster.

An update carries the resourceVersion that it was made from, and is refused with ``Conflict`` when
that is no longer the newest. What helps is to read again and to repeat the change, which is the
caller's function; how often and when is decided here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from random import Random
from typing import Any, TypeVar, cast

from aioinformer.errors import AlreadyExists, Conflict

__all__ = ["retry_on_conflict"]

T = TypeVar("T")

ATTEMPTS = 5
DELAY = 0.01
JITTER = 0.1
"""client-go's ``retry.DefaultRetry``: 5 times, 10 ms apart, each wait up to a tenth longer. Others
that write the same object are done within milliseconds, or write it all the time."""

FIELD_CONFLICT = "FieldManagerConflict"
"""The reason of the causes when an apply meets fields of another manager's."""

_random = Random()


async def retry_on_conflict(
    attempt: Callable[[], Awaitable[T]],
    *,
    attempts: int = ATTEMPTS,
    delay: float = DELAY,
    jitter: float = JITTER,
) -> T:
    """Await ``attempt()``, again after a ``Conflict``; what it returns.

        async def grow() -> KubeObject:
            foo = (await foos.get(key)).to_dict()  # from the server: a cache may still be behind
            foo["spec"]["replicas"] += 1
            return await foos.update(foo)

        await retry_on_conflict(grow)

    Args:
        attempt: reads the object, changes it and writes it. It is called anew each time, so
            reading must be part of it.
        attempts: how often it is called at most.
        delay: seconds between two calls.
        jitter: by which part of itself a wait is longer, at random up to this.

    Raises:
        Conflict: the last attempt's; or, at once, one that repeating can't help: ``AlreadyExists``,
            and an apply to fields that another manager owns.
        ValueError: ``attempts`` is less than 1.

    Whatever else ``attempt`` raises passes through at once.
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
    """Whether it may be over if the object is read again."""
    if isinstance(conflict, AlreadyExists):
        return False
    sent: Any = conflict.status.details.get("causes")
    causes = cast("Iterable[Any]", sent) if isinstance(sent, list) else ()
    return not any(
        isinstance(cause, Mapping)
        and cast("Mapping[str, Any]", cause).get("reason") == FIELD_CONFLICT
        for cause in causes
    )
