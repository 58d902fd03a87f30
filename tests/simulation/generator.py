"""Draw a plan from a seed: informers, listeners, factories, writes and faults.

**Writes.** At least 500, each of which changes something, in bursts with long pauses. In a quarter
of the plans the server is restored from a backup: late, so that the versions that it assigns anew
reach those of before only when there was time to notice. In half of these plans the server then
goes through the same changes with other values, so that one version means two states of one object.
In some of the other plans the resource is not served for a while, and in some the content of all
objects changes without a write.

**Faults.** At least 10. Failures show within milliseconds of something else, so that three quarters
of the faults begin in a burst of writes. Some come in pairs: a fault that only new requests meet,
with one that causes new requests; a silence, with a fault of the request that follows a silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TypeAlias

from aioinformer._core.delivery.overflow import OverflowName
from tests.simulation.plan import (
    NAMESPACES,
    Behaviour,
    Fault,
    FaultKind,
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
    steps += _draw_endless_pages(Random(f"{seed} pages"), informers, writes)
    steps += _draw_outage(Random(f"{seed} outage"), writes)
    ordered = sorted(steps, key=lambda step: step.at)
    return Plan(
        seed=seed,
        informers=informers,
        steps=tuple(vary(Random(f"{seed} variety"), ordered)),
        custom=chance.random() < 0.25,
        window=chance.choice((60, 1000)),
        watch_buffer=chance.choice((40, 1000)),
        watch_list=chance.random() < 0.85,
        cost=chance.choice((0.0, 0.002, 0.01, 0.01)),
    )


SHORT_PAGE = 7
"""Objects on a page of a list that certainly has several pages."""

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
SPAN = 1200.0
"""Virtual seconds over which things happen: watches last 300 to 600, bookmarks come every 60."""
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


# -- faults ------------------------------------------------------------------------------------

FAULTS = 10

_STATUSES = (302, 400, 401, 403, 404, 404, 405, 410, 422, 429, 500, 503)
_ERRORS = (403, 404, 410, 410, 500, 503, 504)
_LASTING = (0.05, 1.0, 10.0, 60.0)
_LONG = (10.0, 60.0, 300.0)
_OUTAGES = (1.0, 5.0, 20.0, 60.0, 300.0)
_SILENCE = 60.0
"""Seconds after which a silence may be noticed."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """The way in which faults of one kind are drawn."""

    weight: int = 1
    new: bool = False
    """True if only new requests meet the fault. Watches last for minutes, so that another fault
    has to end them."""
    answer: int = 0
    """The weight as a fault of the request after a silence, of a page, or of discovery."""
    amounts: tuple[int, ...] = (0,)
    lasting: tuple[float, ...] = _LASTING


_RULES: dict[FaultKind, _Rule] = {
    "refuse": _Rule(new=True, answer=1),
    "outage": _Rule(),
    "reset": _Rule(weight=2, answer=1, amounts=(1, 50, 400, 3000)),
    "stall": _Rule(weight=2, amounts=(0, 0, 50, 3000)),
    "hang": _Rule(new=True),
    "drip": _Rule(amounts=(20, 50, 400, 3000)),
    "latency": _Rule(new=True, amounts=(1, 50, 800)),
    "corrupt": _Rule(new=True, answer=1, amounts=(0, 50, 3000)),
    "html_page": _Rule(new=True, answer=1),
    "status": _Rule(weight=2, new=True, answer=2, amounts=_STATUSES, lasting=(*_LASTING, 300.0)),
    "version_too_large": _Rule(new=True, answer=1, amounts=(0, 1, 2)),
    "stale_list": _Rule(weight=2, new=True, amounts=(1, 5, 20), lasting=_LONG),
    "absent": _Rule(new=True, lasting=(0.05, 1.0, 4.0)),  # too short to be believed
    "moved": _Rule(new=True, lasting=_LONG),
    "error_event": _Rule(weight=2, amounts=_ERRORS),
    "compact": _Rule(weight=2),
    "end": _Rule(),
    "unserved": _Rule(new=True),
    "brief": _Rule(new=True, amounts=(1, 3, 9), lasting=(*_LASTING, 300.0)),
    "empty_watch": _Rule(new=True),
    "watch_refused": _Rule(new=True, amounts=(403, 404, 405), lasting=(60.0, 300.0)),
    "no_watchlist": _Rule(new=True, amounts=(400, 422, 500), lasting=_LONG),
    "endless": _Rule(weight=2, new=True, amounts=(0, 0, 4, 12), lasting=_LONG),
    "endless_pages": _Rule(weight=0, new=True, lasting=(1.0, 10.0)),
    "no_bookmarks": _Rule(),
    "duplicate_bookmarks": _Rule(),
}
_KINDS: list[FaultKind] = [kind for kind, rule in _RULES.items() for _ in range(rule.weight)]
_ANSWERS: list[FaultKind] = [kind for kind, rule in _RULES.items() for _ in range(rule.answer)]
_BREAKS: tuple[FaultKind, ...] = ("reset", "end", "compact", "compact", "error_event")


def draw_faults(chance: Random, informers: list[str], moments: list[float]) -> list[Fault]:
    faults: list[Fault] = []
    while len(faults) < FAULTS:
        kind = chance.choice(_KINDS)
        near = chance.choice(moments)
        at = near + chance.uniform(0, 0.01)
        if chance.random() < 0.25:
            at = chance.uniform(0, moments[-1])
        target = chance.choice(("", "", *informers))
        fault = _draw_fault(chance, kind, at, target)
        faults += [fault, *_draw_companions(chance, fault)]
    return faults


def _draw_endless_pages(
    chance: Random, informers: Sequence[InformerSpec], writes: Sequence[Step]
) -> list[Fault]:
    """Draw lists without an end, for the informer of everything if its lists have several pages.

    The server announces the length of such lists. Of others a client reads 10,000 pages.
    """
    withdrawn = any(isinstance(each, ServerStep) for each in writes)
    everything = informers[0]
    if withdrawn or everything.page_size != SHORT_PAGE or chance.random() < 0.2:
        return []
    at = chance.choice(writes[WRITES // 5 :]).at
    pages = _draw_fault(chance, "endless_pages", at, everything.name)
    lists = _draw_fault(chance, "no_watchlist", pages.at, pages.target)
    return [replace(pages, share=1.0), replace(lists, share=1.0), _draw_break(chance, lists)]


def _draw_outage(chance: Random, steps: Sequence[Step]) -> list[Fault]:
    """Draw an outage for half of the plans, in which the server may be restored or compacted."""
    if chance.random() < 0.5:
        return []
    moments = [each.at for each in steps if isinstance(each, ServerStep)]
    at = moments[-1] - 0.01 if moments else chance.uniform(100, SPAN)
    outage = replace(_draw_fault(chance, "outage", at, ""), lasting=chance.choice(_OUTAGES))
    compact = _draw_fault(chance, "compact", at + outage.lasting / 2, "")
    return [replace(outage, share=1.0), *([compact] if chance.random() < 0.5 else [])]


def _draw_companions(chance: Random, fault: Fault) -> list[Fault]:
    """Draw the faults that begin with another one."""
    at, target = fault.at, fault.target
    if fault.amount == 404 or fault.kind in ("absent", "moved"):
        lookup = _draw_fault(chance, chance.choice(_ANSWERS), at, target)
        return [_draw_break(chance, fault), replace(lookup, lasting=60.0, share=0.5)]
    if _RULES[fault.kind].new and chance.random() < 0.7:
        return [_draw_break(chance, fault)]
    if fault.kind == "stall" and chance.random() < 0.6:
        check = _draw_fault(chance, chance.choice(_ANSWERS), at + _SILENCE, target)
        return [replace(check, lasting=60.0, share=1.0)]
    if fault.kind == "compact" and chance.random() < 0.5:
        page = _draw_fault(chance, chance.choice(_ANSWERS), at, target)
        return [replace(page, lasting=60.0, share=0.2)]
    return []


def _draw_break(chance: Random, fault: Fault) -> Fault:
    """Draw a fault that causes new requests, namely of the whole state if ``fault`` needs that."""
    if fault.kind in ("no_watchlist", "endless"):
        expired = _draw_fault(chance, "error_event", fault.at + 1e-6, fault.target)
        return replace(expired, amount=410)
    return _draw_fault(chance, chance.choice(_BREAKS), fault.at + 1e-6, fault.target)


def _draw_fault(chance: Random, kind: FaultKind, at: float, target: str) -> Fault:
    rule = _RULES[kind]
    amount = chance.choice(rule.amounts)
    busy = kind == "status" and amount in (429, 503)
    return Fault(
        at=at,
        kind=kind,
        lasting=chance.choice(rule.lasting),
        amount=amount,
        retry_after=chance.choice((0, 1, 20)) if busy else 0,
        share=chance.choice((1.0, 1.0, 0.5, 0.2)),
        target=target,
    )
