"""The public state of an elector."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer import ElectionHealth, ObjectKey
from aioinformer.errors import ConnectionFailed
from aioinformer.leaderelection.campaign import Campaign
from aioinformer.leaderelection.health import ElectionStatus
from aioinformer.leaderelection.state.election import Election, ElectionTimes
from aioinformer.leaderelection.suspend_clock import SuspendAwareClock
from aioinformer.testing import ClusterSource
from tests.leaderelection.electors import (
    KEY,
    LEASES,
    ElectionSetup,
    pause_process,
    run_simulated,
)
from tests.runtime.virtual_waits import until


def health(
    *,
    leader: str = "b",
    error: Exception | None = None,
    renewed: float | None = None,
    leads: bool = False,
) -> ElectionHealth:
    return ElectionHealth(
        state="leading" if leads else "waiting",
        since=12.34,
        leader=leader,
        error=error,
        renewed=renewed,
        expires_in=8.0 if leads else None,
    )


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (health(), "waiting for 12.3 s, leader: b"),
        (health(leader=""), "waiting for 12.3 s, leader: none"),
        (health(leads=True, renewed=1.5), "leading for 12.3 s, leader: b, renewed 1.5 s ago"),
        (health(renewed=99.0), "waiting for 12.3 s, leader: b"),
        (
            health(error=ConnectionFailed("refused")),
            "waiting for 12.3 s, leader: b, last error: ConnectionFailed: refused",
        ),
        (health(leader="b\nERROR nobody"), "waiting for 12.3 s, leader: b ERROR nobody"),
    ],
)
def test_the_text_names_the_state_the_leader_and_the_last_error_in_one_line(
    shown: ElectionHealth, text: str
) -> None:
    assert str(shown) == text


def test_the_status_follows_the_election_from_idle_to_the_loss_of_the_lease() -> None:
    async def main() -> None:
        setup, key = ElectionSetup(), ObjectKey.parse(KEY)
        clock = SuspendAwareClock(asyncio.get_running_loop().time)
        election = Election(key, identity="a", times=ElectionTimes())
        leases = ClusterSource(setup.cluster, setup.faults).api(LEASES)
        campaign = Campaign(election, leases, key, clock)
        status = ElectionStatus(campaign, clock)
        assert repr(status) == "<ElectionStatus idle since 0.000 s>"
        await asyncio.sleep(3)
        idle = status.health
        assert (idle.state, idle.since, idle.renewed, idle.expires_in) == ("idle", 3.0, None, None)

        election.seek(clock.now)
        task = asyncio.create_task(campaign.run(status.update))
        await until(lambda: status.state == "leading")
        began = clock.now - status.health.since
        await asyncio.sleep(5)
        leading = status.health
        assert (leading.leader, round(leading.since - (clock.now - began), 6)) == ("a", 0)
        assert leading.renewed is not None
        assert leading.expires_in is not None
        assert round(leading.renewed + leading.expires_in, 6) == 10.0

        pause_process(60)  # no task has noticed yet
        lost = status.health
        assert (lost.state, lost.since, lost.expires_in) == ("lost", 0.0, None)
        await asyncio.wait({task})

    run_simulated(main)
