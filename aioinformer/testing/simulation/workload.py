"""Draws a plan from a seed: objects that come, change, move between selectors and go, and faults.

At least 500 writes, each of which changes something, and at least 10 faults. Writes come in
bursts with long pauses, since what goes wrong goes wrong within milliseconds of something else;
three quarters of the faults are put into a burst for the same reason.
"""

from __future__ import annotations

from random import Random

from aioinformer.testing.simulation.plan import (
    Fault,
    FaultKind,
    InformerSpec,
    Join,
    Leave,
    ListenerSpec,
    Plan,
    Put,
    Remove,
    Step,
    Temper,
    Visit,
)

__all__ = ["FAULTS", "WRITES", "draw"]

WRITES = 500
FAULTS = 10
SPAN = 1200.0
"""Virtual seconds over which things happen: watches last 300 to 600, bookmarks come every 60."""
BEFORE = -1.0
"""The time of what happens before the informers start."""
NAMESPACES = ("web", "db", "ops")
APPS = ("shop", "blog")
NODES = tuple(f"node-{number}" for number in range(4))

_DELAYS: dict[Temper, tuple[float, ...]] = {"slow": (0.001, 0.05, 0.3), "stream": (0.0, 0.0, 0.1)}
_STATUSES = (403, 429, 500, 503)
_KINDS: tuple[FaultKind, ...] = (
    "refuse",
    "outage",
    "reset",
    "reset",
    "stall",
    "drip",
    "latency",
    "corrupt",
    "status",
    "error_event",
    "error_event",
    "compact",
    "compact",
    "end",
    "unserved",
    "curt",
    "mute",
    "echo",
)
_UNSEEN: tuple[FaultKind, ...] = ("refuse", "latency", "corrupt", "status", "unserved", "curt")
"""What only a new request meets; watches last for minutes, so something has to end them."""
_BREAKS: tuple[FaultKind, ...] = ("reset", "end", "compact", "error_event")


def draw(seed: int) -> Plan:
    """The plan of a seed."""
    chance = Random(seed)
    informers = _informers(chance)
    names = [each.name for each in informers]
    writes = _writes(chance, touchy=any(each.touchy for each in informers))
    moments = [write.at for write in writes]
    steps: list[Step] = [
        *writes,
        *_faults(chance, names, moments),
        *_listeners(chance, names, moments),
    ]
    for number in range(chance.randrange(3)):
        lasting = chance.choice((0.0, 0.001, 1.0, 60.0))
        steps.append(Visit(chance.choice(moments) + 0.0001, f"visitor-{number}", lasting))
    return Plan(
        seed=seed,
        informers=informers,
        steps=tuple(sorted(steps, key=lambda step: step.at)),
        custom=chance.random() < 0.25,
        window=chance.choice((60, 1000)),
        watch_buffer=chance.choice((40, 1000)),
        cost=chance.choice((0.0, 0.002, 0.01, 0.01)),
    )


def _informers(chance: Random) -> tuple[InformerSpec, ...]:
    def resync() -> float:
        return chance.choice((0.0, 0.0, 0.0, 300.0))

    def page_size() -> int:
        return chance.choice((0, 0, 7, 25))

    return (
        InformerSpec(name="everything", resync=resync(), page_size=page_size(), high_mark=10_000),
        InformerSpec(
            name="web",
            namespace="web",
            page_size=page_size(),
            high_mark=chance.choice((8, 64)),
            touchy=chance.random() < 0.3,
        ),
        InformerSpec(name="shop", app="shop", resync=resync(), high_mark=64),
    )


# -- writes ------------------------------------------------------------------------------------


def _writes(chance: Random, *, touchy: bool) -> list[Put | Remove]:
    pool = chance.choice((8, 30, 90, 150))
    nodes = (*NODES, "node-x") if touchy else NODES
    there: set[tuple[str, str]] = set()
    writes: list[Put | Remove] = []
    at = chance.choice((BEFORE, BEFORE, 0.0))
    while len(writes) < WRITES:
        for _ in range(chance.randrange(1, 60)):
            namespace = chance.choice(NAMESPACES)
            name = f"obj-{chance.randrange(pool)}"
            known = (namespace, name) in there
            if known and chance.random() < 0.25:
                writes.append(Remove(at, namespace, name))
                there.discard((namespace, name))
                if chance.random() < 0.5:
                    known = False  # and again at once, as another object
                else:
                    continue
            writes.append(
                Put(at, namespace, name, chance.choice(APPS), chance.choice(nodes), len(writes))
            )
            there.add((namespace, name))
            at += chance.choice((0.0, 0.0, 0.0001, 0.003, 0.2)) if at > 0 else 0.0
        at = max(at, 0.0) + chance.uniform(0, SPAN / 8)
    return writes


# -- faults ------------------------------------------------------------------------------------


def _faults(chance: Random, informers: list[str], moments: list[float]) -> list[Fault]:
    faults: list[Fault] = []
    while len(faults) < FAULTS:
        fault = _fault(chance, informers, moments)
        faults.append(fault)
        if fault.kind in _UNSEEN and chance.random() < 0.7:
            kind = chance.choice(_BREAKS)
            amount = 410 if kind == "error_event" else 0
            faults.append(Fault(at=fault.at, kind=kind, amount=amount, target=fault.target))
    return faults


def _fault(chance: Random, informers: list[str], moments: list[float]) -> Fault:
    kind = chance.choice(_KINDS)
    near = chance.choice(moments)
    at = (
        near + chance.uniform(0, 0.01) if chance.random() < 0.75 else chance.uniform(0, moments[-1])
    )
    target = chance.choice(("", "", *informers))
    lasting = chance.choice((0.05, 1.0, 10.0, 60.0))
    match kind:
        case "reset" | "drip":
            amount = chance.choice((1, 50, 400, 3000))
        case "latency":
            amount = chance.choice((1, 50, 800))
        case "status":
            amount = chance.choice(_STATUSES)
        case "error_event":
            amount = chance.choice((410, 500))
        case _:
            amount = 0
    retry_after = chance.choice((0, 1, 20)) if kind == "status" and amount in (429, 503) else 0
    return Fault(
        at=at, kind=kind, lasting=lasting, amount=amount, retry_after=retry_after, target=target
    )


# -- listeners ---------------------------------------------------------------------------------


def _listeners(chance: Random, informers: list[str], moments: list[float]) -> list[Join | Leave]:
    steps: list[Join | Leave] = []
    for informer in informers:
        for number in range(chance.randrange(1, 4)):
            temper: Temper = "quick" if number == 0 else _temper(chance)
            spec = _listener(chance, informer, f"{informer}-{number}-{temper}", temper)
            late = number > 0 and chance.random() < 0.7
            joins = chance.choice(moments) + 0.001 if late else 0.0
            steps.append(Join(joins, spec))
            if number > 0 and chance.random() < 0.25:
                steps.append(Leave(chance.uniform(joins, moments[-1] + 1), spec.name))
    return steps


def _temper(chance: Random) -> Temper:
    return chance.choice(
        ("quick", "slow", "slow", "raising", "stuck", "leaver", "stream", "stream")
    )


def _listener(chance: Random, informer: str, name: str, temper: Temper) -> ListenerSpec:
    if temper == "stuck":  # it would keep everything else waiting if its mailbox could be full
        return ListenerSpec(name=name, informer=informer, temper=temper, limit=100_000)
    return ListenerSpec(
        name=name,
        informer=informer,
        temper=temper,
        limit=chance.choice((1, 4, 1024)),
        delay=chance.choice(_DELAYS[temper]) if temper in _DELAYS else 0.0,
    )
