"""Draws a plan from a seed: informers, what is written, what breaks (``attending``: who listens).

At least 500 writes, each of which changes something (``writing``), and at least 10 faults. What
goes wrong goes wrong within milliseconds of something else, so three quarters of the faults are put
into a burst of writes. Some come in pairs: what only a new request meets, and what makes one; a
silence, and what the question after it meets.

Draws who listens to what, and how: listeners that join and leave, factories that are visited.

Draws what is written: objects that come, change, move between selectors and go; one backup.

Writes come in bursts with long pauses. In a quarter of the plans the server goes back to the backup
in the end: late, so that the versions that it gives out anew reach those of before only when there
was time to notice. In half of these it then goes through the same as before with other values: then
one version means two states of one object. In some others the resource isn't served for a while.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import TypeAlias

from aioinformer._core.delivery.mailbox import OverflowName
from tests.simulation.plan import (
    Backup,
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
    Restore,
    Serve,
    Step,
    Visit,
    Withdraw,
)

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
            behaviour: Behaviour = "quick" if number == 0 else chance.choice(_BEHAVIOURS)
            spec = _listener(chance, informer, f"{informer}-{number}-{behaviour}", behaviour)
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


def _listener(chance: Random, informer: str, name: str, behaviour: Behaviour) -> ListenerSpec:
    overflow: OverflowName = chance.choice(("block", "block", "coalesce", "coalesce", "error"))
    if behaviour == "stuck" and overflow == "block":
        overflow = "coalesce"  # it would keep everything else waiting
    return ListenerSpec(
        name=name,
        informer=informer,
        behaviour=behaviour,
        # One that is ended at once shows little.
        limit=chance.choice((4, 30, 1024) if overflow == "error" else (1, 4, 1024)),
        overflow=overflow,
        delay=chance.choice(_DELAYS.get(behaviour, (0.0,))),
        concurrency=chance.choice(_CONCURRENCY.get(behaviour, (1,))),
        timeout=TIMEOUT if behaviour == "timed" else None,
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


_PLAIN: tuple[Behaviour, ...] = ("quick", "raising", "cancelling", "leaves_early")
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
    if spec.behaviour in _PLAIN and chance.random() < 0.4:
        spec = replace(spec, plain=True, concurrency=1)
    if spec.passing and not spec.streams and chance.random() < 0.4:
        spec = replace(spec, passing=f"{spec.passing}!")
    elif not spec.passing and step.at > 0 and chance.random() < 0.3:
        spec = replace(spec, changes=chance.choice(("app", "node")))
    return replace(step, listener=spec)


WRITES = 500
SPAN = 1200.0
"""Virtual seconds over which things happen: watches last 300 to 600, bookmarks come every 60."""
BEFORE = -1.0
"""The time of what happens before the informers start."""
BURST = 60
NAMESPACES = ("web", "db", "ops")
APPS = ("shop", "blog")
NODES = tuple(f"node-{number}" for number in range(4))
NEVER = 10 * WRITES

_Writing: TypeAlias = Put | Remove | Withdraw | Serve | Backup | Restore


class _WriteSource:
    """Draws one write after the other. Each of them changes something."""

    def __init__(self, chance: Random, *, raising_index: bool) -> None:
        self._chance = chance
        self._pool = chance.choice((8, 30, 90, 150))
        self._nodes = (*NODES, "node-x") if raising_index else NODES
        self.there: set[tuple[str, str]] = set()
        """What exists."""
        self.script: list[Put | Remove] = []
        """What to write next, with new values."""

    def write(self, at: float, value: int) -> Put | Remove:
        """The next one."""
        chance = self._chance
        if self.script:
            planned = self.script.pop(0)
            namespace, name, remove = planned.namespace, planned.name, isinstance(planned, Remove)
        else:
            namespace, name = chance.choice(NAMESPACES), f"obj-{chance.randrange(self._pool)}"
            remove = (namespace, name) in self.there and chance.random() < 0.25
            if remove and chance.random() < 0.5:  # and again at once, as another object
                self.script.append(Put(at, namespace, name, "", "", 0))
        if remove:
            self.there.discard((namespace, name))
            return Remove(at, namespace, name)
        self.there.add((namespace, name))
        app, node = chance.choice(APPS), chance.choice(self._nodes)
        return Put(at, namespace, name, app, node, value)


def draw_writes(chance: Random, *, raising_index: bool) -> list[_Writing]:
    """Writes in the order of their making, and what they go back to.

    Args:
        chance: decides everything.
        raising_index: whether some objects are on a node that an index function refuses.
    """
    source = _WriteSource(chance, raising_index=raising_index)
    writes: list[_Writing] = []
    at = chance.choice((BEFORE, BEFORE, 0.0))
    backup, restore, again = _draw_rewind(chance)
    withdraw = chance.randrange(50, 450) if backup == NEVER and chance.random() < 0.25 else NEVER
    kept: set[tuple[str, str]] = set()
    while len(writes) < WRITES + 2:
        for _ in range(chance.randrange(1, BURST)):
            writes.append(source.write(at, len(writes)))
            at += chance.choice((0.0, 0.0, 0.0001, 0.003, 0.2)) if at > 0 else 0.0
            if len(writes) == backup:
                writes.append(Backup(at))
                kept = set(source.there)
        at = max(at, 0.0) + chance.uniform(0, SPAN / 8)
        if len(writes) >= restore:
            since = writes[backup + 1 :] if again else []
            source.script = [each for each in since if isinstance(each, Put | Remove)]
            source.there, restore = kept, NEVER
            writes.append(Restore(at))
        if len(writes) >= withdraw:
            writes += Withdraw(at), Serve(at + (absent := chance.choice((1.0, 8.0, 60.0))))
            source.there, at, withdraw = set(), at + absent + chance.choice((0.0, 30.0)), NEVER
    return writes


def _draw_rewind(chance: Random) -> tuple[int, int, bool]:
    """After how many writes a backup is made, after how many it is brought back, and whether all
    happens again then.
    """
    if chance.random() < 0.75:
        return NEVER, NEVER, False
    return chance.randrange(20, 150), chance.randrange(300, 480), chance.random() < 0.5


FAULTS = 10

_STATUSES = (302, 400, 401, 403, 404, 404, 410, 422, 429, 500, 503)
_ERRORS = (403, 404, 410, 410, 500, 503, 504)
_KINDS: tuple[FaultKind, ...] = (
    "refuse",
    "outage",
    "reset",
    "reset",
    "stall",
    "stall",
    "hang",
    "drip",
    "latency",
    "corrupt",
    "html_page",
    "status",
    "status",
    "version_too_large",
    "stale_list",
    "stale_list",
    "absent",
    "moved",
    "error_event",
    "error_event",
    "compact",
    "compact",
    "end",
    "unserved",
    "brief",
    "empty_watch",
    "no_watchlist",
    "endless",
    "endless",
    "no_bookmarks",
    "duplicate_bookmarks",
)
_UNSEEN: tuple[FaultKind, ...] = (
    "refuse",
    "hang",
    "latency",
    "corrupt",
    "html_page",
    "status",
    "version_too_large",
    "stale_list",
    "absent",
    "moved",
    "unserved",
    "brief",
    "empty_watch",
    "no_watchlist",
    "endless",
)
"""What only a new request meets; watches last for minutes, so something has to end them."""
_ANSWERS: tuple[FaultKind, ...] = (
    "refuse",
    "reset",
    "corrupt",
    "html_page",
    "status",
    "status",
    "version_too_large",
)
"""What the question after a silence may meet, or one of many pages, or a look into discovery."""
_BREAKS: tuple[FaultKind, ...] = ("reset", "end", "compact", "compact", "error_event")
_AMOUNTS: dict[FaultKind, tuple[int, ...]] = {
    "reset": (1, 50, 400, 3000),
    "stall": (0, 0, 50, 3000),
    "drip": (1, 50, 400, 3000),
    "latency": (1, 50, 800),
    "status": _STATUSES,
    "error_event": _ERRORS,
    "version_too_large": (0, 1, 2),
    "stale_list": (1, 5, 20),
    "brief": (1, 3, 9),
    "no_watchlist": (400, 422, 500),
    "endless": (0, 0, 4, 12),
}
_LASTING = (0.05, 1.0, 10.0, 60.0)
_SPANS: dict[FaultKind, tuple[float, ...]] = {
    **dict.fromkeys(("brief", "status"), (*_LASTING, 300.0)),
    **dict.fromkeys(("no_watchlist", "endless", "stale_list"), (10.0, 60.0, 300.0)),
    "absent": (0.05, 1.0, 4.0),  # too short to be believed
    "moved": (10.0, 60.0, 300.0),
}
_SILENCE = 60.0
"""Seconds after which a silence may be noticed."""


def draw(seed: int) -> Plan:
    """The plan of a seed."""
    chance = Random(seed)
    informers = tuple(_shaped(Random(f"{seed} shapes"), _informers(chance)))
    names = [each.name for each in informers]
    raising_index = any(each.raising_index or each.transform == "refuses" for each in informers)
    writes = draw_writes(chance, raising_index=raising_index)
    moments = [write.at for write in writes if isinstance(write, Put | Remove)]
    steps: list[Step] = [
        *writes,
        *_faults(chance, names, moments),
        *draw_listeners(chance, names, moments),
        *draw_visits(chance, moments),
    ]
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


def _informers(chance: Random) -> tuple[InformerSpec, ...]:
    def resync() -> float:
        return chance.choice((0.0, 0.0, 150.0, 300.0))

    def page_size() -> int:
        return chance.choice((0, 0, 7, 7, 25))

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
    """Some with a transform; what one refuses may be an index function's business or its own."""
    for each in informers:
        if each.raising_index:
            refuses = chance.random() < 0.5
            yield replace(each, raising_index=False, transform="refuses") if refuses else each
        else:
            yield replace(each, transform="cuts") if chance.random() < 0.2 else each


# -- faults ------------------------------------------------------------------------------------


def _faults(chance: Random, informers: list[str], moments: list[float]) -> list[Fault]:
    faults: list[Fault] = []
    while len(faults) < FAULTS:
        kind = chance.choice(_KINDS)
        near = chance.choice(moments)
        at = near + chance.uniform(0, 0.01)
        if chance.random() < 0.25:
            at = chance.uniform(0, moments[-1])
        target = chance.choice(("", "", *informers))
        fault = _fault(chance, kind, at, target)
        faults += [fault, *_companions(chance, fault)]
    return faults


def _companions(chance: Random, fault: Fault) -> list[Fault]:
    """What goes wrong beside it."""
    at, target = fault.at, fault.target
    if fault.amount == 404 or fault.kind in ("absent", "moved"):
        lookup = _fault(chance, chance.choice(_ANSWERS), at, target)
        return [_ended(chance, fault), replace(lookup, lasting=60.0, share=0.5)]
    if fault.kind in _UNSEEN and chance.random() < 0.7:
        return [_ended(chance, fault)]
    if fault.kind == "stall" and chance.random() < 0.6:
        question = _fault(chance, chance.choice(_ANSWERS), at + _SILENCE, target)
        return [replace(question, lasting=60.0, share=1.0)]
    if fault.kind == "compact" and chance.random() < 0.5:
        page = _fault(chance, chance.choice(_ANSWERS), at, target)
        return [replace(page, lasting=60.0, share=0.2)]
    return []


def _ended(chance: Random, fault: Fault) -> Fault:
    """What makes new requests that meet a fault; of the whole state, if it has to be one."""
    if fault.kind in ("no_watchlist", "endless"):
        expired = _fault(chance, "error_event", fault.at + 1e-6, fault.target)
        return replace(expired, amount=410)
    return _fault(chance, chance.choice(_BREAKS), fault.at + 1e-6, fault.target)


def _fault(chance: Random, kind: FaultKind, at: float, target: str) -> Fault:
    amount = chance.choice(_AMOUNTS.get(kind, (0,)))
    busy = kind == "status" and amount in (429, 503)
    return Fault(
        at=at,
        kind=kind,
        lasting=chance.choice(_SPANS.get(kind, _LASTING)),
        amount=amount,
        retry_after=chance.choice((0, 1, 20)) if busy else 0,
        share=chance.choice((1.0, 1.0, 0.5, 0.2)),
        target=target,
    )
