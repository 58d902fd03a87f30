"""Several electors at once in simulated time: at most one body runs.

The rules are held through far worse in ``tests/simulation/leases``; this is about the
tasks, timers and scopes around them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from random import Random

import anyio
import pytest

from aioinformer import Fencing, LeaderElector
from aioinformer.errors import LeadershipLost
from aioinformer.testing import Faults
from tests.leaderelection.electors import ElectionSetup, loop_time, run_simulated

SECONDS = 300.0
HISTORIES = 8


class History:
    """Three candidates, each behind a network of its own."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.place = ElectionSetup()
        self.inside = 0
        self.terms: list[Fencing] = []
        self.seen: Counter[str] = Counter()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for identity in ("a", "b", "c"):
                faults = Faults()
                group.create_task(self._live(self.place.elector(identity, faults=faults)))
                group.create_task(self._trouble(faults))
        async with asyncio.timeout(20), self.place.elector("d").leading():
            pass  # no candidate holds it, or its lease expires soon

    async def _live(self, elector: LeaderElector) -> None:
        while loop_time() < SECONDS:
            with suppress(LeadershipLost, KeyError, TimeoutError):
                async with asyncio.timeout(self.chance.uniform(5, 120)):
                    await self._lead(elector)
                    continue
            self.seen[elector.health.state] += 1
            await asyncio.sleep(self.chance.uniform(0, 3))

    async def _lead(self, elector: LeaderElector) -> None:
        if self.chance.random() < 0.5:
            await elector.run(lambda: self._body(elector))
            return
        async with elector.leading():
            await self._body(elector)

    async def _body(self, elector: LeaderElector) -> None:
        fencing = elector.fencing
        assert fencing is not None
        assert not self.terms or fencing > self.terms[-1]
        self.terms.append(fencing)
        self.inside += 1
        assert self.inside == 1, self.terms
        try:
            await asyncio.sleep(self.chance.uniform(0, 60))
            if self.chance.random() < 0.3:
                raise KeyError("a body that fails")
        finally:
            try:
                with anyio.CancelScope(shield=True):  # asyncio's time-outs get through it
                    await asyncio.sleep(self.chance.uniform(0, 4.9))
            finally:
                self.inside -= 1

    async def _trouble(self, faults: Faults) -> None:
        while loop_time() < SECONDS:
            await asyncio.sleep(self.chance.uniform(1, 30))
            match self.chance.randrange(6):
                case 0:
                    faults.stall()
                case 1:
                    faults.refuse()
                case 2:
                    faults.status(503)
                case 3:
                    faults.reset(after=10)  # the write takes effect, and the answer is lost
                case 4:
                    faults.latency(self.chance.uniform(0, 6))
                case _:
                    faults.status(429, retry_after=self.chance.randrange(1, 30))
            await asyncio.sleep(self.chance.uniform(1, 20))
            faults.clear()


def test_at_most_one_body_runs_with_any_network_faults() -> None:
    terms, seen = 0, Counter[str]()
    for seed in range(HISTORIES):
        history = History(seed)
        run_simulated(history.run, seed=seed)
        terms, seen = terms + len(history.terms), seen + history.seen
    assert terms > 4 * HISTORIES
    assert seen["lost"] > HISTORIES / 2
    assert seen["idle"] > HISTORIES


@pytest.mark.simulation
@pytest.mark.parametrize("start", range(1000, 2000, 100))
def test_at_most_one_body_runs_in_a_thousand_histories(start: int) -> None:
    for seed in range(start, start + 100):
        run_simulated(History(seed).run, seed=seed)
