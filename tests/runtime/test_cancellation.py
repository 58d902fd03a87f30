"""Ending at each await: nothing is lost, nothing is left.

Each point is ended in each of the ways in which programs do that: by cancelling a task, by
``asyncio.timeout``, by an anyio scope, which cancels again and again until it is left; with plain
tasks, with tasks that begin to run as they are made, and on uvloop. That no task is left is
checked after every test.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from itertools import pairwise
from typing import Literal, TypeAlias

import anyio
import pytest
import pytest_asyncio

from aioinformer import (
    Added,
    Delta,
    DeltaQueue,
    Event,
    EventStream,
    Indexer,
    KubeObject,
    Reflector,
    SharedInformer,
    SharedInformerFactory,
    Updated,
    merge,
)
from aioinformer._core.cache.delta_fifo import HIGH_MARK
from aioinformer._core.delivery.mailbox import MAX_SKIPPED, Mailbox
from aioinformer._runtime.delivery.listener import BackpressureGate, Listener
from aioinformer._runtime.informer.pump import Pump
from aioinformer._runtime.tasks.event_loop import SLICE_SECONDS
from aioinformer.errors import ConnectionFailed, ServerFailure, Status
from aioinformer.testing import Cluster, ClusterSource, Faults
from tests.runtime.informers import (
    FAST_BACKOFF,
    SLOW_BACKOFF,
    cluster_with_pods,
    pod_informer,
    running_informer,
)
from tests.runtime.registrations import make_registration
from tests.runtime.scripted_source import (
    ErrorResponse,
    ListResponse,
    added,
    body,
    list_response,
    pod,
    scripted_lister_watcher,
    scripted_source,
    wait_until,
    watch_response,
    yield_to_loop,
)

Way: TypeAlias = Literal["task", "timeout", "scope"]
Work: TypeAlias = Callable[[], Awaitable[object]]


# The hook that is to replace this fixture would give a parameter to every test of every module.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Overriding the .event_loop_policy. fixture",
    "ignore:.*EventLoopPolicy. is deprecated:DeprecationWarning",  # from Python 3.14 on
)


@pytest.fixture(params=["plain", "eager", "uvloop"], autouse=True)
def kind(request: pytest.FixtureRequest) -> str:
    """Return the kind of event loop and tasks to test with."""
    if request.param == "eager" and sys.version_info < (3, 12):
        pytest.skip("tasks are never eager before Python 3.12")
    return str(request.param)


@pytest.fixture
def event_loop_policy(kind: str) -> asyncio.AbstractEventLoopPolicy:
    """Return the event loop policy for pytest-asyncio."""
    if kind == "uvloop":
        uvloop = pytest.importorskip("uvloop")
        policy: asyncio.AbstractEventLoopPolicy = uvloop.EventLoopPolicy()
        return policy
    return asyncio.DefaultEventLoopPolicy()


@pytest_asyncio.fixture(autouse=True)
async def _tasks(kind: str) -> AsyncIterator[None]:
    if sys.version_info >= (3, 12) and kind == "eager":
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
    yield
    asyncio.get_running_loop().set_task_factory(None)


async def test_the_fixture_sets_the_expected_kind_of_loop(kind: str) -> None:
    assert ("uvloop" in type(asyncio.get_running_loop()).__module__) == (kind == "uvloop")


class Ending:
    """Runs work in a task, and ends it in one of several ways."""

    def __init__(self, way: Way) -> None:
        self._way: Way = way
        self._end: Callable[[], object] | None = None

    def now(self) -> None:
        """End the work, wherever it is. It may say so itself."""
        assert self._end is not None, "it has not begun"
        self._end()

    async def at(self, parked: Callable[[], bool], work: Work) -> None:
        """Run ``work`` until ``parked``, give the loop the time to get there, and end it."""
        task = self.begin(work)
        await wait_until(lambda: parked() or task.done())
        await yield_to_loop()
        if task.done():
            raise AssertionError(f"it ended by itself, with {task.result()}")
        self.now()
        await self.ended(task)

    def begin(self, work: Work) -> asyncio.Task[object]:
        """Run ``work``."""
        runs = {"task": self._in_task, "timeout": self._in_timeout, "scope": self._in_scope}
        return asyncio.create_task(runs[self._way](work))

    async def ended(self, task: asyncio.Task[object]) -> None:
        """Wait for the end, which must be of the kind that was asked for."""
        await asyncio.wait({task})
        assert task.cancelled() == (self._way == "task")
        if not task.cancelled():
            assert task.result() == "ended from outside"

    async def _in_task(self, work: Work) -> object:
        task = asyncio.current_task()
        assert task is not None
        self._end = task.cancel
        return await work()

    async def _in_timeout(self, work: Work) -> object:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(None) as timeout:
                self._end = lambda: timeout.reschedule(loop.time())
                return await work()
        except TimeoutError:
            return "ended from outside"

    async def _in_scope(self, work: Work) -> object:
        with anyio.move_on_after(60) as scope:
            self._end = scope.cancel
            return await work()
        return "ended from outside"


@pytest.fixture(params=["task", "timeout", "scope"])
def ending(request: pytest.FixtureRequest) -> Ending:
    return Ending(request.param)


# -- the reflector ----------------------------------------------------------------------------


async def test_a_reflector_can_be_cancelled_while_it_waits_for_a_response(ending: Ending) -> None:
    source = scripted_lister_watcher()
    reflector = Reflector(source, DeltaQueue())

    await ending.at(lambda: len(source.requests) == 1, reflector.run)

    assert source.open_responses == 0


async def test_a_reflector_can_be_cancelled_in_the_middle_of_a_list(ending: Ending) -> None:
    source, queue = (
        scripted_lister_watcher(ListResponse((b'{"metadata":{},"items":[',), never_ends=True)),
        DeltaQueue(),
    )
    reflector = Reflector(source, queue)

    await ending.at(lambda: source.chunks_read == 1, reflector.run)

    assert source.open_responses == 0
    assert not queue.fifo


@pytest.mark.client_go(2, 5)
async def test_a_reflector_can_be_cancelled_in_a_watch(ending: Ending) -> None:
    source, queue = (
        scripted_lister_watcher(list_response(), watch_response(added("a", 11), never_ends=True)),
        DeltaQueue(),
    )
    reflector = Reflector(source, queue)

    await ending.at(lambda: source.chunks_read == 3, reflector.run)

    assert source.open_responses == 0
    assert len(queue.fifo) == 2, "what was read is queued"
    assert reflector.resource_version == "11"


async def test_a_reflector_can_be_cancelled_during_its_backoff(ending: Ending) -> None:
    source = scripted_lister_watcher(ErrorResponse(ConnectionFailed("refused")))
    reflector = Reflector(source, DeltaQueue(), backoff=SLOW_BACKOFF)

    await ending.at(lambda: reflector.status.state == "waiting", reflector.run)

    assert source.open_responses == 0
    assert len(source.requests) == 1


@pytest.mark.client_go(9)
async def test_a_reflector_can_be_cancelled_while_it_waits_for_room(ending: Ending) -> None:
    flood = b"".join(added(f"p-{n}", 11 + n) for n in range(HIGH_MARK))
    source, queue = (
        scripted_lister_watcher(
            list_response(), watch_response(flood, added("last", 99_999), never_ends=True)
        ),
        DeltaQueue(),
    )
    reflector = Reflector(source, queue)

    await ending.at(lambda: queue.fifo.full, reflector.run)

    assert source.open_responses == 0
    assert len(queue.fifo) == HIGH_MARK + 1, "what was read is queued"
    assert reflector.resource_version == str(10 + HIGH_MARK), "what was not is asked for again"


# -- the pump ---------------------------------------------------------------------------------


def pipeline(limit: int = 10) -> tuple[DeltaQueue, Indexer, Pump, Listener]:
    indexer = Indexer({"slow": slow_index})
    queue = DeltaQueue(indexer)
    pump = Pump("pods", queue, indexer)
    listener = Listener(
        "a stream", Mailbox(limit=limit, overflow="block", holds=indexer.holds), pump.gate
    )
    pump.join(listener)
    return queue, indexer, pump, listener


def slow_index(obj: KubeObject) -> str:
    end = time.perf_counter() + SLICE_SECONDS / 30
    while time.perf_counter() < end:
        pass
    return obj.name


def taken(listener: Listener) -> list[Event]:
    events: list[Event] = []
    while event := listener.next_nowait():
        events.append(event)
    return events


async def pump_on(pump: Pump, queue: DeltaQueue) -> None:
    """Pump all queued entries."""
    task = asyncio.create_task(_only(pump.run))
    await wait_until(lambda: not queue.fifo)
    await yield_to_loop()
    task.cancel()
    await asyncio.wait({task})


async def _only(work: Work) -> None:
    await work()


async def test_a_pump_can_be_cancelled_while_it_waits_for_entries(ending: Ending) -> None:
    queue, _, pump, listener = pipeline()

    await ending.at(lambda: True, pump.run)
    queue.feed([Delta("Added", pod("a", 1))])
    await pump_on(pump, queue)

    assert taken(listener) == [Added(pod("a", 1))]


async def test_a_pump_that_is_cancelled_as_an_entry_is_queued_loses_no_event(
    ending: Ending,
) -> None:
    queue, _, pump, listener = pipeline()

    task = ending.begin(pump.run)
    await yield_to_loop()
    ending.now()
    queue.feed([Delta("Added", pod("a", 1))])
    await ending.ended(task)
    await pump_on(pump, queue)

    assert taken(listener) == [Added(pod("a", 1))]


async def test_a_pump_that_is_cancelled_at_the_gate_loses_no_event(ending: Ending) -> None:
    queue, indexer, pump, listener = pipeline(limit=1)
    queue.feed([Delta("Added", pod("a", 1)), Delta("Added", pod("b", 2))])

    await ending.at(lambda: bool(pump.blocked_by), pump.run)
    assert len(indexer.state.objects) == 1
    assert taken(listener) == [Added(pod("a", 1))]
    await pump_on(pump, queue)

    assert taken(listener) == [Added(pod("b", 2))]


async def test_a_pump_that_is_cancelled_during_staging_keeps_the_old_state(ending: Ending) -> None:
    queue, indexer, pump, listener = pipeline()
    queue.replace([pod("old", 1)], "10")
    await pump_on(pump, queue)
    taken(listener)

    queue.replace([pod(f"p-{n}", n) for n in range(600)], "1000")
    task = ending.begin(pump.run)
    await wait_until(lambda: not queue.fifo)
    ending.now()
    await ending.ended(task)

    assert [obj.name for obj in indexer.state.objects.values()] == ["old"]
    assert indexer.state.resource_version == "10"
    assert taken(listener) == []


# -- handlers ---------------------------------------------------------------------------------


async def test_a_cancelled_informer_cancels_the_call_of_a_handler(ending: Ending) -> None:
    informer, log = pod_informer(cluster_with_pods("a", "b")), list[str]()

    async def handler(event: Event) -> None:
        log.append("begin")
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            log.append("end")

    registration = informer.add_handler(handler)

    await ending.at(lambda: log == ["begin"], informer.run)

    assert log == ["begin", "end"]
    assert registration.statistics().errors == 0
    assert not registration.running
    assert informer.health.state == "stopped"


async def test_a_cancelled_informer_ends_a_handler_without_events(ending: Ending) -> None:
    informer, seen = pod_informer(cluster_with_pods("a")), list[Event]()
    registration = informer.add_handler(seen.append)

    await ending.at(lambda: len(seen) == 1, informer.run)

    assert not registration.running


async def test_a_cancelled_aclose_does_not_end_the_call_of_the_handler(ending: Ending) -> None:
    free, seen = asyncio.Event(), list[Event]()

    async def handler(event: Event) -> None:
        seen.append(event)
        await free.wait()

    async with running_informer(pod_informer(cluster_with_pods("a"))) as informer:
        registration = informer.add_handler(handler)
        await wait_until(lambda: len(seen) == 1)

        await ending.at(lambda: True, registration.aclose)

        assert registration.running, "the call goes on"
        free.set()
        await registration.aclose()
        assert not registration.running


# -- streams ----------------------------------------------------------------------------------


def stream_of(*events: Event) -> tuple[EventStream, Listener]:
    listener = Listener("a stream", Mailbox(limit=100, holds=lambda _: True), BackpressureGate())
    listener.put(events)
    return EventStream(pod_informer(cluster_with_pods()), lambda: listener), listener


async def test_a_stream_that_is_cancelled_while_it_waits_delivers_the_next_event(
    ending: Ending,
) -> None:
    events, listener = stream_of()
    async with events:
        await ending.at(lambda: True, lambda: anext(events))
        listener.put([Added(pod("a", 1))])

        assert await anext(events) == Added(pod("a", 1))


@pytest.mark.parametrize("first", ["the end", "the event"])
async def test_a_stream_that_is_cancelled_as_an_event_is_put_loses_no_event(
    ending: Ending, first: str
) -> None:
    events, listener = stream_of()
    received: list[Event] = []

    async def consume() -> None:
        received.append(await anext(events))
        await asyncio.get_running_loop().create_future()

    async with events:
        task = ending.begin(consume)
        await yield_to_loop()
        if first == "the event":
            listener.put([Added(pod("a", 1))])
            ending.now()
        else:
            ending.now()
            listener.put([Added(pod("a", 1))])
        await ending.ended(task)
        listener.close(drop=False)
        received += [event async for event in events]

    assert received == [Added(pod("a", 1))], "once, by this consumer or the next"


async def test_a_stream_that_is_cancelled_while_it_yields_to_the_loop_loses_no_event(
    ending: Ending,
) -> None:
    events, listener = stream_of(Added(pod("a", 1)), Added(pod("b", 2)))
    received: list[Event] = []

    async def consume() -> None:
        time.sleep(2 * SLICE_SECONDS)  # noqa: ASYNC251 - a consumer that is busy, so that a pause is due
        ending.now()
        received.append(await anext(events))

    async with events:
        await ending.ended(ending.begin(consume))
        assert received == []
        listener.close(drop=False)

        assert [event async for event in events] == [Added(pod("a", 1)), Added(pod("b", 2))]


async def test_a_cancelled_body_of_a_stream_removes_its_listener(ending: Ending) -> None:
    async with running_informer(pod_informer(cluster_with_pods("a"))) as informer:

        async def consume() -> None:
            async with informer.events() as events:
                async for _ in events:
                    pass

        await ending.at(lambda: "listeners=1" in repr(informer), consume)

        assert "listeners=0" in repr(informer)


async def test_a_stream_that_is_cancelled_while_it_skips_events_loses_no_event(
    ending: Ending,
) -> None:
    listener = Listener("a stream", Mailbox(limit=100, holds=lambda _: False), BackpressureGate())
    events = EventStream(pod_informer(cluster_with_pods()), lambda: listener)
    listener.replay([pod(f"p-{n}", n) for n in range(10 * MAX_SKIPPED)])
    listener.put([Added(pod("a", 1))])

    async def consume() -> None:
        asyncio.get_running_loop().call_soon(ending.now)
        await anext(events)

    async with events:
        await ending.ended(ending.begin(consume))

        assert await anext(events) == Added(pod("a", 1))


async def test_a_cancelled_stream_delivers_events_that_are_merged_afterwards(
    ending: Ending,
) -> None:
    """The awaited result arrives in another form than usual."""
    listener = Listener("a stream", Mailbox(limit=1, holds=lambda _: True), BackpressureGate())
    events = EventStream(pod_informer(cluster_with_pods()), lambda: listener)
    async with events:
        await ending.at(lambda: True, lambda: anext(events))
        states = [pod("a", version) for version in range(1, 5)]
        listener.put([Added(states[0])])
        for old, new in pairwise(states):
            listener.put([Updated(old, new)])

        assert await anext(events) == Added(states[-1])
        assert listener.mailbox.empty


async def test_merged_streams_that_are_cancelled_while_they_wait_lose_no_event(
    ending: Ending,
) -> None:
    (one, first), (other, second) = stream_of(), stream_of()
    async with merge(one, other) as events:
        await ending.at(lambda: True, lambda: anext(events))
        second.put([Added(pod("b", 2))])
        first.put([Added(pod("a", 1))])

        assert {(await anext(events)).event.obj.name for _ in range(2)} == {"a", "b"}


@pytest.mark.parametrize("first", ["the end", "the event"])
async def test_merged_streams_that_are_cancelled_as_events_are_put_lose_no_event(
    ending: Ending, first: str
) -> None:
    (one, left), (other, right) = stream_of(), stream_of()
    received: list[Event] = []

    async def consume() -> None:
        async for _, event in events:
            received.append(event)

    def come() -> None:
        left.put([Added(pod("a", 1))])
        right.put([Added(pod("b", 2))])

    async with merge(one, other) as events:
        task = ending.begin(consume)
        await yield_to_loop()
        order = [come, ending.now] if first == "the event" else [ending.now, come]
        for act in order:
            act()
        await ending.ended(task)
        left.close(drop=False)
        right.close(drop=False)
        received += [event async for _, event in events]

    assert sorted(event.obj.name for event in received) == ["a", "b"], "each once"


async def test_merged_streams_that_are_cancelled_while_they_yield_to_the_loop_lose_no_event(
    ending: Ending,
) -> None:
    stream, listener = stream_of(Added(pod("a", 1)), Added(pod("b", 2)))
    received: list[Event] = []

    async def consume() -> None:
        time.sleep(2 * SLICE_SECONDS)  # noqa: ASYNC251 - a consumer that is busy, so that a pause is due
        ending.now()
        received.append((await anext(events)).event)

    async with merge(stream) as events:
        await ending.ended(ending.begin(consume))
        assert received == []
        listener.close(drop=False)

        assert [event.obj.name async for _, event in events] == ["a", "b"]


async def test_a_cancelled_body_of_merged_streams_removes_their_listeners(ending: Ending) -> None:
    async with running_informer(pod_informer(cluster_with_pods("a"))) as informer:

        async def consume() -> None:
            async with merge(informer.events(), informer.events()) as events:
                async for _ in events:
                    pass

        await ending.at(lambda: "listeners=2" in repr(informer), consume)

        assert "listeners=0" in repr(informer)


async def test_a_cancelled_wait_for_a_snapshot_leaves_no_listener(ending: Ending) -> None:
    informer = pod_informer(cluster_with_pods("a"))

    async def follow() -> None:
        async with informer.snapshot_and_events() as (_, events):
            await anext(events)

    await ending.at(lambda: True, follow)
    assert "listeners=0" in repr(informer)


async def test_a_cancelled_body_of_a_snapshot_removes_its_listener(ending: Ending) -> None:
    async with running_informer(pod_informer(cluster_with_pods("a"))) as informer:

        async def follow() -> None:
            async with informer.snapshot_and_events() as (snapshot, events):
                assert len(snapshot) == 1
                await anext(events)

        await ending.at(lambda: "listeners=1" in repr(informer), follow)

        assert "listeners=0" in repr(informer)


async def test_a_consumer_that_is_cancelled_inside_a_batch_loses_no_event(ending: Ending) -> None:
    """Events that were not taken before the end are there for the next reader."""
    _, listener = stream_of(*(Added(pod(f"p-{n}", n)) for n in range(10)))
    received: list[str] = []

    async def consume() -> None:
        while await listener.ready():
            for event in listener.take():
                received.append(event.obj.name)
                await asyncio.sleep(0)
                if len(received) == 4:
                    ending.now()

    await ending.ended(ending.begin(consume))
    listener.close(drop=False)
    received += [event.obj.name for event in listener.take()]

    assert received == [f"p-{n}" for n in range(10)]


async def test_a_pump_can_be_cancelled_while_it_waits_for_a_blocking_listener(
    ending: Ending,
) -> None:
    queue, indexer, pump, listener = pipeline()
    for number in (1, 2, 3):
        queue.replace([pod("a", number)], str(number))

    await ending.at(lambda: bool(pump.blocked_by), pump.run)

    assert indexer.state.resource_version == "2"
    assert [event.obj.resource_version for event in taken(listener)] == ["1", "2"]


# -- waiting for the first state --------------------------------------------------------------


async def test_wait_synced_of_an_informer_can_be_cancelled(ending: Ending) -> None:
    source = scripted_lister_watcher(
        ErrorResponse(ServerFailure(Status(500))), list_response(body("a", 1))
    )
    informer = SharedInformer(source, backoff=FAST_BACKOFF)

    await ending.at(lambda: True, informer.wait_synced)

    async with running_informer(informer):
        await informer.wait_synced()


async def test_wait_synced_of_a_factory_can_be_cancelled(ending: Ending) -> None:
    faults = Faults()
    informers = SharedInformerFactory(ClusterSource(Cluster(), faults), backoff=FAST_BACKOFF)
    pods = informers.informer("pods")
    outage = faults.refuse()

    async with informers:
        await ending.at(lambda: pods.health.error is not None, informers.wait_synced)

        outage.end()
        await informers.wait_synced(timeout=30)


async def test_wait_synced_of_a_handler_can_be_cancelled(ending: Ending) -> None:
    async with running_informer(pod_informer(cluster_with_pods("a"))) as informer:
        free = asyncio.Event()

        async def handler(event: Event) -> None:
            await free.wait()

        registration = informer.add_handler(handler)

        await ending.at(lambda: True, registration.wait_synced)

        free.set()
        await registration.wait_synced(timeout=30)


# -- the factory ------------------------------------------------------------------------------


async def test_a_factory_can_be_cancelled_while_it_is_entered(ending: Ending) -> None:
    source = scripted_source(pods=[list_response(), watch_response(never_ends=True)])
    informers = SharedInformerFactory(source)
    informers.informer("pods")

    async def enter() -> None:
        ending.now()
        async with informers:
            await asyncio.get_running_loop().create_future()

    await ending.ended(ending.begin(enter))

    assert source.scripts["pods"].open_responses == 0
    assert repr(informers).startswith("<SharedInformerFactory ended")


async def test_a_cancelled_body_of_a_factory_stops_its_informers(ending: Ending) -> None:
    informers = SharedInformerFactory(ClusterSource(cluster_with_pods("a")))
    pods = informers.informer("pods")

    async def use() -> None:
        async with informers:
            await asyncio.get_running_loop().create_future()

    await ending.at(lambda: pods.synced, use)

    assert pods.health.state == "stopped"


async def test_a_factory_that_is_cancelled_while_it_is_left_waits_for_its_handlers(
    ending: Ending,
) -> None:
    informers = SharedInformerFactory(ClusterSource(cluster_with_pods("a")))
    log, free = list[str](), asyncio.Event()

    async def handler(event: Event) -> None:
        log.append("called")
        with suppress(asyncio.CancelledError):
            await asyncio.get_running_loop().create_future()
        log.append("cancelled")
        await free.wait()
        log.append("ended")

    pods = informers.informer("pods")
    registration = pods.add_handler(handler)

    async def enter_and_leave() -> None:
        async with informers:
            await wait_until(lambda: "called" in log)

    task = ending.begin(enter_and_leave)
    await wait_until(lambda: "cancelled" in log)
    ending.now()
    await yield_to_loop()
    assert not task.done(), "it waits for the handler all the same"
    free.set()
    await ending.ended(task)

    assert log[-1] == "ended"
    assert pods.health.state == "stopped"
    assert not registration.running


async def test_a_cancelled_run_of_a_factory_stops_its_informers(ending: Ending) -> None:
    informers = SharedInformerFactory(ClusterSource(cluster_with_pods("a")))
    pods = informers.informer("pods")

    await ending.at(lambda: pods.synced, informers.run)

    assert pods.health.state == "stopped"


async def test_a_cancelled_use_of_an_informer_stops_the_informer(ending: Ending) -> None:
    async with SharedInformerFactory(ClusterSource(cluster_with_pods("a"))) as informers:
        used: list[SharedInformer] = []

        async def use() -> None:
            async with informers.use("pods") as pods:
                used.append(pods)
                await asyncio.get_running_loop().create_future()

        await ending.at(lambda: bool(used) and used[0].synced, use)
        await wait_until(lambda: used[0].health.state == "stopped")

        assert list(informers) == []


async def test_a_cancelled_handler_loses_no_pending_event(ending: Ending) -> None:
    seen: list[Event] = []
    registration = make_registration(seen.append, limit=10)

    async def run() -> None:
        async with asyncio.TaskGroup() as group:
            registration.start(group)

    task = ending.begin(run)
    await yield_to_loop()
    ending.now()
    registration.listener.put([Added(pod("a", 1))])
    await ending.ended(task)
    registration.listener.close(drop=False)

    left = registration.listener.next_nowait()
    assert [*seen, *([left] if left else [])] == [Added(pod("a", 1))]
