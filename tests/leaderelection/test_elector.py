"""One of several acts: waiting for it, leading, losing it, giving it up."""

from __future__ import annotations

import asyncio
import logging
import math
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

import anyio
import pytest

from aioinformer import Fencing, LeaderElector, Metrics, Problem
from aioinformer._core.objects.resources import find_built_in
from aioinformer.errors import (
    ConnectionFailed,
    Forbidden,
    LeadershipLost,
    RequestTimedOut,
    ServerFailure,
    UsageError,
)
from aioinformer.testing import Cluster, ClusterSource, Faults
from aioinformer.testing.faults.faults import RequestVerb
from tests.leaderelection.electors import (
    KEY,
    LEASES,
    ElectionSetup,
    loop_time,
    pause_process,
    run_simulated,
    wait_forever,
)

Body: TypeAlias = Callable[[], Awaitable[object]]


async def under(elector: LeaderElector, body: Body) -> None:
    """Run a body as the leader."""
    async with elector.leading():
        await body()


async def lose(elector: LeaderElector, body: Body = wait_forever) -> LeadershipLost:
    """Run a body under the elector until leadership is lost. Return the error."""
    with pytest.raises(LeadershipLost) as caught:
        await under(elector, body)
    return caught.value


def state_of(elector: LeaderElector) -> tuple[str, bool, Fencing | None]:
    """Return the state, if it leads, and the number of the term."""
    return elector.health.state, elector.is_leader, elector.fencing


# -- winning ----------------------------------------------------------------------------------


def test_a_single_candidate_leads_at_once_and_writes_the_lease() -> None:
    place = ElectionSetup()

    async def main() -> None:
        elector = place.elector()
        assert state_of(elector) == ("idle", False, None)
        async with elector.leading() as fencing:
            assert loop_time() == 0.0
            assert fencing == elector.fencing == Fencing(0, "a")
            assert str(fencing) == "0/a"
            assert state_of(elector) == ("leading", True, fencing)
            assert elector.leader == elector.identity == "a"
            spec = place.lease["spec"]
            assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("a", 15)
            assert (spec["leaseTransitions"], spec["acquireTime"]) == (0, spec["renewTime"])
        assert state_of(elector) == ("idle", False, None)
        assert elector.leader == ""

    run_simulated(main)
    assert place.holder == ""
    assert place.lease["spec"]["leaseDurationSeconds"] == 1


@pytest.mark.client_go(135)
def test_others_wait_until_the_leader_has_released_and_then_lead_soon() -> None:
    place = ElectionSetup()
    diary: list[tuple[str, float]] = []

    async def lead(elector: LeaderElector, seconds: float) -> None:
        async with elector.leading() as fencing:
            diary.append((str(fencing), loop_time()))
            await asyncio.sleep(seconds)
            diary.append((f"{fencing} ends", loop_time()))

    async def main() -> None:
        first, second = place.elector("a"), place.elector("b")
        async with asyncio.TaskGroup() as group:
            group.create_task(lead(first, 60))
            await asyncio.sleep(1)
            group.create_task(lead(second, 1))
            await asyncio.sleep(30)
            assert second.leader == "a"
            assert second.health.state == "waiting"

    run_simulated(main)
    assert [what for what, _ in diary] == ["0/a", "0/a ends", "1/b", "1/b ends"]
    ended, began = diary[1][1], diary[2][1]
    assert ended == 60
    assert began - ended < 2 * 2.2, "a retry, stretched by chance"


def test_after_a_kill_another_leads_when_the_lease_has_expired() -> None:
    place = ElectionSetup()

    async def main() -> None:
        async with place.elector("killed", release_on_exit=False).leading():
            await asyncio.sleep(7)
            renewed = 6.0
        assert place.holder == "killed"
        follower = place.elector("b")
        await asyncio.sleep(1)
        seen = loop_time()
        async with follower.leading() as fencing:
            assert fencing == Fencing(1, "b")
            assert renewed + 15 <= loop_time() == pytest.approx(seen + 15)

    run_simulated(main)


def test_other_candidates_wait_for_the_duration_in_the_lease() -> None:
    place = ElectionSetup()

    async def main() -> None:
        async with place.elector("a", release_on_exit=False, lease_duration=40.2).leading():
            assert place.lease["spec"]["leaseDurationSeconds"] == 41, "rounded up"
        async with place.elector("b").leading():
            assert loop_time() == pytest.approx(41)

    run_simulated(main)


def test_terms_of_one_candidate_have_numbers_of_their_own() -> None:
    place = ElectionSetup()

    async def main() -> None:
        elector = place.elector()
        async with elector.leading() as first:
            pass
        async with elector.leading() as second:
            pass
        assert first < second

    run_simulated(main)


def test_a_candidate_that_lost_may_run_again() -> None:
    place = ElectionSetup()

    async def main() -> None:
        elector, first = place.elector(), list[Fencing | None]()

        async def be_robbed() -> None:
            first.append(elector.fencing)
            place.update_lease(holderIdentity="thief", renewTime="2026-01-01T00:00:00.000000Z")
            await wait_forever()

        await lose(elector, be_robbed)
        assert elector.health.state == "lost"
        async with elector.leading() as second:
            assert first == [Fencing(0, "a")]
            assert second == Fencing(1, "a")

    run_simulated(main)


def test_an_elector_keeps_the_fields_of_other_writers_in_the_lease() -> None:
    place = ElectionSetup()
    lease = {
        "metadata": {"name": "controller", "labels": {"app": "shop"}, "annotations": {"x": "y"}},
        "spec": {"strategy": "OldestEmulationVersion", "preferredHolder": "c", "future": [1]},
    }
    place.cluster.create("leases", lease, namespace="web")

    async def main() -> None:
        async with place.elector().leading():
            patch = {"metadata": {"labels": {"touched": "yes"}}}
            place.cluster.merge_patch("leases", "controller", patch, namespace="web")
            await asyncio.sleep(30)

    run_simulated(main)
    assert place.lease["metadata"]["labels"] == {"app": "shop", "touched": "yes"}
    assert place.lease["metadata"]["annotations"] == {"x": "y"}
    spec = place.lease["spec"]
    assert spec["strategy"] == "OldestEmulationVersion"
    assert (spec["preferredHolder"], spec["future"]) == ("c", [1])


def test_an_elector_recognises_its_lease_after_the_answer_to_the_creation_was_lost() -> None:
    place = ElectionSetup()
    place.faults.reset(verb="create", after=10, times=1)

    async def main() -> None:
        async with place.elector().leading() as fencing:
            assert fencing.transitions == 0
            assert loop_time() == 0.0

    run_simulated(main)


# -- ending by itself ---------------------------------------------------------------------------


def test_the_lease_is_held_until_the_body_has_ended_however_long_that_takes() -> None:
    place = ElectionSetup()

    async def main() -> None:
        with anyio.move_on_after(5):
            async with place.elector().leading():
                try:
                    await wait_forever()
                finally:
                    with anyio.CancelScope(shield=True):
                        await asyncio.sleep(100)
                    assert place.holder == "a"
                    assert loop_time() == 105

    run_simulated(main)
    assert place.holder == ""


def test_an_error_of_the_body_passes_through_and_the_lease_is_released() -> None:
    place = ElectionSetup()

    async def fail() -> None:
        await asyncio.sleep(3)
        raise KeyError("mine")

    async def main() -> None:
        with pytest.raises(KeyError, match="mine"):
            await under(place.elector(), fail)

    run_simulated(main)
    assert place.holder == ""


def test_a_lease_of_another_holder_is_not_released() -> None:
    place = ElectionSetup()

    async def main() -> None:
        async with place.elector().leading():
            place.update_lease(holderIdentity="thief", renewTime="2026-01-01T00:00:00.000000Z")

    run_simulated(main)
    assert place.holder == "thief"


def test_a_candidate_with_the_same_identity_is_another_candidate() -> None:
    place = ElectionSetup()

    async def main() -> None:
        async with place.elector("a").leading():
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(60), place.elector("a").leading():
                    raise AssertionError("both lead")
            assert place.holder == "a"

    run_simulated(main)


def test_releasing_takes_no_longer_than_the_renew_deadline(
    caplog: pytest.LogCaptureFixture,
) -> None:
    place = ElectionSetup()

    async def main() -> None:
        async with place.elector().leading():
            await asyncio.sleep(1)
            place.faults.stall()
        assert loop_time() == pytest.approx(11)

    run_simulated(main)
    assert place.holder == "a"
    assert "was not released; it expires by itself" in caplog.text


def test_a_second_cancellation_ends_the_releasing() -> None:
    place = ElectionSetup()

    async def lead() -> None:
        async with place.elector().leading():
            place.faults.stall()
            await wait_forever()

    async def main() -> None:
        task = asyncio.create_task(lead())
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.sleep(1)
        assert not task.done()
        task.cancel()
        await asyncio.wait({task}, timeout=0.001)
        assert task.cancelled()

    run_simulated(main)


# -- losing ---------------------------------------------------------------------------------


def test_without_renewals_the_body_has_ended_by_the_renew_deadline() -> None:
    place = ElectionSetup()

    async def main() -> None:
        place.faults.latency(0.5)
        elector, versions = place.elector(), list[str]()

        async def body() -> None:
            assert loop_time() == pytest.approx(1.0), "read, and created"
            place.faults.clear()
            place.faults.refuse()
            versions.append(place.lease_version)
            try:
                await wait_forever()
            finally:
                assert loop_time() == pytest.approx(10.5), "it was sent at 0.5"
                assert not elector.is_leader

        lost = await lose(elector, body)
        assert "leadership of web/controller was lost: it was not renewed for 10 s" in str(lost)
        assert isinstance(lost.__cause__, ConnectionFailed)
        assert versions == [place.lease_version], "nothing is written after a loss"
        assert elector.health.state == "lost"
        assert isinstance(elector.health.error, ConnectionFailed)
        assert "lost for" in str(elector.health)

    run_simulated(main)


@pytest.mark.parametrize(
    ("break_it", "cause"),
    [
        (Faults.stall, RequestTimedOut),
        (partial(Faults.status, code=503), ServerFailure),
        (partial(Faults.status, code=503, retry_after=60), ServerFailure),
        (partial(Faults.status, code=500, verb="update"), None),
    ],
    ids=["silent", "failing", "asks to wait", "read-only"],
)
def test_a_server_that_accepts_no_renewals_ends_leading(
    break_it: Callable[[Faults], object], cause: type[Exception] | None
) -> None:
    place = ElectionSetup()

    async def body() -> None:
        await asyncio.sleep(5)
        break_it(place.faults)
        await wait_forever()

    async def main() -> None:
        lost = await lose(place.elector(), body)
        assert loop_time() == pytest.approx(14), "renewed at 4"
        assert cause is None or isinstance(lost.__cause__, cause)

    run_simulated(main)


def test_a_short_outage_does_not_end_leading() -> None:
    place = ElectionSetup()

    async def main() -> None:
        async with place.elector().leading():
            for _ in range(10):
                with place.faults.status(503):
                    await asyncio.sleep(5.5)
                await asyncio.sleep(4.5)
        assert loop_time() == pytest.approx(100)

    run_simulated(main)


@pytest.mark.parametrize(
    ("changes", "reason", "holder"),
    [
        ({"holderIdentity": "thief"}, "thief holds it", "thief"),
        ({"leaseTransitions": 7}, "another program writes to it as a", "a"),
    ],
)
def test_a_leader_that_reads_a_write_of_another_candidate_ends_at_once(
    changes: dict[str, Any], reason: str, holder: str
) -> None:
    place = ElectionSetup()

    async def body() -> None:
        await asyncio.sleep(5)
        place.update_lease(**changes)
        await wait_forever()

    async def main() -> None:
        assert reason in str(await lose(place.elector(), body))
        assert loop_time() == pytest.approx(6), "as it renews"

    run_simulated(main)
    assert place.holder == holder


def test_a_deleted_lease_is_created_again_with_the_same_number_of_transitions() -> None:
    place = ElectionSetup()

    async def main() -> None:
        elector = place.elector()
        for _ in range(3):
            async with elector.leading() as fencing:
                pass
        async with elector.leading() as fencing:
            place.cluster.delete("leases", "controller", namespace="web")
            await asyncio.sleep(5)
            assert place.lease["spec"]["leaseTransitions"] == fencing.transitions == 3

    run_simulated(main)


@pytest.mark.parametrize("times", [1, 5])
def test_a_body_that_swallows_its_cancellation_is_cancelled_again_and_has_lost(times: int) -> None:
    place = ElectionSetup()

    async def swallow() -> None:
        place.faults.refuse()
        for _ in range(times):
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(3600)

    async def main() -> None:
        await lose(place.elector(), swallow)
        assert loop_time() == pytest.approx(10)

    run_simulated(main)


def test_a_body_that_does_not_end_is_logged_and_the_lease_is_not_released(
    caplog: pytest.LogCaptureFixture,
) -> None:
    place = ElectionSetup()

    def warnings() -> list[logging.LogRecord]:
        return [each for each in caplog.records if each.levelno == logging.CRITICAL]

    async def linger() -> None:
        place.faults.refuse()
        with anyio.CancelScope(shield=True):
            await asyncio.sleep(14.9)
            assert not warnings()
            await asyncio.sleep(30)
            place.faults.clear()

    async def main() -> None:
        await lose(place.elector(), linger)
        assert loop_time() == pytest.approx(44.9)

    run_simulated(main)
    (warning,) = warnings()
    assert "web/controller was cancelled and still runs" in warning.getMessage()
    assert place.holder == "a"


def test_an_error_of_a_cancelled_body_is_not_replaced() -> None:
    place = ElectionSetup()

    async def fail() -> None:
        place.faults.refuse()
        try:
            await wait_forever()
        finally:
            raise KeyError("mine")

    async def main() -> None:
        with pytest.raises(KeyError, match="mine"):
            await under(place.elector(), fail)

    run_simulated(main)


def test_an_election_task_that_is_cancelled_from_outside_ends_the_term() -> None:
    place = ElectionSetup()

    async def body() -> None:
        await asyncio.sleep(1)
        (task,) = [each for each in asyncio.all_tasks() if each.get_name().startswith("election")]
        task.cancel()
        await wait_forever()

    async def main() -> None:
        assert "was cancelled, but not by its elector" in str(await lose(place.elector(), body))
        assert loop_time() == 1

    run_simulated(main)


# -- ended from outside -------------------------------------------------------------------------


def test_a_cancellation_from_outside_remains_a_cancellation_and_releases_the_lease() -> None:
    place = ElectionSetup()

    async def lead() -> None:
        async with place.elector().leading():
            await wait_forever()

    async def main() -> None:
        task = asyncio.create_task(lead())
        await asyncio.sleep(1)
        assert place.holder == "a"
        task.cancel("mine")
        await asyncio.wait({task})
        assert task.cancelled()

    run_simulated(main)
    assert place.holder == ""


def test_timeouts_and_cancel_scopes_around_an_election_end_it() -> None:
    place = ElectionSetup()

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3), place.elector().leading():
                await wait_forever()
        assert place.holder == ""
        with anyio.move_on_after(3) as scope:
            async with place.elector().leading():
                await wait_forever()
        assert scope.cancelled_caught
        assert place.holder == ""

    run_simulated(main)


def test_timeouts_and_cancel_scopes_within_the_body_do_not_affect_the_election() -> None:
    place = ElectionSetup()

    async def main() -> None:
        async with place.elector().leading():
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(3):
                    await wait_forever()
            with anyio.move_on_after(3) as scope:
                await wait_forever()
            assert scope.cancelled_caught
            async with asyncio.TaskGroup() as group:
                group.create_task(asyncio.sleep(20))
        assert loop_time() == pytest.approx(26)

    run_simulated(main)


@pytest.mark.parametrize("paused", [False, True])
@pytest.mark.parametrize("way", ["timeout", "scope", "group", "anyio group"])
def test_tasks_inside_the_body_end_when_leadership_is_lost(way: str, *, paused: bool) -> None:
    place = ElectionSetup()

    async def body() -> None:
        place.faults.refuse()
        if paused:
            asyncio.get_running_loop().call_later(5.0, pause_process, 20.0)
        match way:
            case "timeout":
                async with asyncio.timeout(3600):
                    await wait_forever()
            case "scope":
                with anyio.move_on_after(3600):
                    await wait_forever()
            case "group":
                async with asyncio.TaskGroup() as group:
                    group.create_task(wait_forever())
            case _:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(wait_forever)

    async def main() -> None:
        await lose(place.elector(), body)
        assert loop_time() == pytest.approx(25 if paused else 10)
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling()

    run_simulated(main)


@pytest.mark.parametrize("seed", range(5))
def test_a_cancellation_from_outside_during_a_loss_stays_a_cancellation(seed: int) -> None:
    place = ElectionSetup()

    async def body() -> None:
        place.faults.refuse()
        await wait_forever()

    async def main() -> None:
        task = asyncio.create_task(under(place.elector(), body))
        asyncio.get_running_loop().call_later(10.0, task.cancel)
        await asyncio.wait({task})
        assert task.cancelled()
        place.faults.clear()
        await asyncio.sleep(20)
        began = loop_time()
        with anyio.move_on_after(10.0) as scope:
            await under(place.elector(), body)
        assert scope.cancelled_caught
        assert loop_time() == pytest.approx(began + 10.0)

    run_simulated(main, seed=seed)


@pytest.mark.parametrize("seed", range(5))
def test_a_cancellation_from_outside_after_a_long_pause_stays_a_cancellation(seed: int) -> None:
    place = ElectionSetup()

    async def body() -> None:
        asyncio.get_running_loop().call_later(5.0, pause_process, 20.0)
        await wait_forever()

    async def main() -> None:
        task = asyncio.create_task(under(place.elector(), body))
        asyncio.get_running_loop().call_later(25.0, task.cancel)
        await asyncio.wait({task})
        assert task.cancelled()

    run_simulated(main, seed=seed)


@pytest.mark.client_go(135)
@pytest.mark.parametrize("turns", range(0, 60, 3))
def test_a_candidate_that_is_cancelled_at_any_await_lets_another_candidate_lead(turns: int) -> None:
    place = ElectionSetup()

    async def lead() -> None:
        async with place.elector().leading():
            for _ in range(5):
                await asyncio.sleep(0)

    async def main() -> None:
        task = asyncio.create_task(lead())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        if place.holder == "a":  # cut off while it released
            await asyncio.sleep(15)
        async with asyncio.timeout(16), place.elector("b").leading():
            pass

    run_simulated(main)


# -- pauses -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_after_a_long_pause_a_body_that_waited_does_not_get_another_step(seed: int) -> None:
    place, steps = ElectionSetup(), list[float]()

    async def body() -> None:
        asyncio.get_running_loop().call_later(5.0, pause_process, 20.0)
        version = ""
        try:
            while True:
                version = place.lease_version
                await asyncio.sleep(0.7)
                steps.append(loop_time())
        finally:
            assert loop_time() == 25
            assert place.lease_version == version, "nothing of ours was sent before"

    async def main() -> None:
        await lose(place.elector(), body)

    run_simulated(main, seed=seed)
    assert max(steps) < 5


def test_a_body_that_held_the_loop_for_too_long_and_returns_has_lost() -> None:
    place = ElectionSetup()

    async def block() -> None:
        pause_process(20)

    async def main() -> None:
        await lose(place.elector(), block)
        assert place.holder == "a"
        await asyncio.sleep(1)

    run_simulated(main)


def test_a_short_pause_of_the_process_does_not_end_leading() -> None:
    place = ElectionSetup()

    async def main() -> None:
        async with place.elector().leading():
            asyncio.get_running_loop().call_later(5.0, pause_process, 5.9)
            await asyncio.sleep(60)

    run_simulated(main)


def stopped_in_the_middle(run: bool, seed: int) -> bool:
    """Return if a body took a step after a pause that began when that step was due already."""
    place, steps = ElectionSetup(), list[float]()

    async def body() -> None:
        asyncio.get_running_loop().call_later(5.03, pause_process, 20.0)
        await asyncio.sleep(5.03)
        steps.append(loop_time())
        await wait_forever()

    async def main() -> None:
        elector = place.elector()
        with pytest.raises(LeadershipLost):
            await (elector.run(body) if run else under(elector, body))

    run_simulated(main, seed=seed)
    return steps == [pytest.approx(25.03)]


def test_run_does_not_continue_the_body_after_a_long_pause() -> None:
    assert any(stopped_in_the_middle(False, seed) for seed in range(10)), "the block doesn't"
    assert not any(stopped_in_the_middle(True, seed) for seed in range(30))


def test_run_returns_the_result_of_the_body_and_raises_its_exception() -> None:
    place = ElectionSetup()

    async def add() -> int:
        await asyncio.sleep(30)
        return 42

    async def fail() -> None:
        await asyncio.sleep(1)
        raise KeyError("mine")

    async def main() -> None:
        elector = place.elector()
        assert await elector.run(add) == 42
        with pytest.raises(KeyError, match="mine"):
            await elector.run(fail)

    run_simulated(main)


def test_check_and_guarded_writers_raise_at_once_after_a_long_pause() -> None:
    place = ElectionSetup()

    async def main() -> None:
        elector = place.elector()
        pods = elector.guarded(ClusterSource(place.cluster).api(find_built_in("pods")))
        assert pods.resource.plural == "pods"
        pod = {"metadata": {"name": "p", "namespace": "web"}}
        with pytest.raises(LeadershipLost):
            elector.check()

        async def write_late() -> None:
            elector.check()
            await pods.create(pod)
            pause_process(20)
            assert not elector.is_leader
            for write in (
                pods.create(pod),
                pods.update(pod),
                pods.update_status(pod),
                pods.patch("web/p", {}),
                pods.apply(pod, field_manager="m"),
                pods.delete("web/p"),
            ):
                with pytest.raises(LeadershipLost):
                    await write
            await wait_forever()

        assert "10 s" in str(await lose(elector, write_late))
        assert (await pods.get("web/p")).name == "p"

    run_simulated(main)
    assert place.cluster.get("pods", "p", namespace="web")


# -- reports ------------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", [ValueError, asyncio.CancelledError, GeneratorExit])
def test_new_leaders_are_reported_and_errors_of_the_hook_are_logged_and_end_nothing(
    odd: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    place, reports = ElectionSetup(), list[str]()

    def hook(leader: str) -> None:
        reports.append(leader)
        raise odd

    async def main() -> None:
        async with place.elector("a").leading():
            follower = place.elector("b", on_new_leader=hook)
            task = asyncio.create_task(under(follower, lambda: asyncio.sleep(30)))
            await asyncio.sleep(20)
        await task

    run_simulated(main)
    assert reports == ["a", "b"]
    assert "on_new_leader raised for web/controller" in caplog.text


def test_metrics_receive_the_start_and_the_end_of_leading() -> None:
    place, reports = ElectionSetup(), list[tuple[str, bool]]()

    class RecordingMetrics(Metrics):
        def leadership(self, lease: str, leads: bool) -> None:
            reports.append((lease, leads))

    async def main() -> None:
        async with place.elector(metrics=RecordingMetrics()).leading():
            assert reports == [(KEY, False), (KEY, True)]

    run_simulated(main)
    assert reports == [(KEY, False), (KEY, True), (KEY, False)]


def test_health_shows_the_state_of_the_election() -> None:
    place = ElectionSetup()

    async def main() -> None:
        elector = place.elector()
        assert state_of(elector)[0] == "idle"
        assert "LeaderElector a for web/controller idle" in repr(elector)
        place.faults.status(503)
        task = asyncio.create_task(under(elector, lambda: asyncio.sleep(15)))
        await asyncio.sleep(3)
        assert state_of(elector)[0] == "waiting"
        assert isinstance(elector.health.error, ServerFailure)
        place.faults.clear()
        await asyncio.sleep(10)
        health = elector.health
        assert (health.state, health.leader, health.error) == ("leading", "a", None)
        assert health.renewed is not None
        assert health.expires_in == pytest.approx(10 - health.renewed)
        assert "leader: a" in str(health)
        await task

    run_simulated(main)


# -- mistakes -----------------------------------------------------------------------------------


def test_control_characters_of_an_identity_are_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    place = ElectionSetup()

    async def body() -> None:
        await asyncio.sleep(1)
        place.update_lease(holderIdentity="thief\nall is well\x1b[2J", leaseTransitions=7)
        await wait_forever()

    async def main() -> None:
        elector = place.elector()
        lost = await lose(elector, body)
        for text in (
            str(lost),
            str(elector.health),
            *(each.getMessage() for each in caplog.records),
        ):
            assert text.isprintable()
        assert elector.leader == "thief\nall is well\x1b[2J"  # as it is, for programs

    run_simulated(main)


def test_writes_of_others_to_the_lease_cause_no_log_records(
    caplog: pytest.LogCaptureFixture,
) -> None:
    place = ElectionSetup()

    async def body() -> None:
        for number in range(300):
            await asyncio.sleep(0.1)
            annotation = {"metadata": {"annotations": {"seen": str(number)}}}
            place.cluster.merge_patch("leases", "controller", annotation, namespace="web")

    async def main() -> None:
        await place.elector().run(body)

    run_simulated(main)
    assert not caplog.records


class FailedRequests(Metrics):
    """The failures that metrics receive."""

    def __init__(self) -> None:
        self.failures = list[tuple[str, str, str]]()

    def failed(self, informer: str, phase: str, error: str) -> None:
        self.failures.append((informer, phase, error))


@pytest.mark.parametrize("verb", ["get", "create", "update"])
def test_a_request_that_the_server_always_rejects_is_reported_like_one_of_an_informer(
    caplog: pytest.LogCaptureFixture, verb: RequestVerb
) -> None:
    place, problems, metrics = ElectionSetup(), list[Problem](), FailedRequests()
    errors = list[Exception | None]()

    async def main() -> None:
        if verb == "update":  # of a lease that another candidate has left to expire
            other = asyncio.create_task(
                under(place.elector("b", release_on_exit=False), wait_forever)
            )
            await asyncio.sleep(20)
            other.cancel()
            await asyncio.wait({other})
            await asyncio.sleep(20)
        fault = place.faults.forbid(verb=verb, resource="leases")
        elector = place.elector(metrics=metrics, on_error=problems.append)
        candidate = asyncio.create_task(under(elector, wait_forever))
        await asyncio.sleep(20)  # a lease that wasn't released has expired
        for _ in range(40):
            await asyncio.sleep(1)
            errors.append(elector.health.error)
            assert elector.health.state == "waiting"
        fault.end()
        await asyncio.sleep(5)
        assert (elector.health.state, elector.health.error) == ("leading", None)
        candidate.cancel()
        await asyncio.wait({candidate})

    with caplog.at_level(logging.INFO, "aioinformer.election"):
        run_simulated(main)
    warnings = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert 2 <= len(warnings) <= 4, "one in 20 s"
    subject, action = "lease web/controller", "Read" if verb == "get" else verb.capitalize()
    assert all(f"{subject}: {action}Lease failed: Forb" in each.message for each in warnings)
    assert all(isinstance(each, Forbidden) for each in errors)
    assert len(problems) == len(warnings)
    assert {(each.informer, each.phase, each.cause) for each in problems} == {
        (subject, "lease", "access_denied")
    }
    assert all(each.retry_in is not None for each in problems)
    assert set(metrics.failures) == {(subject, "lease", "Forbidden")}
    assert len(metrics.failures) > 10
    recovered = [each for each in caplog.messages if "succeed again" in each]
    assert len(recovered) == 1
    assert re.fullmatch(rf"{subject}: requests succeed again after \d\d s", recovered[0])


def test_the_end_of_a_candidate_that_may_not_create_the_lease_is_no_recovery(
    caplog: pytest.LogCaptureFixture,
) -> None:
    place = ElectionSetup()

    async def main() -> None:
        place.faults.forbid(verb="create", resource="leases")
        candidate = asyncio.create_task(under(place.elector(), wait_forever))
        await asyncio.sleep(10)
        candidate.cancel()
        await asyncio.wait({candidate})

    with caplog.at_level(logging.INFO, "aioinformer.election"):
        run_simulated(main)
    (line,) = caplog.messages
    assert line.startswith("lease web/controller: CreateLease failed: Forbidden: ")


def test_a_candidate_that_has_lost_its_lease_does_not_name_itself_as_the_leader() -> None:
    place = ElectionSetup()

    async def main() -> None:
        elector = place.elector()
        async with asyncio.timeout(60):
            place.faults.status(500, verb="update")
            await lose(elector)
        assert elector.health.leader == elector.leader == ""
        candidate = asyncio.create_task(under(elector, wait_forever))
        await asyncio.sleep(1)
        assert (elector.health.state, elector.leader) == ("waiting", "")
        place.faults.clear()
        await asyncio.sleep(20)
        assert (elector.health.state, elector.leader) == ("leading", "a")
        candidate.cancel()
        await asyncio.wait({candidate})

    run_simulated(main)


def test_a_write_that_fails_again_after_a_success_is_another_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    place = ElectionSetup()

    async def body() -> None:
        for _ in range(2):
            fault = place.faults.status(500, verb="update")
            await asyncio.sleep(5)
            fault.end()
            await asyncio.sleep(5)

    with caplog.at_level(logging.WARNING, "aioinformer.election"):
        run_simulated(lambda: under(place.elector(), body))
    assert [each.getMessage().count("UpdateLease failed") for each in caplog.records] == [1, 1]


def test_a_block_is_entered_once_and_two_blocks_at_once_of_one_candidate_are_rejected() -> None:
    place = ElectionSetup()

    async def main() -> None:
        elector = place.elector()
        block = elector.leading()
        async with block:
            with pytest.raises(UsageError, match="already"):
                async with elector.leading():
                    raise AssertionError
            assert elector.is_leader
        with pytest.raises(UsageError, match=r"is over; call leading\(\) again"):
            async with block:
                raise AssertionError

    run_simulated(main)


def test_numbers_that_do_not_fit_are_named() -> None:
    place = ElectionSetup()

    async def main() -> None:
        with pytest.raises(ValueError, match=r"lease_duration \(10 s\).*renew_deadline \(10 s\)"):
            place.elector(lease_duration=10)
        with pytest.raises(ValueError, match=r"renew_deadline \(2.4 s\).*1.2 times.*\(2 s\)"):
            place.elector(renew_deadline=2.4)
        for wrong in (0, -1, math.nan, math.inf):
            with pytest.raises(ValueError, match="retry_period must be above 0"):
                place.elector(retry_period=wrong)
        with pytest.raises(ValueError, match="identity"):
            place.elector("")

    run_simulated(main)


def test_other_resources_and_async_hooks_are_rejected() -> None:
    async def hook(leader: str) -> None:
        raise AssertionError(leader)

    class Hook:
        async def __call__(self, leader: str) -> None:
            raise AssertionError(leader)

    async def main() -> None:
        source = ClusterSource(Cluster())
        with pytest.raises(UsageError, match=r"needs leases\.coordination\.k8s\.io, not pods"):
            LeaderElector(source.api(find_built_in("pods")), KEY, identity="a")
        for each in (hook, Hook()):
            with pytest.raises(TypeError, match="must not be async"):
                LeaderElector(
                    source.api(LEASES),
                    KEY,
                    identity="a",
                    on_new_leader=each,  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
                )

    run_simulated(main)


@pytest.mark.parametrize("after", range(60, 500, 20))
def test_an_answer_whose_body_is_damaged_is_a_failed_request(after: int) -> None:
    """Damage behind the metadata is found when the body is decoded, after the answer was read."""
    place = ElectionSetup()

    async def main() -> None:
        elector = place.elector()
        async with elector.leading():
            with place.faults.corrupt(verb="update", after=after):
                await asyncio.sleep(5)
            await asyncio.sleep(60)
            assert elector.is_leader

    run_simulated(main)
