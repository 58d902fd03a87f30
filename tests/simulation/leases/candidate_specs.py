"""Candidates of simulated elections: their times, clocks, and faults.

The pauses, the time that bodies take to end and the difference of the clocks together stay just
below the margin that the times of an election allow.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from aioinformer.leaderelection.state.election import ElectionTimes
from tests.simulation.leases.virtual_time import MAX_CLOCK_DRIFT


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateSpec:
    """One candidate."""

    identity: str
    times: ElectionTimes
    clock_rate: float
    """Seconds of the candidate's clock in one second."""
    date_offset: float
    """Seconds by which the candidate's date is wrong."""
    max_pause: float
    """The most seconds for which the candidate stops."""
    max_shutdown: float
    """The most seconds that the candidate's body takes to end."""
    max_term: float = 90.0
    """The most seconds for which the candidate leads."""
    gets_cut_off: bool = True
    """True if the candidate is disconnected at times."""


def draw_duel(chance: Random) -> list[CandidateSpec]:
    """Draw a candidate that is often disconnected, and one that waits for the end of its lease.

    The first one takes all the time that it may take. There are no other faults, so that a small
    mistake leads to an overlap.
    """
    times, drift = _draw_times(chance), MAX_CLOCK_DRIFT * chance.random()
    spare = 0.99 * (times.lease_duration / (1 + drift) - times.renew_deadline / (1 - drift))
    pause = max(0.0, spare) * chance.choice([0.0, 0.5, 1.0])
    ending = max(0.0, spare) - pause
    quick = ElectionTimes(lease_duration=4, renew_deadline=3, retry_period=0.4)
    return [
        CandidateSpec(
            identity="disconnected",
            times=times,
            clock_rate=1 - drift,
            date_offset=0.0,
            max_pause=pause,
            max_shutdown=ending,
        ),
        CandidateSpec(
            identity="successor",
            times=quick,
            clock_rate=1 + drift,
            date_offset=chance.uniform(-20, 20),
            max_pause=0.0,
            max_shutdown=0.0,
            max_term=5.0,
            gets_cut_off=False,
        ),
    ]


def draw_candidates(chance: Random) -> list[CandidateSpec]:
    """Draw two or three candidates whose times exclude an overlap."""
    same = chance.random() < 0.2  # they were given the same identity, by mistake
    drift = chance.choice([0.0, MAX_CLOCK_DRIFT * chance.random(), MAX_CLOCK_DRIFT])
    natures: list[CandidateSpec] = []
    for number in range(chance.choice([2, 2, 3])):
        times = chance.choice([ElectionTimes(), _draw_times(chance)])
        lease, renew = times.lease_duration / (1 + drift), times.renew_deadline / (1 - drift)
        spare = max(0.0, 0.99 * (lease - renew))
        share = chance.random()
        natures.append(
            CandidateSpec(
                identity="twin" if same else f"candidate-{number}",
                times=times,
                clock_rate=1 + drift * chance.choice([-1, 1, chance.uniform(-1, 1)]),
                date_offset=chance.choice(
                    [0.0, chance.uniform(-20, 20), chance.uniform(-9999, 9999)]
                ),
                max_pause=spare * share,
                max_shutdown=spare * (1 - share),
            )
        )
    return natures


def _draw_times(chance: Random) -> ElectionTimes:
    lease = chance.uniform(4.0, 25.0)
    renew = lease * chance.uniform(0.5, 0.85)
    retry = renew * chance.uniform(0.1, 0.4)
    return ElectionTimes(lease_duration=lease, renew_deadline=renew, retry_period=retry)
