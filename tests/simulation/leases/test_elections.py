"""Never two leaders at once: 40 elections here, 4,000 under their own mark.

And with one bug planted, each of the rules is seen to be needed.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.simulation.bugs.elections import BUGS
from tests.simulation.bugs.planted_bug import PlantedBug
from tests.simulation.leases.election_world import ElectionWorld, LeadershipOverlap

FEW = range(40)
MANY = range(10_000, 14_000)
SEARCHED = range(100)
"""Histories among which a bug must be seen."""


def hold_in(seeds: Iterable[int]) -> None:
    terms = losses = releases = 0
    for seed in seeds:
        world = ElectionWorld(seed)
        world.run()
        assert world.running, f"seed {seed}: no candidate leads at the end: {world.candidates}"
        terms, losses = terms + len(world.terms), losses + world.losses
        releases += world.releases
    # They are not only the ones in which nothing happens.
    assert terms > 3 * len(list(seeds))
    assert losses > len(list(seeds)) / 2
    assert releases > len(list(seeds)) / 2


def test_no_two_candidates_lead_at_once_within_the_permitted_pauses_and_clock_rates() -> None:
    hold_in(FEW)


@pytest.mark.simulation
@pytest.mark.parametrize("start", MANY[::500])
def test_no_two_lead_at_once_in_thousands_of_elections(start: int) -> None:
    hold_in(range(start, start + 500))


@pytest.mark.parametrize("bug", BUGS, ids=str)
def test_an_election_with_a_bug_is_caught(bug: PlantedBug) -> None:
    with bug.planted():
        assert any(map(overlaps, SEARCHED))


def test_an_election_is_the_same_for_the_same_seed() -> None:
    first, second = ElectionWorld(7), ElectionWorld(7)
    first.run()
    second.run()

    assert first.terms
    assert first.terms == second.terms


def overlaps(seed: int) -> bool:
    """Return True if two lead at once in the election of a seed."""
    try:
        ElectionWorld(seed).run()
    except LeadershipOverlap:
        return True
    return False
