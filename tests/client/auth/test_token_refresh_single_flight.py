"""One run at a time, shared by all who ask for it meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer._client.auth.token_refresh import SingleFlight
from aioinformer.errors import NotRunning


class Slow:
    """Runs until it is let, and counts."""

    def __init__(self) -> None:
        self.let = asyncio.Event()
        self.runs = 0

    async def __call__(self) -> int:
        self.runs += 1
        await self.let.wait()
        return self.runs


async def test_a_failure_without_a_waiting_caller_is_not_logged_by_asyncio() -> None:
    async def fail() -> None:
        raise ValueError

    flight = SingleFlight(fail, name="failing")
    await asyncio.wait({flight.start()})

    with pytest.raises(ValueError, match=r"^$"):
        await flight()


async def test_closing_ends_the_run_and_raises_not_running_to_the_waiting_callers() -> None:
    slow = Slow()
    flight = SingleFlight(slow.__call__, name="slow")
    waiting = asyncio.create_task(flight())
    await asyncio.sleep(0)
    assert repr(flight) == "<SingleFlight slow running>"

    await flight.aclose()

    with pytest.raises(NotRunning, match="closed before the request was sent"):
        await waiting
    with pytest.raises(NotRunning):
        flight.start()
    assert repr(flight) == "<SingleFlight slow idle>"
