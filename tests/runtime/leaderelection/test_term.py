"""One term, on a machine that goes to sleep."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from aioinformer import ObjectKey
from aioinformer._core.leaderelection.election import Election, ElectionTimes
from aioinformer._runtime.leaderelection.campaign import Campaign
from aioinformer._runtime.leaderelection.clock import ElapsedClock
from aioinformer._runtime.leaderelection.term import Leadership
from aioinformer.errors import LeadershipLost
from aioinformer.testing import ClusterSource
from tests.runtime.elections.candidates import KEY, LEASES, Place, now, simulated


class Laptop:
    """A machine whose loop's clock stands still while its lid is closed."""

    def __init__(self, place: Place) -> None:
        self.asleep = 0.0
        self._leases = ClusterSource(place.cluster, place.faults).writer(LEASES)

    def term(self) -> Leadership:
        """To lead on it."""
        key = ObjectKey.parse(KEY)
        clock = ElapsedClock(asyncio.get_running_loop().time, lambda: self.asleep)
        election = Election(key, identity="laptop", times=ElectionTimes())
        return Leadership(
            Campaign(election, self._leases, key, clock),
            clock,
            name=KEY,
            releases=True,
            begun=lambda _: None,
            heard=lambda: None,
            left=lambda: None,
        )

    def close_for(self, seconds: float) -> None:
        """Sleep. Others' clocks go on, and so does the world's."""
        self.asleep += seconds


async def lead(term: Leadership, body: Callable[[], asyncio.Future[None]]) -> None:
    async with term:
        await body()


def test_who_slept_for_too_long_ends_within_a_moment_and_writes_nothing_first() -> None:
    place = Place()
    laptop = Laptop(place)
    versions = list[str]()

    def close() -> None:
        versions.append(place.version)
        laptop.close_for(60)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(4.1, close)
        with pytest.raises(LeadershipLost):
            await lead(laptop.term(), loop.create_future)
        assert now() < 4.1 + 0.6, "a tenth of what it has to end"
        assert versions == [place.version]

    simulated(main)


def test_a_nap_that_was_short_enough_is_nothing() -> None:
    place = Place()
    laptop = Laptop(place)

    async def main() -> None:
        asyncio.get_running_loop().call_later(4.1, laptop.close_for, 6)
        async with laptop.term():
            await asyncio.sleep(30)

    simulated(main)
    assert place.holder == ""


def test_the_repr_says_how_far_it_is() -> None:
    laptop = Laptop(Place())

    async def main() -> None:
        term = laptop.term()
        assert repr(term) == "<Leadership of web/controller idle None>"
        async with term:
            assert repr(term) == "<Leadership of web/controller leading <Eviction not wanted>>"

    simulated(main)
