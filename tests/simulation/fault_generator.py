"""Draw the faults of a plan: at least 10.

Failures show within milliseconds of something else, so that three quarters of the faults begin in a
burst of writes. Some come in pairs: a fault that only new requests meet, with one that causes new
requests; a silence, with a fault of the request that follows a silence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from tests.simulation.plan import SHORT_PAGE, SPAN, Fault, FaultKind, InformerSpec, ServerStep, Step

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


def draw_endless_pages(
    chance: Random, everything: InformerSpec, writes: Sequence[Step], *, first: int
) -> list[Fault]:
    """Draw lists without an end, for the informer of everything if its lists have several pages.

    The server announces the length of such lists. Of others a client reads 10,000 pages. The lists
    begin with one of the writes from the ``first`` on.
    """
    withdrawn = any(isinstance(each, ServerStep) for each in writes)
    if withdrawn or everything.page_size != SHORT_PAGE or chance.random() < 0.2:
        return []
    at = chance.choice(writes[first:]).at
    pages = _draw_fault(chance, "endless_pages", at, everything.name)
    lists = _draw_fault(chance, "no_watchlist", pages.at, pages.target)
    return [replace(pages, share=1.0), replace(lists, share=1.0), _draw_break(chance, lists)]


def draw_outage(chance: Random, steps: Sequence[Step]) -> list[Fault]:
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
