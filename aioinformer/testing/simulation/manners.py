"""How an informer behaves towards its surroundings: promises 8, 9, 10 and 11.

Towards memory, towards the loop that it lives in, towards whoever operates it, and towards the
server.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from aioinformer._core.backoff import BackoffPolicy
from aioinformer.testing.simulation.history import History, Request, Sample
from aioinformer.testing.simulation.network import CHUNK_LINES
from aioinformer.testing.simulation.plan import InformerSpec
from aioinformer.testing.simulation.violation import Violation

__all__ = ["judge_bounds", "judge_liveness", "judge_politeness", "judge_silence"]

SLACK = 1
"""A re-created object is two events, so that a mailbox may hold one too many."""
MARKS = 4
"""Entries of a queue beside changes: a new state, a resync, a bookmark; the tail of a chunk."""
BATCHES = 3
"""A mailbox's batches beside the diffs of lists: a replay, its mark, a resync."""

POLICY = BackoffPolicy()
"""What the informers of a history have."""
SHORT = 0.5
"""Seconds: a watch that ends sooner, with no change in it, was certainly not served."""
DRIFT = 1.0
"""Seconds by which times in a history may be off, in favour of the accused."""
EPSILON = 1e-6


# -- 8 -----------------------------------------------------------------------------------------


def judge_bounds(history: History, spec: InformerSpec, samples: list[Sample]) -> None:
    """Mailboxes and the queue hold no more than they may.

    Raises:
        Violation: one holds more.
    """
    lists = [each.order for each in history.requests if _is_list_of(each, spec.name)]
    joined = {each.listener.name: each for each in history.joined}
    for sample in samples:
        if sample.queued > spec.high_mark + CHUNK_LINES + MARKS:
            what = f"the queue holds {sample.queued}, its high mark is {spec.high_mark}"
            raise Violation(8, what, time=sample.time, evidence=[sample])
        for latch in sample.latches:
            since = _before(joined[latch.listener].order, lists)
            relists = sum(1 for order in lists if since <= order < sample.order)
            if latch.pending > latch.limit + SLACK:
                what = f"a mailbox holds {latch.pending} of {latch.limit}"
                raise Violation(8, what, time=sample.time, evidence=[sample, latch])
            if latch.batches > BATCHES + relists:
                what = f"a mailbox holds {latch.batches} batches, {relists} lists after it joined"
                raise Violation(8, what, time=sample.time, evidence=[sample, latch])


def _before(order: int, lists: list[int]) -> int:
    """When the list was asked for that was under way when somebody joined."""
    return max((each for each in lists if each < order), default=0)


def _is_list_of(request: Request, informer: str) -> bool:
    return request.informer == informer and request.kind == "list" and not request.failure


# -- 9 -----------------------------------------------------------------------------------------


def judge_liveness(history: History) -> None:
    """Everything has ended, and nothing went wrong behind anybody's back.

    Raises:
        Violation: something was left.
    """
    end = history.ending
    left = {
        "tasks are left": end.tasks,
        "waits did not end": end.waits,
        "the event loop complained": end.complaints,
        "tasks have failed": tuple(filter(None, end.failures)),
        "requests are left open": (end.requests,) if end.requests else (),
    }
    for what, found in left.items():
        if found:
            raise Violation(9, what, time=end.time, evidence=found)


# -- 10 ----------------------------------------------------------------------------------------


def judge_silence(history: History, spec: InformerSpec, samples: list[Sample]) -> None:
    """Every failure of a request was logged, and is what health shows while it waits.

    Raises:
        Violation: one was not.
    """
    logged = Counter(log.message.partition(": ")[2] for log in history.logs)
    failed = Counter(each.failure for each in history.requests if each.failure)
    for failure, times in failed.items():
        if logged[failure] < times:
            what = f"{failure!r} happened {times} times and was logged {logged[failure]} times"
            time = next(each.time for each in history.requests if each.failure == failure)
            raise Violation(10, what, time=time)
    closings = [each for each in history.closings if each.request.informer == spec.name]
    newest = 0
    for sample in samples:
        while newest < len(closings) and closings[newest].order < sample.order:
            newest += 1
        if sample.condition != "waiting":
            continue
        failure = closings[newest - 1].request.failure if newest else ""
        if not sample.error or sample.retry_in is None or (failure and sample.error != failure):
            what = f"health doesn't show what happened last ({failure or 'something'})"
            raise Violation(10, what, time=sample.time, evidence=[sample])


# -- 11 ----------------------------------------------------------------------------------------


def judge_politeness(history: History) -> None:
    """After a failure nobody is asked before the backoff allows it, or the server.

    Worked out anew from the policy: the ``k``-th failure since a quiet time is followed by at
    least ``initial × factor ** (k - 1)`` seconds, but for the first one if it was a 410.

    Raises:
        Violation: somebody was.
    """
    by_informer: dict[str, list[Request]] = {}
    for request in history.requests:
        if any(spec.name == request.informer for spec in history.plan.informers):
            by_informer.setdefault(request.informer, []).append(request)
    for requests in by_informer.values():
        _judge_requests(requests)


def _judge_requests(requests: list[Request]) -> None:
    failures, waited_until = 0, float("-inf")
    for request, following in pairwise(requests):
        if request.ended is None or not _failed(request):
            continue
        if request.ended - waited_until >= POLICY.reset_after - DRIFT:
            failures = 0
        failures += 1
        least = min(POLICY.maximum, POLICY.initial * POLICY.factor ** min(failures - 1, 64))
        if failures == 1 and request.expired:
            least = 0.0
        waited = following.time - request.ended
        if waited < max(least, request.retry_after) - EPSILON:
            what = f"asked after {waited:.3f} s, failure {failures} allows it after {least:.3f} s"
            evidence = [request, request.failure, f"Retry-After {request.retry_after:g}", following]
            raise Violation(11, what, time=following.time, evidence=evidence)
        waited_until = following.time


def _failed(request: Request) -> bool:
    if request.failure or request.ended is None:
        return bool(request.failure)
    unserved = request.kind == "watch" and not request.changes
    return unserved and request.ended - request.time < SHORT
