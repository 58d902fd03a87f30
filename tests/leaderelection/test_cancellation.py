"""The cancellation of a body, on loops of each kind."""

from __future__ import annotations

import asyncio
import time

import anyio
import pytest

from aioinformer import LeaderElector
from aioinformer.errors import LeadershipLost
from aioinformer.leaderelection.cancellation import BodyCanceller
from aioinformer.testing import Cluster, ClusterSource
from tests.leaderelection.electors import KEY, LEASES

pytestmark = pytest.mark.filterwarnings(
    "ignore:Overriding the .event_loop_policy. fixture",
    "ignore:.*EventLoopPolicy. is deprecated:DeprecationWarning",  # from Python 3.14 on
)


@pytest.fixture(params=["plain", "uvloop"])
def event_loop_policy(request: pytest.FixtureRequest) -> asyncio.AbstractEventLoopPolicy:
    if request.param == "uvloop":
        uvloop = pytest.importorskip("uvloop")
        policy: asyncio.AbstractEventLoopPolicy = uvloop.EventLoopPolicy()
        return policy
    return asyncio.DefaultEventLoopPolicy()


async def evicted(*, cancelled: bool = False) -> tuple[bool, BaseException | None]:
    """Return if another source cancels the task, and the exception of a cancelled body."""
    canceller = BodyCanceller()
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    loop.call_soon(canceller.cancel, "enough")
    if cancelled:
        loop.call_soon(task.cancel)
    canceller.enter()
    error: BaseException | None = None
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError as caught:
        error = caught
    return canceller.leave(), error


async def test_a_cancelled_body_does_not_affect_the_task_outside() -> None:
    outside, error = await evicted()
    assert isinstance(error, asyncio.CancelledError)
    assert not outside
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()
    await asyncio.sleep(0)  # and no cancellation comes later


async def test_a_cancellation_from_outside_is_reported_too() -> None:
    outside, _ = await asyncio.create_task(evicted(cancelled=True))
    assert outside


async def test_a_cancelled_scope_around_the_body_is_reported_too() -> None:
    with anyio.CancelScope() as scope:
        asyncio.get_running_loop().call_soon(scope.cancel)
        outside, _ = await evicted()
        assert outside
        await asyncio.sleep(3600)
    assert scope.cancelled_caught


async def test_a_body_that_cancels_itself_is_cancelled_at_its_next_await() -> None:
    canceller = BodyCanceller()
    canceller.enter()
    canceller.cancel("enough")
    assert "cancelled" in repr(canceller)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.sleep(3600)
    assert not canceller.leave()


async def test_a_late_cancellation_prevents_the_step_that_is_due() -> None:
    canceller, loop = BodyCanceller(), asyncio.get_running_loop()
    wait = loop.create_future()
    loop.call_soon(wait.set_result, None)
    loop.call_soon(lambda: canceller.cancel("enough", late=True))
    canceller.enter()
    with pytest.raises(asyncio.CancelledError):
        await wait
    assert not canceller.leave()
    await asyncio.sleep(0)


async def test_a_late_cancellation_reaches_into_a_shielded_scope() -> None:
    canceller, loop = BodyCanceller(), asyncio.get_running_loop()
    loop.call_soon(lambda: canceller.cancel("enough", late=True))
    canceller.enter()
    with pytest.raises(asyncio.CancelledError), anyio.CancelScope(shield=True):
        await asyncio.sleep(3600)
    assert not canceller.leave()
    await asyncio.sleep(0)


async def test_a_body_that_has_ended_is_not_cancelled_later() -> None:
    canceller = BodyCanceller()
    canceller.enter()
    canceller.cancel("enough")
    assert not canceller.leave()
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def test_a_body_takes_no_step_after_its_process_was_stopped_for_too_long() -> None:
    """A timer that is due when the loop goes on, beside those of the election, by a real clock."""
    source = ClusterSource(Cluster())
    elector = LeaderElector(
        source.api(LEASES),
        KEY,
        identity="a",
        lease_duration=0.32,
        renew_deadline=0.2,
        retry_period=0.08,
    )
    steps = list[str]()

    async def body() -> None:
        # The stop begins in the next turn of the loop, so long before the timer is due.
        asyncio.get_running_loop().call_soon(time.sleep, 0.28)
        await asyncio.sleep(0.08)
        steps.append("too late")

    async def lead() -> None:
        async with elector.leading():
            await body()

    with pytest.raises(LeadershipLost):
        await lead()
    assert not steps
