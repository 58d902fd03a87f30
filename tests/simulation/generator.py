"""Draw a plan from a seed: informers, listeners, factories and writes.

**Writes.** At least 500, each of which changes something, in bursts with long pauses. In a quarter
of the plans the server is restored from a backup: late, so that the versions that it assigns anew
reach those of before only when there was time to notice. In half of these plans the server then
goes through the same changes with other values, so that one version means two states of one object.
In some of the other plans the resource is not served for a while, and in some the content of all
objects changes without a write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import TypeAlias

from aioinformer._core.delivery.overflow import OverflowName
from tests.simulation.fault_generator import draw_endless_pages, draw_faults, draw_outage
from tests.simulation.plan import (
    NAMESPACES,
    SHORT_PAGE,
    SPAN,
    Behaviour,
    InformerSpec,
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


def draw(seed: int) -> Plan:
    """Return the plan of a seed."""
    chance = Random(seed)
    informers = tuple(_shaped(Random(f"{seed} shapes"), _draw_informers(chance)))
    names = [each.name for each in informers]
    raising_index = any(each.raising_index or each.transform == "refuses" for each in informers)
    writes = draw_writes(chance, raising_index=raising_index)
    moments = [write.at for write in writes if isinstance(write, Put | Remove)]
    steps: list[Step] = [
        *writes,
        *draw_faults(chance, names, moments),
        *draw_listeners(chance, names, moments),
        *draw_visits(chance, moments),
    ]
    steps += _draw_redefinition(Random(f"{seed} redefinition"), steps)
    steps += _draw_drained_visit(Random(f"{seed} drained"), moments)
    pages = Random(f"{seed} pages")
    steps += draw_endless_pages(pages, informers[0], writes, first=WRITES // 5)
    steps += draw_outage(Random(f"{seed} outage"), writes)
    ordered = sorted(steps, key=lambda step: step.at)
    plan = Plan(
        seed=seed, informers=informers, steps=tuple(vary(Random(f"{seed} variety"), ordered))
    )
    return with_server(chance, plan, costs=(0.0, 0.002, 0.01, 0.01))


def with_server(chance: Random, plan: Plan, *, costs: Sequence[float]) -> Plan:
    """Draw the server of a plan, and the time that looking at the clock takes."""
    return replace(
        plan,
        custom=chance.random() < 0.25,
        window=chance.choice((60, 1000)),
        watch_buffer=chance.choice((40, 1000)),
        watch_list=chance.random() < 0.85,
        cost=chance.choice(costs),
    )


# -- informers ---------------------------------------------------------------------------------


def _draw_informers(chance: Random) -> tuple[InformerSpec, ...]:
    def resync() -> float:
        return chance.choice((0.0, 0.0, 150.0, 300.0))

    def page_size() -> int:
        return chance.choice((0, 0, SHORT_PAGE, SHORT_PAGE, 25))

    def watch_list() -> bool:
        return chance.random() < 0.6

    return (
        InformerSpec(
            name="everything",
            resync=resync(),
            page_size=page_size(),
            high_mark=10_000,
            watch_list=watch_list(),
        ),
        InformerSpec(
            name="web",
            namespace="web",
            page_size=page_size(),
            high_mark=chance.choice((8, 64)),
            raising_index=chance.random() < 0.3,
            watch_list=watch_list(),
        ),
        InformerSpec(
            name="shop",
            app="shop",
            resync=resync(),
            page_size=page_size(),
            high_mark=64,
            watch_list=watch_list(),
        ),
    )


def _shaped(chance: Random, informers: Iterable[InformerSpec]) -> Iterator[InformerSpec]:
    """Give some informers a transform. Objects are rejected by it or by the index function."""
    for each in informers:
        if each.raising_index:
            refuses = chance.random() < 0.5
            yield replace(each, raising_index=False, transform="refuses") if refuses else each
        else:
            yield replace(each, transform="cuts") if chance.random() < 0.2 else each


# -- listeners ---------------------------------------------------------------------------------

_DELAYS: dict[Behaviour, tuple[float, ...]] = {
    "slow": (0.001, 0.05, 0.3),
    "parallel": (0.01, 0.2, 0.6),
    "timed": (0.0, 0.05),
    "stream": (0.0, 0.0, 0.1),
    "interrupted": (0.0, 0.0, 0.02),
    "merged": (0.0, 0.0, 0.02),
}
_CONCURRENCY: dict[Behaviour, tuple[int, ...]] = {
    "parallel": (4,),
    "timed": (1, 3),
    "cancelling": (1, 1, 3),
    "raising": (1, 1, 3),
}
_BEHAVIOURS: tuple[Behaviour, ...] = (
    "quick",
    "slow",
    "raising",
    "cancelling",
    "parallel",
    "timed",
    "adds_listeners",
    "stuck",
    "leaves_early",
    "stream",
    "interrupted",
)
_PLAIN: tuple[Behaviour, ...] = ("quick", "raising", "cancelling", "leaves_early")
"""The behaviours of handlers that may be plain functions."""
TIMEOUT = 0.5
"""Seconds that a call of a timed listener may take."""
_PASSING = ("app=shop", "app=blog", "node=node-1")
_SHARE = 0.25
"""The share of listeners with a filter, and that of listeners with their own resync period."""


def draw_listeners(
    chance: Random, informers: list[str], moments: list[float]
) -> list[Join | Merge | Leave]:
    """Draw the listeners, with the times at which they join and leave.

    Args:
        chance: decides everything.
        informers: the names of the informers.
        moments: the times of the writes.
    """
    steps: list[Join | Merge | Leave] = []
    for informer in informers:
        for number in range(chance.randrange(1, 4)):
            behaviour: Behaviour = "quick" if number == 0 else chance.choice(_BEHAVIOURS)
            name = f"{informer}-{number}-{behaviour}"
            spec = _draw_listener(chance, informer, name, behaviour)
            late = number > 0 and chance.random() < 0.7
            joins = chance.choice(moments) + 0.001 if late else 0.0
            steps.append(Join(joins, spec))
            if number > 0 and chance.random() < 0.25:
                steps.append(Leave(chance.uniform(joins, moments[-1] + 1), spec.name))
    if chance.random() < 0.3 and len(informers) > 1:
        steps += _draw_merge(chance, informers, moments)
    return steps


def _draw_merge(chance: Random, informers: list[str], moments: list[float]) -> list[Merge | Leave]:
    first, second = (
        _draw_listener(chance, informer, f"{informer}-merged", "merged")
        for informer in chance.sample(informers, 2)
    )
    joins = chance.choice((0.0, chance.choice(moments) + 0.001))
    steps: list[Merge | Leave] = [Merge(joins, (first, second))]
    if chance.random() < 0.25:
        steps.append(Leave(chance.uniform(joins, moments[-1] + 1), first.name))
    return steps


def _draw_listener(chance: Random, informer: str, name: str, behaviour: Behaviour) -> ListenerSpec:
    overflow: OverflowName = chance.choice(("block", "block", "coalesce", "coalesce", "error"))
    if behaviour == "stuck" and overflow == "block":
        overflow = "coalesce"  # a stuck listener would block everything else
    return ListenerSpec(
        name=name,
        informer=informer,
        behaviour=behaviour,
        # A listener that ends at its first events shows little.
        limit=chance.choice((4, 30, 1024) if overflow == "error" else (1, 4, 1024)),
        overflow=overflow,
        delay=chance.choice(_DELAYS.get(behaviour, (0.0,))),
        concurrency=chance.choice(_CONCURRENCY.get(behaviour, (1,))),
        timeout=TIMEOUT if behaviour == "timed" else None,
        resync=chance.choice((0.0, 150.0, 400.0)) if chance.random() < _SHARE else None,
        passing=chance.choice(_PASSING) if chance.random() < _SHARE else "",
    )


def draw_visits(chance: Random, moments: list[float]) -> list[Visit]:
    """Draw the factories that are entered and left."""
    visits: list[Visit] = []
    for number in range(chance.randrange(3)):
        lasting = chance.choice((0.0, 0.001, 1.0, 60.0))
        at, name = chance.choice(moments) + 0.0001, f"visitor-{number}"
        drains, delay = chance.random() < 0.6, chance.choice((0.0, 0.005, 1.0))
        visits.append(Visit(at, name, lasting, drains, delay))
    return visits


def _draw_drained_visit(chance: Random, moments: list[float]) -> list[Visit]:
    """Draw a factory that is left at the moment of a change, with an event for its handler."""
    begins = max(0.0, chance.choice(moments) - 10)
    visit = Visit(
        begins,
        "drained",
        chance.choice((5.0, 10.0, 60.0)),
        drains=True,
        delay=chance.choice((0.0, 0.02, 0.1)),
        concurrency=chance.choice((1, 3, 3)),
        leaves_with_event=True,
    )
    return [visit] if chance.random() < 0.8 else []


def vary(chance: Random, steps: Sequence[Step]) -> list[Step]:
    """Return the steps with more variety.

    Some handlers become plain functions, some filters pass changes or raise, and some visits end
    with an error of their handler. ``chance`` is not that of the other draws, which therefore stay
    the same for each seed.
    """
    return [_varied(chance, step) for step in steps]


def _varied(chance: Random, step: Step) -> Step:
    if isinstance(step, Visit) and chance.random() < 0.3:
        return replace(step, fails=chance.choice((1, 3, 10)))
    if not isinstance(step, Join):
        return step
    spec = step.listener
    if spec.behaviour in _PLAIN and chance.random() < 0.4:
        spec = replace(spec, plain=True, concurrency=1)
    if spec.passing and not spec.streams and chance.random() < 0.4:
        spec = replace(spec, passing=f"{spec.passing}!")
    elif not spec.passing and step.at > 0 and chance.random() < 0.3:
        spec = replace(spec, changes=chance.choice(("app", "node")))
    return replace(step, listener=spec)


# -- writes ------------------------------------------------------------------------------------

WRITES = 500
BEFORE = -1.0
"""The time of everything that happens before the informers start."""
BURST = 60
APPS = ("shop", "blog")
NODES = tuple(f"node-{number}" for number in range(4))
NEVER = 10 * WRITES

_Writing: TypeAlias = Put | Remove | ServerStep


class _WriteSource:
    """Draws one write after the other, each of which changes something."""

    def __init__(self, chance: Random, *, raising_index: bool) -> None:
        self._chance = chance
        self._pool = chance.choice((8, 30, 90, 150))
        self._nodes = (*NODES, "node-x") if raising_index else NODES
        self.there: set[tuple[str, str]] = set()
        """The objects that exist."""
        self.script: list[Put | Remove] = []
        """The next writes, which get new values."""

    def write(self, at: float, value: int) -> Put | Remove:
        """Draw the next write."""
        chance = self._chance
        if self.script:
            planned = self.script.pop(0)
            namespace, name, remove = planned.namespace, planned.name, isinstance(planned, Remove)
        else:
            namespace, name = chance.choice(NAMESPACES), f"obj-{chance.randrange(self._pool)}"
            remove = (namespace, name) in self.there and chance.random() < 0.25
            if remove and chance.random() < 0.5:  # and create another object of the name at once
                self.script.append(Put(at, namespace, name, "", "", 0))
        if remove:
            self.there.discard((namespace, name))
            return Remove(at, namespace, name)
        self.there.add((namespace, name))
        app, node = chance.choice(APPS), chance.choice(self._nodes)
        return Put(at, namespace, name, app, node, value)


def draw_writes(chance: Random, *, raising_index: bool, most: int = WRITES) -> list[_Writing]:
    """Draw the writes in the order in which they are made, with one backup at most.

    Args:
        chance: decides everything.
        raising_index: True if some objects are on a node that an index function rejects.
        most: about the number of writes.
    """
    source = _WriteSource(chance, raising_index=raising_index)
    writes: list[_Writing] = []
    at = chance.choice((BEFORE, BEFORE, 0.0))
    backup, restore, again = _draw_rewind(chance)
    withdraw = chance.randrange(50, 450) if backup == NEVER and chance.random() < 0.25 else NEVER
    there: set[tuple[str, str]] = set()
    while len(writes) < most + 2:
        for _ in range(chance.randrange(1, BURST)):
            writes.append(source.write(at, len(writes)))
            at += chance.choice((0.0, 0.0, 0.0001, 0.003, 0.2)) if at > 0 else 0.0
            if len(writes) == backup:
                writes.append(ServerStep(at, "back_up"))
                there = set(source.there)
        at = max(at, 0.0) + chance.uniform(0, SPAN / 8)
        if len(writes) >= restore:
            since = writes[backup + 1 :] if again else []
            source.script = [each for each in since if isinstance(each, Put | Remove)]
            source.there, restore = there, NEVER
            writes.append(ServerStep(at, "restore"))
        if len(writes) >= withdraw:
            absent = chance.choice((1.0, 8.0, 60.0))
            writes += ServerStep(at, "withdraw"), ServerStep(at + absent, "serve")
            source.there, at, withdraw = set(), at + absent + chance.choice((0.0, 30.0)), NEVER
    return writes


def _draw_redefinition(chance: Random, steps: Sequence[Step]) -> list[ServerStep]:
    """Draw a change of all contents without a write, for a third of the plans without a rewind."""
    if chance.random() >= 1 / 3 or any(isinstance(step, ServerStep) for step in steps):
        return []
    near = chance.choice([step.at for step in steps if step.at > 0])
    return [ServerStep(near + chance.uniform(0, 0.01), "redefine")]


def _draw_rewind(chance: Random) -> tuple[int, int, bool]:
    """Draw the number of writes before the backup and before the restoration.

    The third value is True if the same changes happen again after the restoration.
    """
    if chance.random() < 0.75:
        return NEVER, NEVER, False
    return chance.randrange(20, 150), chance.randrange(300, 480), chance.random() < 0.5
