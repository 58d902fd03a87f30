"""One member at work on a cluster in memory: requests that fail, Leases of others, and the clock.

The moves of shards between several members are tested with ``ShardGroup``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from aioinformer import Metrics, SharedInformerFactory
from aioinformer._runtime.reporting.safe_metrics import wrap_metrics
from aioinformer._runtime.writing.resource_writer import CheckedWriter
from aioinformer.leaderelection.state.election import ElectionTimes
from aioinformer.leaderelection.state.lease import GROUP_LABEL
from aioinformer.leaderelection.suspend_clock import SuspendAwareClock
from aioinformer.shardgroup.membership import GroupMembership
from aioinformer.shardgroup.state.member import GroupMember
from aioinformer.testing import Cluster, ClusterSource, Faults
from tests.leaderelection.electors import LEASES, run_simulated
from tests.shardgroup.shard_groups import loop_time, until
from tests.shardgroup.state.group_leases import KEY, LAYOUT, member_lease

ALL = frozenset(range(8))


@dataclass(slots=True)
class MemberSetup:
    """A cluster, and the member ``a`` of the group ``web/shop`` on it."""

    cluster: Cluster = field(default_factory=Cluster)
    faults: Faults = field(default_factory=Faults)
    """The faults of the member's requests, those of its cache aside."""
    asleep: float = 0.0
    """Seconds for which the machine was suspended."""
    bug: Exception | None = None
    """Raised at each write of the member: an error that no request raises."""

    @asynccontextmanager
    async def joined(self, metrics: Metrics | None = None) -> AsyncGenerator[GroupMembership]:
        """Start a membership, and stop it at the end of the block."""
        clock = SuspendAwareClock(asyncio.get_running_loop().time, lambda: self.asleep)
        member = GroupMember(
            KEY, identity="a", incarnation="this", layout=LAYOUT, times=ElectionTimes()
        )
        async with SharedInformerFactory(ClusterSource(self.cluster), namespace="web") as leases:
            membership = GroupMembership(
                member,
                CheckedWriter(ClusterSource(self.cluster, self.faults).api(LEASES), self.check),
                leases.informer(LEASES, labels=f"{GROUP_LABEL}=shop"),
                name="shop",
                clock=clock,
                metrics=wrap_metrics(metrics),
            )
            membership.start()
            try:
                yield membership
            finally:
                await membership.stop()

    def check(self) -> None:
        """Raise at a write of the member if a bug was set."""
        if self.bug is not None:
            raise self.bug

    def create_lease(self, identity: str, shards: set[int]) -> None:
        """Create the Lease of another member, which is never renewed."""
        lease = member_lease(identity, shards)
        for name in ("resourceVersion", "uid"):
            del lease["metadata"][name]
        self.cluster.create(LEASES, lease, namespace="web")

    def holder(self, name: str) -> str:
        """Return the holder of a Lease."""
        return str(self.cluster.get("leases", name, namespace="web")["spec"]["holderIdentity"])

    def names(self) -> list[str]:
        """Return the names of the Leases."""
        return sorted(lease["metadata"]["name"] for lease in self.cluster.objects("leases"))


def held(membership: GroupMembership) -> frozenset[int]:
    return membership.subscriptions.read_assigned()


def levels(caplog: pytest.LogCaptureFixture, text: str) -> list[str]:
    """Return the levels of the lines with this text."""
    return [each.levelname for each in caplog.records if text in each.getMessage()]


def test_leaving_tells_whether_the_lease_was_released() -> None:
    async def main() -> list[bool]:
        results = list[bool]()
        for stuck in (False, True):
            async with MemberSetup().joined() as membership:
                await until(lambda: held(membership) == ALL)
                if stuck:
                    membership.subscriptions.subscribe("stuck").acknowledge({4})
                results.append(await membership.leave(timeout=1))
        return results

    assert run_simulated(main) == [True, False]


def test_a_lease_that_can_not_be_released_is_given_up_in_time() -> None:
    async def main() -> None:
        setup = MemberSetup()
        async with setup.joined() as membership:
            await until(lambda: held(membership) == ALL)
            setup.faults.refuse()
            start = loop_time()
            assert not await membership.leave(timeout=1)
            assert loop_time() - start <= 10.1
            assert held(membership) == frozenset()

    run_simulated(main)


def test_an_assignment_that_is_rejected_is_written_again_and_logged_as_a_warning_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, logger="aioinformer.shards")

    async def main() -> list[str]:
        setup = MemberSetup()
        async with setup.joined() as membership:
            # The member's own Lease is created first; each further creation is the group's.
            await until(lambda: setup.names() == ["shop.a"])
            with setup.faults.status(500, verb="create"):
                await asyncio.sleep(9)
                assert held(membership) == frozenset()
            await until(lambda: held(membership) == ALL)
            first = failures()
            with setup.faults.status(500, verb="create"):
                setup.cluster.delete("leases", "shop", namespace="web")
                await until(lambda: len(failures()) > len(first))
            return first

    def failures() -> list[str]:
        return levels(caplog, "group shop: the assignment was not written: ServerFailure: ")

    first = run_simulated(main)
    assert first[0] == "WARNING"
    assert set(first[1:]) == {"DEBUG"}
    assert 4 <= len(first) <= 6  # one attempt in two seconds
    assert failures()[len(first)] == "WARNING"  # an attempt has succeeded before


def test_an_assignment_that_another_member_wrote_first_is_no_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="aioinformer.shards")

    async def main() -> None:
        setup = MemberSetup()
        async with setup.joined() as membership:
            await until(lambda: setup.names() == ["shop.a"])
            with setup.faults.status(409, verb="create"):
                await until(lambda: bool(caplog.records))
            await until(lambda: held(membership) == ALL)

    run_simulated(main)
    assert levels(caplog, "the assignment was not written: Conflict") == ["INFO"]


def test_an_assignment_whose_answer_is_late_does_not_stop_the_member(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        setup = MemberSetup()
        async with setup.joined() as membership:
            await until(lambda: setup.names() == ["shop.a"])
            with setup.faults.latency(float("inf"), verb="create"):
                await asyncio.sleep(3)
                assert membership.failure is None
            await until(lambda: held(membership) == ALL)

    run_simulated(main)
    assert levels(caplog, "the assignment was not written: TimeoutError") == ["WARNING"]


def test_the_lease_of_a_dead_member_is_released_and_later_deleted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="aioinformer.shards")

    async def main() -> None:
        setup = MemberSetup()
        setup.create_lease("b", {5})
        async with setup.joined() as membership:
            await until(lambda: held(membership) == ALL)
            assert 15 <= loop_time() <= 16  # not before the Lease of the other one has expired
            await until(lambda: bool(levels(caplog, "released the Lease web/shop.b")))
            assert setup.holder("shop.b") == ""
            await asyncio.sleep(80)
            assert setup.names() == ["shop", "shop.a"]

    run_simulated(main)
    assert levels(caplog, "group shop: released the Lease web/shop.b, which had expired") == [
        "INFO"
    ]
    assert levels(caplog, "group shop: deleted the Lease web/shop.b, which had expired") == ["INFO"]


def test_a_stale_lease_that_can_not_be_deleted_is_logged_and_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        setup = MemberSetup()
        setup.create_lease("b", {5})
        async with setup.joined() as membership:
            await asyncio.sleep(70)
            with setup.faults.status(503, verb="delete"):
                await until(lambda: "the old Lease web/shop.b was not deleted" in caplog.text)
            await until(lambda: setup.names() == ["shop", "shop.a"])
            assert membership.failure is None

    run_simulated(main)
    assert levels(caplog, "the old Lease web/shop.b was not deleted: ServerFailure: ") == [
        "WARNING"
    ]


def test_the_shards_of_a_deleted_lease_are_taken_when_it_would_have_expired() -> None:
    """The member may still work on them, and its next renewal would show them again."""

    async def main() -> None:
        setup = MemberSetup()
        setup.create_lease("b", {5})
        async with setup.joined() as membership:
            await until(lambda: bool(held(membership)))
            setup.cluster.delete("leases", "shop.b", namespace="web")
            await until(lambda: 5 in held(membership))
            assert 15 <= loop_time() <= 16

    run_simulated(main)


def test_a_lease_of_the_group_that_another_program_deletes_is_created_again() -> None:
    async def main() -> None:
        setup = MemberSetup()
        async with setup.joined() as membership:
            await until(lambda: held(membership) == ALL)
            setup.cluster.delete("leases", "shop", namespace="web")
            await asyncio.sleep(3)
            assert setup.holder("shop") == "a"
            assert held(membership) == ALL

    run_simulated(main)


def test_a_member_that_was_suspended_notices_within_a_second_that_its_lease_has_expired(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        setup = MemberSetup()
        async with setup.joined() as membership:
            await until(lambda: held(membership) == ALL)
            user = membership.subscriptions.subscribe("worker")
            renewed = membership.member.election.renewed_at
            # The next renewal, which would notice that too, is two seconds away.
            await until(lambda: membership.member.election.renewed_at != renewed)
            await asyncio.sleep(0.1)  # the cache shows the renewal
            waiting, start = asyncio.create_task(user.wait_changed(ALL)), loop_time()
            await asyncio.sleep(0)
            setup.asleep += 60  # the timers of the loop don't include that time
            assert await waiting == frozenset()
            assert loop_time() - start <= 1.0
            await until(lambda: held(membership) == ALL)

    run_simulated(main)
    assert levels(caplog, "a lost, as its Lease was not renewed in time, 8 shards in epoch 1") == [
        "WARNING"
    ]


def test_an_internal_error_ends_the_work_wakes_every_user_and_leaving_waits_for_none(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        setup = MemberSetup()
        async with setup.joined() as membership:
            await until(lambda: held(membership) == ALL)
            user = membership.subscriptions.subscribe("worker")
            user.acknowledge(ALL)
            waiting, start = asyncio.create_task(user.wait_changed(ALL)), loop_time()
            await asyncio.sleep(0)
            setup.bug = RuntimeError("a bug")
            assert await waiting == frozenset()
            assert loop_time() - start < 2.5  # at the next renewal, not at the deadline
            assert membership.failure is setup.bug
            start = loop_time()
            assert not await membership.leave(timeout=30)
            assert loop_time() == start
            assert repr(membership) == f"<GroupMembership of {membership.member!r}>"

    run_simulated(main)
    assert levels(caplog, "group shop: this member failed") == ["ERROR"]


def test_a_member_that_fails_before_it_holds_a_shard_wakes_those_that_wait_for_it() -> None:
    async def main() -> None:
        setup = MemberSetup(bug=RuntimeError("a bug"))
        async with setup.joined() as membership:
            await asyncio.wait_for(membership.subscriptions.changed.wait(), 5)
            assert membership.failure is setup.bug

    run_simulated(main)


def test_the_end_of_a_membership_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with MemberSetup().joined() as membership:
            await until(lambda: held(membership) == ALL)
        assert membership.failure is None

    run_simulated(main)
    assert caplog.text == ""


def test_the_changes_of_many_leases_are_looked_at_together() -> None:
    seen = list[tuple[str, int]]()

    class Recorded(Metrics):
        def shards_held(self, group: str, shards: int) -> None:
            seen.append((group, shards))

    async def main() -> None:
        setup = MemberSetup()
        async with setup.joined(Recorded()) as membership:
            await until(lambda: held(membership) == ALL)
            before = membership.member.view.others
            for number in range(50):
                setup.create_lease(f"m{number}", set())
            assert not before
            await asyncio.sleep(0.03)
            assert len(membership.member.view.others) == 50
            await until(lambda: held(membership) < ALL)

    run_simulated(main)
    assert seen[:2] == [("shop", 0), ("shop", 8)]
    assert len(seen) == 3  # one new assignment for 50 members
