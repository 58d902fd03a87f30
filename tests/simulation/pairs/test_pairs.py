"""Each feature with each other one in histories of faults: 24 here, 2,000 under ``simulation``.

The table of pairs in the guide to contributing says how many histories each pair has.
"""

from __future__ import annotations

import pytest

from aioinformer.testing.simulation import SimulationFailed
from tests.simulation.bugs.delivery import filters_are_ignored
from tests.simulation.bugs.pairs import (
    a_cleanup_is_skipped,
    a_restored_state_is_delivered_again,
    some_objects_are_not_reconciled,
)
from tests.simulation.bugs.planted_bug import PlantedBug
from tests.simulation.checks.violation import Violation
from tests.simulation.pairs.features import (
    EXCLUDED,
    FEATURES,
    all_pairs,
    closure,
    selections,
)
from tests.simulation.pairs.history import hold_with
from tests.simulation.pairs.table import FEW, HISTORIES, PAGE, drawn, render

BLOCK = 50
"""Histories in one test of the mark."""
LEAST = 200
"""Histories of each pair."""
SEARCHED = range(10)
"""Histories in one of which a bug must show."""


def hold_in(seeds: range) -> None:
    for seed in seeds:
        hold_with(selections(HISTORIES)[seed], [seed])


@pytest.mark.parametrize("first", range(0, FEW, 6))
def test_pairs_of_features_keep_the_promises_in_a_few_histories(first: int) -> None:
    hold_in(range(first, first + 6))


@pytest.mark.simulation
@pytest.mark.parametrize("first", range(0, HISTORIES, BLOCK))
def test_pairs_of_features_keep_the_promises_in_many_histories(first: int) -> None:
    hold_in(range(first, first + BLOCK))


@pytest.mark.parametrize(
    ("bug", "names"),
    [
        (a_cleanup_is_skipped, ("finalizer", "threads")),
        (some_objects_are_not_reconciled, ("operator", "shard")),
        (a_restored_state_is_delivered_again, ("durable", "list only")),
        (filters_are_ignored, ("filter", "transform")),
    ],
    ids=str,
)
def test_a_planted_bug_is_caught(bug: PlantedBug, names: tuple[str, ...]) -> None:
    with bug.planted(), pytest.raises(SimulationFailed) as failed:
        hold_with(closure(frozenset(names)), SEARCHED, attempts=0)
    violation = failed.value.__cause__
    assert isinstance(violation, Violation)
    assert violation.promise in bug.promises


def test_each_pair_is_drawn_often_or_has_a_reason() -> None:
    times, few = drawn(HISTORIES), drawn(FEW)
    assert times.keys() == set(all_pairs())
    assert min(times.values()) >= LEAST
    assert len(few) >= 0.9 * len(times)
    assert {name for pair in EXCLUDED for name in pair} <= FEATURES.keys()


def test_the_guide_has_the_table_of_pairs() -> None:
    assert render() in PAGE.read_text(), "write it: python -m tests.simulation.pairs"
