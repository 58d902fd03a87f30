"""The watchdog: ends a wait for bytes that will not come, and only that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

import pytest

from aioinformer._core.listwatch.idle_timeout import IdleTimeout, LivenessPolicy
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


def test_it_ends_a_wait_that_is_too_long_and_says_so() -> None:
    async def main() -> None:
        async with Watchdog() as watchdog:
            watchdog.guard(a_minute())
            await asyncio.sleep(1000)
        assert watchdog.expired
        assert time() == pytest.approx(75.0 + RECHECK_DELAY)

    in_virtual_time(main)


def test_whatever_comes_puts_it_off_without_a_new_timer() -> None:
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


def test_what_comes_at_the_last_moment_counts() -> None:
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


def test_a_wait_that_ends_by_itself_is_left_alone() -> None:
    async def main() -> None:
        async with Watchdog() as watchdog:
            watchdog.guard(a_minute())
            await asyncio.sleep(74)
        await asyncio.sleep(100)
        assert not watchdog.expired

    in_virtual_time(main)


def test_before_it_guards_anything_it_waits_for_ever() -> None:
    async def main() -> None:
        async with Watchdog() as watchdog:
            await asyncio.sleep(10_000)
        assert not watchdog.expired

    in_virtual_time(main)


def test_an_end_that_comes_into_being_later_is_noticed() -> None:
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


def test_errors_pass_through() -> None:
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


def test_a_process_that_hung_gives_what_came_meanwhile_a_second_to_be_read() -> None:
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


def test_its_repr_says_what_it_does() -> None:
    async def main() -> None:
        watchdog = Watchdog()
        assert repr(watchdog) == "<Watchdog inactive None>"
        async with watchdog:
            watchdog.guard(a_minute())
            assert repr(watchdog) == "<Watchdog active <IdleTimeout of a watch 75 s>>"

    in_virtual_time(main)
