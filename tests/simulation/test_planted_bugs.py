"""The checks find planted bugs, one at a time, each as a violation of its promise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aioinformer import Added
from aioinformer._core.delivery.mailbox import Mailbox
from tests.core.builders import make_object
from tests.simulation.checks.violation import Violation
from tests.simulation.generator import draw
from tests.simulation.plan import Fault, InformerSpec, Join, ListenerSpec, Plan, Put, Step, Visit
from tests.simulation.planted_bug import Original, PlantedBug, planted_bug
from tests.simulation.planted_bugs import (
    BUGS,
    a_draining_handler_loses_its_last_event,
    an_end_mark_is_waited_for,
    an_index_loses_entries,
)
from tests.simulation.runner import examine

SEEDS = (*range(8), 12, 25, 39, 52, *range(8, 60))
"""Histories in one of which a bug must show: not every one has the listener or fault it needs. A
few that show what others don't come early."""


def caught(bug: PlantedBug) -> Violation:
    """Return the first violation in the histories with a bug."""
    with bug.planted():
        for seed in SEEDS:
            if (violation := examine(draw(seed))) is not None:
                return violation
    pytest.fail(f"no history shows that {bug}")


@pytest.mark.parametrize("bug", BUGS[4::5], ids=str)
def test_a_planted_bug_is_caught(bug: PlantedBug) -> None:
    violation = caught(bug)
    assert violation.promise in bug.promises, violation


@pytest.mark.simulation
@pytest.mark.parametrize("bug", BUGS, ids=str)
def test_every_planted_bug_is_caught(bug: PlantedBug) -> None:
    violation = caught(bug)
    assert violation.promise in bug.promises, violation


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
    with an_end_mark_is_waited_for.planted():
        violation = examine(plan)
    assert violation is not None
    assert violation.promise == 9


def test_an_event_that_a_draining_handler_loses_is_noticed() -> None:
    """It is lost if the handler is closed in the step in which its event arrives."""
    visit = Visit(0.0, "", 2.0, drains=True, concurrency=3, leaves_with_event=True)
    visits = [replace(visit, at=5.0 * number, name=f"visitor-{number}") for number in range(10)]
    writes = [Put(float(at), "db", f"obj-{at % 3}", "shop", "node-1", at) for at in range(60)]
    both: list[Step] = [*visits, *writes]
    steps = sorted(both, key=lambda step: step.at)
    plan = Plan(seed=1, informers=(InformerSpec(name="everything"),), steps=tuple(steps))
    assert examine(plan) is None
    with a_draining_handler_loses_its_last_event.planted():
        violation = examine(plan)
    assert violation is not None
    assert violation.promise == 9


def test_a_violation_names_the_promise_the_key_the_time_and_the_evidence() -> None:
    violation = caught(an_index_loses_entries)
    assert str(violation).startswith("promise 3 (the cache leads and is a true past state) was")
    assert f"{violation.time:.6f} s of {violation.key}: the index of" in str(violation)
    assert "Sample informer=" in str(violation)


def test_a_bug_ends_with_its_block_and_needs_a_method_that_exists() -> None:
    before = vars(Mailbox)["pop"]

    @planted_bug(Mailbox, "pop")
    def nothing_is_popped(_: Original, box: Mailbox) -> None:
        return None

    box = Mailbox(holds=lambda _: True)
    box.put([Added(make_object({"metadata": {"name": "a"}}))])
    with nothing_is_popped.planted():
        assert box.pop() is None
    assert vars(Mailbox)["pop"] is before
    assert box.pending == 1
    renamed = nothing_is_popped.also(Mailbox, "a_method_of_the_past")(lambda: None)
    with pytest.raises(KeyError, match="a_method_of_the_past"), renamed.planted():
        pass
    assert vars(Mailbox)["pop"] is before
