"""The checks find planted bugs, one at a time, each as a violation of its promise."""

from __future__ import annotations

import pytest

from tests.simulation import listener_mutants, mutants
from tests.simulation.checks.violation import Violation
from tests.simulation.generator import draw
from tests.simulation.mutants import with_reflector, with_state_machine
from tests.simulation.plan import (
    Fault,
    InformerSpec,
    Join,
    ListenerSpec,
    Plan,
    Put,
)
from tests.simulation.probes import Parts
from tests.simulation.runner import examine

SEEDS = (*range(8), 12, 25, 39, 52, *range(8, 60))
"""Histories in one of which a bug must show: not every one has the listener or fault it needs. A
few that show what others don't come early."""


def caught(parts: Parts) -> Violation | None:
    """Return the first violation in the histories."""
    return next(filter(None, (examine(draw(seed), parts) for seed in SEEDS)), None)


BUGS = [
    pytest.param(Parts(rewrite=mutants.dropping_events), {1, 3}, id="an event is lost"),
    pytest.param(Parts(rewrite=mutants.repeating_events), {2, 3}, id="an event comes again"),
    pytest.param(Parts(mailbox=mutants.DropsOnOverflow), {1, 2}, id="overflow drops"),
    pytest.param(Parts(mailbox=mutants.OverfillsMailbox), {8}, id="mailboxes grow"),
    pytest.param(Parts(mailbox=mutants.QueuesEveryResync), {8}, id="resyncs pile up"),
    pytest.param(Parts(mailbox=mutants.ForgetsAReplay), {1, 2, 5}, id="a replay has gaps"),
    pytest.param(Parts(mailbox=mutants.RepeatsAReplay), {5}, id="a replay has doubles"),
    pytest.param(
        Parts(mailbox=mutants.DeliversUnchanged),
        {4},
        id="unchanged objects are delivered",
    ),
    pytest.param(Parts(mailbox=mutants.SyncedEarly), {6}, id="a listener is synced early"),
    pytest.param(Parts(plant=mutants.synced_from_the_start), {6}, id="an informer is synced early"),
    pytest.param(Parts(plant=mutants.lose_index_entries), {3}, id="an index loses entries"),
    pytest.param(Parts(informer=mutants.HidesErrors), {7}, id="errors aren't counted"),
    # A call whose timeout ends while it waits for the others never begins.
    pytest.param(
        Parts(informer=mutants.SerializesHandlers), {2, 7}, id="handlers wait for each other"
    ),
    pytest.param(
        Parts(informer=listener_mutants.IgnoresKeyOrder), {2, 6}, id="a busy key is called for"
    ),
    pytest.param(
        Parts(informer=listener_mutants.NeverTimesOut), {7}, id="calls outlast their time"
    ),
    pytest.param(
        Parts(informer=listener_mutants.StopsAfterCancelledError),
        {1, 9},
        id="a cancelled call is the end",
    ),
    pytest.param(
        Parts(informer=listener_mutants.ClosesWithoutDraining),
        {9},
        id="aclose doesn't wait for calls",
    ),
    pytest.param(
        Parts(plant=listener_mutants.hide_overflows), {8}, id="an overflow is not reported"
    ),
    pytest.param(
        Parts(mailbox=listener_mutants.OverflowsEarly),
        {8},
        id="an overflow that is none",
    ),
    pytest.param(
        Parts(mailbox=listener_mutants.DropsFilteredDeletions),
        {1, 2},
        id="leaving is not delivered",
    ),
    pytest.param(Parts(mailbox=listener_mutants.IgnoresFilters), {2}, id="filters are ignored"),
    pytest.param(
        Parts(informer=listener_mutants.IgnoresListenerResync),
        {2, 9},
        id="one resync period for all",
    ),
    pytest.param(
        Parts(informer=listener_mutants.LosesEventOnCancellation),
        {1, 2, 5},
        id="a cancelled wait loses an event",
    ),
    pytest.param(
        Parts(plant=listener_mutants.drop_inline_handlers),
        {1, 5, 7, 9},
        id="a round is cut short",
    ),
    pytest.param(
        Parts(informer=listener_mutants.StopsAfterSelfCancellation),
        {1, 9},
        id="a cancelled task takes its handler",
    ),
    pytest.param(
        Parts(informer=listener_mutants.IgnoresChangePredicates),
        {2},
        id="every change is delivered",
    ),
    pytest.param(
        Parts(informer=listener_mutants.DropsSecondChanges),
        {1, 2},
        id="some changes aren't delivered",
    ),
    pytest.param(
        Parts(informer=listener_mutants.RejectsOnFilterError), {1, 2, 5, 6, 7}, id="a filter hides"
    ),
    pytest.param(
        Parts(factory=listener_mutants.IgnoresFailFast), {7}, id="a fatal failure is none"
    ),
    pytest.param(Parts(factory=listener_mutants.NeverDrains), {9}, id="nothing is drained"),
    pytest.param(Parts(informer=mutants.LeavesATask), {9}, id="a task is left"),
    pytest.param(Parts(informer=mutants.NeverWakes), {9}, id="a wait doesn't end"),
    pytest.param(Parts(plant=mutants.hide_failures), {10}, id="failures aren't shown"),
    pytest.param(
        Parts(plant=mutants.skip_idle_timeout_problems), {10}, id="the error hook isn't called"
    ),
    pytest.param(Parts(options=mutants.HASTY), {11}, id="there is no backoff"),
    pytest.param(
        Parts(options=mutants.FORGETFUL),
        {11},
        id="a storm is many first times",
    ),
    pytest.param(
        Parts(profile=mutants.ForgetfulServerProfile),
        {9, 11},
        id="a fallback is not remembered",
    ),
    pytest.param(
        Parts(plant=with_state_machine(mutants.SkipsFreshnessCheck)),
        {1, 2, 3},
        id="a silent watch is only taken up again",
    ),
    pytest.param(
        Parts(plant=with_state_machine(mutants.MissesRewinds)),
        {1, 2, 3},
        id="a rewind is not announced",
    ),
    pytest.param(
        Parts(plant=mutants.compare_by_version),
        {1, 2, 3},
        id="versions are compared after a rewind",
    ),
    pytest.param(
        Parts(options=mutants.NO_IDLE_TIMEOUT),
        {1, 9},
        id="an idle timer never fires",
    ),
    pytest.param(
        Parts(plant=with_reflector(mutants.KeepsPartialInitialList)),
        {1, 2, 3},
        id="a partial state is kept",
    ),
    pytest.param(
        Parts(plant=with_reflector(mutants.ResumesFromTheLastObject)),
        {1, 2, 3, 10},
        id="an initial addition is resumed from",
    ),
    pytest.param(
        Parts(plant=with_reflector(mutants.AcceptsAnyEndBookmark)),
        {1, 2, 3, 6, 9, 10},
        id="any bookmark ends an initial state",
    ),
    pytest.param(
        Parts(plant=with_reflector(mutants.SkipsTransformOfLists)),
        {1, 2, 3},
        id="lists aren't transformed",
    ),
]
"""Parts with a planted bug, and the promises that it may be noticed by."""


@pytest.mark.parametrize(("parts", "promises"), BUGS[::7])
def test_a_planted_bug_is_caught(parts: Parts, promises: set[int]) -> None:
    is_caught(parts, promises)


@pytest.mark.simulation
@pytest.mark.parametrize(("parts", "promises"), BUGS)
def test_every_planted_bug_is_caught(parts: Parts, promises: set[int]) -> None:
    is_caught(parts, promises)


def is_caught(parts: Parts, promises: set[int]) -> None:
    violation = caught(parts)
    assert violation is not None
    assert violation.promise in promises, violation


def test_an_end_mark_that_is_waited_for_is_noticed() -> None:
    """Few histories have it: this one is made for it."""
    quick = ListenerSpec(name="all", informer="everything")
    plan = Plan(
        seed=1,
        informers=(InformerSpec(name="everything"),),
        steps=(
            Put(-1.0, "web", "a", "shop", "node-1", 1),
            Fault(at=-1.0, kind="endless", lasting=300.0),
            Join(0.0, quick),
        ),
    )
    assert examine(plan) is None
    violation = examine(plan, Parts(options=mutants.NO_WATCHLIST_TIMEOUT))
    assert violation is not None
    assert violation.promise == 9


def test_a_violation_names_the_promise_the_key_the_time_and_the_evidence() -> None:
    violation = caught(Parts(plant=mutants.lose_index_entries))
    assert violation is not None
    assert str(violation).startswith("promise 3 (the cache leads and is a true past state) was")
    assert f"{violation.time:.6f} s of {violation.key}: the index of" in str(violation)
    assert "shows: " in str(violation)
