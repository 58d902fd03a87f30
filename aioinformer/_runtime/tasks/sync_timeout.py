"""Limits of waits, with errors that say why a wait has no end: something isn't synced in time, or
nobody has started it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager

from aioinformer.errors import SyncTimeout, UsageError

START_GRACE = 5.0
"""Seconds that a wait allows for the start of what it waits for. A program may start the tasks that
wait before it enters a factory."""

ENTER_FACTORY = "enter the factory of the informer with 'async with', or await run()"


@asynccontextmanager
async def sync_timeout(
    timeout: float | None, describe: Callable[[], Mapping[str, str]], *, awaited: str = "synced"
) -> AsyncGenerator[None]:
    """Limit the time of the block; raise ``SyncTimeout`` when it is over.

    Args:
        timeout: seconds; ``None`` for no limit.
        describe: called when the time is over: returns the state of each thing that isn't synced,
            by name.
        awaited: the state that is awaited, for the error.
    """
    try:
        async with asyncio.timeout(timeout):
            yield
    except TimeoutError:
        raise SyncTimeout(timeout or 0.0, describe(), awaited=awaited) from None


@asynccontextmanager
async def start_limit(
    started: Callable[[], bool],
    what: str,
    how: str = ENTER_FACTORY,
    *,
    tolerate: Callable[[str], bool] = lambda _: False,
) -> AsyncGenerator[None]:
    """Raise ``UsageError`` from a block that waits for ``what``, unless that is ``started``
    ``START_GRACE`` seconds later: the block would wait for ever. ``how`` says how to start it.
    ``tolerate`` takes the text of the error, and returns True if the block is to go on.
    """
    loop = asyncio.get_running_loop()
    limit = asyncio.timeout(None)
    text = (
        f"the {what} was not started within {START_GRACE:g} s of this wait, which would "
        f"never end: {how}"
    )

    def check(limit: asyncio.Timeout) -> None:
        if not started() and not tolerate(text):
            limit.reschedule(loop.time())

    timer = loop.call_later(START_GRACE, check, limit)
    try:
        async with limit:
            yield
    except TimeoutError:
        if not limit.expired():
            raise
        raise UsageError(text) from None
    finally:
        timer.cancel()
        del limit  # it keeps the task, and a cancelled task its CancelledError
