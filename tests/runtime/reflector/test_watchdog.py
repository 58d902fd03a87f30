"""The watchdog: ends a wait for bytes that will not come, and only that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

import pytest

from aioinformer._core.listwatch.liveness import IdleTimeout, LivenessPolicy
from aioinformer._core.listwatch.server_profile import ServerProfile
from aioinformer._runtime.reflector.watchdog import RECHECK_DELAY, Watchdog
from aioinformer.testing.simulation.loop import SimulatedLoop, run


def in_virtual_time(main: Callable[[], Coroutine[None, None, None]]) -> None:
    run(main(), seed=0)


def time() -> float:
    return asyncio.get_running_loop().time()


def a_minute() -> IdleTimeout:
    """Silence of 75 s is too long."""
    return IdleTimeout(
        LivenessPolicy(),
        ServerProfile(bookmark_interval=60.0),
        now=time(),
        timeout=600,
        initial=False,
    )


def test_a_watchdog_ends_a_wait_that_is_too_long_and_is_expired() -> None:
    async def main() -> None:
        async with Watchdog() as watchdog:
            watchdog.guard(a_minute())
            await asyncio.sleep(1000)
        assert watchdog.expired
        assert time() == pytest.approx(75.0 + RECHECK_DELAY)

    in_virtual_time(main)


def test_received_data_postpones_the_end_of_the_wait() -> None:
    async def main() -> None:
        async with Watchdog() as watchdog:
            idle_timeout = a_minute()
            watchdog.guard(idle_timeout)
            for _ in range(50):
                await asyncio.sleep(10)
                idle_timeout.last_data = time()
            await asyncio.sleep(1000)
        assert watchdog.expired
        assert time() == pytest.approx(575.0 + RECHECK_DELAY)

    in_virtual_time(main)


def test_data_at_the_last_moment_postpones_the_end_of_the_wait() -> None:
    """It may have come before, and the loop was busy."""

    async def main() -> None:
        async with Watchdog() as watchdog:
            idle_timeout = a_minute()
            watchdog.guard(idle_timeout)
            await asyncio.sleep(75 + RECHECK_DELAY / 2)
            idle_timeout.last_data = time()
            await asyncio.sleep(60)
        assert not watchdog.expired

    in_virtual_time(main)


@pytest.mark.parametrize("seed", range(20))
def test_data_that_was_received_before_the_last_check_prevents_the_cancellation(seed: int) -> None:
    """The data arrives with the last check: either it counts, or the task doesn't receive it."""

    async def main() -> None:
        received, idle_timeout = False, a_minute()
        async with Watchdog() as watchdog:
            watchdog.guard(idle_timeout)
            loop = asyncio.get_running_loop()
            data = loop.create_future()
            loop.call_later(75 + RECHECK_DELAY, data.set_result, None)
            await data
            received, idle_timeout.last_data = True, time()
            await asyncio.sleep(60)
        assert watchdog.expired == (not received)

    run(main(), seed=seed)


async def test_a_cancellation_from_outside_goes_on_beside_that_of_the_watchdog() -> None:
    loop = asyncio.get_running_loop()
    idle_timeout = IdleTimeout(
        LivenessPolicy(), ServerProfile(), now=loop.time() - 1e6, timeout=600, initial=False
    )

    async def wait() -> None:
        async with Watchdog() as watchdog:
            watchdog.guard(idle_timeout)
            await asyncio.sleep(3600)

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_wait_that_ends_in_time_does_not_expire() -> None:
    async def main() -> None:
        async with Watchdog() as watchdog:
            watchdog.guard(a_minute())
            await asyncio.sleep(74)
        await asyncio.sleep(100)
        assert not watchdog.expired

    in_virtual_time(main)


def test_a_watchdog_without_an_idle_timeout_waits_for_ever() -> None:
    async def main() -> None:
        async with Watchdog() as watchdog:
            await asyncio.sleep(10_000)
        assert not watchdog.expired

    in_virtual_time(main)


def test_a_deadline_that_is_set_by_a_later_bookmark_ends_the_wait() -> None:
    """The first bookmark of a resource makes silence mean something."""

    async def main() -> None:
        profile = ServerProfile()
        async with Watchdog() as watchdog:
            idle_timeout = IdleTimeout(
                LivenessPolicy(), profile, now=time(), timeout=600, initial=False
            )
            watchdog.guard(idle_timeout)
            await asyncio.sleep(60)
            idle_timeout.last_data = time()
            idle_timeout.record_bookmark(time())
            await asyncio.sleep(1000)
        assert time() == pytest.approx(135.0 + RECHECK_DELAY)

    in_virtual_time(main)


def test_a_watchdog_raises_the_errors_of_its_body() -> None:
    async def main() -> None:
        async def guarded() -> None:
            async with Watchdog() as watchdog:
                watchdog.guard(a_minute())
                raise ValueError("mine")

        with pytest.raises(ValueError, match="mine"):
            await guarded()

    in_virtual_time(main)


def test_a_cancellation_from_outside_passes_through() -> None:
    async def guarded() -> None:
        async with Watchdog() as watchdog:
            watchdog.guard(a_minute())
            await asyncio.sleep(1000)

    async def main() -> None:
        task = asyncio.create_task(guarded())
        await asyncio.sleep(10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time() == 10.0

    in_virtual_time(main)


class Suspending(SimulatedLoop):
    """A loop on a machine that may sleep: a laptop that is shut, a step that takes minutes."""

    def suspend(self, seconds: float) -> None:
        self._now += seconds


def test_a_process_that_was_suspended_has_a_second_to_read_received_data() -> None:
    """It was this process that was silent, not the server."""

    async def main() -> bool:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Suspending)
        read = loop.create_future()
        async with Watchdog() as watchdog:
            idle_timeout = a_minute()
            watchdog.guard(idle_timeout)
            loop.suspend(200.0)
            loop.call_later(0.05, read.set_result, None)
            await read
            idle_timeout.last_data = time()
        return watchdog.expired

    with asyncio.Runner(loop_factory=lambda: Suspending(seed=0)) as runner:
        assert not runner.run(main())


def test_the_repr_of_a_watchdog_shows_its_state() -> None:
    async def main() -> None:
        watchdog = Watchdog()
        assert repr(watchdog) == "<Watchdog inactive None>"
        async with watchdog:
            watchdog.guard(a_minute())
            assert repr(watchdog) == "<Watchdog active <IdleTimeout of a watch 75 s>>"

    in_virtual_time(main)
