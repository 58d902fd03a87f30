"""Promises 5, 7 and 8 of listeners: late, slow, raising, stuck, too many; in virtual time."""

from __future__ import annotations

import asyncio
import gc
import logging
import tracemalloc
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

import pytest

from aioinformer import (
    Added,
    Deleted,
    Event,
    ListRequest,
    ObjectKey,
    Resource,
    SharedInformer,
    Updated,
    WatchRequest,
)
from aioinformer.errors import ListenerOverflow
from aioinformer.testing.simulation.loop import run
from tests.promises.event_recorder import check_event_order, states
from tests.runtime.informers import running_in_background
from tests.runtime.scripted_source import PODS, body, list_response, yield_to_loop

T = TypeVar("T")


def in_virtual_time(main: Coroutine[None, None, T]) -> T:
    return run(main, seed=8, order="fifo")


def now() -> float:
    return asyncio.get_running_loop().time()


# -- a server that says what it is told to ----------------------------------------------------


@dataclass(eq=False)
class Feed:
    """Lists some pods, and then says in its watch what the test wants it to."""

    objects: dict[str, int]
    """The version of each pod."""
    version: int = 1
    resource: Resource = PODS
    watch_lists: bool = False
    _lines: asyncio.Queue[bytes] = field(default_factory=asyncio.Queue[bytes])

    @classmethod
    def of(cls, count: int) -> Feed:
        return cls({f"web-{number}": 1 for number in range(count)})

    def say(self, kind: str, *names: str) -> None:
        """Send an ADDED, MODIFIED or DELETED event for each name."""
        lines: list[str] = []
        for name in names:
            self.version += 1
            lines.append(f'{{"type":"{kind}","object":{body(name, self.version)}}}\n')
            if kind == "DELETED":
                del self.objects[name]
            else:
                self.objects[name] = self.version
        self._lines.put_nowait("".join(lines).encode())

    def expire(self) -> None:
        """Send a 410 to the watch, so that a list finds the changes."""
        self._lines.put_nowait(
            b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}\n'
        )

    @asynccontextmanager
    async def list(self, request: ListRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        del request
        self._lines = asyncio.Queue()  # the list has it
        listed = (body(name, version) for name, version in self.objects.items())
        answer = list_response(*listed, version=str(self.version))
        yield _each(answer.chunks)

    @asynccontextmanager
    async def watch(self, request: WatchRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        del request
        yield self._said()

    async def _said(self) -> AsyncGenerator[bytes]:
        while True:
            yield await self._lines.get()


async def _each(chunks: tuple[bytes, ...]) -> AsyncGenerator[bytes]:
    for chunk in chunks:
        yield chunk


@asynccontextmanager
async def informing(feed: Feed) -> AsyncGenerator[SharedInformer]:
    informer = SharedInformer(feed)
    async with running_in_background(informer.run()):
        await informer.wait_synced()
        yield informer


async def for_ever(event: Event) -> None:
    """Wait for ever, as a handler."""
    del event
    await asyncio.get_running_loop().create_future()


# -- 5 ----------------------------------------------------------------------------------------


@pytest.mark.client_go(53)
@pytest.mark.parametrize("seed", range(4))
def test_5_a_listener_that_joins_late_receives_each_object_once_without_a_gap(seed: int) -> None:
    """Under churn, relists and removal, by handlers and streams of different speed."""

    async def main() -> None:
        chance, feed = Random(seed), Feed.of(30)
        received: list[list[Event]] = []
        async with informing(feed) as informer:
            for step in range(60):
                _change(feed, chance)
                if step % 15 == 7:
                    feed.expire()
                if step % 3 == 0:
                    received.append(_join(informer, chance))
                if step % 10 == 9:
                    chance.choice(informer.registrations).remove()
                    received.pop(0)
                await asyncio.sleep(chance.choice([0, 0.001, 0.1]))
            await asyncio.sleep(60)
            cached = states(informer.lister)
            assert {key.name: int(rv) for key, (_, rv) in cached.items()} == feed.objects
            assert all(each.synced for each in informer.registrations)
        alive = [events for events in received if check_event_order(events) == cached]
        assert len(alive) >= len(received) - 6, "but for those that were removed"
        for events in received:
            initial = [e.obj.key for e in events if isinstance(e, Added) and e.initial]
            assert len(initial) == len(set(initial))

    in_virtual_time(main())


def _change(feed: Feed, chance: Random) -> None:
    for _ in range(chance.randint(1, 20)):
        name = f"web-{chance.randrange(40)}"
        if name not in feed.objects:
            feed.say("ADDED", name)
        else:
            feed.say(chance.choice(["MODIFIED", "MODIFIED", "DELETED"]), name)


def _join(informer: SharedInformer, chance: Random) -> list[Event]:
    received: list[Event] = []
    delay = chance.choice([0, 0.001, 0.01])

    async def receive(event: Event) -> None:
        received.append(event)
        await asyncio.sleep(delay)

    informer.add_handler(receive, limit=chance.choice([1, 8, 1024]))
    return received


# -- 7 ----------------------------------------------------------------------------------------


def test_7_a_slow_or_raising_listener_delays_no_other_listener(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL)
    late: list[float] = []
    said_at: dict[int, float] = {}

    def punctual(event: Event) -> None:
        if isinstance(event, Updated):
            late.append(now() - said_at[int(event.obj.resource_version)])

    def raising(event: Event) -> None:
        raise RuntimeError(f"at {event.obj.name}")

    async def cancelling(event: Event) -> None:
        raise asyncio.CancelledError(event.obj.name)

    async def slow(event: Event) -> None:
        del event
        await asyncio.sleep(0.5)

    async def main() -> None:
        feed = Feed.of(10)
        async with informing(feed) as informer:
            for handler in (punctual, raising, for_ever, cancelling, slow, punctual):
                informer.add_handler(handler, limit=4)
            await yield_to_loop()
            for number in range(300):
                said_at[feed.version + 1] = now()
                feed.say("MODIFIED", f"web-{number % 10}")
                await asyncio.sleep(0.01)
            assert informer.health.blocked_by == ()
            assert informer.registrations[1].statistics().errors >= 300

    in_virtual_time(main())

    assert len(late) == 2 * 300
    assert max(late) <= 0.001


def test_7_only_a_listener_that_blocks_delays_the_others_and_is_named() -> None:
    async def main() -> None:
        feed, free, received = Feed.of(1), asyncio.Event(), list[Event]()

        async def blocking(event: Event) -> None:
            del event
            await free.wait()

        async with informing(feed) as informer:
            informer.add_handler(blocking, limit=2, overflow="block")
            informer.add_handler(received.append)
            for _ in range(10):
                feed.say("MODIFIED", "web-0")
            await asyncio.sleep(60)
            assert len(received) < 10
            (name,) = informer.health.blocked_by
            assert "blocking of pods" in name
            free.set()
            await asyncio.sleep(1)
            assert (len(received), informer.health.blocked_by) == (11, ())

    in_virtual_time(main())


# -- 8 ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param(20, id="twenty seconds"),
        pytest.param(60, id="a minute", marks=pytest.mark.simulation),
        pytest.param(600, id="ten minutes", marks=pytest.mark.simulation),
    ],
)
def test_8_a_listener_that_never_returns_keeps_its_limit(seconds: int) -> None:
    """1,000 events a second over 500 keys; who is awake hears each within a millisecond."""
    keys, burst, limit = 500, 10, 64
    late: list[float] = []
    said_at: dict[int, float] = {}

    def awake(event: Event) -> None:
        if isinstance(event, Updated):
            late.append(now() - said_at.pop(int(event.obj.resource_version)))

    async def main() -> None:
        feed = Feed.of(keys)
        async with informing(feed) as informer:
            informer.add_handler(awake)
            asleep = informer.add_handler(for_ever, limit=limit)
            await yield_to_loop()
            for number in range(seconds * 1000 // burst):
                said_at.update(dict.fromkeys(range(feed.version + 1, feed.version + 11), now()))
                names = (f"web-{(number * burst + n) % keys}" for n in range(burst))
                feed.say("MODIFIED", *names)
                await asyncio.sleep(burst / 1000)
                assert asleep.statistics().pending <= max(limit, 2 * keys)
            numbers = asleep.statistics()
            assert numbers.pending == keys
            assert numbers.merged == seconds * 1000 - keys
            assert numbers.high <= max(limit, 2 * keys) + burst
            assert numbers.oldest > seconds - 2

    in_virtual_time(main())

    assert len(late) == seconds * 1000
    assert max(late) <= 0.001
    assert not said_at


def test_8_a_listener_that_resumes_late_receives_the_last_state_of_each_object() -> None:
    """Per key: the first old state and the last new one, or that it is gone."""

    async def main() -> tuple[list[Event], dict[ObjectKey, tuple[str, str]]]:
        feed, wake, received = Feed.of(3), asyncio.Event(), list[Event]()

        async def sleeper(event: Event) -> None:
            received.append(event)
            await wake.wait()

        async with informing(feed) as informer:
            registration = informer.add_handler(sleeper, limit=1)
            wake.set()
            await registration.wait_synced()
            wake.clear()
            feed.say("MODIFIED", "web-0")
            await asyncio.sleep(1)
            for _ in range(10):
                feed.say("MODIFIED", "web-0", "web-1")
            feed.say("DELETED", "web-2")
            feed.say("ADDED", "comes-and-goes")
            feed.say("DELETED", "comes-and-goes")
            await asyncio.sleep(1)
            wake.set()
            await asyncio.sleep(1)
            return received, states(informer.lister)

    received, cached = in_virtual_time(main())

    assert check_event_order(received) == cached
    delivered = [(type(event), event.obj.name) for event in received[3:]]
    assert delivered == [
        (Updated, "web-0"),  # what it slept at
        (Updated, "web-0"),
        (Updated, "web-1"),
        (Deleted, "web-2"),
    ]


def test_8_a_slow_listener_with_overflow_error_is_ended_and_no_other_listener(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        feed, received = Feed.of(1), list[Event]()
        async with informing(feed) as informer:
            strict = informer.add_handler(for_ever, limit=5, overflow="error")
            informer.add_handler(received.append)
            async with informer.events(limit=5, overflow="error") as events:
                await yield_to_loop()
                for _ in range(10):
                    feed.say("MODIFIED", "web-0")
                await asyncio.sleep(1)
                with pytest.raises(ListenerOverflow):
                    await anext(events)
            assert strict.closed
            assert strict.statistics().pending == 0
            assert len(received) == 11
            assert informer.health.blocked_by == ()

    in_virtual_time(main())


@pytest.mark.client_go(62)
@pytest.mark.parametrize(
    "cycles",
    [
        pytest.param(2_000, id="two thousand"),
        pytest.param(10_000, id="ten thousand", marks=pytest.mark.simulation),
    ],
)
def test_8_listeners_that_join_and_leave_use_no_memory_afterwards(cycles: int) -> None:
    """At most 100 at a time, with ten events for each."""
    alive, objects = 100, 5
    received = 0

    def receive(event: Event) -> None:
        nonlocal received
        del event
        received += 1

    async def main() -> int:
        feed = Feed.of(objects)
        async with informing(feed) as informer:
            tasks = len(asyncio.all_tasks())

            async def come_and_go(times: int) -> None:
                for _ in range(times // alive):
                    registrations = [informer.add_handler(receive) for _ in range(alive)]
                    feed.say("MODIFIED", *(f"web-{n}" for n in range(objects)))
                    await asyncio.sleep(0.1)
                    for registration in registrations:
                        registration.remove()
                    await asyncio.sleep(0.1)

            await come_and_go(1000)
            gc.collect()
            grown = await _growth(come_and_go(cycles - 1000))
            assert len(asyncio.all_tasks()) == tasks
            assert informer.registrations == ()
            return grown

    async def _growth(work: Coroutine[None, None, None]) -> int:
        tracemalloc.start()
        await asyncio.sleep(0)
        before, _ = tracemalloc.get_traced_memory()
        await work
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return after - before

    grown = in_virtual_time(main())

    assert received == 10 * cycles
    assert grown < 1024 * 1024


def test_8_a_listener_does_not_copy_the_cached_objects() -> None:
    """50 listeners that have not begun take less than a reference to each object."""
    objects, listeners = 8000, 50

    async def main() -> int:
        feed = Feed.of(objects)
        async with informing(feed) as informer:
            informer.add_handler(for_ever)
            await yield_to_loop()
            gc.collect()
            tracemalloc.start()
            for _ in range(listeners):
                informer.add_handler(for_ever, resync=30)
            await asyncio.sleep(100)
            gc.collect()  # the number of dead objects depends on the tests that ran before
            grown, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            return grown

    assert in_virtual_time(main()) < listeners * objects * 8
