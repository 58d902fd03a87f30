"""One term, on a machine that goes to sleep."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from aioinformer import ObjectKey
from aioinformer.errors import LeadershipLost
from aioinformer.leaderelection.campaign import Campaign
from aioinformer.leaderelection.state.election import Election, ElectionTimes
from aioinformer.leaderelection.suspend_clock import SuspendAwareClock
from aioinformer.leaderelection.term import LeadershipTerm
from aioinformer.testing import ClusterSource
from tests.leaderelection.electors import (
    KEY,
    LEASES,
    ElectionSetup,
    loop_time,
    run_simulated,
)


class Laptop:
    """A machine whose loop's clock stands still while its lid is closed."""

    def __init__(self, place: ElectionSetup) -> None:
        self.asleep = 0.0
        self._leases = ClusterSource(place.cluster, place.faults).api(LEASES)

    def term(self) -> LeadershipTerm:
        """To lead on it."""
        key = ObjectKey.parse(KEY)
        clock = SuspendAwareClock(asyncio.get_running_loop().time, lambda: self.asleep)
        election = Election(key, identity="laptop", times=ElectionTimes())
        return LeadershipTerm(
            Campaign(election, self._leases, key, clock),
            clock,
            name=KEY,
            release_on_exit=True,
            on_enter=lambda _: None,
            on_change=lambda: None,
            on_exit=lambda: None,
        )

    def close_for(self, seconds: float) -> None:
        """Sleep. Others' clocks go on, and so does the world's."""
        self.asleep += seconds


async def lead(term: LeadershipTerm, body: Callable[[], asyncio.Future[None]]) -> None:
    async with term:
        await body()


def test_a_leader_that_was_suspended_too_long_ends_before_its_next_write() -> None:
    place = ElectionSetup()
    laptop = Laptop(place)
    versions = list[str]()

    def close() -> None:
        versions.append(place.lease_version)
        laptop.close_for(60)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(4.1, close)
        with pytest.raises(LeadershipLost):
            await lead(laptop.term(), loop.create_future)
        assert loop_time() < 4.1 + 0.6, "a tenth of what it has to end"
        assert versions == [place.lease_version]

    run_simulated(main)


def test_a_short_suspension_does_not_end_leading() -> None:
    place = ElectionSetup()
    laptop = Laptop(place)

    async def main() -> None:
        asyncio.get_running_loop().call_later(4.1, laptop.close_for, 6)
        async with laptop.term():
            await asyncio.sleep(30)

    run_simulated(main)
    assert place.holder == ""


def test_the_repr_of_a_term_shows_its_state() -> None:
    laptop = Laptop(ElectionSetup())

    async def main() -> None:
        term = laptop.term()
        assert repr(term) == "<LeadershipTerm of web/controller idle None>"
        async with term:
            assert (
                repr(term)
                == "<LeadershipTerm of web/controller leading <BodyCanceller not cancelled>>"
            )

    run_simulated(main)
