"""Checks of handler calls: concurrency, time limits, errors, resyncs, and the end of listeners.

**Calls** (guarantees 2, 7 and 9): a handler is never called twice at once for one key, nor for more
keys than its concurrency, and no longer than its timeout. Each error is counted, passed to
the error hook, and logged or included in a number that is logged, once.

**Resyncs** (2 and 9): each listener has its own period. No resync comes more often than that. A
quick listener receives an object that doesn't change again within two periods.

**Ends** (8 and 9): an ``overflow="error"`` listener ends when its mailbox holds too much, and only
then. The end is reported once, and no event is delivered afterwards. A listener that was waited for
is in no call any more. A listener that drains has received everything, or the error that leaves its
factory names the listener that has not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NoReturn

from aioinformer._core.objects.kube_object import ObjectKey
from aioinformer._runtime.reporting.error_hook import FAILURE_INTERVAL
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
    Version,
    Visited,
    Write,
)

LATE = 2.0
"""Seconds by which a call may exceed its timeout, for the cost of looking at the clock."""
EARLY = 0.1
"""Seconds by which a call may seem to have had less time, for the same reason."""
FURTHER = re.compile(r"(\d+) further failures? with \w+, the last of them: (.*)", re.DOTALL)
"""The record of the failures that were counted instead of logged."""
SOON = 100.0
"""Seconds within which every call returns, except for stuck ones."""


def judge_calls(
    history: History, spec: InformerSpec, last: Sample, delivered: dict[str, list[EventDelivered]]
) -> None:
    """Check the calls of an informer's handlers.

    Raises:
        Violation: a promise was broken.
    """
    errors = {
        sample_listener.listener: sample_listener.errors for sample_listener in last.listeners
    }
    for listener in (joined.listener for joined in history.joined(spec)):
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
                raise Violation(7, what, *last.listeners, time=last.time)


def _judge_overlaps(listener: ListenerSpec, calls: Sequence[EventDelivered]) -> None:
    under_way: list[EventDelivered] = []
    for call in calls:
        under_way = [each for each in under_way if not 0 < each.returned < call.order]
        if any(each.key == call.key for each in under_way):
            what = f"{listener.name} is called for a key while a call for that key is in flight"
            raise Violation(2, what, *under_way, call, key=call.key)
        under_way.append(call)
        if len(under_way) > listener.concurrency:
            what = f"{listener.name} is called {len(under_way)} times at once"
            raise Violation(2, what, *under_way, time=call.time, key=call.key)


def _judge_ends(listener: ListenerSpec, calls: Sequence[EventDelivered], last: Sample) -> None:
    for call in calls:
        over = 0 < call.returned < last.order
        lasted = (call.until if over else last.time) - call.time
        what = ""
        if listener.timeout is not None and lasted > listener.timeout + LATE:
            what = f"a call of {listener.name} lasts {lasted:.3f} s, more than {listener.timeout:g}"
        elif listener.timeout and over and call.raised and lasted < listener.timeout - EARLY:
            what = f"a call of {listener.name} is cancelled after {lasted:.3f} s"
        if what:
            raise Violation(7, what, call, key=call.key)
        if not over and lasted > SOON and listener.behaviour != "stuck":
            what = f"a call of {listener.name} doesn't end"
            raise Violation(9, what, call, key=call.key)


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
        _count_logged(log.message, lines) for log in history.of(Logged) if log.order < last.order
    )
    problems = [
        problem
        for problem in history.of(ProblemReported)
        if problem.order < last.order
        and problem.cause == name
        and not problem.error.startswith("ListenerOverflow")
    ]
    hooked = len(problems)
    # The failures of an interval are logged at its end.
    due = sum(problem.time < last.time - FAILURE_INTERVAL - LATE for problem in problems)
    if not due <= logged <= hooked == failed + filter_errors:
        what = (
            f"{listener.name} failed {failed} times and its filter {filter_errors} times, "
            f"which was logged {logged} times, and the error hook received {hooked}"
        )
        raise Violation(7, what, time=last.time)


def _count_logged(message: str, lines: tuple[str, ...]) -> int:
    """Return the number of failures in one record that begins, or ends, with one of the lines."""
    further = FURTHER.match(message)
    if further is None:
        return int(message.startswith(lines))
    return int(further[1]) if further[2].startswith(lines) else 0


RESYNC_DRIFT = 5.0
"""Seconds for a resync of all objects, with the cost of looking at the clock."""
QUICK = ("quick", "raising", "cancelling", "stream", "interrupted", "merged")
"""The behaviours that handle a resync at once."""


def judge_resyncs(
    history: History, spec: InformerSpec, last: Sample, checks: Mapping[str, OrderingCheck]
) -> None:
    """Check an informer's resyncs against the periods of its listeners.

    Raises:
        Violation: there was one too many, or none.
    """
    there = {sample_listener.listener for sample_listener in last.listeners}
    for joined in history.joined(spec):
        listener = joined.listener
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
            what = f"{joined.listener.name} receives a resync too many, {times[each.key]} by now"
            raise Violation(2, what, joined, each, key=each.key)


def _judge_lack(
    listener: ListenerSpec, delivered: list[EventDelivered], period: float, last: Sample
) -> None:
    newest = {each.key: each for each in delivered if each.order < last.order}
    for each in newest.values():
        if each.what == "deleted":
            continue
        since = last.time - each.time
        if since > 2 * period + RESYNC_DRIFT:
            what = (
                f"{listener.name} receives no resync in {since:.0f} s, its period is {period:g} s"
            )
            raise Violation(9, what, each, time=last.time, key=each.key)


LEAVING = 10.0
"""Seconds that leaving a factory waits for handlers that drain; the library's default."""
LEAVING_DRIFT = 2.0
"""Seconds for the cost of looking at the clock."""


def judge_departures(history: History, delivered: dict[str, list[EventDelivered]]) -> None:
    """Check the ends of all listeners.

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
            raise Violation(9, what, left, *busy)


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
        what = f"{spec.name} receives an event after it was ended"
    if what:
        raise Violation(8, what, overflowed, *delivered[-1:])


def _judge_report(overflowed: Overflowed, spec: ListenerSpec, history: History) -> None:
    """Check that a listener's end is reported once, also if its handler is stuck in a call."""
    if spec.streams:
        left_before = (each for each in history.of(Left) if each.order < overflowed.order)
        if any(each.listener == spec.name for each in left_before):
            return  # the stream had been left already: there is no reader
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
        raise Violation(8, what, overflowed)


# -- with its factory --------------------------------------------------------------------------


def _judge_visit(visited: Visited, visit: Visit, history: History) -> None:
    if visited.late:
        _broken(visited, f"{visited.name} receives {visited.late} events after it was left")
    if visited.raised != visited.broke:
        said = (
            f"its handler raised {visited.broke!r}, and the factory ended with {visited.raised!r}"
        )
        _broken(visited, f"{visited.name}: {said}", promise=7)
    if visited.lasted > LEAVING * (1 + visit.drains) + LEAVING_DRIFT:
        _broken(visited, f"leaving {visited.name} took {visited.lasted:.3f} s")
    if visited.broke:
        if visited.lasted > LEAVING_DRIFT:
            _broken(
                visited,
                f"{visited.name} ends {visited.lasted:.3f} s after the error that had to end it",
            )
    elif visited.incomplete:
        if not visit.drains or visit.name not in visited.incomplete:
            _broken(visited, f"leaving {visited.name} is incomplete for no reason")
        if visited.lasted < LEAVING - LEAVING_DRIFT:
            _broken(visited, f"{visited.name} had only {visited.lasted:.3f} s to finish")
    elif visit.drains:
        _judge_drained(visited, history)


def _judge_drained(visited: Visited, history: History) -> None:
    """Check that the handler has received the state that was cached at the end of the body.

    Objects that have changed since then, or whose change was on its way from the server, are left
    out: an initial object that is no longer cached when the handler gets to it isn't delivered.
    """
    restored = history.of(Restored)
    if any(each.order > visited.order and each.time <= visited.time for each in restored):
        return
    cached, held = visited.cached, visited.held
    moving = {
        each.key
        for each in history.of(Write)
        if (each.order > visited.order and each.time <= visited.time)
        or (
            (each.order < visited.order and each.key in cached)
            and _is_newer(each, cached[each.key])
        )
    }
    for key in sorted((cached.keys() | held.keys()) - moving):
        if cached.get(key) != held.get(key):
            what = f"{visited.name} has finished with {held.get(key)}, cached was {cached.get(key)}"
            _broken(visited, what, key)


def _is_newer(write: Write, cached: Version) -> bool:
    """Return True if the server showed this state after the one that was cached."""
    if write.number:  # other content under the same version
        return write.number == cached.number and write.value != cached.value
    return write.version > cached.number


def _broken(
    visited: Visited, what: str, key: ObjectKey | None = None, promise: int = 9
) -> NoReturn:
    raise Violation(promise, what, visited, key=key)
