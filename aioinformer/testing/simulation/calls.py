"""How handlers are called: promises 2, 7 and 9, as far as they are about calls.

Never for one key twice at once, nor for more keys than was asked for; no longer than they may; and
what they raise is counted, logged and told to the error hook, once each.
"""

from __future__ import annotations

from collections.abc import Sequence

from aioinformer.testing.simulation.history import History
from aioinformer.testing.simulation.plan import InformerSpec, ListenerSpec
from aioinformer.testing.simulation.records import Sample, Told
from aioinformer.testing.simulation.violation import Violation

__all__ = ["judge_calls"]

LATE = 2.0
"""Seconds by which a call may outlast its time, for what the clock costs."""
EARLY = 0.1
"""Seconds by which it may seem to have had less, for the same reason."""
SOON = 100.0
"""Seconds within which every call is over, but for those that are stuck."""


def judge_calls(
    history: History, spec: InformerSpec, last: Sample, told: dict[str, list[Told]]
) -> None:
    """Hold the calls of an informer's listeners to what was asked for.

    Raises:
        Violation: a promise was broken.
    """
    errors = {latch.listener: latch.errors for latch in last.latches}
    for joined in history.joined:
        listener = joined.listener
        if listener.informer != spec.name:
            continue
        calls = told.get(listener.name, [])
        _judge_overlaps(listener, calls)
        _judge_ends(listener, calls, last)
        if not listener.streams:
            failed = sum(1 for each in calls if each.raised and each.returned < last.order)
            clumsy = sum(
                each.listener == listener.name and each.order < last.order
                for each in history.clumsy
            )
            _judge_reports(history, listener, failed, clumsy, last)
            if errors.get(listener.name, failed + clumsy) != failed + clumsy:
                what = f"{listener.name} failed {failed} times, and its filter {clumsy} times"
                raise Violation(7, what, time=last.time, evidence=last.latches)


def _judge_overlaps(listener: ListenerSpec, calls: Sequence[Told]) -> None:
    under_way: list[Told] = []
    for call in calls:
        under_way = [each for each in under_way if not 0 < each.returned < call.order]
        if any(each.key == call.key for each in under_way):
            what = f"{listener.name} is called for a key that it is busy with"
            raise Violation(2, what, time=call.time, key=call.key, evidence=[*under_way, call])
        under_way.append(call)
        if len(under_way) > listener.concurrency:
            what = f"{listener.name} is called {len(under_way)} times at once"
            raise Violation(2, what, time=call.time, key=call.key, evidence=under_way)


def _judge_ends(listener: ListenerSpec, calls: Sequence[Told], last: Sample) -> None:
    for call in calls:
        over = 0 < call.returned < last.order
        lasted = (call.until if over else last.time) - call.time
        what = ""
        if listener.timeout is not None and lasted > listener.timeout + LATE:
            what = f"a call of {listener.name} lasts {lasted:.3f} s, it may {listener.timeout:g}"
        elif listener.timeout and over and call.raised and lasted < listener.timeout - EARLY:
            what = f"a call of {listener.name} is cancelled after {lasted:.3f} s"
        if what:
            raise Violation(7, what, time=call.time, key=call.key, evidence=[call])
        if not over and lasted > SOON and listener.temper != "stuck":
            what = f"a call of {listener.name} doesn't end"
            raise Violation(9, what, time=call.time, key=call.key, evidence=[call])


def _judge_reports(
    history: History, listener: ListenerSpec, failed: int, clumsy: int, last: Sample
) -> None:
    name = f"{listener.name} of {listener.informer}"
    lines = (
        f"handler {name} raised at ",
        f"handler {name} took longer than ",
        f"handler {name} cancelled the task",
        f"the filter of {name} raised at ",
    )
    logged = sum(log.message.startswith(lines) for log in history.logs if log.order < last.order)
    hooked = sum(
        trouble.cause == name and not trouble.error.startswith("ListenerOverflow")
        for trouble in history.troubles
        if trouble.order < last.order
    )
    if not logged == hooked == failed + clumsy:
        what = (
            f"{listener.name} failed {failed} times and its filter {clumsy} times, which was "
            f"logged {logged} times, and the error hook was told of {hooked}"
        )
        raise Violation(7, what, time=last.time)
