"""Checks of what an informer costs its surroundings (guarantees 8, 9, 10 and 11).

``judge_bounds`` checks the memory, ``judge_liveness`` the event loop, ``judge_reporting`` what the
informer reports of failures, and ``judge_politeness`` the requests that the server receives.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

from aioinformer._core.listwatch.backoff import BackoffPolicy
from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.polling import JITTER, POLL_INTERVAL, REFUSALS
from aioinformer._core.listwatch.transitions import Phase
from aioinformer.testing.server.request_driver import CHUNK_LINES
from tests.simulation.checks.violation import Violation
from tests.simulation.plan import InformerSpec
from tests.simulation.records import (
    NEVER,
    History,
    Joined,
    Logged,
    ProblemReported,
    Request,
    Sample,
    Transition,
    Write,
)

SLACK = 1
"""A re-created object is two events, so that a mailbox may hold one event too many."""
MARKS = 4
"""Entries of a queue beside changes: a new state, a resync, a bookmark, the tail of a chunk."""
BATCHES = 3
"""Batches of a mailbox beside the diff of a list: a replay, its mark, a resync."""
DIFF = 256
"""Events in each batch of a diff except the last."""

POLICY = BackoffPolicy()
"""The policy of the informers of a history."""
SHORT = 0.5
"""Seconds: a watch that ends sooner, without a change in it, was certainly not served."""
DRIFT = 1.0
"""Seconds by which times in a history may be off, in favour of the informer."""
EPSILON = 1e-6


# -- 8 -----------------------------------------------------------------------------------------


def judge_bounds(history: History, spec: InformerSpec, samples: list[Sample]) -> None:
    """Check that mailboxes and the queue hold no more than their limits.

    Raises:
        Violation: one holds more.
    """
    joined = {each.listener.name: each for each in history.of(Joined)}
    keys = {each.key for each in history.of(Write) if spec.namespace in (None, each.key.namespace)}
    for sample in samples:
        if sample.queued > spec.high_mark + CHUNK_LINES + MARKS:
            what = f"the queue holds {sample.queued}, its high mark is {spec.high_mark}"
            raise Violation(8, what, time=sample.time, evidence=[sample])
        for sample_listener in sample.listeners:
            merges = joined[sample_listener.listener].listener.overflow == "coalesce"
            if sample_listener.pending > max(sample_listener.limit + SLACK, 2 * len(keys) * merges):
                what = f"a mailbox holds {sample_listener.pending} of {sample_listener.limit}"
                raise Violation(8, what, time=sample.time, evidence=[sample, sample_listener])
            if sample_listener.batches > BATCHES + 1 + 2 * len(keys) // DIFF:
                what = f"a mailbox holds {sample_listener.batches} batches, for {len(keys)} keys"
                raise Violation(8, what, time=sample.time, evidence=[sample, sample_listener])


# -- 9 -----------------------------------------------------------------------------------------


def judge_liveness(history: History) -> None:
    """Check that all tasks and requests have ended, and that no exception went unhandled.

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

EXPECTED = "WatchList is not available, falling back to LIST: "
POLLING = "the server refuses watches, lists refresh the cache: "
"""The beginning of the log line about an error that some servers always answer with."""

WELL = {
    *(
        (phase, outcome)
        for phase in Phase
        for outcome in (Outcome.MORE, Outcome.COMPLETE, Outcome.POLLED)
    ),
    (Phase.WATCH, Outcome.ENDED),
}
"""The ends of requests when nothing is wrong."""
LOOKS = (Outcome.SERVED, Outcome.APPEARED, Outcome.API_VERSION_CHANGED, Outcome.NOT_SERVED)
ANSWERS = {
    (Phase.FRESHNESS_CHECK, Outcome.REWOUND),
    # The answer of a server that has no WatchList, which is no problem: a list follows.
    (Phase.WATCHLIST, Outcome.WATCHLIST_UNSUPPORTED),
    *((Phase.DISCOVERY, each) for each in LOOKS),
}
"""The outcomes of requests that follow a failure. They are no failures of their own and are not
reported. (A rewind is reported when the state was read again.)"""
LONG_INTERVAL = 230.0
"""Seconds: if the estimated interval of bookmarks is so long, an idle timeout is no failure."""


def judge_reporting(history: History, spec: InformerSpec, samples: list[Sample]) -> None:
    """Check that every failure was logged, counted, passed to the error hook, and shown by health.

    Raises:
        Violation: one was not.
    """
    _judge_logs(history)
    transitions = [each for each in history.of(Transition) if each.informer == spec.name]
    for each in transitions:
        _judge_outcome(each)
    problems = [each for each in history.of(ProblemReported) if each.informer == spec.name]
    reported = Counter(each.cause for each in problems if not _is_not_a_request(each))
    known = set(_find_known(transitions))
    failed = (
        each
        for each in transitions
        if each.row not in WELL | ANSWERS and not _is_expected_idle_timeout(each)
        if id(each) not in known
    )
    found = Counter(each.outcome.name.lower() for each in failed)
    if reported != found:
        what = f"the error hook of {spec.name} received {dict(reported)}, there were {dict(found)}"
        raise Violation(10, what, time=history.ending.time)
    _judge_rejected(history, spec, problems)
    requests = [each for each in problems if each.phase != "handler"]  # those count by listener
    counted = Counter((each.informer, each.phase, _kind(each.error)) for each in requests)
    measured = {key: times for key, times in history.counted.items() if key[0] == spec.name}
    if counted != measured:
        what = f"metrics counted {measured}, there were {dict(counted)}"
        raise Violation(10, what, time=history.ending.time)
    rewinds = [each.order for each in problems if each.phase == "rewind"]
    failures = [each for each in problems if not _is_not_a_request(each)]
    orders = [each.order for each in failures]
    for sample in samples:
        if sample.rewinds != bisect_left(rewinds, sample.order):
            what = f"health shows {sample.rewinds} rewinds, {len(rewinds)} were announced"
            raise Violation(10, what, time=sample.time, evidence=[sample])
        newest = bisect_left(orders, sample.order)
        shown = failures[newest - 1].error if newest else ""
        waiting = sample.condition == "waiting"
        if waiting and (sample.error != shown or sample.retry_in is None or not shown):
            what = f"health doesn't show what happened last ({shown or 'nothing'})"
            raise Violation(10, what, time=sample.time, evidence=[sample])


def _find_known(transitions: list[Transition]) -> Iterator[int]:
    """Yield the refusals of watches that were reported when the polling began."""
    polling = False
    for each in transitions:
        if each.outcome is Outcome.WATCH_REFUSED:
            if polling:
                yield id(each)
            polling = True
        elif each.phase is Phase.WATCH and each.request.answered < NEVER:
            polling = False


def _is_expected_idle_timeout(transition: Transition) -> bool:
    """Return True if this is an idle timeout that came again and again, which is no failure."""
    long_interval = (
        transition.bookmark_interval is not None and transition.bookmark_interval >= LONG_INTERVAL
    )
    return long_interval and transition.row == (Phase.WATCH, Outcome.IDLE_TIMEOUT)


def _is_not_a_request(problem: ProblemReported) -> bool:
    """Return True if the problem is not that of a request."""
    return (
        problem.phase in ("rewind", "object", "handler") or problem.cause == "api_version_changed"
    )


def _judge_rejected(history: History, spec: InformerSpec, problems: list[ProblemReported]) -> None:
    """Check that each rejected object is logged and passed to the error hook."""
    reported = sum(each.phase == "object" for each in problems)
    of, stays = f"{spec.name}: ", "; the previous version stays cached"
    logged = sum(
        each.message.startswith(of) and each.message.endswith(stays) for each in history.of(Logged)
    )
    if reported != logged:
        what = f"{spec.name} logged {logged} rejections, the error hook received {reported}"
        raise Violation(10, what, time=history.ending.time)


def _judge_logs(history: History) -> None:
    said = (log.message.partition(": ")[2] for log in history.of(Logged))
    logged = Counter(each.removeprefix(EXPECTED).removeprefix(POLLING) for each in said)
    # The answer of a server that has no WatchList is said once, since nothing is wrong.
    expected = {
        id(each.request)
        for each in history.of(Transition)
        if each.outcome is Outcome.WATCHLIST_UNSUPPORTED
    }
    failed = Counter(
        each.failure for each in history.of(Request) if each.failure and id(each) not in expected
    )
    for failure, times in failed.items():
        if logged[failure] < times:
            what = f"{failure!r} happened {times} times and was logged {logged[failure]} times"
            time = next(each.time for each in history.of(Request) if each.failure == failure)
            raise Violation(10, what, time=time)


def _judge_outcome(transition: Transition) -> None:
    """Check that a request that failed was not taken for one that went well."""
    request = transition.request
    lasted = (request.ended or request.time) - request.time
    expired = request.expired and transition.outcome not in (
        Outcome.EXPIRED,
        Outcome.VERSION_TOO_LARGE,
    )
    unserved = request.kind == "watch" and not request.changes and lasted < SHORT
    if expired or (transition.row in WELL and (request.failure or unserved)):
        what = f"a request that failed was taken for {transition.outcome.name}"
        raise Violation(
            10, what, time=transition.time, evidence=[request, request.failure, transition]
        )


def _kind(error: str) -> str:
    return error.partition(":")[0]


# -- 11 ----------------------------------------------------------------------------------------

AT_ONCE = {
    (Phase.WATCH, Outcome.IDLE_TIMEOUT),
    (Phase.FRESHNESS_CHECK, Outcome.REWOUND),
    (Phase.DISCOVERY, Outcome.APPEARED),
}
"""The rows that another kind of request follows at once."""
ONCE_AT_ONCE = {
    *(
        (phase, outcome)
        for phase in Phase
        for outcome in (Outcome.EXPIRED, Outcome.VERSION_TOO_LARGE)
    ),
    *(
        (Phase.WATCHLIST, each)
        for each in (
            Outcome.BAD_REQUEST,
            Outcome.ERROR_EVENT,
            Outcome.WATCHLIST_TIMEOUT,
            Outcome.WATCHLIST_UNSUPPORTED,
        )
    ),
    (Phase.LIST, Outcome.REWOUND),
    (Phase.PAGE, Outcome.REWOUND),
    *((phase, each) for phase in (Phase.WATCHLIST, Phase.WATCH) for each in REFUSALS),
} - {
    (phase, outcome)
    for phase in (Phase.FRESHNESS_CHECK, Phase.DISCOVERY)
    for outcome in (Outcome.EXPIRED, Outcome.VERSION_TOO_LARGE)
}
"""The rows that another kind of request may follow at once, once in an outage."""
STATE_READ = {
    (phase, outcome)
    for phase in (Phase.LIST, Phase.PAGE)
    for outcome in (Outcome.COMPLETE, Outcome.POLLED)
}
"""The rows of a list that was read to its end."""
SETTLED = 20.0
"""Seconds without a failure after a whole state was read, which end an outage."""
FIRST_PAUSE, LATER_PAUSE = 3.0, 20.0
"""The least waits after a 429 or 503 with a Retry-After: in the first two minutes, and later."""
FALLBACKS = {
    Outcome.BAD_REQUEST,
    Outcome.ERROR_EVENT,
    Outcome.WATCHLIST_TIMEOUT,
    Outcome.WATCHLIST_UNSUPPORTED,
}
"""The outcomes after which no WatchList is requested for a while."""
REMEMBERED = 1000.0
"""The seconds of that while that are checked; the library remembers it for half an hour."""
NO_REASON = {Outcome.UNAUTHORIZED, Outcome.THROTTLED}
"""The outcomes that say nothing about WatchLists."""
SPACE = 20.0
"""Seconds between the beginnings of watches that are cut short."""

BUDGET = (10.0, 5)
"""The most requests that follow a failure, in any ten seconds: (seconds, requests)."""
LATER = (60.0, 3)
"""The same for any minute, once no request has lasted longer than ``QUICK`` for ``LONG``, and the
first answer after refused connections is as old."""
LONG = 120.0
QUICK = 5.0


def judge_politeness(history: History) -> None:
    """Check that no request follows a failure before the backoff and the server allow it.

    The waits are computed anew from the policy: at least ``initial × factor ** (k - 1)`` seconds
    follow the ``k``-th failure of an outage, except one that another kind of request may follow.
    Then the requests are counted against the budget, whatever the policy.

    Raises:
        Violation: a request came too soon, or was one too many.
    """
    for spec in history.plan.informers:
        requests = [each for each in history.of(Request) if each.informer == spec.name]
        transitions = [each for each in history.of(Transition) if each.informer == spec.name]
        pairs = list(zip(transitions, requests[1:], strict=False))
        _judge_waits(pairs)
        _judge_budget(pairs)
        _judge_fallback(pairs)


def _judge_waits(pairs: list[tuple[Transition, Request]]) -> None:
    outage, brief = _Outage(), False
    for transition, following in pairs:
        outage.learn(transition)
        was_brief, brief = brief, transition.row == (Phase.WATCH, Outcome.SHORT_WATCH)
        if brief and was_brief and following.time - transition.request.time < SPACE - DRIFT:
            raise _too_soon(
                transition, following, f"a watch that was cut short allows it after {SPACE}"
            )
        if brief or transition.row in WELL or transition.row in AT_ONCE:
            continue
        if transition.outcome is Outcome.WATCH_REFUSED:
            _judge_poll(transition, following)
            continue
        least = outage.least_wait(transition)
        if following.time - transition.time < least - EPSILON:
            raise _too_soon(
                transition, following, f"failure {outage.failures} allows it after {least:.3f} s"
            )
        outage.waited_until = following.time


class _Outage:
    """The failures of one outage of one informer, as the policy counts them."""

    def __init__(self) -> None:
        self.failures = 0
        self.waited_until = float("-inf")
        self._began = 0.0
        self._state_read: float | None = None
        self._unreachable = self._answered = self._skipped = False

    def learn(self, transition: Transition) -> None:
        """Note a whole state, and an answer after refused connections."""
        request = transition.request
        if transition.row in STATE_READ:
            self._state_read = transition.time
        elif request.kind == "watchlist" and transition.phase is Phase.WATCH:
            self._state_read = request.answered
        was_unreachable, self._unreachable = (
            self._unreachable,
            transition.outcome is Outcome.UNREACHABLE,
        )
        if was_unreachable and not self._unreachable and not self._answered:
            self._answered, self.failures = True, min(self.failures, 1)

    def least_wait(self, transition: Transition) -> float:
        """Count a failure, and return the least wait after it."""
        now, asked = transition.time, transition.request.retry_after
        if self._is_over(now):
            self.failures, self._began = 0, now
            self._answered = self._skipped = False
        self._state_read = None
        if transition.outcome is Outcome.THROTTLED and asked:
            self.failures = max(self.failures, 1)
            early = now - self._began < POLICY.reset_after + DRIFT
            return max(asked, FIRST_PAUSE if early else LATER_PAUSE)
        self.failures += 1
        if transition.row in ONCE_AT_ONCE and not self._skipped and not asked:
            self._skipped = True
            return 0.0
        bare = POLICY.initial * POLICY.factor ** min(self.failures - 1, 64)
        return max(min(POLICY.maximum, bare), asked)

    def _is_over(self, now: float) -> bool:
        quiet = now - self.waited_until >= POLICY.reset_after - DRIFT
        settled = self._state_read is not None and now - self._state_read >= SETTLED - DRIFT
        return not self.failures or quiet or settled


def _judge_poll(transition: Transition, following: Request) -> None:
    least = POLL_INTERVAL * (1 - JITTER / 2)
    if following.time - transition.time < least - EPSILON:
        raise _too_soon(transition, following, f"polling allows it after {least:.3f} s")


def _too_soon(transition: Transition, following: Request, why: str) -> Violation:
    what = f"requested after {following.time - transition.time:.3f} s, {why}"
    evidence = [transition.request, transition, transition.request.failure, following]
    return Violation(11, what, time=following.time, evidence=evidence)


def _judge_budget(pairs: list[tuple[Transition, Request]]) -> None:
    since: float | None = None
    answered = unreachable = False
    early: list[Request] = []
    late: list[Request] = []
    for transition, following in pairs:
        # Watches that are cut short have a distance of their own. Where watches are refused, a
        # list ends an outage as a watch that lasts does elsewhere, and the next list waits.
        quick = transition.time - transition.request.time <= QUICK and transition.outcome not in (
            Outcome.SHORT_WATCH,
            Outcome.POLLED,
            Outcome.WATCH_REFUSED,
        )
        was_unreachable, unreachable = unreachable, transition.outcome is Outcome.UNREACHABLE
        if not quick:
            since, answered = None, False
        elif since is None or (was_unreachable and not unreachable and not answered):
            # The first answer after refused connections begins the outage again, once.
            answered = since is not None
            since = transition.request.time
        if transition.row not in WELL:
            early.append(following)
            # An answer that leads to another kind of request is followed at once, one time.
            at_once = transition.row in ONCE_AT_ONCE and following.time < transition.time + DRIFT
            if since is not None and following.time - since >= LONG and not at_once:
                late.append(following)
    _judge_count(early, *BUDGET)
    _judge_count(late, *LATER)


def _judge_count(asked: list[Request], seconds: float, most: int) -> None:
    """Check that no ``seconds`` have more than ``most`` of these requests."""
    for first, last in zip(asked, asked[most:], strict=False):
        if last.time - first.time < seconds - DRIFT:
            what = f"more than {most} requests follow failures in {seconds:.0f} s"
            evidence = [each for each in asked if first.time <= each.time <= last.time]
            raise Violation(11, what, time=last.time, evidence=evidence)


def _judge_fallback(pairs: list[tuple[Transition, Request]]) -> None:
    """Check that a WatchList that failed is remembered, and that no other failure counts as one."""
    until = float("-inf")
    for transition, following in pairs:
        streaming = transition.phase is Phase.WATCHLIST
        if streaming and transition.outcome in FALLBACKS:
            until = transition.time + REMEMBERED
        if following.kind == "watchlist" and following.time < until:
            what = "a WatchList is requested again, although the server has none"
            raise Violation(11, what, time=following.time, evidence=[transition, following])
        if streaming and transition.outcome in NO_REASON and following.kind != "watchlist":
            what = "lists are used instead of WatchLists without a reason"
            raise Violation(11, what, time=following.time, evidence=[transition, following])
