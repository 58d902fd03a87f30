"""Plans: drawn from a seed alone, full of writes and faults, and whole in every part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import get_args

from tests.simulation.generator import FAULTS, WRITES, draw
from tests.simulation.plan import (
    Behaviour,
    Fault,
    FaultKind,
    Join,
    Leave,
    Merge,
    Plan,
    Put,
    Remove,
    ServerStep,
    Step,
)

PLAN_COUNT = 200


@cache
def plans() -> list[Plan]:
    """Return the plans that all tests here look at, drawn at the first use."""
    return [draw(seed) for seed in range(PLAN_COUNT)]


def is_action(step: Step, action: str) -> bool:
    return isinstance(step, ServerStep) and step.action == action


def test_a_seed_gives_the_same_plan_every_time() -> None:
    assert [draw(seed) for seed in range(5)] == plans()[:5]
    assert len({plan.steps for plan in plans()}) == len(plans())


def test_each_plan_has_500_writes_and_10_faults() -> None:
    assert (WRITES, FAULTS) == (500, 10)
    for plan in plans():
        writes = [step for step in plan.steps if isinstance(step, Put | Remove)]
        assert len(writes) >= 500
        assert plan.faults >= 10


def test_every_write_changes_something() -> None:
    for plan in plans():
        there: dict[tuple[str, str], int] = {}
        kept = there
        for step in plan.steps:
            if is_action(step, "back_up"):
                kept = dict(there)
            elif is_action(step, "restore"):
                there = kept
            elif is_action(step, "withdraw"):
                there.clear()
            if isinstance(step, Put):
                assert there.get((step.namespace, step.name)) != step.value
                there[step.namespace, step.name] = step.value
            elif isinstance(step, Remove):
                del there[step.namespace, step.name]


def test_steps_are_in_order_of_time_and_writes_in_order_of_their_making() -> None:
    for plan in plans():
        times = [step.at for step in plan.steps]
        assert times == sorted(times)
        assert plan.ends >= times[-1] + plan.settle


def test_every_kind_of_fault_and_listener_occurs() -> None:
    steps = [step for plan in plans() for step in plan.steps]
    kinds = Counter(step.kind for step in steps if isinstance(step, Fault))
    assert kinds.keys() == set(get_args(FaultKind))
    behaviours = Counter(step.listener.behaviour for step in steps if isinstance(step, Join))
    behaviours["merged"] = sum(isinstance(step, Merge) for step in steps)
    assert behaviours.keys() == set(get_args(Behaviour))
    assert min(*kinds.values(), *behaviours.values()) >= 20
    assert sum(isinstance(step, Leave) for step in steps) >= 20


def test_every_part_of_a_plan_is_a_plan() -> None:
    plan = plans()[0]
    part = plan.keep([7, 3, 5])
    assert part.steps == (plan.steps[3], plan.steps[5], plan.steps[7])
    assert (part.seed, part.informers) == (plan.seed, plan.informers)
    assert plan.keep([]).ends == plan.settle


def test_some_servers_go_back_to_a_backup_and_some_of_them_live_through_the_same_again() -> None:
    rewound = [plan for plan in plans() if any(is_action(step, "restore") for step in plan.steps)]
    assert 20 <= len(rewound) <= 80
    again = 0
    for plan in rewound:
        (backup,) = [at for at, step in enumerate(plan.steps) if is_action(step, "back_up")]
        (restore,) = [at for at, step in enumerate(plan.steps) if is_action(step, "restore")]
        assert backup < restore
        again += _names(plan.steps[backup:restore])[:20] == _names(plan.steps[restore:])[:20]
    assert 5 <= again < len(rewound)


def _names(steps: Sequence[Step]) -> list[str]:
    return [step.name for step in steps if isinstance(step, Put | Remove)]


def test_some_resources_arent_served_for_a_while_in_which_nothing_is_written() -> None:
    withdrawn = 0
    for plan in plans():
        steps = [each for each in plan.steps if isinstance(each, Put | Remove | ServerStep)]
        for step, following in pairwise(steps):
            if is_action(step, "withdraw"):
                withdrawn += 1
                assert is_action(following, "serve")
                assert following.at > step.at
    assert withdrawn >= 20
