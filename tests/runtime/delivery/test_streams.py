"""``async with informer.events() as events: async for event in events``."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from aioinformer import Added, Deleted, Event, EventStream, SharedInformer, Updated, merge
from aioinformer._core.delivery.mailbox import Mailbox
from aioinformer._runtime.delivery.listener import BackpressureGate, Listener
from aioinformer.errors import ListenerOverflow, NotRunning, SyncTimeout, UsageError
from tests.runtime.informers import (
    cluster_with_pods,
    label_pod,
    names,
    pod_informer,
    running_in_background,
    running_informer,
)
from tests.runtime.loop_clock import LoopClock
from tests.runtime.scripted_source import pod, scripted_lister_watcher, wait_until, yield_to_loop


async def take(events: EventStream, count: int) -> list[Event]:
    return [await anext(events) for _ in range(count)]


def in_short(events: list[Event]) -> list[tuple[str, str]]:
    return [(type(event).__name__, event.obj.name) for event in events]


# -- what it brings ---------------------------------------------------------------------------


async def test_a_stream_delivers_the_cached_objects_and_then_the_changes() -> None:
    cluster = cluster_with_pods("a")
    async with running_informer(pod_informer(cluster)) as informer, informer.events() as events:
        label_pod(cluster, "a", "1")
        cluster.create("pods", {"metadata": {"name": "b"}})
        cluster.delete("pods", "a")

        received = await take(events, 4)

    assert in_short(received) == [
        ("Added", "a"),
        ("Updated", "a"),
        ("Added", "b"),
        ("Deleted", "a"),
    ]
    assert [event.initial for event in received if isinstance(event, Added)] == [True, False]


async def test_a_stream_receives_events_from_its_entry() -> None:
    cluster = cluster_with_pods("a")
    async with running_informer(pod_informer(cluster)) as informer:
        stream = informer.events()
        cluster.create("pods", {"metadata": {"name": "b"}})
        await wait_until(lambda: len(informer.lister) == 2)
        cluster.delete("pods", "a")
        await wait_until(lambda: len(informer.lister) == 1)

        async with stream as events:
            assert in_short(await take(events, 1)) == [("Added", "b")]


async def test_a_stream_can_be_entered_before_the_informer_runs() -> None:
    informer = pod_informer(cluster_with_pods("a", "b"))

    async with informer.events() as events, running_in_background(informer.run()):
        received = await take(events, 2)

    assert sorted(in_short(received)) == [("Added", "a"), ("Added", "b")]
    assert all(isinstance(event, Added) and event.initial for event in received)


async def test_two_streams_receive_the_same_events() -> None:
    cluster = cluster_with_pods("a")
    async with (
        running_informer(pod_informer(cluster)) as informer,
        informer.events() as one,
        informer.events() as other,
    ):
        label_pod(cluster, "a", "1")

        assert await take(one, 2) == await take(other, 2)


async def test_the_cache_contains_the_object_of_a_delivered_event() -> None:
    cluster = cluster_with_pods()
    async with running_informer(pod_informer(cluster)) as informer, informer.events() as events:
        cluster.create("pods", {"metadata": {"name": "a"}})

        event = await anext(events)

        assert informer.lister.get("default/a") == event.obj


async def test_a_stream_is_synced_at_the_read_after_the_last_cached_object() -> None:
    cluster = cluster_with_pods("a")
    async with running_informer(pod_informer(cluster)) as informer, informer.events() as events:
        await anext(events)
        assert not events.statistics().synced
        reading = asyncio.create_task(take(events, 1))
        await yield_to_loop()
        assert events.synced
        label_pod(cluster, "a", "1")
        await reading


# -- how it ends ------------------------------------------------------------------------------


async def test_a_stream_ends_with_the_informer_after_its_pending_events() -> None:
    cluster = cluster_with_pods("a")
    informer = pod_informer(cluster)
    async with informer.events() as events:
        async with running_informer(informer):
            pass

        assert in_short([event async for event in events]) == [("Added", "a")]
        assert [event async for event in events] == []


async def test_waiting_for_the_next_event_ends_with_the_stream() -> None:
    informer = pod_informer(cluster_with_pods())
    async with informer.events() as events:
        async with running_informer(informer):
            reading = asyncio.create_task(_all(events))
            await yield_to_loop()
        assert await reading == []


async def _all(events: EventStream) -> list[Event]:
    return [event async for event in events]


async def test_the_end_of_a_stream_after_a_break_frees_the_mailbox() -> None:
    cluster = cluster_with_pods("a", "b", "c")
    async with running_informer(pod_informer(cluster)) as informer:
        async with informer.events() as events:
            assert "listeners=1" in repr(informer)
            async for _ in events:
                break
            label_pod(cluster, "a", "1")
            await wait_until(lambda: events.statistics().pending == 1)

        assert events.statistics().pending == 0
        assert "listeners=0" in repr(informer)
        assert names(informer.lister.list()) == ["a", "b", "c"]


async def test_a_stream_has_no_events_after_its_context() -> None:
    async with running_informer(pod_informer(cluster_with_pods("a"))) as informer:
        async with informer.events() as events:
            pass

        assert [event async for event in events] == []


async def test_a_stream_can_be_closed_inside_its_context() -> None:
    async with (
        running_informer(pod_informer(cluster_with_pods("a"))) as informer,
        informer.events() as events,
    ):
        await events.aclose()

        assert [event async for event in events] == []


async def test_an_error_in_the_body_of_a_stream_frees_the_mailbox_and_is_raised() -> None:
    async with running_informer(pod_informer(cluster_with_pods("a"))) as informer:
        with pytest.raises(ValueError, match="mine"):
            async with informer.events():
                raise ValueError("mine")

        assert "listeners=0" in repr(informer)


# -- wrong use --------------------------------------------------------------------------------


async def test_two_tasks_may_not_read_one_stream() -> None:
    cluster = cluster_with_pods()
    async with running_informer(pod_informer(cluster)) as informer, informer.events() as events:
        first = asyncio.create_task(take(events, 1))
        await yield_to_loop()

        with pytest.raises(UsageError, match=r"two tasks read the stream of pods"):
            await anext(events)

        cluster.create("pods", {"metadata": {"name": "a"}})
        assert in_short(await first) == [("Added", "a")]


async def test_tasks_may_take_turns_at_reading() -> None:
    async with (
        running_informer(pod_informer(cluster_with_pods("a", "b"))) as informer,
        informer.events() as events,
    ):
        first = await asyncio.create_task(take(events, 1))
        second = await asyncio.create_task(take(events, 1))

    assert sorted(in_short(first + second)) == [("Added", "a"), ("Added", "b")]


async def test_a_stream_that_was_not_entered_is_not_running() -> None:
    events = pod_informer(cluster_with_pods()).events()

    with pytest.raises(NotRunning, match=r"async with informer\.events\(\) as"):
        await anext(events)
    with pytest.raises(NotRunning):
        events.statistics()
    with pytest.raises(NotRunning):
        await events.aclose()
    assert repr(events) == "<EventStream stream of pods not open>"


async def test_a_stream_is_entered_once() -> None:
    async with running_informer(pod_informer(cluster_with_pods())) as informer:
        stream = informer.events()
        async with stream:
            with pytest.raises(UsageError, match="was entered already"):
                await stream.__aenter__()

        with pytest.raises(UsageError, match="was entered already"):
            await stream.__aenter__()


async def test_a_stream_of_an_informer_that_has_ended_cannot_be_entered() -> None:
    informer = pod_informer(cluster_with_pods())
    async with running_informer(informer):
        pass

    with pytest.raises(NotRunning, match="the informer of pods has ended"):
        await informer.events().__aenter__()


async def test_the_reader_of_a_blocking_stream_can_not_wait_for_its_informer() -> None:
    """Nobody would ever take the events that the informer waits for."""
    cluster = cluster_with_pods("a")
    async with (
        running_informer(pod_informer(cluster)) as informer,
        informer.events(limit=1, overflow="block") as blocking,
    ):
        newest = cluster.merge_patch("pods", "a", {"metadata": {"labels": {"v": "1"}}})
        await informer.wait_for(newest, timeout=5)  # nothing was read yet
        async for _ in blocking:
            with pytest.raises(UsageError, match=r"stream of pods has overflow='block'"):
                await informer.wait_for(newest)
            break
        async with merge(informer.events(limit=1, overflow="block")) as merged:
            await anext(merged)
            reader = asyncio.create_task(informer.wait_for(newest, timeout=5))
            await reader  # this one reads nothing


async def test_the_reader_of_a_merging_stream_may_wait_for_its_informer() -> None:
    cluster = cluster_with_pods("a")
    async with (
        running_informer(pod_informer(cluster)) as informer,
        informer.events(limit=1) as events,
    ):
        async for _ in events:
            newest = cluster.merge_patch("pods", "a", {"metadata": {"labels": {"v": "1"}}})
            await informer.wait_for(newest, timeout=5)
            break


# -- yielding to the loop -------------------------------------------------------------------------


async def test_reading_a_full_mailbox_without_waiting_yields_to_the_loop(
    loop_clock: LoopClock,
) -> None:
    count = 10_000
    listener = Listener(
        "stream of pods", Mailbox(limit=count, holds=lambda _: True), BackpressureGate()
    )
    stream = EventStream(pod_informer(cluster_with_pods()), lambda: listener)
    listener.put((Updated(pod("a", 1), pod("a", 2)),) * count)
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
            loop_clock.work(0.000_002)
        await bystander

    assert consumed == count
    assert len([turn for turn in turns_at if 0 < turn < count]) >= 4, "20 ms of work"


async def test_the_repr_of_a_stream_contains_that_of_its_listener() -> None:
    async with (
        running_informer(pod_informer(cluster_with_pods())) as informer,
        informer.events() as events,
    ):
        assert repr(events).startswith("<EventStream stream of pods <Listener stream of pods open")


async def test_deletions_are_delivered_too() -> None:
    cluster = cluster_with_pods("a")
    async with running_informer(pod_informer(cluster)) as informer, informer.events() as events:
        cluster.delete("pods", "a")

        received = await take(events, 2)

    assert isinstance(received[1], Deleted)
    assert received[1].reason == "deleted"


# -- when it is too slow ----------------------------------------------------------------------


async def test_a_stream_merges_events_by_default_and_delivers_every_final_state() -> None:
    cluster = cluster_with_pods("a", "b")
    async with (
        running_informer(pod_informer(cluster)) as informer,
        informer.events(limit=2) as events,
    ):
        await take(events, 2)
        for number in range(20):
            label_pod(cluster, "a", str(number))
        await wait_until(lambda: events.statistics().merged >= 10)
        cluster.delete("pods", "b")
        await wait_until(lambda: len(informer.lister) == 1)
        assert events.statistics().pending <= 4
        received: list[Event] = []
        while (event := events.next_nowait()) is not None:
            received.append(event)

    assert ("Deleted", "b") in in_short(received)
    newest = informer.lister.get("default/a")
    assert [event.obj for event in received if event.obj.name == "a"][-1] == newest


async def test_a_stream_with_overflow_error_raises_when_it_is_too_slow() -> None:
    cluster = cluster_with_pods("a")
    informer = pod_informer(cluster)
    async with running_informer(informer), informer.events(limit=1, overflow="error") as events:
        await anext(events)
        for number in range(3):
            label_pod(cluster, "a", str(number))
        await wait_until(lambda: events.ended)

        with pytest.raises(ListenerOverflow, match="stream of pods was ended"):
            await anext(events)
        with pytest.raises(ListenerOverflow):
            events.next_nowait()
        assert "listeners=0" in repr(informer)


async def test_waiting_for_the_next_event_ends_with_the_streams() -> None:
    listener = Listener(
        "stream of pods",
        Mailbox(limit=1, overflow="error", holds=lambda _: True),
        BackpressureGate(),
    )
    async with EventStream(pod_informer(cluster_with_pods()), lambda: listener) as events:
        reading = asyncio.create_task(take(events, 1))
        await yield_to_loop()
        listener.put([Added(pod("a", 1)), Added(pod("b", 2))])

        with pytest.raises(ListenerOverflow):
            await reading


# -- filters ----------------------------------------------------------------------------------


async def test_a_stream_can_have_a_filter() -> None:
    cluster = cluster_with_pods("a", "b")
    informer = pod_informer(cluster)
    async with (
        running_informer(informer),
        informer.events(filter=lambda obj: obj.name == "b") as events,
    ):
        label_pod(cluster, "a", "1")
        label_pod(cluster, "b", "1")

        assert in_short(await take(events, 2)) == [("Added", "b"), ("Updated", "b")]


# -- one that nobody leaves -------------------------------------------------------------------


async def test_a_stream_that_is_dropped_without_being_left_warns_and_frees_its_mailbox() -> None:
    async with running_informer(pod_informer(cluster_with_pods("a"))) as informer:
        streams = [informer.events()]
        await streams[0].__aenter__()
        assert "listeners=1" in repr(informer)

        with pytest.warns(
            ResourceWarning, match="stream of pods was garbage-collected before it was left"
        ):
            streams.clear()
        await yield_to_loop(2)

        assert "listeners=0" in repr(informer)


async def test_a_stream_that_was_left_or_never_entered_is_collected_without_a_warning() -> None:
    informer = pod_informer(cluster_with_pods("a"))
    async with running_informer(informer):
        async with informer.events():
            pass
        informer.events()
    async with informer_that_ends() as stream:
        pass
    del stream
    gc.collect()


@asynccontextmanager
async def informer_that_ends() -> AsyncGenerator[EventStream]:
    informer = pod_informer(cluster_with_pods("a"))
    async with running_informer(informer):
        stream = informer.events()
        await stream.__aenter__()
    yield stream


async def test_a_stream_may_be_collected_in_another_thread() -> None:
    async with running_informer(pod_informer(cluster_with_pods("a"))) as informer:
        streams = [informer.events()]
        await streams[0].__aenter__()

        with pytest.warns(ResourceWarning):
            await asyncio.to_thread(streams.clear)
        await wait_until(lambda: "listeners=0" in repr(informer))


# -- a snapshot and what follows --------------------------------------------------------------


async def test_snapshot_and_events_returns_the_state_and_then_the_later_events() -> None:
    cluster = cluster_with_pods("a", "b")
    async with (
        running_informer(pod_informer(cluster)) as informer,
        informer.snapshot_and_events() as (snapshot, events),
    ):
        label_pod(cluster, "a", "1")
        cluster.delete("pods", "b")
        received = await take(events, 2)

    assert sorted(key.name for key in snapshot) == ["a", "b"], "it stays as it is"
    assert in_short(received) == [("Updated", "a"), ("Deleted", "b")]
    first = received[0]
    assert isinstance(first, Updated)
    assert first.old == snapshot[first.old.key]


async def test_a_snapshot_cannot_be_changed() -> None:
    async with (
        running_informer(pod_informer(cluster_with_pods("a"))) as informer,
        informer.snapshot_and_events() as (snapshot, events),
    ):
        assert not hasattr(snapshot, "clear")
        assert events.next_nowait() is None
        assert events.synced


async def test_a_snapshot_waits_for_the_initial_list_until_its_timeout() -> None:
    informer = SharedInformer(scripted_lister_watcher())
    async with running_in_background(informer.run()):
        with pytest.raises(SyncTimeout):
            async with informer.snapshot_and_events(timeout=0.001):
                raise AssertionError("there is nothing to take")

    assert "listeners=0" in repr(informer)


async def test_no_event_is_missing_or_repeated_after_a_snapshot_at_any_time() -> None:
    cluster = cluster_with_pods("a", "b", "c")
    views: list[dict[str, str]] = []

    async def follow(informer: SharedInformer) -> None:
        async with informer.snapshot_and_events() as (snapshot, events):
            view = {obj.name: obj.resource_version for obj in snapshot.values()}
            views.append(view)
            async for event in events:
                match event:
                    case Added(obj):
                        assert obj.name not in view
                        view[obj.name] = obj.resource_version
                    case Updated(old, new):
                        assert view[old.name] == old.resource_version
                        view[new.name] = new.resource_version
                    case Deleted(obj):
                        del view[obj.name]

    async with running_informer(pod_informer(cluster)) as informer, asyncio.TaskGroup() as group:
        followers: list[asyncio.Task[None]] = []
        for number in range(30):
            label_pod(cluster, "abc"[number % 3], str(number))
            if number % 10 == 5:
                cluster.delete("pods", "c")
                cluster.create("pods", {"metadata": {"name": "c"}})
            followers.append(group.create_task(follow(informer)))
            await yield_to_loop(number % 4)
        # The cache may not show the last changes yet.
        truth = {
            pod["metadata"]["name"]: pod["metadata"]["resourceVersion"]
            for pod in cluster.objects("pods")
        }
        await wait_until(lambda: all(view == truth for view in views) and len(views) == 30)
        for follower in followers:
            follower.cancel()
