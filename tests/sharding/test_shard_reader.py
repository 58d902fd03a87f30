"""The tasks of the requests that read shards: what they ask for, queue, and when they end."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from aioinformer import KubeObject, ListRequest
from aioinformer._core.objects.deltas import Bookmark, Delta, QueueEntry, Replaced
from aioinformer._core.objects.object_key import Admit
from aioinformer._runtime.reflector.delta_queue import DeltaQueue
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher
from aioinformer._runtime.reflector.reflector import Reflector
from aioinformer._runtime.reporting.health import Health
from aioinformer._runtime.tasks.task_group import StrictTaskGroup
from aioinformer.sharding.feature import read_shard
from aioinformer.sharding.group_shards import GroupShards
from aioinformer.sharding.shard_reader import ShardReader
from aioinformer.sharding.state.ranges import HashRanges, shard_of
from aioinformer.sharding.state.shard_reads import CATCH_UP_SECONDS
from aioinformer.sharding.stored_shards import StoredShards, StoredState
from aioinformer.testing.simulation import run
from tests.runtime.informers import FAST_BACKOFF
from tests.runtime.scripted_source import (
    ScriptedListerWatcher,
    ScriptedResponse,
    added,
    body,
    list_response,
    pod,
    scripted_lister_watcher,
    wait_until,
    watch_response,
    yield_to_loop,
)
from tests.sharding.memory_assignment import MemoryAssignment

COUNT = 4
"""The shards of the group."""

SILENT = watch_response(never_ends=True)
"""A watch without changes."""


def name_in(shard: int) -> str:
    """Return the name of a pod whose uid is in a shard."""
    # Texts that differ at their ends alone have hashes that are close to each other.
    names = (f"pod-{number}-of-web" for number in range(1000))
    return next(name for name in names if shard_of(f"uid-{name}", COUNT) == shard)


def state_of(*shards: int, version: str = "10") -> ScriptedResponse:
    """Return the response to a list: a pod of each of these shards."""
    return list_response(*(body(name_in(each), 1) for each in shards), version=version)


def watch_with(*chunks: bytes) -> ScriptedResponse:
    """Return a watch that sends these bytes, and is silent then."""
    return watch_response(*chunks, never_ends=True)


def shards_in(admit: Admit | None) -> str:
    """Return the shards of these hashes as text."""
    ranges = admit if isinstance(admit, HashRanges) else HashRanges("uid", ())
    every = {each: HashRanges.of([each], COUNT, "uid").limits[0] for each in range(COUNT)}
    return "".join(str(each) for each, first in every.items() if ranges.has_hash(first))


def names(*shards: int) -> str:
    return " ".join(sorted(map(name_in, shards)))


def text_of(entry: QueueEntry) -> str:
    """Return an entry of the queue as text."""
    match entry:
        case Replaced(kept=kept) if kept is not None:
            return f"keep {shards_in(kept)}"
        case Replaced(objects, version, initial=gained, extends=extends):
            found = " ".join(sorted(each.name for each in objects))
            kind = "add" if extends else "replace"
            return f"{kind} {shards_in(gained)} at {version}: {found}"
        case Delta(kind, obj):
            return f"{kind} {obj.name}"
        case Bookmark(version):
            return f"at {version}"
        case _:
            raise AssertionError(entry)


class MemoryShards:
    """Shards that an earlier run has stored: a ``StoredState`` without a file."""

    def __init__(self, *shards: int, version: str = "5", problem: str = "") -> None:
        self.version, self.problem = version, problem
        self.parts = ",".join(map(str, shards))

    async def read(self, admit: Admit) -> AsyncIterator[list[KubeObject]]:
        if not self.problem:
            pods = [pod(name_in(each), 1) for each in range(COUNT)]
            yield [each for each in pods if admit(each.uid, each.key.namespace)]


class Member:
    """A reader with its queue, and the assignment of its shards."""

    def __init__(
        self, source: ScriptedListerWatcher, stored: MemoryShards | None, group: StrictTaskGroup
    ) -> None:
        self.source, self.stored = source, stored
        self.opens = asyncio.Event()
        """Set when the cache file may be opened."""
        self.opens.set()
        assignment = MemoryAssignment(COUNT)
        self.shards, self.queue = GroupShards(assignment), DeltaQueue()
        queue, self.filter = read_shard(assignment, source.resource, self.queue)
        self.reflector = Reflector(source, queue, filter=self.filter, backoff=FAST_BACKOFF)
        self.reader = ShardReader(
            *("pods", self.reflector, self.queue, self.shards, group),
            keeper=None if stored is None else self,
        )

    @property
    def ranges(self) -> HashRanges:
        return self.filter.ranges

    async def open_parts(
        self, source: ListerWatcher, scope: str, parts: StoredShards
    ) -> StoredState | None:
        assert source is self.source
        await self.opens.wait()
        self.parts = parts
        return self.stored

    def gain(self, *shards: int) -> None:
        self.shards.take(frozenset(shards))
        self.reader.gain(frozenset(shards))

    async def lose(self, *shards: int) -> None:
        await self.shards.release(frozenset(shards))
        self.reader.lose(frozenset(shards))

    async def queued(self, count: int) -> list[str]:
        """Wait for entries of the queue, and return them as text."""
        await wait_until(lambda: len(self.queue.fifo.entries) >= count)
        found: list[str] = []
        while (entry := self.queue.pop()) is not None:
            found.append(text_of(entry))
        return found

    @property
    def requests(self) -> list[str]:
        """The requests so far: consistent lists, and others with their versions."""
        return [
            f"watch from {each.resource_version}"
            if not isinstance(each, ListRequest)
            else "check"
            if each.freshness_check
            else f"list {each.resource_version}".strip()
            for each in self.source.requests
        ]


@asynccontextmanager
async def reading(
    *responses: ScriptedResponse,
    held: tuple[int, ...] = (),
    stored: MemoryShards | None = None,
    opens: bool = True,
    source: ScriptedListerWatcher | None = None,
) -> AsyncGenerator[Member]:
    """Run the reader of a member that holds some shards at its start."""
    async with StrictTaskGroup("informer of pods") as group:
        member = Member(source or scripted_lister_watcher(*responses), stored, group)
        member.shards.take(frozenset(held))
        if not opens:
            member.opens.clear()
        task = group.start(member.reader.run(), name="reader")
        await yield_to_loop()
        try:
            yield member
        finally:
            group.cancel(task)
    assert member.reader.watches == 0
    assert member.source.open_responses == 0, "every request has ended"


# -- the requests --------------------------------------------------------------------------------


async def test_shards_that_move_in_are_listed_and_the_watch_is_resumed_with_them() -> None:
    script = [state_of(0), watch_with(added(name_in(1), 11)), state_of(2, 3, version="13"), SILENT]
    async with reading(*script, held=(0,)) as member:
        assert (await member.queued(2))[0] == f"replace 0 at 10: {names(0)}"
        member.gain(2)
        assert member.reader.watches == 2
        assert repr(member.reader) == "<ShardReader of pods 1 + 1 shards>"
        assert await member.queued(1) == [f"add 2 at 13: {names(2)}"]
        await wait_until(lambda: member.requests[-1] == "watch from 11")
        assert member.requests.count("list") == 2
        assert member.reader.watches == member.source.open_responses == 1
        assert shards_in(member.ranges) == "02"
        assert member.filter is not None
        assert [at for _, at in member.filter.read_ahead] == ["13"]
        assert member.reflector.status.excluded == 2, "of the watch, and of the list"


async def test_a_request_begins_only_after_the_one_that_it_replaces_has_ended() -> None:
    class OneAtATime(ScriptedListerWatcher):
        """A lister-watcher whose requests take some turns of the loop to end."""

        @asynccontextmanager
        async def list(self, request: ListRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
            assert not self.open_responses
            self.requests.append(request)
            self.open_responses += 1
            try:
                yield await asyncio.get_running_loop().create_future()
            finally:
                await yield_to_loop(5)
                self.open_responses -= 1

    async with reading(held=(0,), source=OneAtATime(deque())) as member:
        for shard in (1, 2, 3):
            member.gain(shard)
            await yield_to_loop(2 * shard)
        await member.lose(3)
        await member.lose(2)  # in one turn of the loop
        await yield_to_loop()
        assert 2 < len(member.requests) < 6
        assert set(member.requests) == {"list"}
        assert shards_in(member.ranges) == "01"


async def test_a_server_that_went_back_is_noticed_when_the_whole_state_is_read_again() -> None:
    async with reading(state_of(0, version="20"), SILENT, held=(0,)) as member:
        await member.source.wait_for_request(2)
        member.gain(2)  # its list is not answered
        await member.source.wait_for_request(3)
        await member.queued(1)
        member.source.responses += [state_of(2, version="15"), SILENT]
        await member.lose(0)
        assert await member.queued(2) == ["keep ", f"replace 2 at 15: {names(2)}"]
        assert member.reflector.reporter.rewinds == 1


async def test_a_state_whose_version_cannot_be_compared_is_read_with_all_others() -> None:
    script = [state_of(0, version="a1"), SILENT, state_of(2, version="b7")]
    script += [state_of(0, 2, version="c9"), SILENT]
    async with reading(*script, held=(0,)) as member:
        await member.source.wait_for_request(2)
        await member.queued(1)
        member.gain(2)
        assert await member.queued(1) == [f"replace 2 at c9: {names(0, 2)}"]
        await wait_until(lambda: member.requests[-1] == "watch from c9")
        assert member.requests.count("list") == 3
        assert member.reader.watches == member.source.open_responses == 1


async def test_health_shows_the_request_for_gained_shards_until_their_state_is_complete() -> None:
    watching = Health(
        state="watching",
        since=0.0,
        error=None,
        retry_in=None,
        synced=True,
        resource_version="10",
        objects=1,
        rejected=(),
        blocked_by=(),
    )
    async with reading(state_of(0), SILENT, held=(0,)) as member:
        await member.source.wait_for_request(2)
        assert member.reader.summarize(watching) == watching
        member.gain(2)  # its list is not answered
        await member.source.wait_for_request(3)
        assert member.reader.summarize(watching).state == "listing"
        starting = replace(watching, state="listing")
        assert member.reader.summarize(starting) is starting
        await member.lose(2)
        assert member.reader.summarize(watching) == watching


async def test_a_reflector_of_all_objects_is_rejected() -> None:
    reflector = Reflector(scripted_lister_watcher(), DeltaQueue())
    shards, group = GroupShards(MemoryAssignment(COUNT)), StrictTaskGroup("informer")
    with pytest.raises(AssertionError, match="has a filter"):
        ShardReader("pods", reflector, DeltaQueue(), shards, group)


# -- the cache file ------------------------------------------------------------------------------


async def test_shards_that_come_and_go_while_the_file_is_opened_are_read_when_it_is_open() -> None:
    async with reading(
        state_of(0, 2), SILENT, held=(0, 1), stored=MemoryShards(), opens=False
    ) as member:
        member.gain(2)
        await member.lose(1)
        member.reader.publish_empty()
        await yield_to_loop()
        assert member.requests == []
        assert not member.queue.fifo.entries
        member.opens.set()
        assert await member.queued(1) == [f"replace 02 at 10: {names(0, 2)}"]


async def test_a_restored_first_state_is_queued_once_the_server_has_confirmed_it() -> None:
    stored = MemoryShards(0, 1)
    script: list[ScriptedResponse] = [list_response(version="5"), SILENT, SILENT]
    async with reading(*script, held=(0, 1), stored=stored) as member:
        assert await member.queued(1) == [f"replace 01 at 5: {names(0, 1)}"]
        await member.source.wait_for_request(3)
        assert member.requests[0] == "check"
        assert member.requests[-1] == "watch from 5"
        assert "list" not in member.requests
        assert shards_in(member.ranges) == "01"
        assert not member.parts.find(frozenset({0, 1})), "the cache holds a later state"
        assert member.reflector.status.fresh is not None


async def test_shards_are_listed_if_the_file_has_a_problem_while_it_is_read() -> None:
    stored = MemoryShards(0, problem="no such file")
    async with reading(state_of(0), SILENT, held=(0,), stored=stored) as member:
        assert await member.queued(1) == [f"replace 0 at 10: {names(0)}"]
        assert "check" not in member.requests


def in_virtual_time(scenario: Coroutine[Any, Any, None]) -> None:
    run(scenario, seed=0, order="fifo")


def behind_the_watch(*last: bytes) -> list[ScriptedResponse]:
    """Return the responses until the state of a restored shard is older than the watch.

    Args:
        *last: what the watch of the restored shard sends at last.
    """
    check = list_response(version="5")
    return [state_of(0), SILENT, check, watch_with(*last)]


def test_the_whole_state_is_read_if_a_restored_state_stays_behind_the_watch(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "aioinformer.scopes")

    async def scenario() -> None:
        script = [*behind_the_watch(), state_of(0, 2, version="20"), SILENT]
        async with reading(*script, held=(0,), stored=MemoryShards(2)) as member:
            await member.queued(1)
            member.gain(2)
            await asyncio.sleep(CATCH_UP_SECONDS - 0.01)
            assert member.requests.count("list") == 1
            assert await member.queued(0) == []
            await asyncio.sleep(0.02)
            assert await member.queued(1) == [f"replace 2 at 20: {names(0, 2)}"]

    in_virtual_time(scenario())
    assert "pods: the watch can't be resumed; the whole state is read again" in caplog.messages


def test_a_restored_state_that_catches_up_with_the_watch_is_added() -> None:
    async def scenario() -> None:
        script = [*behind_the_watch(added(name_in(2), 12)), SILENT]
        async with reading(*script, held=(0,), stored=MemoryShards(2)) as member:
            await member.queued(1)
            member.gain(2)
            assert await member.queued(1) == [f"add 2 at 12: {names(2)}"]
            await asyncio.sleep(2 * CATCH_UP_SECONDS)
            assert member.requests.count("list") == 1, "the wait has ended"

    in_virtual_time(scenario())


def test_the_wait_for_a_restored_state_ends_with_the_reader() -> None:
    async def scenario() -> None:
        async with reading(*behind_the_watch(), held=(0,), stored=MemoryShards(2)) as member:
            await member.queued(1)
            member.gain(2)
            await asyncio.sleep(CATCH_UP_SECONDS / 2)
            requests = member.requests
        await asyncio.sleep(2 * CATCH_UP_SECONDS)
        assert member.requests == requests

    in_virtual_time(scenario())
