"""``async with informer.events() as events: async for event in events``."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer import Added, Deleted, Event, EventStream, Updated
from aioinformer._core.mailbox import Mailbox
from aioinformer._runtime.listeners import Gate, Listener
from aioinformer.errors import NotRunning, UsageError
from tests.runtime.running import informing, names, pods_of, running, touch, with_pods
from tests.runtime.sources import pod, settle, until


async def take(events: EventStream, count: int) -> list[Event]:
    return [await anext(events) for _ in range(count)]


def in_short(events: list[Event]) -> list[tuple[str, str]]:
    return [(type(event).__name__, event.obj.name) for event in events]


# -- what it brings ---------------------------------------------------------------------------


async def test_it_brings_what_is_cached_and_then_what_changes() -> None:
    cluster = with_pods("a")
    async with informing(pods_of(cluster)) as informer, informer.events() as events:
        touch(cluster, "a", "1")
        cluster.create("pods", {"metadata": {"name": "b"}})
        cluster.delete("pods", "a")

        heard = await take(events, 4)

    assert in_short(heard) == [("Added", "a"), ("Updated", "a"), ("Added", "b"), ("Deleted", "a")]
    assert [event.initial for event in heard if isinstance(event, Added)] == [True, False]


async def test_it_hears_what_happens_from_when_it_was_entered() -> None:
    cluster = with_pods("a")
    async with informing(pods_of(cluster)) as informer:
        stream = informer.events()
        cluster.create("pods", {"metadata": {"name": "b"}})
        await until(lambda: len(informer.lister) == 2)
        cluster.delete("pods", "a")
        await until(lambda: len(informer.lister) == 1)

        async with stream as events:
            assert in_short(await take(events, 1)) == [("Added", "b")]


async def test_it_may_be_entered_before_the_informer_runs() -> None:
    informer = pods_of(with_pods("a", "b"))

    async with informer.events() as events, running(informer.run()):
        heard = await take(events, 2)

    assert sorted(in_short(heard)) == [("Added", "a"), ("Added", "b")]
    assert all(isinstance(event, Added) and event.initial for event in heard)


async def test_two_streams_hear_the_same() -> None:
    cluster = with_pods("a")
    async with (
        informing(pods_of(cluster)) as informer,
        informer.events() as one,
        informer.events() as other,
    ):
        touch(cluster, "a", "1")

        assert await take(one, 2) == await take(other, 2)


async def test_the_cache_shows_what_was_heard() -> None:
    cluster = with_pods()
    async with informing(pods_of(cluster)) as informer, informer.events() as events:
        cluster.create("pods", {"metadata": {"name": "a"}})

        event = await anext(events)

        assert informer.lister.get("default/a") == event.obj


async def test_it_is_synced_when_it_is_asked_for_more_than_was_cached() -> None:
    cluster = with_pods("a")
    async with informing(pods_of(cluster)) as informer, informer.events() as events:
        await anext(events)
        assert not events.statistics().synced
        reading = asyncio.create_task(take(events, 1))
        await settle()
        assert events.synced
        touch(cluster, "a", "1")
        await reading


# -- how it ends ------------------------------------------------------------------------------


async def test_it_ends_with_the_informer_after_what_was_pending() -> None:
    cluster = with_pods("a")
    informer = pods_of(cluster)
    async with informer.events() as events:
        async with informing(informer):
            pass

        assert in_short([event async for event in events]) == [("Added", "a")]
        assert [event async for event in events] == []


async def test_who_waits_for_the_next_event_is_told_of_the_end() -> None:
    informer = pods_of(with_pods())
    async with informer.events() as events:
        async with informing(informer):
            reading = asyncio.create_task(_all(events))
            await settle()
        assert await reading == []


async def _all(events: EventStream) -> list[Event]:
    return [event async for event in events]


async def test_who_breaks_out_and_leaves_frees_the_mailbox() -> None:
    cluster = with_pods("a", "b", "c")
    async with informing(pods_of(cluster)) as informer:
        async with informer.events() as events:
            assert "listeners=1" in repr(informer)
            async for _ in events:
                break
            touch(cluster, "a", "1")
            await until(lambda: events.statistics().pending == 1)

        assert events.statistics().pending == 0
        assert "listeners=0" in repr(informer)
        assert names(informer.lister.list()) == ["a", "b", "c"]


async def test_a_stream_that_was_left_has_ended() -> None:
    async with informing(pods_of(with_pods("a"))) as informer:
        async with informer.events() as events:
            pass

        assert [event async for event in events] == []


async def test_it_may_be_closed_before_it_is_left() -> None:
    async with informing(pods_of(with_pods("a"))) as informer, informer.events() as events:
        await events.aclose()

        assert [event async for event in events] == []


async def test_leaving_with_an_error_frees_the_mailbox_and_lets_it_pass() -> None:
    async with informing(pods_of(with_pods("a"))) as informer:
        with pytest.raises(ValueError, match="mine"):
            async with informer.events():
                raise ValueError("mine")

        assert "listeners=0" in repr(informer)


# -- wrong use --------------------------------------------------------------------------------


async def test_two_tasks_may_not_read_one_stream() -> None:
    cluster = with_pods()
    async with informing(pods_of(cluster)) as informer, informer.events() as events:
        first = asyncio.create_task(take(events, 1))
        await settle()

        with pytest.raises(UsageError, match=r"two tasks read the stream of pods"):
            await anext(events)

        cluster.create("pods", {"metadata": {"name": "a"}})
        assert in_short(await first) == [("Added", "a")]


async def test_tasks_may_take_turns_at_reading() -> None:
    async with informing(pods_of(with_pods("a", "b"))) as informer, informer.events() as events:
        first = await asyncio.create_task(take(events, 1))
        second = await asyncio.create_task(take(events, 1))

    assert sorted(in_short(first + second)) == [("Added", "a"), ("Added", "b")]


async def test_a_stream_that_was_not_entered_is_not_running() -> None:
    events = pods_of(with_pods()).events()

    with pytest.raises(NotRunning, match=r"async with informer\.events\(\) as"):
        await anext(events)
    with pytest.raises(NotRunning):
        events.statistics()
    with pytest.raises(NotRunning):
        await events.aclose()
    assert repr(events) == "<EventStream stream of pods not open>"


async def test_a_stream_is_entered_once() -> None:
    async with informing(pods_of(with_pods())) as informer:
        stream = informer.events()
        async with stream:
            with pytest.raises(UsageError, match="was entered already"):
                await stream.__aenter__()

        with pytest.raises(UsageError, match="was entered already"):
            await stream.__aenter__()


async def test_a_stream_of_an_informer_that_has_ended_cannot_be_entered() -> None:
    informer = pods_of(with_pods())
    async with informing(informer):
        pass

    with pytest.raises(NotRunning, match="the informer of pods has ended"):
        await informer.events().__aenter__()


# -- giving way -------------------------------------------------------------------------------


async def test_who_consumes_a_full_mailbox_without_waiting_leaves_the_loop_to_others() -> None:
    count = 10_000
    listener = Listener("stream of pods", Mailbox(limit=count, holds=lambda _: True), Gate())
    stream = EventStream("stream of pods", lambda: listener)
    listener.put([Updated(pod("a", 1), pod("a", 2))] * count)
    listener.close(drop=False)
    consumed, turns_at = 0, list[int]()

    async def other() -> None:
        while consumed < count:
            turns_at.append(consumed)
            await asyncio.sleep(0)

    bystander = asyncio.create_task(other())
    async with stream as events:
        async for _ in events:
            consumed += 1
        await bystander

    assert consumed == count
    assert len([turn for turn in turns_at if 0 < turn < count]) >= 2


async def test_its_repr_is_that_of_its_mailbox() -> None:
    async with informing(pods_of(with_pods())) as informer, informer.events() as events:
        assert repr(events).startswith("<EventStream stream of pods <Listener stream of pods open")


async def test_deletions_are_told_too() -> None:
    cluster = with_pods("a")
    async with informing(pods_of(cluster)) as informer, informer.events() as events:
        cluster.delete("pods", "a")

        heard = await take(events, 2)

    assert isinstance(heard[1], Deleted)
    assert heard[1].reason == "deleted"
