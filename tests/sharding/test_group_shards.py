"""The shards that an informer reads, and the controllers that must end their work on them."""

from __future__ import annotations

import asyncio

from aioinformer import ObjectKey
from aioinformer.sharding.group_shards import GroupShards
from aioinformer.sharding.state.ranges import shard_of
from tests.core.builders import pod
from tests.sharding.memory_assignment import MemoryAssignment


class BusyUser:
    """A controller whose runs take until ``finished``."""

    def __init__(self, calls: list[str], name: str) -> None:
        self.finished = asyncio.Event()
        self._calls, self._name = calls, name

    def _record(self, call: str, shards: frozenset[int]) -> None:
        self._calls.append(f"{self._name} {call} {sorted(shards)}")

    def begin_release(self, shards: frozenset[int]) -> None:
        self._record("ends", shards)

    async def wait_released(self, shards: frozenset[int]) -> None:
        await self.finished.wait()
        self._record("ended", shards)

    def take(self, shards: frozenset[int]) -> None:
        self._record("takes", shards)


def test_a_controller_that_is_added_later_takes_the_shards_that_are_held() -> None:
    shards, calls = GroupShards(MemoryAssignment()), list[str]()
    shards.add_user(BusyUser(calls, "a"))
    shards.take(frozenset({1, 2}))
    shards.add_user(BusyUser(calls, "b"))
    shards.take(frozenset({5}))

    assert calls == ["a takes []", "a takes [1, 2]", "b takes [1, 2]", "a takes [5]", "b takes [5]"]
    assert repr(shards) == "<GroupShards of g: 3 held>"


async def test_a_shard_is_held_until_every_controller_has_ended_its_work() -> None:
    shards, calls = GroupShards(MemoryAssignment()), list[str]()
    users = [BusyUser(calls, name) for name in "ab"]
    for user in users:
        shards.add_user(user)
    shards.take(frozenset({1, 2}))
    calls.clear()

    release = asyncio.create_task(shards.release(frozenset({2})))
    await asyncio.sleep(0)
    assert calls == ["a ends [2]", "b ends [2]"]  # neither begins anything while the other works
    users[0].finished.set()
    await asyncio.sleep(0)
    assert calls[2:] == ["a ended [2]"]
    assert shards.held == {1, 2}
    users[1].finished.set()
    await release

    assert shards.held == {1}


def test_the_group_decides_by_which_field_the_objects_are_divided() -> None:
    obj = pod("a", uid="u-3", namespace="mail")
    by_uid = GroupShards(MemoryAssignment(by="uid"))
    by_namespace = GroupShards(MemoryAssignment(by="namespace"))

    assert by_uid.shard_of_object(obj) == shard_of("u-3", 8)
    assert by_namespace.shard_of_object(obj) == shard_of("mail", 8)
    assert shard_of("mail", 8) != shard_of("u-3", 8)
    for shards in (by_uid, by_namespace):
        index = frozenset({shards.shard_of("u-3", ObjectKey("mail", "a"))})
        assert shards.ranges_of(index).has(obj.uid, "mail")
        assert not shards.ranges_of(frozenset(range(8)) - index).has(obj.uid, "mail")


async def test_a_controller_that_has_ended_is_not_waited_for() -> None:
    shards, calls = GroupShards(MemoryAssignment()), list[str]()
    user = BusyUser(calls, "a")
    shards.add_user(user)
    shards.remove_user(user)
    shards.remove_user(user)  # a controller may be stopped more than once
    shards.take(frozenset({1}))
    await asyncio.wait_for(shards.release(frozenset({1})), 1)

    assert calls == ["a takes []"]
    assert shards.held == frozenset()
