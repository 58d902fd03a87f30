"""A timeout for waits until something is synced, whose error says why it isn't."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager

from aioinformer.errors import SyncTimeout


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
