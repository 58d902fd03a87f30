"""Draws a plan from a seed: informers, what is written, what breaks (``attending``: who listens).

At least 500 writes, each of which changes something (``writing``), and at least 10 faults. What
goes wrong goes wrong within milliseconds of something else, so three quarters of the faults are put
into a burst of writes. Some come in pairs: what only a new request meets, and what makes one; a
silence, and what the question after it meets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from random import Random

from aioinformer.testing.simulation.attending import draw_listeners, draw_visits, vary
from aioinformer.testing.simulation.plan import (
    Fault,
    FaultKind,
    InformerSpec,
    Plan,
    Put,
    Remove,
    Step,
)
from aioinformer.testing.simulation.writing import draw_writes

__all__ = ["FAULTS", "draw"]

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
    "garbage",
    "status",
    "status",
    "lagging",
    "outdated",
    "outdated",
    "absent",
    "moved",
    "error_event",
    "error_event",
    "compact",
    "compact",
    "end",
    "unserved",
    "brief",
    "curt",
    "streamless",
    "endless",
    "endless",
    "mute",
    "echo",
)
_UNSEEN: tuple[FaultKind, ...] = (
    "refuse",
    "hang",
    "latency",
    "corrupt",
    "garbage",
    "status",
    "lagging",
    "outdated",
    "absent",
    "moved",
    "unserved",
    "brief",
    "curt",
    "streamless",
    "endless",
)
"""What only a new request meets; watches last for minutes, so something has to end them."""
_ANSWERS: tuple[FaultKind, ...] = (
    "refuse",
    "reset",
    "corrupt",
    "garbage",
    "status",
    "status",
    "lagging",
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
    "lagging": (0, 1, 2),
    "outdated": (1, 5, 20),
    "brief": (1, 3, 9),
    "streamless": (400, 422, 500),
    "endless": (0, 0, 4, 12),
}
_LASTING = (0.05, 1.0, 10.0, 60.0)
_SPANS: dict[FaultKind, tuple[float, ...]] = {
    **dict.fromkeys(("brief", "status"), (*_LASTING, 300.0)),
    **dict.fromkeys(("streamless", "endless", "outdated"), (10.0, 60.0, 300.0)),
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
    touchy = any(each.touchy or each.transform == "refuses" for each in informers)
    writes = draw_writes(chance, touchy=touchy)
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
            touchy=chance.random() < 0.3,
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
        if each.touchy:
            refuses = chance.random() < 0.5
            yield replace(each, touchy=False, transform="refuses") if refuses else each
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
    if fault.kind in ("streamless", "endless"):
        gone = _fault(chance, "error_event", fault.at + 1e-6, fault.target)
        return replace(gone, amount=410)
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
