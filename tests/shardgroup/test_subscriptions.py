"""The users of the shards of one member."""

from __future__ import annotations

import asyncio

from aioinformer.shardgroup.subscriptions import GroupSubscriptions


class Member:
    """Shards that change, and the number of acknowledgements."""

    def __init__(self) -> None:
        self.assigned = frozenset[int]()
        self.acknowledged = list[frozenset[int]]()
        self.subscriptions = GroupSubscriptions(lambda: self.assigned, self._record)

    def _record(self) -> None:
        self.acknowledged.append(self.subscriptions.working)

    def assign(self, *shards: int) -> None:
        self.assigned = frozenset(shards)
        self.subscriptions.notify()


async def test_a_wait_ends_at_once_if_the_shards_have_changed_before() -> None:
    member = Member()
    member.assign(1, 2)

    changed = await member.subscriptions.subscribe("pods").wait_changed(frozenset({1}))

    assert changed == {1, 2}


async def test_each_user_learns_of_a_change_once() -> None:
    member = Member()
    users = [member.subscriptions.subscribe(name) for name in ("pods", "nodes")]
    waits = [asyncio.create_task(user.wait_changed(frozenset())) for user in users]
    await asyncio.sleep(0)

    member.assign(3)

    assert [await wait for wait in waits] == [{3}, {3}]
    again = asyncio.create_task(users[0].wait_changed(frozenset({3})))
    await asyncio.sleep(0)
    assert not again.done()
    member.assign()
    assert await again == frozenset()


async def test_a_user_that_is_woken_without_a_change_waits_on() -> None:
    member = Member()
    wait = asyncio.create_task(member.subscriptions.subscribe("pods").wait_changed(frozenset()))
    await asyncio.sleep(0)

    member.subscriptions.notify()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not wait.done()

    member.assign(1)
    member.assign(2)  # before the user has run: only the last state counts
    assert await wait == {2}


def test_a_shard_is_worked_on_as_long_as_any_user_works_on_it() -> None:
    member = Member()
    pods, nodes = (member.subscriptions.subscribe(name) for name in ("pods", "nodes"))

    pods.acknowledge([1, 2])
    nodes.acknowledge([2, 3])
    pods.acknowledge(())
    nodes.acknowledge([3])

    assert member.acknowledged == [{1, 2}, {1, 2, 3}, {2, 3}, {3}]


def test_a_subscription_that_is_closed_twice_gives_its_shards_away_once() -> None:
    member = Member()
    pods, nodes = (member.subscriptions.subscribe(name) for name in ("pods", "nodes"))
    pods.acknowledge([1])
    nodes.acknowledge([2])
    assert repr(pods) == "<GroupSubscription of pods, working on 1 shards>"

    pods.close()
    pods.close()

    assert member.acknowledged == [{1}, {1, 2}, {2}]
    assert repr(member.subscriptions) == "<GroupSubscriptions of ['nodes']>"
