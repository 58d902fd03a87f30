"""From the queue into the cache, and from there into every mailbox."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random

import pytest

from aioinformer import (
    Added,
    Bookmark,
    Deleted,
    Delta,
    DeltaQueue,
    Event,
    Indexer,
    IndexFunction,
    KubeObject,
    ObjectKey,
    Updated,
)
from aioinformer._core.delivery.mailbox import MAX_MERGED, Mailbox
from aioinformer._core.delivery.overflow import OverflowName
from aioinformer._runtime.delivery.listener import Listener
from aioinformer._runtime.informer.pump import BATCH_SIZE, FILTERED_BATCH_SIZE, Pump
from tests.runtime.informers import running_in_background
from tests.runtime.registrations import make_registration
from tests.runtime.registrations import running_registration as handling
from tests.runtime.scripted_source import pod, wait_until, yield_to_loop


@dataclass(slots=True, eq=False)
class Pipeline:
    """A pump with its queue, cache and listeners."""

    index: IndexFunction | None = None
    queue: DeltaQueue = field(init=False)
    indexer: Indexer = field(init=False)
    pump: Pump = field(init=False)

    def __post_init__(self) -> None:
        self.indexer = Indexer({"index": self.index} if self.index else None)
        self.queue = DeltaQueue(self.indexer)
        self.pump = Pump("pods", self.queue, self.indexer)

    def listener(
        self,
        name: str = "a stream",
        limit: int = 4,
        overflow: OverflowName = "block",
        *,
        replay: bool = True,
    ) -> Listener:
        mailbox = Mailbox(limit=limit, overflow=overflow, holds=self.indexer.holds)
        listener = Listener(name, mailbox, self.pump.gate)
        self.pump.join(listener, replay=replay)
        return listener

    def add(self, *objects: KubeObject) -> None:
        self.queue.feed([Delta("Added", obj) for obj in objects])

    @asynccontextmanager
    async def pumping(self) -> AsyncGenerator[None]:
        async with running_in_background(self.pump.run()):
            await self.drained()
            yield

    async def drained(self) -> None:
        """Everything that was queued has been applied and delivered."""
        await wait_until(lambda: not self.queue.fifo)
        await yield_to_loop()

    def version(self) -> str:
        return self.indexer.state.resource_version

    def blocked_by(self) -> tuple[str, ...]:
        return self.pump.blocked_by

    @property
    def cached(self) -> dict[str, str]:
        """The version of each cached object."""
        return {obj.name: obj.resource_version for obj in self.indexer.state.objects.values()}


def taken(listener: Listener) -> list[Event]:
    events: list[Event] = []
    while event := listener.next_nowait():
        events.append(event)
    return events


# -- changes ----------------------------------------------------------------------------------


async def test_a_bookmark_changes_the_version_of_the_cache_after_the_entries_before_it() -> None:
    pipeline = Pipeline()
    listener = pipeline.listener(limit=1)

    async with pipeline.pumping():
        pipeline.add(pod("a", 1), pod("b", 2))
        pipeline.queue.feed([Bookmark("9")])
        await yield_to_loop()
        assert pipeline.version() == "1", "the mailbox is full"
        taken(listener)
        await yield_to_loop()
        assert pipeline.version() == "2", "full again"
        taken(listener)
        await pipeline.drained()
        assert pipeline.version() == "9"


# -- whole states -----------------------------------------------------------------------------


async def test_a_state_larger_than_a_mailbox_does_not_wait_for_room() -> None:
    pipeline = Pipeline()
    listener = pipeline.listener(limit=1)

    async with pipeline.pumping():
        pipeline.queue.replace([pod(f"p-{n}", n) for n in range(50)], "100")
        await pipeline.drained()

    assert len(pipeline.cached) == len(taken(listener)) == 50


def slow_index(obj: KubeObject) -> str:
    """Block for so long that staging a state of some hundred objects must yield to the loop."""
    end = time.perf_counter() + 0.0001
    while time.perf_counter() < end:
        pass
    return obj.name


async def test_a_large_state_is_staged_in_steps_and_appears_at_once() -> None:
    pipeline = Pipeline(slow_index)
    listener = pipeline.listener()
    sizes: set[int] = set()

    async with pipeline.pumping():
        pipeline.queue.replace([pod(f"p-{n}", n) for n in range(300)], "1000")
        while not pipeline.pump.synced.is_set():
            sizes.add(len(pipeline.cached))
            await asyncio.sleep(0)
        await pipeline.drained()

    assert sizes == {0}
    assert len(pipeline.cached) == 300
    assert len(taken(listener)) == 300


async def test_the_pump_yields_to_the_loop_while_it_stages_a_large_state() -> None:
    pipeline = Pipeline(slow_index)
    turns = 0

    async with pipeline.pumping():
        pipeline.queue.replace([pod(f"p-{n}", n) for n in range(300)], "1000")
        await yield_to_loop(2)
        while not pipeline.pump.synced.is_set():
            turns += 1
            await asyncio.sleep(0)

    assert turns >= 3, "30 ms of work, 4 ms at a time"


async def test_a_large_old_state_is_freed_after_the_new_one_is_delivered() -> None:
    pipeline = Pipeline()
    listener = pipeline.listener()

    async with pipeline.pumping():
        pipeline.queue.replace([pod(f"p-{n}", n) for n in range(100)], "1000")
        pipeline.queue.replace([pod("new", 1001)], "1001")
        pipeline.add(pod("next", 1002))
        await pipeline.drained()

    assert pipeline.cached == {"new": "1001", "next": "1002"}
    assert taken(listener)[-2:] == [Added(pod("new", 1001)), Added(pod("next", 1002))]


async def test_a_listener_that_joins_during_staging_receives_the_old_state_and_changes() -> None:
    pipeline = Pipeline(slow_index)

    async with pipeline.pumping():
        pipeline.queue.replace([pod("old", 1)], "10")
        await pipeline.drained()
        pipeline.queue.replace([pod(f"p-{n}", n) for n in range(300)], "1000")
        await yield_to_loop(3)
        assert pipeline.cached == {"old": "1"}
        listener = pipeline.listener()
        first = listener.next_nowait()
        await pipeline.drained()

    rest = taken(listener)
    assert first == Added(pod("old", 1), initial=True)
    assert rest[0] == Deleted(pod("old", 1), "vanished")
    assert len(rest) == 301


# -- joining, resync, the end -----------------------------------------------------------------


async def test_a_listener_that_joins_before_the_initial_list_is_synced_with_that_list() -> None:
    pipeline = Pipeline()
    listener = pipeline.listener()

    assert taken(listener) == []
    assert not listener.statistics().synced
    async with pipeline.pumping():
        pipeline.queue.replace([], "10")
        await pipeline.drained()

    assert taken(listener) == []
    assert listener.statistics().synced


async def test_a_listener_that_joins_after_changes_is_not_synced_before_the_initial_list() -> None:
    pipeline = Pipeline()

    async with pipeline.pumping():
        pipeline.add(pod("a", 1))
        await pipeline.drained()
        listener = pipeline.listener()
        assert taken(listener) == [Added(pod("a", 1), initial=True)]
        assert not listener.statistics().synced
        pipeline.queue.replace([pod("a", 1), pod("b", 2)], "10")
        await pipeline.drained()

    assert taken(listener) == [Added(pod("b", 2), initial=True)]
    assert listener.statistics().synced


async def test_the_end_of_the_pump_closes_every_listener_and_ends_waits_for_the_sync() -> None:
    pipeline = Pipeline()
    listener = pipeline.listener()
    pipeline.queue.replace([pod("a", 1)], "10")
    async with pipeline.pumping():
        pass

    pipeline.pump.end()

    assert pipeline.pump.synced.is_set()
    assert await listener.next() == Added(pod("a", 1), initial=True)
    assert await listener.next() is None


# -- a full mailbox ---------------------------------------------------------------------------


async def test_a_full_listener_is_still_named_after_it_took_one_event() -> None:
    """The gate opens when the mailbox is half empty."""
    pipeline = Pipeline()
    slow = pipeline.listener("slow", limit=4)
    pipeline.listener("brisk", limit=5)

    async with pipeline.pumping():
        pipeline.add(*(pod(f"p-{n}", n) for n in range(9)))
        await yield_to_loop()
        slow.next_nowait()
        await yield_to_loop()
        assert len(pipeline.cached) == 4
        assert pipeline.blocked_by() == ("slow",)


@pytest.mark.parametrize("limit", [8, 255, 256, 1024])
async def test_a_plain_handler_that_blocks_receives_every_event(limit: int) -> None:
    """A plain handler takes a batch at once; the room shows when it takes the next one."""
    pipeline, received = Pipeline(), list[Event]()
    plain = make_registration(
        received.append, limit=limit, overflow="block", gate=pipeline.pump.gate
    )
    pipeline.pump.join(plain.listener)

    async with handling(plain), pipeline.pumping():
        pipeline.add(*(pod(f"p-{n}", n) for n in range(4000)))
        await wait_until(lambda: len(received) == 4000)


async def test_the_pump_continues_only_when_both_full_mailboxes_are_drained() -> None:
    pipeline = Pipeline()
    one, other = pipeline.listener("one", limit=2), pipeline.listener("other", limit=2)

    async with pipeline.pumping():
        pipeline.add(*(pod(f"p-{n}", n) for n in range(3)))
        await yield_to_loop()
        assert pipeline.blocked_by() == ("one", "other")
        taken(one)
        await yield_to_loop()
        assert pipeline.blocked_by() == ("other",)
        taken(other)
        await pipeline.drained()

    assert len(pipeline.cached) == 3


async def test_a_recreated_object_may_put_a_mailbox_over_its_limit_by_one() -> None:
    pipeline = Pipeline()
    listener = pipeline.listener(limit=2)

    async with pipeline.pumping():
        pipeline.add(pod("a", 1, uid="first"), pod("a", 2, uid="second"), pod("b", 3))
        await yield_to_loop()
        assert listener.statistics().pending == 3
        assert pipeline.cached == {"a": "2"}


# -- those who merge --------------------------------------------------------------------------


async def test_the_pump_waits_until_a_blocking_listener_has_received_the_previous_list() -> None:
    pipeline = Pipeline()
    slow = pipeline.listener("slow")
    pipeline.queue.replace([pod("a", 1)], "10")

    async with pipeline.pumping():
        taken(slow)
        pipeline.queue.replace([pod("a", 12)], "20")
        pipeline.queue.replace([pod("a", 22)], "30")
        await yield_to_loop()
        assert pipeline.version() == "20"
        assert pipeline.blocked_by() == ("slow",)
        assert taken(slow) == [Updated(pod("a", 1), pod("a", 12))]
        await pipeline.drained()
        assert pipeline.version() == "30"
        assert pipeline.blocked_by() == ()


async def test_the_pump_continues_with_the_next_list_when_the_blocking_listener_is_closed() -> None:
    pipeline = Pipeline()
    slow = pipeline.listener("slow")
    pipeline.queue.replace([pod("a", 1)], "10")

    async with pipeline.pumping():
        taken(slow)
        pipeline.queue.replace([pod("a", 12)], "20")
        pipeline.queue.replace([pod("a", 22)], "30")
        await yield_to_loop()
        slow.close(drop=True)
        await pipeline.drained()
        assert pipeline.version() == "30"


async def test_a_listener_that_is_far_behind_catches_up_in_steps() -> None:
    """Merging many events yields to the loop."""
    pipeline = Pipeline()
    limit = 16 * MAX_MERGED
    slow = pipeline.listener("slow", limit, "coalesce")

    async with pipeline.pumping():
        pipeline.add(*(pod(f"p-{n}", n) for n in range(limit + 1)))
        await pipeline.drained()
        await wait_until(lambda: not slow.mailbox.needs_merge)

    assert slow.statistics().pending == limit + 1, "so many keys"
    assert len(taken(slow)) == limit + 1


async def test_slow_filters_reduce_the_batch_size_of_the_pump() -> None:
    """All filters read each change of a batch before the pump yields."""
    pipeline, turns = Pipeline(), list[int]()
    going = True

    def turn() -> None:
        turns.append(0)
        if going:
            asyncio.get_running_loop().call_soon(turn)

    def slow(event: Event) -> Event:
        turns[-1] += 1
        until = time.perf_counter() + 0.0005
        while time.perf_counter() < until:
            pass
        return event

    for name in ("one", "other"):
        mailbox = Mailbox(holds=pipeline.indexer.holds, event_map=slow)
        pipeline.pump.join(Listener(name, mailbox, pipeline.pump.gate))
    turn()
    async with pipeline.pumping():
        pipeline.add(*(pod(f"p-{n}", n) for n in range(200)))
        await pipeline.drained()
    going = False

    assert sum(turns) == 400
    assert max(turns) <= 2 * FILTERED_BATCH_SIZE + 8, (
        "the first time; they had not been slow before"
    )
    assert sorted(turns)[-4] <= FILTERED_BATCH_SIZE, "half as many the second time, and so on"


# -- what is shared ---------------------------------------------------------------------------


async def test_listeners_that_join_without_changes_in_between_replay_the_same_state() -> None:
    pipeline = Pipeline()

    async with pipeline.pumping():
        pipeline.queue.replace([pod(f"p-{n}", n) for n in range(BATCH_SIZE + 1)], "1000")
        await pipeline.drained()
        one, other = pipeline.listener(), pipeline.listener()
        pipeline.add(pod("p-0", 1001))
        await pipeline.drained()
        late = pipeline.listener()

    first, second, third = taken(one), taken(other), taken(late)
    assert first == second
    assert len(third) == BATCH_SIZE + 1
    assert {event.obj.resource_version for event in first[:-1]} < {str(n) for n in range(1000)}
    assert pod("p-0", 1001) in [event.obj for event in third]


async def test_a_listener_that_joins_after_a_relist_gets_the_state_of_that_relist() -> None:
    pipeline = Pipeline()

    async with pipeline.pumping():
        pipeline.queue.replace([pod("a", 1), pod("b", 2)], "10")
        await pipeline.drained()
        assert (
            len(taken(pipeline.listener(overflow="coalesce"))) == 2
        )  # the pump keeps these batches for others
        pipeline.queue.replace([pod("a", 11), pod("c", 12)], "20")
        await pipeline.drained()
        late = taken(pipeline.listener(overflow="coalesce"))
        pipeline.queue.replace([], "30")
        await pipeline.drained()
        last = taken(pipeline.listener(overflow="coalesce"))

    assert late == [Added(pod("a", 11), initial=True), Added(pod("c", 12), initial=True)]
    assert last == []


async def test_a_listener_without_replay_receives_later_changes_and_is_synced() -> None:
    pipeline = Pipeline()

    async with pipeline.pumping():
        pipeline.queue.replace([pod("a", 1)], "10")
        await pipeline.drained()
        mailbox = Mailbox(holds=pipeline.indexer.holds)
        listener = Listener("a stream", mailbox, pipeline.pump.gate)
        pipeline.pump.join(listener, replay=False)
        pipeline.add(pod("b", 11))
        await pipeline.drained()

    assert taken(listener) == [Added(pod("b", 11))]
    assert listener.synced


async def test_a_resync_is_delivered_only_to_the_given_listeners() -> None:
    pipeline = Pipeline()
    one, other = pipeline.listener(), pipeline.listener()
    pipeline.pump.resync([one])
    assert taken(one) == [], "nothing is cached yet"

    async with pipeline.pumping():
        pipeline.queue.replace([pod("a", 1)], "10")
        await pipeline.drained()
        for listener in (one, other):
            taken(listener)
        pipeline.pump.resync([one])

    assert [event.obj for event in taken(one)] == [pod("a", 1)]
    assert taken(other) == []


# -- churn ------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Ear:
    """A listener that joins and leaves, and its view of the objects."""

    listener: Listener
    cached: dict[ObjectKey, KubeObject]
    """The objects that were cached when it joined."""
    lazy: float
    view: dict[ObjectKey, KubeObject] = field(default_factory=dict[ObjectKey, KubeObject])
    initial: set[tuple[ObjectKey, str]] = field(default_factory=set[tuple[ObjectKey, str]])

    def receive(self, event: Event) -> None:
        match event:
            case Added(obj, initial):
                assert obj.key not in self.view
                self.view[obj.key] = obj
                if initial:
                    assert (obj.key, obj.uid) not in self.initial, "delivered twice"
                    assert not self.cached or self.cached[obj.key].uid == obj.uid
                    self.initial.add((obj.key, obj.uid))
            case Updated(old, new, resync):
                assert self.view[old.key] is old
                assert old.uid == new.uid
                assert resync == (old is new)
                self.view[new.key] = new
            case Deleted(obj):
                assert self.view.pop(obj.key).uid == obj.uid


class Churn:
    """A queue that is fed at random, and listeners that join, read and leave at random."""

    def __init__(self, seed: int) -> None:
        self.pipeline = Pipeline()
        self.joined_listeners: list[Ear] = []
        self._random = Random(seed)
        self._version = 0
        self._server: dict[str, KubeObject] = {}
        self._join()  # before the first list
        self._relist()

    def step(self) -> None:
        chance = self._random
        match chance.choice(["change"] * 8 + ["relist", "join", "join", "leave", "resync"]):
            case "change":
                self._change(chance.randint(1, 12))
            case "relist":
                self._relist()
            case "join":
                self._join()
            case "leave" if self.joined_listeners:
                ear = self.joined_listeners.pop(chance.randrange(len(self.joined_listeners)))
                ear.listener.close(drop=True)
            case _:
                self.pipeline.pump.resync(self.pipeline.pump.listeners)
        for ear in self.joined_listeners:
            while chance.random() > ear.lazy and (event := ear.listener.next_nowait()):
                ear.receive(event)

    def _join(self) -> None:
        if len(self.joined_listeners) >= 8:
            return
        chance = self._random
        overflow: OverflowName = chance.choice(["coalesce", "coalesce", "block"])
        state = self.pipeline.indexer.state
        found = dict(state.objects) if state.synced else {}
        ear = Ear(
            self.pipeline.listener(f"ear {self._version}", chance.randint(1, 6), overflow),
            found,
            chance.choice([0.1, 0.5]) if overflow == "block" else chance.choice([0.1, 0.7, 1.0]),
        )
        self.joined_listeners.append(ear)

    def _change(self, count: int) -> None:
        for _ in range(count):
            deleted, obj = self._one()
            self.pipeline.queue.feed([Delta("Deleted" if deleted else "Updated", obj)])

    def _relist(self) -> None:
        for _ in range(self._random.randint(0, 12)):
            self._one()
        self.pipeline.queue.replace(list(self._server.values()), str(self._version))

    def _one(self) -> tuple[bool, KubeObject]:
        self._version += 1
        name = f"p-{self._random.randrange(10)}"
        uid = self._random.choice(["1", "2"])
        deleted = self._random.random() < 0.4 and name in self._server
        if deleted:
            last = self._server.pop(name)
            return True, pod(name, self._version, uid=last.uid)
        self._server[name] = pod(name, self._version, uid=uid)
        return False, self._server[name]

    def check(self) -> None:
        keys = 10
        for ear in self.joined_listeners:
            box = ear.listener.statistics()
            assert box.pending <= max(box.limit + 1, 2 * keys), ear.listener


@pytest.mark.client_go(53)
@pytest.mark.parametrize(
    "seed",
    [
        *range(4),
        *(pytest.param(seed, marks=pytest.mark.simulation) for seed in range(4, 8)),
    ],
)
async def test_listeners_that_join_and_leave_at_random_end_with_the_cached_objects(
    seed: int,
) -> None:
    """Late listeners, relists, re-creations and resyncs, at random."""
    churn = Churn(seed)
    async with churn.pipeline.pumping():
        for _ in range(300):
            churn.step()
            churn.check()
            if churn.pipeline.queue.fifo:
                await yield_to_loop(3)
        while churn.pipeline.queue.fifo or not all(
            ear.listener.mailbox.empty for ear in churn.joined_listeners
        ):
            for ear in churn.joined_listeners:
                for event in taken(ear.listener):
                    ear.receive(event)
            await yield_to_loop(3)

    assert churn.joined_listeners
    for ear in churn.joined_listeners:
        assert ear.view == churn.pipeline.indexer.state.objects
        assert ear.listener.synced == churn.pipeline.indexer.state.synced


# -- rejected objects -------------------------------------------------------------------------


def picky_index(obj: KubeObject) -> str:
    if int(obj.resource_version) % 2:
        raise KeyError("odd")
    return obj.name


@pytest.mark.client_go(98)
async def test_a_change_that_an_index_function_rejects_is_logged_and_the_next_one_is_applied(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pipeline = Pipeline(picky_index)
    listener = pipeline.listener()

    async with pipeline.pumping():
        pipeline.add(pod("a", 2), pod("a", 3), pod("b", 4))
        await pipeline.drained()

    assert pipeline.cached == {"a": "2", "b": "4"}
    assert taken(listener) == [Added(pod("a", 2)), Added(pod("b", 4))]
    (record,) = [each for each in caplog.records if each.levelno >= logging.ERROR]
    assert record.getMessage() == (
        "pods: the function of the index 'index' raised at pods web/a: KeyError: 'odd'; "
        "the previous version of web/a stays cached"
    )
    assert record.exc_info is not None


@pytest.mark.client_go(115)
async def test_an_object_of_a_list_that_an_index_function_rejects_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pipeline = Pipeline(picky_index)

    async with pipeline.pumping():
        pipeline.queue.replace([pod("a", 1), pod("b", 2)], "10")
        await pipeline.drained()

    assert pipeline.cached == {"b": "2"}
    assert "raised at pods web/a: KeyError: 'odd'; web/a is not cached" in caplog.text
    assert "previous version" not in caplog.text
    assert "nothing is cached" not in caplog.text


async def test_the_repr_of_the_pump_shows_its_informer_and_listeners() -> None:
    pipeline = Pipeline()
    pipeline.listener()

    assert repr(pipeline.pump).startswith("<Pump pods listeners=1 <DeltaQueue ")


async def test_an_index_function_that_rejects_every_object_is_logged_once_without_tracebacks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(obj: KubeObject) -> str:
        raise KeyError(obj.name)

    pipeline = Pipeline(broken)

    async with pipeline.pumping():
        pipeline.queue.replace([pod(f"p-{n}", n) for n in range(500)], "1000")
        await pipeline.drained()
        await wait_until(lambda: len(pipeline.indexer.rejected) == 500)

    (record,) = [each for each in caplog.records if each.levelno >= logging.ERROR]
    assert record.getMessage() == (
        "pods: the function of the index 'index' raised at pods web/p-0: KeyError: 'p-0'; "
        "rejected as well: 499 other objects; web/p-0 is not cached"
    )
    assert "nothing is cached: each of its 500 objects was rejected; correct the" in caplog.text
    assert {error.__traceback__ for error in pipeline.indexer.rejected.values()} == {None}


# -- listeners that an index function adds ----------------------------------------------------


@pytest.mark.parametrize("shared", [False, True], ids=["alone", "after another one"])
@pytest.mark.parametrize("name", ["a", "b", "c"])
async def test_a_listener_that_an_index_function_adds_receives_each_change_once(
    name: str, shared: bool
) -> None:
    """The cache has changes then that no listener has received yet."""
    added: list[Listener] = []

    def index(obj: KubeObject) -> str:
        if obj.name == name and not added:
            added.append(pipeline.listener("late", limit=100))
        return obj.name

    pipeline = Pipeline(index)
    async with pipeline.pumping():
        pipeline.add(pod("z", 1))
        await pipeline.drained()
        if shared:
            pipeline.listener("early", limit=100)
        pipeline.queue.feed(
            [
                *(Delta("Added", pod(each, n)) for n, each in enumerate("abc", 2)),
                Delta("Updated", pod("z", 5)),
                Delta("Deleted", pod("a", 6)),
            ]
        )
        await pipeline.drained()
        (late,) = added
        view = dict[str, str]()
        for event in taken(late):
            if isinstance(event, Deleted):
                del view[event.obj.name]
                continue
            assert (event.obj.name in view) is isinstance(event, Updated), event
            assert view.get(event.obj.name) != event.obj.resource_version, event
            view[event.obj.name] = event.obj.resource_version
        assert view == pipeline.cached


async def test_a_stream_without_replay_that_an_index_function_adds_receives_what_follows() -> None:
    added: list[Listener] = []

    def index(obj: KubeObject) -> str:
        if obj.name == "b":
            added.append(pipeline.listener("late", replay=False))
            pipeline.listener("left").close(drop=True)
        return obj.name

    pipeline = Pipeline(index)
    async with pipeline.pumping():
        pipeline.add(*(pod(name, number) for number, name in enumerate("abc", 1)))
        await pipeline.drained()
        pipeline.add(pod("d", 4))
        await pipeline.drained()
        assert [event.obj.name for event in taken(added[0])] == ["b", "c", "d"]
        assert pipeline.pump.listeners == added


@pytest.mark.client_go(97)
async def test_more_changes_than_a_batch_are_all_delivered() -> None:
    pipeline = Pipeline()
    listener = pipeline.listener(limit=BATCH_SIZE * 4)

    async with pipeline.pumping():
        pipeline.add(*(pod(f"p-{n}", n) for n in range(BATCH_SIZE * 3 + 1)))
        await pipeline.drained()

    assert [event.obj.name for event in taken(listener)] == [
        f"p-{n}" for n in range(BATCH_SIZE * 3 + 1)
    ]
