"""Waits in virtual time, which passes only while every task waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["until"]


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition, a minute at most."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - any state of a program
            await asyncio.sleep(0.05)
