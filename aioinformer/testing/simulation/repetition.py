"""Resyncs, each listener with its own period: never more often than asked for, and not less.

Of what doesn't change for more than two periods a quick listener hears again within that time. A
part of promise 9, as far as it must come, and of promise 2, as far as it must not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from aioinformer._core.objects.kube_object import ObjectKey
from aioinformer.testing.simulation.hearing import Hearing
from aioinformer.testing.simulation.history import History
from aioinformer.testing.simulation.plan import InformerSpec, ListenerSpec
from aioinformer.testing.simulation.records import Joined, Sample, Told
from aioinformer.testing.simulation.violation import Violation

__all__ = ["judge_resyncs"]

DRIFT = 5.0
"""Seconds for a resync of everything, with what the clock costs."""
QUICK = ("quick", "raising", "cancelling", "stream", "interrupted", "merged")
"""Who is through with a resync at once."""


def judge_resyncs(
    history: History, spec: InformerSpec, last: Sample, hearings: Mapping[str, Hearing]
) -> None:
    """Hold an informer's resyncs to the periods that were asked for.

    Raises:
        Violation: there was one too many, or none.
    """
    there = {latch.listener for latch in last.latches}
    for joined in history.joined:
        listener = joined.listener
        if listener.informer != spec.name:
            continue
        period = spec.resync if listener.resync is None else listener.resync
        told = hearings[listener.name].told
        _judge_excess(joined, told, period)
        if period and listener.name in there and listener.temper in QUICK:
            _judge_lack(listener, told, period, last)


def _judge_excess(joined: Joined, told: list[Told], period: float) -> None:
    times: Counter[ObjectKey] = Counter()
    for each in told:
        if each.note != "resync":
            continue
        times[each.key] += 1
        if not period or times[each.key] > (each.time - joined.time + DRIFT) // period:
            what = f"{joined.listener.name} is told again, {times[each.key]} times by now"
            raise Violation(2, what, time=each.time, key=each.key, evidence=[joined, each])


def _judge_lack(listener: ListenerSpec, told: list[Told], period: float, last: Sample) -> None:
    newest = {each.key: each for each in told if each.order < last.order}
    for each in newest.values():
        if each.what == "deleted":
            continue
        since = last.time - each.time
        if since > 2 * period + DRIFT:
            what = f"{listener.name} isn't told again in {since:.0f} s, as it is every {period:g}"
            raise Violation(9, what, time=last.time, key=each.key, evidence=[each])
