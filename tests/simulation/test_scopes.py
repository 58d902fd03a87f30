"""The guarantees of informers of several namespaces, which come and go, as do permissions.

10 histories here, 500 under the mark ``simulation``. Each namespace is held to the guarantees by
itself, and the listeners to those of the whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache

import pytest

from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.polling import REFUSALS
from aioinformer._core.listwatch.transitions import Phase
from tests.simulation.bugs.planted_bug import PlantedBug
from tests.simulation.bugs.scopes import BUGS, FOLLOWER_BUGS, an_optional_namespace_is_waited_for
from tests.simulation.checks.promises import judge
from tests.simulation.plan import (
    AddScope,
    Fault,
    InformerSpec,
    Join,
    ListenerSpec,
    Plan,
    Put,
    RemoveScope,
    ScopeSpec,
)
from tests.simulation.records import (
    EventDelivered,
    History,
    NamespaceWritten,
    Sample,
    ScopeClosed,
    ScopeOpened,
)
from tests.simulation.runner import Row, examine, first_violation, rows_taken, show_rows, simulate
from tests.simulation.scoped_generator import NAME, connection, draw_followed, draw_scoped

FEW = range(10)
MANY = range(1000, 1500)
SEARCHED = range(40)
"""Histories in one of which a bug must show."""

REFUSED = {
    *((Phase.WATCHLIST, each) for each in REFUSALS),
    *((Phase.LIST, each) for each in (Outcome.ACCESS_DENIED, Outcome.POLLED)),
    (Phase.PAGE, Outcome.POLLED),
    (Phase.WATCH, Outcome.WATCH_REFUSED),
    (Phase.WATCH, Outcome.ACCESS_DENIED),
}
"""The rows that only roles lead to which forbid watches, or everything."""


@cache
def simulated(seed: int) -> History:
    """Return the history of a seed."""
    return simulate(draw_scoped(seed))


def hold_in(seeds: Iterable[int]) -> Counter[Row]:
    """Judge the histories; return how often they took each row."""
    rows = Counter[Row]()
    for seed in seeds:
        history = simulated(seed) if seed in FEW else simulate(draw_scoped(seed))
        judge(history)
        rows += rows_taken([history])
    return rows


def test_the_promises_hold_for_each_namespace_in_a_few_histories() -> None:
    hold_in(FEW)


@pytest.mark.simulation
@pytest.mark.parametrize("first", MANY[::100])
def test_the_promises_hold_in_many_histories_and_roles_cause_each_row_of_the_error_table(
    first: int,
) -> None:
    taken = hold_in(range(first, first + 100))
    assert taken.keys() >= REFUSED, show_rows(taken)


@pytest.mark.parametrize(
    "seeds", [FEW[:3], pytest.param(FEW[3:], marks=pytest.mark.simulation)], ids=str
)
def test_the_promises_hold_for_namespaces_that_are_followed(seeds: range) -> None:
    hold_in_followed(seeds)


@pytest.mark.simulation
@pytest.mark.parametrize("first", MANY[::100])
def test_the_promises_hold_for_namespaces_that_are_followed_in_many_more(first: int) -> None:
    hold_in_followed(range(first, first + 100))


def hold_in_followed(seeds: range) -> None:
    opened = changed = 0
    for seed in seeds:
        history = simulate(draw_followed(seed))
        judge(history)
        opened += len(history.of(ScopeOpened))
        changed += len(history.of(NamespaceWritten))
    assert changed > opened > 3 * len(seeds)


def test_namespaces_come_and_go_and_roles_allow_lists_only() -> None:
    plans = [draw_scoped(seed) for seed in SEARCHED]
    assert len({plan.steps for plan in plans}) == len(plans)
    steps = [step for plan in plans for step in plan.steps]
    assert sum(isinstance(step, AddScope) for step in steps) >= 50
    assert sum(isinstance(step, RemoveScope) for step in steps) >= 40
    histories = [simulated(seed) for seed in FEW]
    assert _count(histories, ScopeOpened) > _count(histories, ScopeClosed) >= 10
    events = [each for history in histories for each in history.of(EventDelivered)]
    assert sum(each.note == "scope_removed" for each in events) >= 50
    samples = [each for history in histories for each in history.of(Sample)]
    assert sum(each.condition == "polling" for each in samples) >= 50


def _count(histories: Iterable[History], kind: type[ScopeOpened | ScopeClosed]) -> int:
    return sum(len(history.of(kind)) for history in histories)


def test_a_wait_for_an_optional_namespace_that_is_always_forbidden_is_a_violation() -> None:
    plan = Plan(
        seed=1,
        informers=(
            InformerSpec(name=NAME, scopes=(ScopeSpec("web"), ScopeSpec("ops", optional=True))),
        ),
        steps=(
            Put(-1.0, "web", "a", "shop", "node-1", 1),
            Fault(at=-1.0, kind="status", amount=403, lasting=900.0, target=connection("ops")),
            Join(0.0, ListenerSpec(name="all", informer=NAME)),
        ),
        settle=-100.0,  # everything is judged while the namespace is refused
    )
    assert examine(plan) is None
    with an_optional_namespace_is_waited_for.planted():
        violation = examine(plan)
    assert violation is not None
    assert violation.promise == 9


@pytest.mark.parametrize("bug", [BUGS[1], FOLLOWER_BUGS[0]], ids=str)
def test_a_planted_bug_is_caught(bug: PlantedBug) -> None:
    find_bug(bug)


@pytest.mark.simulation
@pytest.mark.parametrize("bug", [*BUGS, *FOLLOWER_BUGS], ids=str)
def test_every_planted_bug_is_caught(bug: PlantedBug) -> None:
    find_bug(bug)


def find_bug(bug: PlantedBug) -> None:
    """Fail unless a history shows the bug as a violation of its promise."""
    draw = draw_followed if bug in FOLLOWER_BUGS else draw_scoped
    with bug.planted():
        found = first_violation(map(draw, SEARCHED))
    assert found is not None
    assert found.promise in bug.promises, found
