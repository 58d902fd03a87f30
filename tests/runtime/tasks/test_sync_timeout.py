"""A timeout that says what isn't synced."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer._runtime.tasks.sync_timeout import sync_timeout
from aioinformer.errors import SyncTimeout


async def test_the_error_names_what_is_not_synced() -> None:
    with pytest.raises(SyncTimeout, match=r"pods.*listing for 1 s"):
        async with sync_timeout(0.001, lambda: {"pods": "listing for 1 s"}):
            await asyncio.sleep(5)


async def test_a_wait_that_ends_in_time_passes() -> None:
    def describe() -> dict[str, str]:
        raise AssertionError("nothing to describe")

    async with sync_timeout(None, describe):
        await asyncio.sleep(0)
