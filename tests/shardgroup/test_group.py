"""Groups of several members in one process, on a cluster in memory, in simulated time."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Generator
from contextlib import (
    AbstractContextManager,
    AsyncExitStack,
    contextmanager,
    nullcontext,
    suppress,
)
from typing import Any

import pytest

from aioinformer import Client, LeaderElector, Metrics, Problem, Resource, ShardGroup
from aioinformer._runtime.writing.resource_writer import CheckedWriter
from aioinformer.errors import (
    AlreadyExists,
    Forbidden,
    LeadershipLost,
    NotRunning,
    ShardLost,
    UsageError,
)
from aioinformer.shardgroup.membership import GroupMembership
from aioinformer.sharding.state.assignment import ShardAssignment
from aioinformer.testing import ApiServer, Cluster, ClusterSource, Faults
from aioinformer.testing.faults.faults import RequestVerb
from tests.leaderelection.electors import LEASES, pause_process, run_simulated
from tests.shardgroup.shard_groups import (
    GroupSetup,
    Worker,
    joined,
    loop_time,
    settled,
    until,
)

ALL = frozenset(range(16))


@contextmanager
def cut_off(faults: Faults) -> Generator[None]:
    """Let every request of a member fail, and end its watches."""
    faults.refuse()
    try:
        yield
    finally:
        faults.clear()


def test_a_single_member_works_on_all_shards() -> None:
    async def main() -> None:
        setup = GroupSetup()
        async with setup.group("a") as group:
            assert await group.wait_member(timeout=10) == ALL
            assert setup.held("a") == "0-15"
            assert setup.lease("shop")["spec"]["holderIdentity"] == "a"
            for shard in ALL:
                group.check(shard)
            assert (group.name, group.count, group.by) == ("shop", 16, "uid")

    run_simulated(main)


def test_a_member_that_joins_receives_its_share_and_no_other_shard_moves() -> None:
    async def main() -> None:
        setup = GroupSetup()
        a, b, c = setup.group("a"), setup.group("b"), setup.group("c")
        async with joined(a, b):
            before = {"a": a.held, "b": b.held}
            async with c:
                await settled(a, b, c)
                assert c.held
                assert a.held == before["a"] - c.held
                assert b.held == before["b"] - c.held
                assert not a.held & b.held

    run_simulated(main)


def test_the_shards_of_a_member_that_leaves_have_an_owner_within_2_s() -> None:
    async def main() -> None:
        setup = GroupSetup()
        a, b = setup.group("a"), setup.group("b")
        async with a:
            async with b:
                await settled(a, b)
            start = loop_time()
            await until(lambda: a.held == ALL)
            assert loop_time() - start < 2
            assert setup.lease("shop.b")["spec"]["holderIdentity"] == ""

    run_simulated(main)


def test_the_shards_of_a_leader_that_leaves_have_an_owner_within_2_s() -> None:
    async def main() -> None:
        setup = GroupSetup()
        a, b = setup.group("a"), setup.group("b")
        async with b:
            async with a:
                await settled(a, b)
            assert await until(lambda: b.held == ALL) < 2

    run_simulated(main)


def test_the_shards_of_a_member_that_is_cut_off_are_taken_over_after_it_has_stopped() -> None:
    async def main() -> None:
        setup, faults = GroupSetup(), Faults()
        a, b = setup.group("a"), setup.group("b", faults=faults)
        async with joined(a, b):
            start, shards = loop_time(), b.held
            with cut_off(faults):
                stopped = await until(lambda: not b.held)
                with pytest.raises(ShardLost, match=r"the Lease of b wasn't renewed in time"):
                    b.check(min(shards))
                assert a.held == ALL - shards
                await until(lambda: a.held == ALL)
                assert stopped <= 10.1
                assert 14 < loop_time() - start < 20
                assert b.health.state in ("joining", "lost")
                assert b.health.error is not None
            await settled(a, b)  # it returns, and receives the same shards
            assert b.held == shards

    run_simulated(main)


@pytest.mark.parametrize("phase", [0.1, 0.7, 1.3, 1.9])
@pytest.mark.parametrize("leads", [False, True])
def test_the_shards_of_a_dead_member_have_an_owner_just_after_its_lease_has_expired(
    phase: float, *, leads: bool
) -> None:
    """Renewals of two members may be almost a period apart, and don't delay the takeover."""

    async def main() -> None:
        setup, faults = GroupSetup(), Faults()
        a = setup.group("a", faults=faults if leads else None)
        b = setup.group("b", faults=None if leads else faults)
        dead, live = (a, b) if leads else (b, a)
        async with a:
            await a.wait_member(timeout=10)
            await asyncio.sleep(phase)
            async with b:
                await settled(a, b)
                assert live.health.leader == "a"  # the first member
                await asyncio.sleep(7)
                renewed = dead.health.renewed
                assert renewed is not None
                expiry = loop_time() - renewed + 15
                with cut_off(faults):
                    await until(lambda: live.held == ALL)
                    assert 0 < loop_time() - expiry < 0.3
                await settled(a, b)

    run_simulated(main)


def test_a_member_that_joins_after_a_death_does_not_wait_for_the_dead_members_lease() -> None:
    async def main() -> None:
        setup, faults = GroupSetup(), Faults()
        a, b, c = setup.group("a"), setup.group("b", faults=faults), setup.group("c")
        async with joined(a, b):
            with cut_off(faults):
                await until(lambda: a.held == ALL)
                assert await until(lambda: setup.held("b") == "") < 1
                async with c:
                    await until(lambda: bool(c.health.assigned))
                    assert await until(lambda: c.held == c.health.assigned) < 2
                    await until(lambda: a.held | c.held == ALL)

    run_simulated(main)


def test_a_member_that_was_paused_for_longer_than_its_lease_holds_no_shards() -> None:
    async def main() -> None:
        setup = GroupSetup()
        async with setup.group("a") as group:
            await group.wait_member(timeout=10)
            pause_process(30)
            assert group.held == frozenset()
            with pytest.raises(ShardLost) as caught:
                group.check(3)
            assert caught.value.shard == 3
            await until(lambda: group.held == ALL)

    run_simulated(main)


def test_after_minutes_without_a_server_every_shard_has_an_owner_within_half_a_minute() -> None:
    async def main() -> None:
        setup, faults = GroupSetup(), Faults()
        a, b = setup.group("a", faults=faults), setup.group("b", faults=faults)
        async with joined(a, b):
            before = (a.held, b.held)
            with cut_off(faults):
                await asyncio.sleep(12)
                assert not a.held
                assert not b.held
                await asyncio.sleep(240)
            start = loop_time()
            await settled(a, b)
            assert loop_time() - start < 30
            assert (a.held, b.held) == before  # nobody moved for good

    run_simulated(main)


def test_a_shard_moves_only_after_the_work_on_it_has_ended() -> None:
    async def main() -> None:
        setup = GroupSetup()
        a, b = setup.group("a"), setup.group("b")
        async with a, asyncio.TaskGroup() as tasks:
            await a.wait_member(timeout=10)
            worker = Worker(a, end_seconds=5.0)
            task = tasks.create_task(worker.run())
            await until(lambda: worker.working == ALL)
            async with b:
                await until(lambda: bool(b.health.assigned))
                moving = b.health.assigned
                assert worker.working == ALL
                await until(lambda: a.held == ALL - moving)
                assert a.health.stopping == moving
                assert a.health.users == {"worker": 16}
                for shard in moving:
                    a.check(shard)  # what runs may finish
                assert b.held == frozenset()
                assert await until(lambda: b.held == moving) >= 4
                with pytest.raises(ShardLost, match="doesn't hold it"):
                    a.check(min(moving))
                assert worker.working == ALL - moving
            task.cancel()

    run_simulated(main)


def test_two_members_never_work_on_one_shard_while_members_come_and_go() -> None:
    async def main() -> None:
        setup = GroupSetup()
        workers: dict[str, Worker] = {}

        async def live(identity: str, seconds: float) -> None:
            async with setup.group(identity) as group, asyncio.TaskGroup() as tasks:
                workers[identity] = Worker(group, end_seconds=0.5)
                task = tasks.create_task(workers[identity].run())
                await asyncio.sleep(seconds)
                task.cancel()

        async def watch() -> None:
            while True:
                found = [shard for worker in workers.values() for shard in worker.working]
                assert len(found) == len(set(found)), workers
                await asyncio.sleep(0.005)

        async with asyncio.TaskGroup() as group:
            watching = group.create_task(watch())
            lives = [group.create_task(live(f"m{number}", 20 + 7 * number)) for number in range(4)]
            await asyncio.sleep(15)
            lives.append(group.create_task(live("late", 10)))
            await asyncio.wait(lives)
            watching.cancel()

    run_simulated(main)


def test_work_that_does_not_end_keeps_the_lease_until_it_expires(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        setup = GroupSetup()
        async with setup.group("a", shutdown_timeout=3.0) as group:
            await group.wait_member(timeout=10)
            group.subscribe("stuck").acknowledge({4})
            start = loop_time()
        assert 3 <= loop_time() - start < 4
        assert setup.lease("shop.a")["spec"]["holderIdentity"] == "a"
        assert group.health.state == "left"

    run_simulated(main)
    assert "work on shards 4 has not ended within 3 s" in caplog.text


def test_a_group_that_was_left_keeps_no_timer_and_is_freed() -> None:
    def memberships() -> int:
        gc.collect()
        return sum(isinstance(each, GroupMembership) for each in gc.get_objects())

    async def main() -> None:
        setup, before = GroupSetup(), memberships()
        group = setup.group("a", shutdown_timeout=1.0)
        async with group:
            await group.wait_member(timeout=10)
            stuck = group.subscribe("stuck")
            stuck.acknowledge({4})
        left = setup.group("b")
        async with left:
            await left.wait_member(timeout=60)
        await asyncio.sleep(5)
        stuck.close()  # the work ends after the group was left
        assert not group.health.stopping
        await asyncio.sleep(5)
        del group, left, stuck
        assert memberships() == before

    run_simulated(main)


def test_moves_are_logged_and_measured(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="aioinformer.shards")
    measured: list[tuple[str, object]] = []

    class Recorded(Metrics):
        def shards_held(self, group: str, shards: int) -> None:
            measured.append((group, shards))

        def shard_moved(self, group: str, kind: str) -> None:
            measured.append((group, kind))

        def shard_unowned(self, group: str, seconds: float) -> None:
            measured.append((f"{group} unowned", seconds < 2))

    async def main() -> None:
        setup = GroupSetup()
        a, b = setup.group("a", metrics=Recorded()), setup.group("b")
        async with a:
            await a.wait_member(timeout=10)
            async with b:
                await settled(a, b)
            await until(lambda: a.held == ALL)

    run_simulated(main)
    moves = [value for group, value in measured if group == "shop"]
    lent = moves.count("acquired") - 16
    assert 0 < lent < 16
    assert moves.count("stopping") == moves.count("released") == lent + 16
    assert measured.count(("shop unowned", True)) == lent
    held = [value for value in moves if isinstance(value, int)]
    assert held == [0, 16, 16 - lent, 16, 0]
    assert "group shop: a begins with 16 shards in epoch 1: 0-15" in caplog.text
    assert "group shop: a has given away" in caplog.text


def test_one_member_sends_one_renewal_a_period_whatever_the_number_of_shards() -> None:
    async def main() -> None:
        setup = GroupSetup()
        async with setup.group("a", shards=1024) as group:
            await group.wait_member(timeout=10)
            writes = int(setup.lease("shop.a")["metadata"]["annotations"][WRITE].split("/")[1])
            await asyncio.sleep(60)
            later = int(setup.lease("shop.a")["metadata"]["annotations"][WRITE].split("/")[1])
            assert 29 <= later - writes <= 31

    run_simulated(main)


def test_members_with_another_number_of_shards_wait_until_the_others_have_left() -> None:
    async def main() -> None:
        setup = GroupSetup()
        a, b = setup.group("a"), setup.group("b", shards=8)
        await a.__aenter__()
        await a.wait_member(timeout=30)
        async with b:
            await asyncio.sleep(30)
            assert (a.held, b.held) == (ALL, frozenset())
            with pytest.raises(TimeoutError):
                await b.wait_member(timeout=1)
            await a.__aexit__(None, None, None)
            await b.wait_member(timeout=30)
            assert b.held == frozenset(range(8))

    run_simulated(main)


def test_an_internal_error_ends_the_work_and_is_raised_on_leaving() -> None:
    class BrokenSource(ClusterSource):
        def api(self, resource: str | Resource, *, namespace: str | None = None) -> Any:
            return None

    async def main() -> None:
        group = ShardGroup(
            BrokenSource(Cluster()), "shop", namespace="web", identity="a", shards=16
        )
        await group.__aenter__()
        await until(lambda: group.health.state == "failed")
        assert group.held == frozenset()
        with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'get'"):
            await group.__aexit__(None, None, None)

    run_simulated(main)


async def test_a_client_that_is_closed_cancels_the_block_and_its_error_is_raised() -> None:
    async with ApiServer(Cluster()) as server:
        client = Client(server.url)
        await client.__aenter__()
        group = ShardGroup(client, "shop", namespace="web", identity="a")

        async def close() -> None:
            await group.wait_member(timeout=10)
            await client.__aexit__(None, None, None)

        async def work() -> None:
            async with group:
                tasks.append(asyncio.create_task(close()))
                await asyncio.sleep(30)

        tasks: list[asyncio.Task[None]] = []
        with pytest.raises(NotRunning, match="the client was closed"):
            await work()
        await asyncio.wait(tasks)
        assert group.held == frozenset()


def test_waiting_for_a_group_that_does_not_run_raises() -> None:
    async def main() -> None:
        group = GroupSetup().group("a")
        with pytest.raises(NotRunning, match="this member of web/shop is idle: use the group"):
            await group.wait_member()
        async with group:
            pass
        with pytest.raises(NotRunning, match="is left"):
            await group.wait_member()

    run_simulated(main)


def test_a_group_is_entered_once() -> None:
    async def main() -> None:
        group = GroupSetup().group("a")
        async with group:
            pass
        with pytest.raises(UsageError, match="was entered before"):
            await group.__aenter__()

    run_simulated(main)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"shards": 0}, "shards must be 1 to 65536, not 0"),
        ({"by": "name"}, "by must be 'uid' or 'namespace', not 'name'"),
        ({"namespace": ""}, "namespace is empty"),
        ({"identity": "A_b"}, "identity becomes part of the name of a Lease"),
        ({"lease_duration": 5}, "must be longer than renew_deadline"),
        ({"shutdown_timeout": -1}, "shutdown_timeout"),
    ],
)
def test_an_option_that_is_out_of_range_is_rejected(options: dict[str, object], text: str) -> None:
    async def main() -> None:
        make: Any = ShardGroup
        with pytest.raises(ValueError, match=text):
            make(
                ClusterSource(Cluster()), "shop", **{"namespace": "web", "identity": "a"} | options
            )

    run_simulated(main)


def test_a_group_can_be_used_as_a_shard_assignment() -> None:
    async def main() -> None:
        group: ShardAssignment = GroupSetup().group("a")
        assert group.subscribe("x").assigned == frozenset()

    run_simulated(main)


WRITE = "aioinformer/shard-write"


# -- reports ------------------------------------------------------------------------------------


FORBIDDEN: dict[str, tuple[RequestVerb, ...]] = {
    "the creation of the member's Lease": ("create",),
    "the creation of the group's Lease": ("create",),
    "the renewal": ("update",),
    "the reading of the member's Lease": ("get",),
    "the list of Leases": ("list", "watch", "watch_list"),
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_requests_for_leases_that_are_forbidden_are_reported(
    what: str, caplog: pytest.LogCaptureFixture
) -> None:
    problems, errors = list[Problem](), list[Exception | None]()
    cluster, faults = Cluster(), Faults()

    async def main() -> None:
        group = make_group(ClusterSource(cluster, faults), on_error=problems.append)
        if what != "the creation of the group's Lease":
            for verb in FORBIDDEN[what]:
                faults.forbid(verb=verb, resource="leases")
        async with group:
            if what == "the creation of the group's Lease":
                await until(lambda: len(list(cluster.objects("leases"))) == 1)
                faults.forbid(verb="create", resource="leases")
            await asyncio.sleep(15)
            for _ in range(45):
                await asyncio.sleep(1)
                errors.append(group.health.error)
            assert "last error: Forbidden" in str(group.health)
            faults.clear()
            await until(lambda: len(group.held) == 4)
            await asyncio.sleep(5)
            assert group.health.error is None

    run_simulated(main)
    assert {type(each) for each in errors} == {Forbidden}
    assert {type(each.error) for each in problems} == {Forbidden}
    assert 2 <= len(problems) <= 12
    assert len([each for each in caplog.records if each.levelno == logging.WARNING]) >= 2


@pytest.mark.parametrize("lease", ["web/shop", "web/shop.a"])
@pytest.mark.parametrize("first", ["the election", "the group"])
def test_an_election_that_uses_a_lease_of_the_group_is_named(
    lease: str, first: str, caplog: pytest.LogCaptureFixture
) -> None:
    problems, of_election = list[Problem](), list[Problem]()
    belongs = (
        f"lease {lease}: the Lease has another user: UsageError: the Lease {lease} belongs to the "
        "shard group shop. With one Lease for both, neither works: give the election or the group "
        "another name, and delete the Lease"
    )

    async def lead(elector: LeaderElector) -> None:
        while True:
            with suppress(LeadershipLost):
                async with elector.leading():
                    await asyncio.sleep(100)

    async def main() -> None:
        source = ClusterSource(Cluster())
        group = make_group(source, on_error=problems.append)
        leases = CheckedWriter(source.api(LEASES), list)  # of an unknown cluster
        elector = LeaderElector(leases, lease, identity="one", on_error=of_election.append)
        async with AsyncExitStack() as stack:
            if first == "the group":
                await stack.enter_async_context(group)
                await group.wait_member(timeout=60)
            candidate = asyncio.create_task(lead(elector))
            await asyncio.sleep(1)
            if first == "the election":  # which makes a Lease without the label
                await stack.enter_async_context(group)
            await asyncio.sleep(60)
            if (first, lease) != ("the group", "web/shop.a"):  # whose member holds it as before
                assert f"the Lease {lease} of the shard group has another user" in caplog.text
                assert any(isinstance(each.error, UsageError) for each in problems)
                assert isinstance(group.health.error, UsageError | AlreadyExists)
            if first == "the group":
                assert belongs in caplog.messages
                assert any(isinstance(each.error, UsageError) for each in of_election)
                assert isinstance(elector.health.error, UsageError)
            candidate.cancel()
            await asyncio.wait({candidate})
            await asyncio.sleep(60)
            if lease == "web/shop.a":  # released
                assert group.health.error is None

    run_simulated(main)
    for logger in ("aioinformer.shards", "aioinformer.election"):
        lines = [each for each in caplog.records if each.name == logger]
        assert len([each for each in lines if "has another user" in each.message]) <= 7, "in 120 s"


@pytest.mark.parametrize(
    ("lease", "shared"),
    [
        *(("web/shop", True), ("web/shop.a", True), ("web/shop.b", True)),
        *(("web/shop.example.com", False), ("web/shops", False), ("other/shop.a", False)),
    ],
)
def test_an_election_and_a_group_of_one_program_that_share_a_lease_are_refused(
    lease: str, shared: bool
) -> None:
    def refused() -> AbstractContextManager[object]:
        text = f"the election {lease} uses a Lease of the shard group web/shop"
        return pytest.raises(UsageError, match=text) if shared else nullcontext()

    async def main() -> None:
        source, elsewhere = ClusterSource(Cluster()), ClusterSource(Cluster())
        elector = LeaderElector(source.api(LEASES), lease, identity="one")
        async with make_group(elsewhere), make_group(source, "other-shop"):
            async with make_group(source) as group:
                with refused():
                    async with elector.leading():
                        await until(lambda: len(group.held) == 4)
                        assert group.health.error is None
            async with elector.leading():
                with refused():
                    async with make_group(source):
                        pass
            async with make_group(source):
                pass

    run_simulated(main)


def make_group(source: ClusterSource, name: str = "shop", **options: Any) -> ShardGroup:
    return ShardGroup(source, name, namespace="web", identity="a", shards=4, **options)
