"""No shard with two owners, and none without one for long: groups in virtual time.

20 short histories run by default, 200 and the planted bugs under the mark ``simulation``. For more
histories, set the environment variable ``SHARD_HISTORIES``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import pytest

from tests.simulation.bugs.planted_bug import PlantedBug
from tests.simulation.bugs.shards import BUGS
from tests.simulation.leases.shard_world import BrokenPromise, ShardWorld

FEW = range(20)
MANY = range(10_000, 10_000 + int(os.environ.get("SHARD_HISTORIES", "200")))
SEARCHED = range(300)
"""Histories among which a bug must be seen."""


def hold_in(seeds: Iterable[int], *, small: bool) -> None:
    takeovers = 0
    for seed in seeds:
        world = ShardWorld(seed, small=small)
        try:
            world.run()
        except BrokenPromise as error:
            raise BrokenPromise(f"seed {seed}, {world.options}: {error}") from error
        takeovers += world.takeovers
    # Shards do change hands.
    assert takeovers > len(list(seeds))


def test_no_shard_has_two_owners_or_none_for_long_in_short_histories() -> None:
    hold_in(FEW, small=True)


@pytest.mark.simulation
@pytest.mark.parametrize("start", MANY[::20])
def test_no_shard_has_two_owners_or_none_for_long_with_up_to_100_members(start: int) -> None:
    hold_in(range(start, start + 20), small=False)


@pytest.mark.simulation
@pytest.mark.parametrize("bug", BUGS, ids=str)
def test_a_group_with_a_bug_is_caught(bug: PlantedBug) -> None:
    with bug.planted():
        assert any(map(breaks_a_promise, SEARCHED))


def test_a_history_is_the_same_for_the_same_seed() -> None:
    first, second = ShardWorld(3), ShardWorld(3)
    first.run()
    second.run()

    assert first.moves > 0
    assert (first.moves, first.now, first.last_owner) == (
        second.moves,
        second.now,
        second.last_owner,
    )


def breaks_a_promise(seed: int) -> bool:
    """Return True if a promise is broken in the history of a seed."""
    try:
        ShardWorld(seed).run()
    except BrokenPromise:
        return True
    return False
