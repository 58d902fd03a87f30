"""Draws who listens to what, and how: listeners that join and leave, factories that are visited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from aioinformer._core.delivery.mailbox import OverflowName
from aioinformer.testing.simulation.plan import (
    Join,
    Leave,
    ListenerSpec,
    Merge,
    Step,
    Temper,
    Visit,
)

__all__ = ["draw_listeners", "draw_visits", "vary"]

_DELAYS: dict[Temper, tuple[float, ...]] = {
    "slow": (0.001, 0.05, 0.3),
    "parallel": (0.01, 0.2, 0.6),
    "timed": (0.0, 0.05),
    "stream": (0.0, 0.0, 0.1),
    "interrupted": (0.0, 0.0, 0.02),
    "merged": (0.0, 0.0, 0.02),
}
_CONCURRENCY: dict[Temper, tuple[int, ...]] = {
    "parallel": (4,),
    "timed": (1, 3),
    "cancelling": (1, 1, 3),
    "raising": (1, 1, 3),
}
_TEMPERS: tuple[Temper, ...] = (
    "quick",
    "slow",
    "raising",
    "cancelling",
    "parallel",
    "timed",
    "meddling",
    "stuck",
    "leaver",
    "stream",
    "interrupted",
)
TIMEOUT = 0.5
"""Seconds that a call of a timed listener may take."""
_PASSING = ("app=shop", "app=blog", "node=node-1")
_SHARE = 0.25
"""The share of listeners with a filter, and that of listeners with a period of their own."""


def draw_listeners(
    chance: Random, informers: list[str], moments: list[float]
) -> list[Join | Merge | Leave]:
    """Who joins when, and leaves.

    Args:
        chance: decides everything.
        informers: the names of the informers.
        moments: when something is written.
    """
    steps: list[Join | Merge | Leave] = []
    for informer in informers:
        for number in range(chance.randrange(1, 4)):
            temper: Temper = "quick" if number == 0 else chance.choice(_TEMPERS)
            spec = _listener(chance, informer, f"{informer}-{number}-{temper}", temper)
            late = number > 0 and chance.random() < 0.7
            joins = chance.choice(moments) + 0.001 if late else 0.0
            steps.append(Join(joins, spec))
            if number > 0 and chance.random() < 0.25:
                steps.append(Leave(chance.uniform(joins, moments[-1] + 1), spec.name))
    if chance.random() < 0.3:
        steps += _merge(chance, informers, moments)
    return steps


def _merge(chance: Random, informers: list[str], moments: list[float]) -> list[Merge | Leave]:
    first, second = (
        _listener(chance, informer, f"{informer}-merged", "merged")
        for informer in chance.sample(informers, 2)
    )
    joins = chance.choice((0.0, chance.choice(moments) + 0.001))
    steps: list[Merge | Leave] = [Merge(joins, (first, second))]
    if chance.random() < 0.25:
        steps.append(Leave(chance.uniform(joins, moments[-1] + 1), first.name))
    return steps


def _listener(chance: Random, informer: str, name: str, temper: Temper) -> ListenerSpec:
    overflow: OverflowName = chance.choice(("block", "block", "coalesce", "coalesce", "error"))
    if temper == "stuck" and overflow == "block":
        overflow = "coalesce"  # it would keep everything else waiting
    return ListenerSpec(
        name=name,
        informer=informer,
        temper=temper,
        # One that is ended at once shows little.
        limit=chance.choice((4, 30, 1024) if overflow == "error" else (1, 4, 1024)),
        overflow=overflow,
        delay=chance.choice(_DELAYS.get(temper, (0.0,))),
        concurrency=chance.choice(_CONCURRENCY.get(temper, (1,))),
        timeout=TIMEOUT if temper == "timed" else None,
        resync=chance.choice((0.0, 150.0, 400.0)) if chance.random() < _SHARE else None,
        passing=chance.choice(_PASSING) if chance.random() < _SHARE else "",
    )


def draw_visits(chance: Random, moments: list[float]) -> list[Visit]:
    """Factories that are entered and left."""
    visits: list[Visit] = []
    for number in range(chance.randrange(3)):
        lasting = chance.choice((0.0, 0.001, 1.0, 60.0))
        at, name = chance.choice(moments) + 0.0001, f"visitor-{number}"
        drains, delay = chance.random() < 0.6, chance.choice((0.0, 0.005, 1.0))
        visits.append(Visit(at, name, lasting, drains, delay))
    return visits


_PLAIN: tuple[Temper, ...] = ("quick", "raising", "cancelling", "leaver")
"""Who may be a function that isn't async."""


def vary(chance: Random, steps: Sequence[Step]) -> list[Step]:
    """Have some listeners be plain functions, hear of some changes alone, or have a filter that
    raises, and some visits end with what their handler raises.

    It is drawn apart from everything else, which so stays what it was for each seed.
    """
    return [_varied(chance, step) for step in steps]


def _varied(chance: Random, step: Step) -> Step:
    if isinstance(step, Visit) and chance.random() < 0.3:
        return replace(step, fails=chance.choice((1, 3, 10)))
    if not isinstance(step, Join):
        return step
    spec = step.listener
    if spec.temper in _PLAIN and chance.random() < 0.4:
        spec = replace(spec, plain=True, concurrency=1)
    if spec.passing and not spec.streams and chance.random() < 0.4:
        spec = replace(spec, passing=f"{spec.passing}!")
    elif not spec.passing and step.at > 0 and chance.random() < 0.3:
        spec = replace(spec, changes=chance.choice(("app", "node")))
    return replace(step, listener=spec)
