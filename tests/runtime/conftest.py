"""The fixture of tests in which the time of the event loop passes by their own work alone."""

from __future__ import annotations

import asyncio

import pytest

from tests.runtime.loop_clock import LoopClock


@pytest.fixture
async def loop_clock(monkeypatch: pytest.MonkeyPatch) -> LoopClock:
    """Return the clock of the running loop, which nothing but the test advances."""
    clock = LoopClock()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", clock)
    return clock
