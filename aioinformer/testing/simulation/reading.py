"""How streams are read: in a loop, in one whose waits are cancelled, and two of them as one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeAlias

from aioinformer._core.objects.kube_object import Event
from aioinformer._runtime.delivery.streams import EventStream, MergedStream, Sourced, merge
from aioinformer.errors import ListenerOverflow
from aioinformer.testing.simulation.participant import Participant

__all__ = ["read", "read_as_one"]

_ENOUGH = 60
"""Cancelled waits after which some leave."""
_LONGEST = 15.0
"""Seconds that one waits."""
_SHORTEST = 0.001
"""A wait of nothing at all is over before a stream that must give way can do so, every time."""
_AT_ONCE = 0.2
"""The share of events that come together with a cancellation."""

_Way: TypeAlias = Callable[[Participant, EventStream], Awaitable[None]]


def read(one: Participant) -> Coroutine[Any, Any, None]:
    """Read the stream of one listener to its end, as its temper says."""
    return _read(one, _interrupted if one.spec.temper == "interrupted" else _plain)


async def _read(one: Participant, way: _Way) -> None:
    try:
        async with one.stream() as stream:
            await way(one, stream)
    except ListenerOverflow as error:
        one.note_overflow(error)
    one.mailbox = None


async def _plain(one: Participant, stream: EventStream) -> None:
    async for event in stream:
        await one.take_in(event)


async def _interrupted(one: Participant, stream: EventStream) -> None:
    """Nothing that was pending may be lost to a wait that is cancelled."""
    leaves, interruptions = one.chance.random() < 0.5, 0
    while not (leaves and interruptions >= _ENOUGH):
        try:
            async with asyncio.timeout(one.chance.uniform(_SHORTEST, _LONGEST)) as scope:
                event = await _next_or_cancelled(one, stream, scope)
        except TimeoutError:
            interruptions += 1
            continue
        except StopAsyncIteration:
            return
        await one.take_in(event)
    one.note_leaving()


async def _next_or_cancelled(
    one: Participant, stream: EventStream, scope: asyncio.Timeout
) -> Event:
    """The next event; now and then cancelled as it comes. Which is first the loop decides."""

    def cancel() -> None:
        if one.chance.random() < _AT_ONCE and not scope.expired():
            scope.reschedule(asyncio.get_running_loop().time())

    box = one.mailbox
    if box is not None:
        box.on_event = cancel
    try:
        return await anext(stream)
    finally:
        if box is not None:
            box.on_event = None


async def read_as_one(several: Sequence[Participant]) -> None:
    """Read the streams of several listeners, which are of different informers."""
    by_source = {id(each.informer): each for each in several}
    async with merge(*(each.stream() for each in several)) as events:
        while (sourced := await _next(events, several)) is not None:
            await by_source[id(sourced.source)].take_in(sourced.event)
    for each in several:
        each.mailbox = None


async def _next(events: MergedStream, several: Sequence[Participant]) -> Sourced | None:
    """The next event of any. When one of them has ended, the others are read on."""
    while True:
        try:
            return await anext(events)
        except StopAsyncIteration:
            return None
        except ListenerOverflow as error:
            for each in several:
                if f"stream of {each.informer.name} " in str(error):
                    each.note_overflow(error)
