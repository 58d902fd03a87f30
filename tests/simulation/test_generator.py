"""Plans: drawn from a seed alone, full of writes, faults and listeners, and whole in every part.

The oracle and the library agree on the objects that a filter passes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import pairwise, product
from typing import get_args

import pytest

from aioinformer import Added, KubeObject, ObjectKey, Updated
from aioinformer._core.delivery.overflow import OverflowName
from aioinformer._core.selectors.event_filter import EventFilter
from tests.core.builders import make_object
from tests.simulation.fault_generator import FAULTS
from tests.simulation.filters import filter_of, passes, shown
from tests.simulation.generator import WRITES, draw
from tests.simulation.plan import (
    Behaviour,
    Fault,
    FaultKind,
    Join,
    Leave,
    ListenerSpec,
    Merge,
    Plan,
    Put,
    Remove,
    ServerStep,
    Step,
    Visit,
)
from tests.simulation.records import Write

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


def test_some_servers_restore_a_backup_and_some_of_them_repeat_the_same_writes() -> None:
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


def test_some_resources_are_not_served_for_a_while_without_writes() -> None:
    withdrawn = 0
    for plan in plans():
        steps = [each for each in plan.steps if isinstance(each, Put | Remove | ServerStep)]
        for step, following in pairwise(steps):
            if is_action(step, "withdraw"):
                withdrawn += 1
                assert is_action(following, "serve")
                assert following.at > step.at
    assert withdrawn >= 20


# -- listeners ---------------------------------------------------------------------------------


@cache
def steps() -> list[Step]:
    return [step for plan in plans()[:100] for step in plan.steps]


@cache
def listeners() -> list[ListenerSpec]:
    return [step.listener for step in steps() if isinstance(step, Join)]


@cache
def merged() -> list[tuple[ListenerSpec, ...]]:
    return [step.listeners for step in steps() if isinstance(step, Merge)]


def test_every_overflow_rule_occurs_with_and_without_a_filter_and_a_period() -> None:
    rules = Counter((each.overflow, bool(each.passing)) for each in listeners())
    assert rules.keys() == {
        (rule, some) for rule in get_args(OverflowName) for some in (True, False)
    }
    assert {each.passing for each in listeners()} >= {"", "app=shop", "app=blog", "node=node-1"}
    assert {each.resync for each in listeners()} >= {None, 0.0, 150.0, 400.0}
    assert {each.concurrency for each in listeners()} >= {1, 3, 4}


def test_no_listener_that_never_returns_has_the_overflow_rule_block() -> None:
    assert "block" not in {each.overflow for each in listeners() if each.behaviour == "stuck"}


def test_only_streams_of_different_informers_are_merged() -> None:
    assert len(merged()) >= 20
    for first, second in merged():
        assert first.streams
        assert second.streams
        assert first.informer != second.informer


def test_the_names_of_listeners_in_a_plan_are_unique() -> None:
    for plan in plans():
        names: list[str] = []
        for step in plan.steps:
            specs: tuple[ListenerSpec, ...] = ()
            if isinstance(step, Join):
                specs = (step.listener,)
            elif isinstance(step, Merge):
                specs = step.listeners
            names += [each.name for each in specs]
        assert len(names) == len(set(names))


def test_some_factories_drain_quick_and_slow_handlers() -> None:
    visits = [step for step in steps() if isinstance(step, Visit)]
    assert {(each.drains, each.delay) for each in visits} >= {
        (drains, delay) for drains in (True, False) for delay in (0.0, 0.005, 1.0)
    }


def test_some_listeners_are_plain_functions_or_have_filters_some_of_which_raise() -> None:
    plain = Counter(each.behaviour for each in listeners() if each.plain)
    assert plain.keys() == {"quick", "raising", "cancelling", "leaves_early"}
    assert min(plain.values()) >= 3
    assert {each.changes for each in listeners()} == {"", "app", "node"}
    assert not any(each.changes and each.passing for each in listeners())
    assert sum(each.passing.endswith("!") for each in listeners()) >= 20


def test_some_factories_are_ended_by_their_handler() -> None:
    fails = Counter(step.fails for step in steps() if isinstance(step, Visit))
    assert fails.keys() == {0, 1, 3, 10}
    assert fails[0] > fails.total() / 2


def test_an_object_passes_a_filter_that_raises() -> None:
    writes = [
        Write(1, 0.0, 7, ObjectKey("web", "a"), "u", "blog", "node-1", deleted=False, value=value)
        for value in range(7)
    ]
    raised = list[KubeObject]()
    for write in writes:
        asked = filter_of("app=shop!")
        assert asked is not None
        event = Added(_stored(write))
        delivered = EventFilter(asked, lambda obj, _: raised.append(obj)).apply(event)
        assert passes("app=shop!", write) == (delivered is event)
    assert len(raised) == 1


@pytest.mark.parametrize("changes", ["app", "node"])
def test_the_oracle_and_the_predicate_of_changes_answer_the_same(changes: str) -> None:
    asked = filter_of("", changes)
    assert asked is not None
    states = [
        Write(1, 0.0, 7, ObjectKey("web", "a"), "u", app, node, deleted=False)
        for app in ("shop", "blog")
        for node in ("node-1", "node-2")
    ]
    for old, new in product(states, repeat=2):
        event = Updated(_stored(old), _stored(new))
        delivered = EventFilter(asked, _never).apply(event)
        assert (shown(changes, old) != shown(changes, new)) == (delivered is event)


@pytest.mark.parametrize("passing", ["", "app=shop", "app=blog", "node=node-1", "node=node-2"])
def test_the_oracle_and_the_filter_answer_the_same(passing: str) -> None:
    """The library's filter sees what a write stores; the oracle sees the write."""
    for app in ("shop", "blog"):
        for node in ("node-1", "node-2"):
            write = Write(1, 0.0, 7, ObjectKey("web", "a"), "u", app, node, deleted=False)
            event = Added(_stored(write))
            asked = filter_of(passing)
            delivered = EventFilter(asked, _never).apply(event) if asked else event
            assert passes(passing, write) == (delivered is event)


def _stored(write: Write) -> KubeObject:
    body = {
        "metadata": {"name": "a", "namespace": "web", "uid": "u", "labels": {"app": write.app}},
        "spec": {"nodeName": write.node, "value": write.value},
    }
    return make_object(body)


def _never(obj: KubeObject, error: BaseException) -> None:
    pytest.fail(f"the filter raised at {obj!r}: {error}")
