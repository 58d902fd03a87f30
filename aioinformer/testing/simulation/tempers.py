"""What handlers do with an event, by temper."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from aioinformer.testing.simulation.plan import Temper
from aioinformer.testing.simulation.records import Told

if TYPE_CHECKING:  # who behaves so is built on this
    from aioinformer.testing.simulation.participant import Participant

__all__ = ["TOO_LONG", "HandlerBroke", "act", "behave"]

FOREVER = 1e9
"""Seconds: longer than any history."""
TOO_LONG = 30.0
"""Seconds: longer than any timeout."""
_ENOUGH = 20
"""Events after which a leaver leaves."""
_MEDDLES = 8
"""One event in so many makes somebody meddle."""
_MOST = 4
"""Listeners that it adds at most."""


class HandlerBroke(Exception):
    """What a raising handler raises."""


async def behave(one: Participant, told: Told) -> None:
    """Deal with what it was told.

    Raises:
        HandlerBroke: it is a raising one, and this is such an event.
        CancelledError: it is a cancelling one, or was cancelled.
    """
    number = told.version.number
    match one.spec.temper:
        case "slow":
            await asyncio.sleep(one.spec.delay)
        case "parallel":
            await asyncio.sleep(one.chance.uniform(0.0, one.spec.delay))
        case "timed":
            await asyncio.sleep(TOO_LONG if number % 6 == 0 else one.spec.delay)
        case "stuck":
            await asyncio.sleep(FOREVER)
        case "leaver" if one.heard == _ENOUGH:
            await one.leave(wait=one.chance.random() < 0.5, inside=True)
            await asyncio.sleep(1)
        case "raising" if number % 5 == 0:
            raise HandlerBroke(f"at {told.key}")
        case "cancelling":
            await _cancel(number)
        case "meddling" if one.heard % _MEDDLES == 0:
            await _meddle(one)
        case _:
            return


def act(one: Participant, told: Told) -> None:
    """The same, if it is a plain function.

    Raises:
        HandlerBroke: it is a raising one, and this is such an event.
        CancelledError: it is a cancelling one.
    """
    number = told.version.number
    match one.spec.temper:
        case "leaver" if one.heard == _ENOUGH:
            one.leave_at_once()
        case "raising" if number % 5 == 0:
            raise HandlerBroke(f"at {told.key}")
        case "cancelling" if number % 7 == 0:
            task = asyncio.current_task()
            if task is not None:
                task.cancel("by the handler itself")
            told.raised = asyncio.CancelledError.__name__  # it is a failure all the same
            if number % 2 == 0:
                raise asyncio.CancelledError("the handler's own")
        case "cancelling" if number % 5 == 0:
            raise asyncio.CancelledError("the handler's own")
        case _:
            return


async def _cancel(number: int) -> None:
    """A CancelledError that nobody asked for: raised, or asked for by itself."""
    if number % 5 == 0:
        raise asyncio.CancelledError("the handler's own")
    task = asyncio.current_task()
    if number % 7 == 0 and task is not None:
        task.cancel("by the handler itself")
        await asyncio.sleep(1)


async def _meddle(one: Participant) -> None:
    """Add another listener, or remove one of these."""
    if one.added and one.chance.random() < 0.5:
        await one.added.pop(0).leave(wait=one.chance.random() < 0.5)
        return
    number = one.heard // _MEDDLES
    if number <= _MOST:
        temper: Temper = one.chance.choice(("quick", "slow"))
        name = f"{one.spec.name}+{number}"
        delay = 0.02 if temper == "slow" else 0.0
        spec = replace(one.spec, name=name, temper=temper, delay=delay, resync=None)
        one.added.append(one.host.admit(spec))
