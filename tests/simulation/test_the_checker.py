"""The checker catches what it is there for: planted bugs, one at a time, each as what it is."""

from __future__ import annotations

import pytest

from aioinformer.testing.simulation import Parts, Violation, draw, examine
from tests.simulation import mutants
from tests.simulation.mutants import with_cursor, with_mailbox, with_reflector

SEEDS = range(60)
"""Histories in one of which a bug must show: not every one has the listener or fault it needs."""


def caught(parts: Parts) -> Violation | None:
    """What the first of the histories that shows anything shows."""
    return next(filter(None, (examine(draw(seed), parts) for seed in SEEDS)), None)


@pytest.mark.parametrize(
    ("parts", "promises"),
    [
        pytest.param(Parts(network=mutants.DropsAnEvent), {1, 3}, id="an event is lost"),
        pytest.param(Parts(network=mutants.RepeatsAnEvent), {2, 3}, id="an event comes again"),
        pytest.param(
            Parts(informer=with_mailbox(mutants.DropsOnOverflow)), {1, 2}, id="overflow drops"
        ),
        pytest.param(Parts(informer=with_mailbox(mutants.HoldsTooMuch)), {8}, id="mailboxes grow"),
        pytest.param(
            Parts(informer=with_mailbox(mutants.PilesUpResyncs)), {8}, id="resyncs pile up"
        ),
        pytest.param(
            Parts(informer=with_mailbox(mutants.ForgetsAReplay)), {1, 2, 5}, id="a replay has gaps"
        ),
        pytest.param(
            Parts(informer=with_mailbox(mutants.RepeatsAReplay)), {5}, id="a replay has doubles"
        ),
        pytest.param(
            Parts(informer=with_mailbox(mutants.TellsTheUnchanged)), {4}, id="unchanged is told"
        ),
        pytest.param(
            Parts(informer=with_mailbox(mutants.SyncedEarly)), {6}, id="a listener is synced early"
        ),
        pytest.param(Parts(informer=mutants.SaysItIsSynced), {6}, id="an informer is synced early"),
        pytest.param(Parts(informer=mutants.LosesIndexEntries), {3}, id="an index loses entries"),
        pytest.param(Parts(informer=mutants.HidesErrors), {7}, id="errors aren't counted"),
        pytest.param(Parts(informer=mutants.OneAtATime), {7}, id="handlers wait for each other"),
        pytest.param(Parts(informer=mutants.LeavesATask), {9}, id="a task is left"),
        pytest.param(Parts(informer=mutants.NeverWakes), {9}, id="a wait doesn't end"),
        pytest.param(Parts(informer=mutants.HidesFailures), {10}, id="failures aren't shown"),
        pytest.param(Parts(informer=mutants.DeafHook), {10}, id="the error hook isn't told"),
        pytest.param(Parts(informer=with_cursor(mutants.Hammers)), {11}, id="there is no backoff"),
        pytest.param(
            Parts(informer=with_cursor(mutants.AsksTwice)), {11}, id="a storm is many first times"
        ),
        pytest.param(
            Parts(informer=with_cursor(mutants.ForgetsTheFallback)),
            {9, 11},
            id="a fallback is not remembered",
        ),
        pytest.param(
            Parts(informer=with_cursor(mutants.NeverAsksHowNew)),
            {1, 2, 3},
            id="a silent watch is only taken up again",
        ),
        pytest.param(
            Parts(informer=with_cursor(mutants.GoesBackUnannounced)),
            {1, 2, 3},
            id="a rewind is not announced",
        ),
        pytest.param(
            Parts(informer=with_reflector(mutants.ComparesByVersion)),
            {1, 2, 3},
            id="versions are compared after a rewind",
        ),
        pytest.param(Parts(informer=mutants.NeverTires), {1, 9}, id="an idle timer never fires"),
        pytest.param(Parts(informer=mutants.WaitsForTheMark), {9}, id="an end mark is waited for"),
        pytest.param(
            Parts(informer=with_reflector(mutants.KeepsAPartialState)),
            {1, 2, 3},
            id="a partial state is kept",
        ),
        pytest.param(
            Parts(informer=with_reflector(mutants.AdoptsAnAddition)),
            {1, 2, 3, 10},
            id="an initial addition is resumed from",
        ),
        pytest.param(
            Parts(informer=with_reflector(mutants.AcceptsAnyMark)),
            {1, 2, 3, 6, 10},
            id="any bookmark ends an initial state",
        ),
    ],
)
def test_a_planted_bug_is_caught(parts: Parts, promises: set[int]) -> None:
    violation = caught(parts)
    assert violation is not None
    assert violation.promise in promises, violation


def test_a_violation_names_the_promise_the_key_the_time_and_the_evidence() -> None:
    violation = caught(Parts(informer=mutants.LosesIndexEntries))
    assert violation is not None
    assert str(violation).startswith("promise 3 (the cache leads and is a true past state) was")
    assert f"{violation.time:.6f} s of {violation.key}: the index of" in str(violation)
    assert "shows: " in str(violation)
