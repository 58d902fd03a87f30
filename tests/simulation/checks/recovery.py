"""Checks of the time from the end of an outage to a cache that is fresh (guarantees 1 and 9).

Any answer ends an outage: the waits of the outage were those of a server that can't be reached. So
a reader whose connections were refused sends its next request within the longest wait, and shows
the server's state a few seconds after the first answer, also if that answer is a 410, or if the
server was restored meanwhile. Nothing is expected while another fault lasts.
"""

from __future__ import annotations

from collections.abc import Iterator

from aioinformer._core.listwatch.outcomes import Outcome
from tests.simulation.checks.oracle import Rewinds
from tests.simulation.checks.violation import Violation
from tests.simulation.network import connection_of
from tests.simulation.plan import InformerSpec, ServerStep
from tests.simulation.records import (
    NEVER,
    FaultStarted,
    History,
    ProblemReported,
    Request,
    Restored,
    ScopeClosed,
    Transition,
    Write,
)

LONGEST_WAIT = 41.0
"""Seconds between two attempts: 20 s, stretched by as much, and a second to notice it."""
FRESH_WITHIN = 8.0
"""Seconds from the first answer to the server's state."""
BETWEEN_OUTAGES = 300.0
"""Seconds after which an outage is certainly not the same as the one before."""
ROOMY = 1000
"""Entries: a queue of so many never keeps a reader from its next request."""
OPENED = 1.0
"""Seconds after which a watch was certainly not answered with an error."""


def judge_recovery(history: History) -> None:
    """Check that each reader is fresh again soon after its server can be reached.

    Raises:
        Violation: a request, or the state, came too late.
    """
    for spec in history.readers():
        if spec.high_mark < ROOMY:
            continue
        disturbed = list(_find_disturbances(history, spec))
        requests = history.of_informer(Request, spec.name)
        fresh = _find_fresh(history, spec, requests)
        last = -BETWEEN_OUTAGES
        for refused, answered in _find_returns(history, spec, requests):
            if answered.time - refused.time > LONGEST_WAIT:
                what = f"{answered.time - refused.time:.3f} s pass before the next attempt"
                raise Violation(9, what, refused, answered)
            until = answered.time + FRESH_WITHIN
            new, last = answered.time - last > BETWEEN_OUTAGES, answered.time
            calm = not any(begin < until and end > answered.time for begin, end in disturbed)
            if not (new and calm) or until > history.ending.time:
                continue
            if not any(answered.time <= at <= until for at in fresh):
                what = f"{spec.name} is not fresh {FRESH_WITHIN:g} s after the first answer"
                raise Violation(9, what, refused, answered)
            _judge_rewind(history, spec, refused, answered)


def _find_disturbances(history: History, spec: InformerSpec) -> Iterator[tuple[float, float]]:
    """Yield the times in which something else may keep a reader from the server's state."""
    for closed in history.of_informer(ScopeClosed, spec.name):
        yield closed.time, closed.time  # it has no time to become fresh
    for started in history.of(FaultStarted):
        fault = started.fault
        if fault.target in ("", connection_of(spec.name)):
            # A version that was served meanwhile is asked for until discovery corrects it.
            later = BETWEEN_OUTAGES if fault.kind in ("absent", "moved") else 0.0
            yield started.time, started.time + fault.lasting + later
    for step in history.plan.steps:
        if isinstance(step, ServerStep):
            later = BETWEEN_OUTAGES if step.action in ("withdraw", "serve") else 0.0
            yield step.at, step.at + later


def _find_returns(
    history: History, spec: InformerSpec, requests: list[Request]
) -> Iterator[tuple[Transition, Request]]:
    """Yield each transition of a refused connection, with the next request if that is answered."""
    transitions = history.of_informer(Transition, spec.name)
    for refused, following in zip(transitions, requests[1:], strict=False):
        if refused.outcome is Outcome.UNREACHABLE and not _is_refused(following):
            yield refused, following


def _is_refused(request: Request) -> bool:
    return request.answered == NEVER and request.failure.startswith("ConnectionFailed")


def _find_fresh(history: History, spec: InformerSpec, requests: list[Request]) -> list[float]:
    """Return the times at which a state was read or a watch was opened."""
    failed = {
        id(each.request): each.time
        for each in history.of_informer(Transition, spec.name)
        if each.request.failure or each.outcome is not Outcome.ENDED
    }
    return [
        each.answered
        for each in requests
        if each.answered < NEVER
        and (
            each.initial_list_complete
            or (each.kind == "watch" and failed.get(id(each), NEVER) > each.answered + OPENED)
        )
    ]


def _judge_rewind(
    history: History, spec: InformerSpec, refused: Transition, answered: Request
) -> None:
    """Check that a server that was restored while it refused connections is noticed at once."""
    until = answered.time + FRESH_WITHIN
    requests = history.of_informer(Request, spec.name)
    for restored in history.of(Restored):
        before = [each for each in requests if restored.order < each.order < answered.order]
        if not all(map(_is_refused, before)) or restored.order > answered.order:
            continue
        known = Rewinds(history, spec.name).known_at(restored, spec.name)
        passed = any(
            each.order > restored.order and each.version >= known and each.time < until
            for each in history.of(Write)
        )
        announced = any(
            each.phase == "rewind" and restored.order < each.order and each.time <= until
            for each in history.of_informer(ProblemReported, spec.name)
        )
        if known > restored.backup.version and not (passed or announced):
            what = f"{spec.name} has not noticed the restored server {FRESH_WITHIN:g} s after it"
            raise Violation(1, f"{what} answered again", restored, refused, answered)
