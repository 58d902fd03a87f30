"""The requests of one candidate: those that fail, those that are late, and the waits between."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from aioinformer import ObjectKey
from aioinformer.errors import NotFound, ProtocolError, RequestTimedOut
from aioinformer.leaderelection.campaign import Campaign
from aioinformer.leaderelection.state.election import Election, ElectionTimes
from aioinformer.leaderelection.suspend_clock import SuspendAwareClock
from aioinformer.testing import ClusterSource
from tests.leaderelection.electors import (
    KEY,
    LEASES,
    ElectionSetup,
    loop_time,
    run_simulated,
)
from tests.runtime.virtual_waits import until

LOG = "aioinformer.election"


class Candidate:
    """A campaign, and the phases after each of its changes."""

    def __init__(self, setup: ElectionSetup, identity: str = "a") -> None:
        key = ObjectKey.parse(KEY)
        clock = SuspendAwareClock(asyncio.get_running_loop().time)
        self.election = Election(key, identity=identity, times=ElectionTimes())
        leases = ClusterSource(setup.cluster, setup.faults).api(LEASES)
        self.campaign = Campaign(self.election, leases, key, clock)
        self.phases = list[str]()
        self.ended = False
        self._clock = clock

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        self.election.seek(self._clock.now)
        task = asyncio.create_task(self.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def run(self) -> None:
        await self.campaign.run(lambda: self.phases.append(self.election.phase))
        self.ended = True

    def release(self) -> None:
        self.election.release(self._clock.now)
        self.campaign.wake()

    @property
    def error(self) -> Exception | None:
        return self.campaign.error


def levels(caplog: pytest.LogCaptureFixture, text: str) -> list[str]:
    """Return the levels of the lines with this text."""
    return [each.levelname for each in caplog.records if text in each.getMessage()]


def test_a_read_that_succeeds_does_not_make_the_failure_of_a_write_new(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A role without the right to create Leases fails at every second request, for ever."""
    caplog.set_level(logging.DEBUG, logger=LOG)

    async def main() -> None:
        setup = ElectionSetup()
        candidate = Candidate(setup)
        with setup.faults.forbid(verb="create"):
            async with candidate.running():
                await asyncio.sleep(19)

    run_simulated(main)
    found = levels(caplog, "CreateLease failed: Forbidden: ")
    assert found[0] == "WARNING"
    assert len(found) > 4
    assert set(found[1:]) == {"DEBUG"}


def test_a_candidate_that_was_slower_than_another_logs_no_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger=LOG)

    async def main() -> None:
        setup = ElectionSetup()
        candidate = Candidate(setup)
        async with candidate.running():
            with setup.faults.status(409, verb="create"):
                await until(lambda: candidate.error is not None)

    run_simulated(main)
    assert levels(caplog, "CreateLease failed: Conflict: ") == ["INFO"]


def test_a_write_of_a_lease_that_does_not_exist_is_a_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        setup = ElectionSetup()
        candidate = Candidate(setup)
        async with candidate.running():
            await until(lambda: candidate.election.phase == "leading")
            with setup.faults.status(404, verb="update"):
                await until(lambda: isinstance(candidate.error, NotFound))
                assert "error=NotFound(" in repr(candidate.campaign)
            await until(lambda: candidate.error is None)
            assert repr(candidate.campaign) == f"<Campaign {candidate.election!r} error=None>"

    run_simulated(main)
    assert levels(caplog, "UpdateLease failed: NotFound: ") == ["WARNING"]


def test_an_answer_that_is_late_counts_as_none_and_says_after_how_long() -> None:
    async def main() -> None:
        setup = ElectionSetup()
        candidate = Candidate(setup)
        with setup.faults.latency(float("inf"), verb="get"):
            async with candidate.running():
                await until(lambda: candidate.error is not None)
                assert isinstance(candidate.error, RequestTimedOut)
                assert str(candidate.error).startswith("no answer within ")
                assert candidate.error.phase == "write"
                assert isinstance(candidate.error.__cause__, TimeoutError)

    run_simulated(main)


def test_an_answer_that_is_no_lease_is_asked_for_again() -> None:
    async def main() -> None:
        setup = ElectionSetup()
        setup.cluster.create(LEASES, {"metadata": {"name": "controller"}}, namespace="web")
        candidate = Candidate(setup)
        with setup.faults.html_page(verb="get"):
            async with candidate.running():
                await until(lambda: candidate.error is not None)
                assert isinstance(candidate.error, ProtocolError)
                setup.faults.clear()
                await until(lambda: candidate.election.phase == "leading")

    run_simulated(main)


def test_a_server_that_names_a_delay_is_not_asked_before() -> None:
    async def main() -> None:
        setup = ElectionSetup()
        candidate = Candidate(setup)
        with setup.faults.status(429, retry_after=25, verb="get", times=1):
            async with candidate.running():
                await until(lambda: candidate.election.phase == "leading")
                assert 25 <= loop_time() < 32

    run_simulated(main)


def test_a_campaign_is_woken_from_its_wait_and_ends_with_the_election() -> None:
    async def main() -> None:
        setup = ElectionSetup()
        candidate = Candidate(setup)
        async with candidate.running():
            await until(lambda: candidate.election.phase == "leading")
            start = loop_time()
            candidate.release()
            await until(lambda: candidate.ended)
            assert loop_time() - start < 0.2  # the next renewal would be two seconds away
            assert setup.holder == ""
            assert candidate.phases[-1] == "ended"

    run_simulated(main)


def test_a_campaign_that_is_woken_without_a_reason_waits_on() -> None:
    async def main() -> None:
        setup = ElectionSetup()
        candidate = Candidate(setup)
        async with candidate.running():
            await until(lambda: candidate.election.phase == "leading")
            before = setup.lease_version
            candidate.campaign.wake()
            await asyncio.sleep(1)
            assert setup.lease_version == before
            await asyncio.sleep(1.1)
            assert setup.lease_version != before

    run_simulated(main)
