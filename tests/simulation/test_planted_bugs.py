"""The checks find planted bugs, one at a time, each as a violation of its promise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulation.bugs import delivery, reflector
from tests.simulation.bugs.delivery import a_draining_handler_loses_its_last_event
from tests.simulation.bugs.planted_bug import PlantedBug
from tests.simulation.bugs.reflector import (
    a_watch_follows_refused_connections,
    an_end_mark_is_no_bookmark,
    an_end_mark_is_waited_for,
    an_outage_outlasts_its_end,
    pages_have_no_bound,
)
from tests.simulation.checks.violation import Violation
from tests.simulation.generator import draw
from tests.simulation.plan import (
    Fault,
    InformerSpec,
    Join,
    ListenerSpec,
    Plan,
    Put,
    ServerStep,
    Step,
    Visit,
)
from tests.simulation.runner import examine, first_violation

BUGS = [*delivery.BUGS, *reflector.BUGS]
SEEDS = (23, *range(8), 12, 25, 39, 52, *range(8, 60))
"""Histories in one of which a bug must show: not every one has the listener or fault it needs. A
few that show what others don't come early."""


def caught(bug: PlantedBug) -> Violation:
    """Return the first violation in the histories with a bug."""
    with bug.planted():
        violation = first_violation(map(draw, SEEDS))
    assert violation is not None, f"no history shows that {bug}"
    return violation


@pytest.mark.parametrize("bug", BUGS[4:30:15], ids=str)
def test_a_planted_bug_is_caught(bug: PlantedBug) -> None:
    violation = caught(bug)
    assert violation.promise in bug.promises, violation


@pytest.mark.simulation
@pytest.mark.parametrize("bug", BUGS, ids=str)
def test_every_planted_bug_is_caught(bug: PlantedBug) -> None:
    violation = caught(bug)
    assert violation.promise in bug.promises, violation


def plan_of(*steps: Step, watch_list: bool = True, page_size: int = 0) -> Plan:
    """Return the plan of a small history: some objects, one informer, and these steps."""
    everything = InformerSpec(name="everything", watch_list=watch_list, page_size=page_size)
    first = [Put(-1.0, "web", f"obj-{number}", "shop", "node-1", number) for number in range(3)]
    join = Join(0.0, ListenerSpec(name="all", informer="everything"))
    ordered = sorted((*first, join, *steps), key=lambda step: step.at)
    return Plan(seed=1, informers=(everything,), steps=tuple(ordered))


def writes(*moments: float) -> list[Put]:
    """Return changes of one object."""
    return [Put(at, "web", "obj-0", "shop", "node-2", int(at)) for at in moments]


def drained_visits() -> list[Step]:
    """Return factories that are left in the step in which an event arrives, of many writes."""
    visit = Visit(0.0, "", 2.0, drains=True, concurrency=3, leaves_with_event=True)
    visits = [replace(visit, at=5.0 * number, name=f"visitor-{number}") for number in range(10)]
    changes = [Put(float(at), "db", f"obj-{at % 3}", "shop", "node-1", at) for at in range(60)]
    return [*visits, *changes]


def restored_in_an_outage() -> list[Step]:
    """Return the steps of a server that is restored while it refuses connections."""
    back_up, restore = ServerStep(10.0, "back_up"), ServerStep(202.0, "restore")
    outage = Fault(at=200.0, kind="outage", lasting=5.0)
    return [back_up, *writes(20, 30, 40, 50, 60), outage, restore]


MADE: list[tuple[PlantedBug, Plan, int]] = [
    (an_end_mark_is_waited_for, plan_of(Fault(at=-1.0, kind="endless", lasting=300.0)), 9),
    (a_draining_handler_loses_its_last_event, plan_of(*drained_visits()), 9),
    (
        pages_have_no_bound,
        plan_of(
            Fault(at=100.0, kind="latency", lasting=100.0, amount=20),
            Fault(at=100.0, kind="endless_pages", lasting=27.0),
            Fault(at=100.1, kind="error_event", amount=410),
            watch_list=False,
            page_size=1,
        ),
        8,
    ),
    (
        an_outage_outlasts_its_end,
        plan_of(
            Fault(at=200.0, kind="outage", lasting=120.0),
            *writes(210, 220),
            Fault(at=230.0, kind="compact"),
        ),
        9,
    ),
    (a_watch_follows_refused_connections, plan_of(*restored_in_an_outage()), 1),
    (an_end_mark_is_no_bookmark, plan_of(Fault(at=5.0, kind="stall"), *writes(5.1, 6)), 9),
]
"""Bugs that few histories show, each with one that is made for it, and the promise."""


@pytest.mark.parametrize(
    ("bug", "plan", "promise"),
    [
        pytest.param(*made, marks=pytest.mark.simulation)
        if made[0] is pages_have_no_bound
        else made
        for made in MADE
    ],
    ids=lambda each: str(each) if isinstance(each, PlantedBug) else "",
)
def test_a_bug_is_caught_by_a_history_that_is_made_for_it(
    bug: PlantedBug, plan: Plan, promise: int
) -> None:
    assert examine(plan) is None
    with bug.planted():
        violation = examine(plan)
    assert violation is not None
    assert violation.promise == promise, violation
