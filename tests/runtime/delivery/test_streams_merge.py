"""``async with merge(a.events(), b.events()) as events: async for source, event in events``."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer import Added, Event, EventStream, MergedStream, SharedInformer, Sourced, merge
from aioinformer._core.delivery.mailbox import MAX_SKIPPED, Mailbox
from aioinformer._runtime.delivery.listener import BackpressureGate, Listener
from aioinformer.errors import ListenerOverflow, NotRunning, UsageError
from tests.runtime.informers import (
    cluster_with_pods,
    label_pod,
    pod_informer,
    running_in_background,
    running_informer,
)
from tests.runtime.loop_clock import LoopClock
from tests.runtime.scripted_source import pod, wait_until, yield_to_loop


async def take(events: MergedStream, count: int) -> list[Sourced]:
    return [await anext(events) for _ in range(count)]


def in_short(events: list[Sourced], *sources: object) -> list[tuple[int, str, str]]:
    """Describe an event by its source, its kind and the name of its object."""
    return [
        (sources.index(source), type(event).__name__, event.obj.name) for source, event in events
    ]


def added(*names: str) -> list[Event]:
    return [Added(pod(name, number)) for number, name in enumerate(names)]


def fed(*names: str, closed: bool = True) -> tuple[EventStream, Listener]:
    """Create a stream with these events pending; with ``closed``, it ends after them."""
    listener = Listener("a stream", Mailbox(limit=100, holds=lambda _: True), BackpressureGate())
    listener.put(added(*names))
    if closed:
        listener.close(drop=False)
    return EventStream(pod_informer(cluster_with_pods()), lambda: listener), listener


async def all_of(events: MergedStream) -> list[str]:
    return [event.obj.name async for _, event in events]


async def test_a_merged_stream_delivers_the_events_of_each_stream_with_their_informer() -> None:
    ones, others = cluster_with_pods("a"), cluster_with_pods("b")
    async with (
        running_informer(pod_informer(ones)) as one,
        running_informer(pod_informer(others)) as other,
        merge(one.events(), other.events()) as events,
    ):
        received = await take(events, 2)
        label_pod(others, "b", "1")
        received += await take(events, 1)
        label_pod(ones, "a", "1")
        received += await take(events, 1)

    assert in_short(received, one, other) == [
        (0, "Added", "a"),
        (1, "Added", "b"),
        (1, "Updated", "b"),
        (0, "Updated", "a"),
    ]


async def test_events_of_a_merged_stream_support_pattern_matching() -> None:
    async with (
        running_informer(pod_informer(cluster_with_pods("a"))) as pods,
        merge(pods.events()) as events,
    ):
        match await anext(events):
            case Sourced(source, Added(obj, initial=True)) if source is pods:
                assert obj.name == "a"
            case unexpected:
                raise AssertionError(unexpected)


async def test_a_busy_stream_does_not_starve_the_others() -> None:
    busy, _ = fed(*"abcdef")
    calm, _ = fed(*"xy")

    async with merge(busy, calm) as events:
        assert await all_of(events) == list("axbycdef")


async def test_a_merged_stream_ends_when_all_its_streams_have_ended() -> None:
    one, _ = fed("a")
    other, listener = fed(closed=False)
    async with merge(one, other) as events:
        reading = asyncio.create_task(all_of(events))
        await yield_to_loop()
        assert not reading.done()
        listener.put(added("b"))
        await yield_to_loop()
        listener.close(drop=False)

        assert await reading == ["a", "b"]
        assert await all_of(events) == []


async def test_the_end_of_a_merged_stream_closes_all_its_streams() -> None:
    async with running_informer(pod_informer(cluster_with_pods("a"))) as informer:
        async with merge(informer.events(), informer.events()):
            assert "listeners=2" in repr(informer)

        assert "listeners=0" in repr(informer)


async def test_a_stream_that_cannot_be_entered_closes_the_others() -> None:
    ended = pod_informer(cluster_with_pods())
    async with running_informer(ended):
        pass
    async with running_informer(pod_informer(cluster_with_pods("a"))) as informer:
        with pytest.raises(NotRunning):
            await merge(informer.events(), ended.events()).__aenter__()

        assert "listeners=0" in repr(informer)


async def test_a_merged_stream_raises_an_overflow_and_continues_with_the_other_streams() -> None:
    strict = Listener(
        "a strict stream",
        Mailbox(limit=1, overflow="error", holds=lambda _: True),
        BackpressureGate(),
    )
    calm, _ = fed("x", "y")
    async with merge(
        EventStream(pod_informer(cluster_with_pods()), lambda: strict), calm
    ) as events:
        strict.put(added("a", "b"))

        with pytest.raises(ListenerOverflow, match="a strict stream"):
            await anext(events)
        assert await all_of(events) == ["x", "y"]


async def test_a_merged_stream_starts_no_task() -> None:
    one, _ = fed(closed=False)
    other, _ = fed(closed=False)
    async with merge(one, other) as events:
        before = len(asyncio.all_tasks())
        async with running_in_background(_only(events)):
            await yield_to_loop()
            assert len(asyncio.all_tasks()) == before + 1, "the reader's own"


async def _only(events: MergedStream) -> None:
    await anext(events)


async def test_two_tasks_may_not_read_one_merged_stream() -> None:
    stream, _ = fed(closed=False)
    async with merge(stream) as events, running_in_background(_only(events)):
        await yield_to_loop()
        with pytest.raises(UsageError, match="two tasks read the same merged stream;"):
            await anext(events)


async def test_a_merged_stream_must_be_entered_exactly_once_before_it_is_read() -> None:
    stream, _ = fed("a")
    events = merge(stream)
    assert repr(events) == "<MergedStream of 1 not open>"
    with pytest.raises(NotRunning, match=r"async with merge\("):
        await anext(events)
    await events.aclose()
    async with events:
        assert repr(events) == "<MergedStream of 1 open=1>"
        with pytest.raises(UsageError, match="these streams were entered already"):
            await events.__aenter__()


def test_merge_rejects_no_streams_and_the_same_stream_twice() -> None:
    informer: SharedInformer = pod_informer(cluster_with_pods())
    stream = informer.events()

    with pytest.raises(UsageError, match="nothing to merge"):
        merge()
    with pytest.raises(UsageError, match="merged with itself"):
        merge(stream, stream)


async def test_skipping_many_events_yields_in_between() -> None:
    listener = Listener("a stream", Mailbox(holds=lambda _: False), BackpressureGate())
    listener.replay([pod(f"p-{n}", n) for n in range(3 * MAX_SKIPPED)])
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with (
        merge(EventStream(pod_informer(cluster_with_pods()), lambda: listener)) as events,
        running_in_background(other()),
        running_in_background(_only(events)),
    ):
        await wait_until(lambda: listener.synced)

    assert turns >= 3


async def test_reading_many_events_yields_to_the_loop(loop_clock: LoopClock) -> None:
    count = 10_000
    listener = Listener("a stream", Mailbox(limit=count, holds=lambda _: True), BackpressureGate())
    listener.put((Added(pod("a", 1)),) * count)
    listener.close(drop=False)
    turns_at: list[int] = []
    read = 0

    async def other() -> None:
        while read < count:
            turns_at.append(read)
            await asyncio.sleep(0)

    bystander = asyncio.create_task(other())
    async with merge(EventStream(pod_informer(cluster_with_pods()), lambda: listener)) as events:
        async for _ in events:
            read += 1
            loop_clock.work(0.000_002)
    await bystander

    assert len([turn for turn in turns_at if 0 < turn < count]) >= 4, "20 ms of work"
