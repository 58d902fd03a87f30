"""Resyncs of each listener when it is due, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

import pytest

from aioinformer import DeltaQueue, Event, Indexer, SharedInformer, Updated
from aioinformer._runtime.informer.pump import Pump
from aioinformer._runtime.informer.resync_timer import MIN_RESYNC_PERIOD, ResyncTimer
from aioinformer.errors import ConnectionFailed
from aioinformer.testing.simulation.loop import run
from tests.runtime.informers import running_in_background
from tests.runtime.scripted_source import (
    ErrorResponse,
    body,
    list_response,
    modified,
    scripted_lister_watcher,
    watch_response,
    yield_to_loop,
)

T = TypeVar("T")


def in_virtual_time(main: Coroutine[None, None, T]) -> T:
    return run(main, seed=0)


def informer_of(*names: str, resync: float = 0.0) -> SharedInformer:
    """Return an informer whose watch never ends."""
    objects = [body(name, 1) for name in names]
    return SharedInformer(
        scripted_lister_watcher(list_response(*objects), watch_response(never_ends=True)),
        resync=resync,
        watch_list=False,
    )


class Resynced:
    """A handler that records the times of resyncs."""

    def __init__(self) -> None:
        self.at: list[float] = []

    def __call__(self, event: Event) -> None:
        if isinstance(event, Updated) and event.resync:
            assert event.old is event.new
            self.at.append(round(asyncio.get_running_loop().time(), 3))


async def _for(seconds: float, informer: SharedInformer) -> None:
    async with running_in_background(informer.run()):
        await asyncio.sleep(seconds)


def _resync_tasks() -> int:
    return sum(each.get_name() == "resync of pods" for each in asyncio.all_tasks())


def test_the_timer_runs_from_the_first_listener_with_a_period_on() -> None:
    """A task and all that belongs to it are a part of what each of many informers weighs."""

    async def main() -> None:
        informer, first, second = informer_of("a"), Resynced(), Resynced()
        informer.add_handler(lambda event: None)
        async with running_in_background(informer.run()):
            await informer.wait_synced()
            await asyncio.sleep(100)
            assert _resync_tasks() == 0
            informer.add_handler(first, resync=30.0)
            await asyncio.sleep(40)
            assert _resync_tasks() == 1
            informer.add_handler(second, resync=30.0)
            await asyncio.sleep(40)
            assert _resync_tasks() == 1
        assert first.at == pytest.approx([130.0, 160.0], abs=1.0)
        assert second.at == pytest.approx([170.0], abs=1.0)

    in_virtual_time(main())


@pytest.mark.client_go(3)
def test_a_listener_receives_resyncs_at_the_period_of_the_informer() -> None:
    informer, received = informer_of("a", resync=30), Resynced()
    informer.add_handler(received)

    in_virtual_time(_for(100, informer))

    assert received.at == [30, 60, 90]


@pytest.mark.client_go(50)
def test_each_listener_has_a_period_of_its_own() -> None:
    """In client-go none is shorter than the informer's, and all are multiples of it."""
    informer = informer_of("a", resync=30)
    often, seldom, never = Resynced(), Resynced(), Resynced()
    informer.add_handler(often, resync=20)
    informer.add_handler(seldom, resync=45)
    informer.add_handler(never, resync=0)

    in_virtual_time(_for(95, informer))

    assert (often.at, seldom.at, never.at) == ([20, 40, 60, 80], [45, 90], [])


@pytest.mark.client_go(52)
def test_a_listener_can_have_a_resync_period_if_the_informer_has_none() -> None:
    informer, received = informer_of("a"), Resynced()
    informer.add_handler(received, resync=40)

    in_virtual_time(_for(100, informer))

    assert received.at == [40, 80]


def test_the_period_of_a_late_listener_starts_when_it_joins() -> None:
    informer, first, second = informer_of("a", resync=30), Resynced(), Resynced()

    async def main() -> None:
        async with running_in_background(informer.run()):
            await asyncio.sleep(10)
            informer.add_handler(first)
            await asyncio.sleep(5)
            informer.add_handler(second, resync=2)
            await asyncio.sleep(30)

    in_virtual_time(main())

    assert first.at == [40]
    assert second.at[:3] == [17, 19, 21]


def test_a_removed_listener_receives_no_resync() -> None:
    informer, received = informer_of("a", resync=30), Resynced()

    async def main() -> None:
        registration = informer.add_handler(received)
        async with running_in_background(informer.run()):
            await asyncio.sleep(45)
            registration.remove()
            await asyncio.sleep(60)

    in_virtual_time(main())

    assert received.at == [30]


def test_the_resync_period_of_a_listener_is_at_least_one_second() -> None:
    """client-go's minimum, which is for handlers; an informer's own period may be shorter."""
    timer = ResyncTimer(_pump(), 0.25)

    assert timer.resolve_period(0.5) == MIN_RESYNC_PERIOD == 1.0
    assert (timer.resolve_period(None), timer.resolve_period(0), timer.resolve_period(2.5)) == (
        0.25,
        0.0,
        2.5,
    )


def _pump() -> Pump:
    return Pump("pods", DeltaQueue(), Indexer())


@pytest.mark.parametrize("period", [-1, -0.5])
def test_a_period_is_not_negative(period: float) -> None:
    with pytest.raises(ValueError, match="resync must be seconds, or 0 for never"):
        informer_of(resync=period)
    with pytest.raises(ValueError, match="resync must be seconds, or 0 for never"):
        informer_of().add_handler(print, resync=period)
    with pytest.raises(ValueError, match="resync must be seconds, or 0 for never"):
        informer_of().events(resync=period)


@pytest.mark.client_go(18)
def test_resyncs_continue_while_the_server_cannot_be_reached() -> None:
    """In client-go, failures that are shorter than the period prevent every resync."""
    refusals = [ErrorResponse(ConnectionFailed("refused"))] * 50
    informer = SharedInformer(
        scripted_lister_watcher(list_response(body("a", 1)), *refusals), resync=30, watch_list=False
    )
    received = Resynced()
    informer.add_handler(received)

    in_virtual_time(_for(100, informer))

    assert received.at == [30, 60, 90]


def test_no_resync_is_delivered_before_the_initial_list() -> None:
    informer, received = SharedInformer(scripted_lister_watcher(), resync=30), Resynced()
    informer.add_handler(received)

    in_virtual_time(_for(100, informer))

    assert received.at == []


def test_a_listener_with_a_pending_resync_receives_no_further_resync() -> None:
    informer, received = informer_of("a", "b", "c", resync=30), list[str]()

    async def slow(event: Event) -> None:
        if isinstance(event, Updated):
            received.append(event.obj.name)
            await asyncio.sleep(40)

    informer.add_handler(slow)

    in_virtual_time(_for(185, informer))

    assert received == ["a", "b", "c", "a"], "from 30 to 150, and from then on again"


def test_a_change_during_a_resync_is_delivered_first_and_the_resync_has_the_new_version() -> None:
    source = scripted_lister_watcher(
        list_response(body("a", 1), body("b", 2)), watch_response(modified("b", 3), never_ends=True)
    )
    informer, received = SharedInformer(source, resync=30, watch_list=False), list[str]()

    async def main() -> None:
        async with informer.events() as events, running_in_background(informer.run()):
            await asyncio.sleep(31)
            await yield_to_loop()
            while (event := events.next_nowait()) is not None:
                kind = "resync" if isinstance(event, Updated) and event.resync else "change"
                received.append(f"{kind} {event.obj.name}-{event.obj.resource_version}")

    in_virtual_time(main())

    assert received == ["change a-1", "change b-2", "change b-3", "resync a-1", "resync b-3"]


def test_a_stream_may_have_a_period_too() -> None:
    informer = informer_of("a")

    async def main() -> float:
        async with informer.events(resync=7) as events, running_in_background(informer.run()):
            async for event in events:
                if isinstance(event, Updated) and event.resync:
                    break
            return asyncio.get_running_loop().time()

    assert in_virtual_time(main()) == pytest.approx(7)


def test_the_repr_of_a_resync_timer_shows_its_period_and_next_time() -> None:
    assert repr(ResyncTimer(_pump(), 30.0)) == "<ResyncTimer period=30 next=None>"
