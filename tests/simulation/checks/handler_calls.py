"""How handlers are called: promises 2, 7 and 9, as far as they are about calls.

Never for one key twice at once, nor for more keys than was asked for; no longer than they may; and
what they raise is counted, logged and told to the error hook, once each.

Resyncs, each listener with its own period: never more often than asked for, and not less.

Of what doesn't change for more than two periods a quick listener hears again within that time. A
part of promise 9, as far as it must come, and of promise 2, as far as it must not.

How listeners end: removed and waited for, too slow, or with their factory. Promises 8 and 9.

An ``overflow="error"`` listener ends when it holds too much, and only then; that is reported once,
and nothing is told to it afterwards. One that is waited for is in no call any more. One that is to
drain was told everything, or what leaves its factory says which one was not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NoReturn

from aioinformer._core.objects.kube_object import ObjectKey
from tests.simulation.checks.ordering import OrderingCheck
from tests.simulation.checks.violation import Violation
from tests.simulation.plan import InformerSpec, ListenerSpec, Visit
from tests.simulation.records import (
    EventDelivered,
    FilterRaised,
    History,
    Joined,
    Left,
    Logged,
    Overflowed,
    ProblemReported,
    Restored,
    Sample,
    Visited,
    Write,
)

LATE = 2.0
"""Seconds by which a call may outlast its time, for what the clock costs."""
EARLY = 0.1
"""Seconds by which it may seem to have had less, for the same reason."""
SOON = 100.0
"""Seconds within which every call is over, but for those that are stuck."""


def judge_calls(
    history: History, spec: InformerSpec, last: Sample, delivered: dict[str, list[EventDelivered]]
) -> None:
    """Hold the calls of an informer's listeners to what was asked for.

    Raises:
        Violation: a promise was broken.
    """
    errors = {
        sample_listener.listener: sample_listener.errors for sample_listener in last.listeners
    }
    for joined in history.of(Joined):
        listener = joined.listener
        if listener.informer != spec.name:
            continue
        calls = delivered.get(listener.name, [])
        _judge_overlaps(listener, calls)
        _judge_ends(listener, calls, last)
        if not listener.streams:
            failed = sum(1 for each in calls if each.raised and each.returned < last.order)
            filter_errors = sum(
                each.listener == listener.name and each.order < last.order
                for each in history.of(FilterRaised)
            )
            _judge_reports(history, listener, failed, filter_errors, last)
            if errors.get(listener.name, failed + filter_errors) != failed + filter_errors:
                what = (
                    f"{listener.name} failed {failed} times, and its filter {filter_errors} times"
                )
                raise Violation(7, what, time=last.time, evidence=last.listeners)


def _judge_overlaps(listener: ListenerSpec, calls: Sequence[EventDelivered]) -> None:
    under_way: list[EventDelivered] = []
    for call in calls:
        under_way = [each for each in under_way if not 0 < each.returned < call.order]
        if any(each.key == call.key for each in under_way):
            what = f"{listener.name} is called for a key that it is busy with"
            raise Violation(2, what, time=call.time, key=call.key, evidence=[*under_way, call])
        under_way.append(call)
        if len(under_way) > listener.concurrency:
            what = f"{listener.name} is called {len(under_way)} times at once"
            raise Violation(2, what, time=call.time, key=call.key, evidence=under_way)


def _judge_ends(listener: ListenerSpec, calls: Sequence[EventDelivered], last: Sample) -> None:
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
        if not over and lasted > SOON and listener.behaviour != "stuck":
            what = f"a call of {listener.name} doesn't end"
            raise Violation(9, what, time=call.time, key=call.key, evidence=[call])


def _judge_reports(
    history: History, listener: ListenerSpec, failed: int, filter_errors: int, last: Sample
) -> None:
    name = f"{listener.name} of {listener.informer}"
    lines = (
        f"handler {name} raised at ",
        f"handler {name} took longer than ",
        f"handler {name} cancelled the task",
        f"the filter of {name} raised at ",
    )
    logged = sum(
        log.message.startswith(lines) for log in history.of(Logged) if log.order < last.order
    )
    hooked = sum(
        problem.cause == name and not problem.error.startswith("ListenerOverflow")
        for problem in history.of(ProblemReported)
        if problem.order < last.order
    )
    if not logged == hooked == failed + filter_errors:
        what = (
            f"{listener.name} failed {failed} times and its filter {filter_errors} times, "
            f"which was logged {logged} times, and the error hook was told of {hooked}"
        )
        raise Violation(7, what, time=last.time)


RESYNC_DRIFT = 5.0
"""Seconds for a resync of everything, with what the clock costs."""
QUICK = ("quick", "raising", "cancelling", "stream", "interrupted", "merged")
"""Who is through with a resync at once."""


def judge_resyncs(
    history: History, spec: InformerSpec, last: Sample, checks: Mapping[str, OrderingCheck]
) -> None:
    """Hold an informer's resyncs to the periods that were asked for.

    Raises:
        Violation: there was one too many, or none.
    """
    there = {sample_listener.listener for sample_listener in last.listeners}
    for joined in history.of(Joined):
        listener = joined.listener
        if listener.informer != spec.name:
            continue
        period = spec.resync if listener.resync is None else listener.resync
        delivered = checks[listener.name].delivered
        _judge_excess(joined, delivered, period)
        if period and listener.name in there and listener.behaviour in QUICK:
            _judge_lack(listener, delivered, period, last)


def _judge_excess(joined: Joined, delivered: list[EventDelivered], period: float) -> None:
    times: Counter[ObjectKey] = Counter()
    for each in delivered:
        if each.note != "resync":
            continue
        times[each.key] += 1
        if not period or times[each.key] > (each.time - joined.time + RESYNC_DRIFT) // period:
            what = f"{joined.listener.name} is told again, {times[each.key]} times by now"
            raise Violation(2, what, time=each.time, key=each.key, evidence=[joined, each])


def _judge_lack(
    listener: ListenerSpec, delivered: list[EventDelivered], period: float, last: Sample
) -> None:
    newest = {each.key: each for each in delivered if each.order < last.order}
    for each in newest.values():
        if each.what == "deleted":
            continue
        since = last.time - each.time
        if since > 2 * period + RESYNC_DRIFT:
            what = f"{listener.name} isn't told again in {since:.0f} s, as it is every {period:g}"
            raise Violation(9, what, time=last.time, key=each.key, evidence=[each])


LEAVING = 10.0
"""Seconds that leaving a factory waits for what drains; the library's default."""
LEAVING_DRIFT = 2.0
"""Seconds for what the clock costs."""


def judge_departures(history: History, delivered: dict[str, list[EventDelivered]]) -> None:
    """Hold the ends of all listeners to what was asked for.

    Raises:
        Violation: a promise was broken.
    """
    _judge_waits(history, delivered)
    specs = {each.listener.name: each.listener for each in history.of(Joined)}
    for overflowed in history.of(Overflowed):
        spec = specs[overflowed.listener]
        _judge_overflow(overflowed, spec, delivered.get(spec.name, []))
        _judge_report(overflowed, spec, history)
    visits = {each.name: each for each in history.plan.steps if isinstance(each, Visit)}
    for visited in history.of(Visited):
        _judge_visit(visited, visits[visited.name], history)


def _judge_waits(history: History, delivered: dict[str, list[EventDelivered]]) -> None:
    for left in history.of(Left):
        busy = [
            each for each in delivered.get(left.listener, []) if not 0 < each.returned < left.order
        ]
        if left.waited and busy:
            what = f"{left.listener} was waited for, and is still in a call"
            raise Violation(9, what, time=left.time, evidence=[left, *busy])


# -- too slow ----------------------------------------------------------------------------------


def _judge_overflow(
    overflowed: Overflowed, spec: ListenerSpec, delivered: list[EventDelivered]
) -> None:
    what = ""
    if spec.overflow != "error":
        what = f"{spec.name} is ended, but has overflow={spec.overflow!r}"
    elif overflowed.high <= overflowed.limit and not overflowed.twice:
        what = f"{spec.name} is ended with room for more"
    elif delivered and delivered[-1].order > overflowed.order:
        what = f"{spec.name} is told something after it was ended"
    if what:
        raise Violation(8, what, time=overflowed.time, evidence=[overflowed, *delivered[-1:]])


def _judge_report(overflowed: Overflowed, spec: ListenerSpec, history: History) -> None:
    """A handler's end is logged and told to the error hook, also if it is stuck in a call."""
    if spec.streams:
        left_before = (each for each in history.of(Left) if each.order < overflowed.order)
        if any(each.listener == spec.name for each in left_before):
            return  # it had been left already: nobody came back to be told
        reports = [len(overflowed.raised)]
    else:
        name = f"{spec.name} of {spec.informer}"
        message, error = f"handler {name}: {name} was ended: ", f"ListenerOverflow: {name} was "
        reports = [
            sum(each.message.startswith(message) for each in history.of(Logged)),
            sum(
                each.error.startswith(error)
                for each in history.of(ProblemReported)
                if each.cause == name
            ),
        ]
    if any(times != 1 for times in reports):
        what = f"that {spec.name} was ended is reported {reports} times"
        raise Violation(8, what, time=overflowed.time, evidence=[overflowed])


# -- with its factory --------------------------------------------------------------------------


def _judge_visit(visited: Visited, visit: Visit, history: History) -> None:
    if visited.late:
        _broken(visited, f"{visited.name} is told {visited.late} events after it was left")
    if visited.raised != visited.broke:
        said = f"its handler broke {visited.broke!r}, and it has ended with {visited.raised!r}"
        _broken(visited, f"{visited.name}: {said}", promise=7)
    if visited.lasted > LEAVING * (1 + visit.drains) + LEAVING_DRIFT:
        _broken(visited, f"leaving {visited.name} took {visited.lasted:.3f} s")
    if visited.broke:
        if visited.lasted > LEAVING_DRIFT:
            _broken(visited, f"{visited.name} ends {visited.lasted:.3f} s after what was to end it")
    elif visited.incomplete:
        if not visit.drains or visit.name not in visited.incomplete:
            _broken(visited, f"leaving {visited.name} is incomplete for no reason")
        if visited.lasted < LEAVING - LEAVING_DRIFT:
            _broken(visited, f"{visited.name} got {visited.lasted:.3f} s to finish")
    elif visit.drains:
        _judge_drained(visited, history)


def _judge_drained(visited: Visited, history: History) -> None:
    """It holds what was cached when the body was through, but for what has changed since then, or
    had changed on the server and was on its way: what is no more cached when a handler gets to it
    isn't told as part of the state that it joined.
    """
    if any(each.order > visited.order for each in history.of(Restored)):
        return
    cached, held = visited.cached, visited.held
    moving = {
        each.key
        for each in history.of(Write)
        if each.order > visited.order
        or (each.key in cached and each.version > cached[each.key].number)
    }
    for key in sorted((cached.keys() | held.keys()) - moving):
        if cached.get(key) != held.get(key):
            what = f"{visited.name} has finished with {held.get(key)}, cached was {cached.get(key)}"
            _broken(visited, what, key)


def _broken(
    visited: Visited, what: str, key: ObjectKey | None = None, promise: int = 9
) -> NoReturn:
    raise Violation(promise, what, time=visited.time, key=key, evidence=[visited])
