"""Plans that are drawn from seeds have every kind of fault and listener, and many writes."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import get_args

from aioinformer._core.delivery.overflow import OverflowName
from tests.simulation.generator import draw
from tests.simulation.plan import Behaviour, Fault, FaultKind, Join, Merge, Plan, Put, Remove


@cache
def plans() -> list[Plan]:
    """Return the plans that the tests look at, drawn at the first use."""
    return [draw(seed) for seed in range(200)]


def test_each_plan_has_500_writes_and_10_faults() -> None:
    for plan in plans():
        assert sum(isinstance(step, Put | Remove) for step in plan.steps) >= 500
        assert plan.faults >= 10


def test_every_kind_of_fault_and_listener_occurs() -> None:
    steps = [step for plan in plans() for step in plan.steps]
    kinds = Counter(step.kind for step in steps if isinstance(step, Fault))
    assert kinds.keys() == set(get_args(FaultKind))
    listeners = [step.listener for step in steps if isinstance(step, Join)]
    behaviours = Counter(each.behaviour for each in listeners)
    behaviours["merged"] = sum(isinstance(step, Merge) for step in steps)
    assert behaviours.keys() == set(get_args(Behaviour))
    assert {each.overflow for each in listeners} == set(get_args(OverflowName))
    assert min(*kinds.values(), *behaviours.values()) >= 20
