"""How listeners end: removed and waited for, too slow, or with their factory. Promises 8 and 9.

An ``overflow="error"`` listener ends when it holds too much, and only then; that is reported once,
and nothing is told to it afterwards. One that is waited for is in no call any more. One that is to
drain was told everything, or what leaves its factory says which one was not.
"""

from __future__ import annotations

from typing import NoReturn

from aioinformer._core.objects.kube_object import ObjectKey
from aioinformer.testing.simulation.departures import Overflowed, Visited
from aioinformer.testing.simulation.history import History
from aioinformer.testing.simulation.plan import ListenerSpec, Visit
from aioinformer.testing.simulation.records import Told
from aioinformer.testing.simulation.violation import Violation

__all__ = ["judge_departures"]

LEAVING = 10.0
"""Seconds that leaving a factory waits for what drains; the library's default."""
DRIFT = 2.0
"""Seconds for what the clock costs."""


def judge_departures(history: History, told: dict[str, list[Told]]) -> None:
    """Hold the ends of all listeners to what was asked for.

    Raises:
        Violation: a promise was broken.
    """
    _judge_waits(history, told)
    specs = {each.listener.name: each.listener for each in history.joined}
    for overflowed in history.overflowed:
        spec = specs[overflowed.listener]
        _judge_overflow(overflowed, spec, told.get(spec.name, []))
        _judge_report(overflowed, spec, history)
    visits = {each.name: each for each in history.plan.steps if isinstance(each, Visit)}
    for visited in history.visited:
        _judge_visit(visited, visits[visited.name], history)


def _judge_waits(history: History, told: dict[str, list[Told]]) -> None:
    for left in history.left:
        busy = [each for each in told.get(left.listener, []) if not 0 < each.returned < left.order]
        if left.waited and busy:
            what = f"{left.listener} was waited for, and is still in a call"
            raise Violation(9, what, time=left.time, evidence=[left, *busy])


# -- too slow ----------------------------------------------------------------------------------


def _judge_overflow(overflowed: Overflowed, spec: ListenerSpec, told: list[Told]) -> None:
    what = ""
    if spec.overflow != "error":
        what = f"{spec.name} is ended, but has overflow={spec.overflow!r}"
    elif overflowed.high <= overflowed.limit and not overflowed.twice:
        what = f"{spec.name} is ended with room for more"
    elif told and told[-1].order > overflowed.order:
        what = f"{spec.name} is told something after it was ended"
    if what:
        raise Violation(8, what, time=overflowed.time, evidence=[overflowed, *told[-1:]])


def _judge_report(overflowed: Overflowed, spec: ListenerSpec, history: History) -> None:
    """A handler's end is logged and told to the error hook, also if it is stuck in a call."""
    if spec.streams:
        gone = (each for each in history.left if each.order < overflowed.order)
        if any(each.listener == spec.name for each in gone):
            return  # it had been left already: nobody came back to be told
        reports = [len(overflowed.raised)]
    else:
        name = f"{spec.name} of {spec.informer}"
        message, error = f"handler {name}: {name} was ended: ", f"ListenerOverflow: {name} was "
        reports = [
            sum(each.message.startswith(message) for each in history.logs),
            sum(each.error.startswith(error) for each in history.troubles if each.cause == name),
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
    if visited.lasted > LEAVING * (1 + visit.drains) + DRIFT:
        _broken(visited, f"leaving {visited.name} took {visited.lasted:.3f} s")
    if visited.broke:
        if visited.lasted > DRIFT:
            _broken(visited, f"{visited.name} ends {visited.lasted:.3f} s after what was to end it")
    elif visited.incomplete:
        if not visit.drains or visit.name not in visited.incomplete:
            _broken(visited, f"leaving {visited.name} is incomplete for no reason")
        if visited.lasted < LEAVING - DRIFT:
            _broken(visited, f"{visited.name} got {visited.lasted:.3f} s to finish")
    elif visit.drains:
        _judge_drained(visited, history)


def _judge_drained(visited: Visited, history: History) -> None:
    """It holds what was cached when the body was through, but for what has changed since then, or
    had changed on the server and was on its way: what is no more cached when a handler gets to it
    isn't told as part of the state that it joined.
    """
    if any(each.order > visited.order for each in history.restores):
        return
    cached, held = visited.cached, visited.held
    moving = {
        each.key
        for each in history.writes
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
