"""Checks of what an informer costs its surroundings (guarantees 8, 9, 10 and 11).

``judge_bounds`` checks the memory, ``judge_liveness`` the event loop, ``judge_reporting`` what the
informer reports of failures, and ``judge_politeness`` the requests that the server receives.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.polling import JITTER, POLL_INTERVAL, REFUSALS
from aioinformer._core.listwatch.transitions import Phase
from aioinformer.testing.server.request_driver import CHUNK_LINES
from tests.simulation.checks.violation import Violation
from tests.simulation.plan import NAMESPACES, InformerSpec
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
"""Entries of a queue beside changes: a new state, a resync, a bookmark, the tail of a chunk. Each
scope may queue one chunk and these when the queue is nearly full."""
BATCHES = 3
"""Batches of a mailbox beside the diffs of lists, one for each scope: a replay, its mark, a
resync."""
DIFF = 256
"""Events in each batch of a diff except the last."""

POLL_PAUSE = POLL_INTERVAL * (1 - JITTER / 2) - 1e-6
"""The least seconds between two lists that refresh the cache."""
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
    readers = len(NAMESPACES) if spec.scoped else 1
    keys = {each.key for each in history.of(Write) if spec.namespace in (None, each.key.namespace)}
    for sample in samples:
        if sample.queued > spec.high_mark + readers * (CHUNK_LINES + MARKS):
            what = f"the queue holds {sample.queued}, its high mark is {spec.high_mark}"
            raise Violation(8, what, sample)
        for sample_listener in sample.listeners:
            merges = joined[sample_listener.listener].listener.overflow == "coalesce"
            if sample_listener.pending > max(sample_listener.limit + SLACK, 2 * len(keys) * merges):
                what = f"a mailbox holds {sample_listener.pending} of {sample_listener.limit}"
                raise Violation(8, what, sample, sample_listener)
            if sample_listener.batches > BATCHES + readers + 2 * len(keys) // DIFF:
                what = f"a mailbox holds {sample_listener.batches} batches, for {len(keys)} keys"
                raise Violation(8, what, sample, sample_listener)


MOST_PAGES = 1100
"""Requests of one list. A list may have twice the objects that its first page announced, and 1,000
more, and ten pages in a row without an object. No selection of a history has 40 objects a page."""


def judge_pages(history: History) -> None:
    """Check that a list whose server always offers another page comes to an end.

    Raises:
        Violation: a list had too many pages.
    """
    pages = Counter[str]()
    for request in history.of(Request):
        if request.kind != "list":
            continue
        name = request.informer
        pages[name] = pages[name] + 1 if "continue=" in request.query else 1
        if pages[name] > MOST_PAGES:
            raise Violation(8, f"a list of {name} has more than {MOST_PAGES} pages", request)


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
            raise Violation(9, what, *found, time=end.time)


# -- 10 ----------------------------------------------------------------------------------------

EXPECTED = "WatchList is not available, falling back to LIST: "
POLLING = "the server refuses watches, lists refresh the cache: "
ALIVE = "the server is alive and had nothing to send: "
"""The beginning of the log line about an error that is none, or that some servers always answer
with."""

WELL = {
    *(
        (phase, outcome)
        for phase in Phase
        for outcome in (Outcome.MORE, Outcome.COMPLETE, Outcome.POLLED)
    ),
    (Phase.FRESHNESS_CHECK, Outcome.ALIVE),
    (Phase.WATCH, Outcome.ENDED),
    (Phase.WATCH, Outcome.SILENT_WATCH),
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


def judge_reporting(history: History, spec: InformerSpec, samples: list[Sample]) -> None:
    """Check that every failure was logged, counted, passed to the error hook, and shown by health.

    Raises:
        Violation: one was not.
    """
    _judge_logs(history)
    transitions = history.of_informer(Transition, spec.name)
    for each in transitions:
        _judge_outcome(each)
    problems = history.of_informer(ProblemReported, spec.name)
    reported = Counter(each.cause for each in problems if not _is_not_a_request(each))
    known = {*_find_known(transitions), *_find_alive(transitions)}
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
    rewinds = [each.order for each in problems if each.phase == "rewind"]
    failures = [each for each in problems if not _is_not_a_request(each)]
    orders = [each.order for each in failures]
    for sample in samples:
        if sample.rewinds != bisect_left(rewinds, sample.order):
            what = f"health shows {sample.rewinds} rewinds, {len(rewinds)} were announced"
            raise Violation(10, what, sample)
        newest = bisect_left(orders, sample.order)
        shown = failures[newest - 1].error if newest else ""
        waiting = sample.condition == "waiting"
        if waiting and (sample.error != shown or sample.retry_in is None or not shown):
            what = f"health doesn't show what happened last ({shown or 'nothing'})"
            raise Violation(10, what, sample)


def judge_counts(history: History, spec: InformerSpec) -> None:
    """Check that metrics and logs agree with the error hook.

    Raises:
        Violation: they don't.
    """
    names = {spec.name, *history.readers_of(spec)}
    problems = [each for each in history.of(ProblemReported) if each.informer in names]
    _judge_rejected(history, spec, problems)
    requests = [each for each in problems if each.phase != "handler"]  # those count by listener
    counted = Counter((spec.name, each.phase, _kind(each.error)) for each in requests)
    measured = {key: times for key, times in history.counted.items() if key[0] == spec.name}
    if counted != measured:
        what = f"metrics counted {measured}, there were {dict(counted)}"
        raise Violation(10, what, time=history.ending.time)


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


def _find_alive(transitions: list[Transition]) -> Iterator[int]:
    """Yield the idle timeouts whose check found the server alive."""
    for each, check in zip(transitions, [*transitions[1:], None], strict=False):
        silent = each.row == (Phase.WATCH, Outcome.IDLE_TIMEOUT)
        if silent and (check is None or check.outcome is Outcome.ALIVE):
            yield id(each)  # the check may be cut off by the end of the history


def _is_expected_idle_timeout(transition: Transition) -> bool:
    """Return True if this is an idle timeout that came again and again, which is no failure unless
    the server had a bookmark to send.
    """
    return transition.silence_is_normal and transition.row == (Phase.WATCH, Outcome.IDLE_TIMEOUT)


def _is_not_a_request(problem: ProblemReported) -> bool:
    """Return True if the problem is not that of a request."""
    return (
        problem.phase in ("rewind", "object", "handler") or problem.cause == "api_version_changed"
    )


def _judge_rejected(history: History, spec: InformerSpec, problems: list[ProblemReported]) -> None:
    """Check that each rejected object is logged and passed to the error hook."""
    reported = sum(each.phase == "object" for each in problems)
    of, ends = f"{spec.name}: ", (" stays cached", " is not cached")
    logged = sum(
        each.message.startswith(of) and each.message.endswith(ends) for each in history.of(Logged)
    )
    if reported != logged:
        what = f"{spec.name} logged {logged} rejections, the error hook received {reported}"
        raise Violation(10, what, time=history.ending.time)


def _judge_logs(history: History) -> None:
    said = (log.message.partition(": ")[2] for log in history.of(Logged))
    logged = Counter(
        each.removeprefix(EXPECTED).removeprefix(POLLING).removeprefix(ALIVE) for each in said
    )
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
        raise Violation(10, what, request, request.failure, transition)


def _kind(error: str) -> str:
    return error.partition(":")[0]


# -- 11 ----------------------------------------------------------------------------------------

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
"""Seconds between the beginnings of watches that are cut short, once that has lasted ``LONG``."""

BUDGET = (10.0, 5)
"""The most requests that follow a failure, in any ten seconds: (seconds, requests)."""
LATER = (60.0, 3)
"""The same for any minute, once no request has lasted longer than ``QUICK`` for ``LONG``, and the
first sign that the server is back is as old."""
LONG = 120.0
QUICK = 5.0
LASTING = {Outcome.SHORT_WATCH, Outcome.POLLED, Outcome.WATCH_REFUSED}
"""The outcomes of requests that count as long ones. Watches that are cut short have a distance of
their own. Where watches are refused, a list ends an outage as a watch that lasts does elsewhere,
and the next list waits."""
ONE_MORE = {Outcome.EXPIRED, Outcome.VERSION_TOO_LARGE, Outcome.REWOUND, *FALLBACKS, *REFUSALS}
"""The outcomes that another kind of request may follow at once, one time."""


def judge_politeness(history: History) -> None:
    """Check that the requests after failures are few, and that none comes before it may.

    Raises:
        Violation: a request came too soon, or was one too many.
    """
    for spec in history.readers():
        requests = history.of_informer(Request, spec.name)
        transitions = history.of_informer(Transition, spec.name)
        pairs = list(zip(transitions, requests[1:], strict=False))
        _judge_waits(pairs)
        _judge_budget(pairs)
        _judge_fallback(pairs)


def _judge_waits(pairs: list[tuple[Transition, Request]]) -> None:
    """Check the waits that the server asked for, and those after watches that ended soon."""
    since: float | None = None
    for transition, following in pairs:
        asked, waited = transition.request, following.time - transition.time
        brief = transition.row == (Phase.WATCH, Outcome.SHORT_WATCH)
        since = (transition.time if since is None else since) if brief else None
        what = ""
        if waited < asked.retry_after - EPSILON:
            what = f"the server allows a request after {asked.retry_after:g} s"
        elif (
            since is not None
            and transition.time - since >= LONG
            and following.time - asked.time < SPACE - DRIFT
        ):
            what = f"a watch that was cut short allows it after {SPACE}"
        elif transition.outcome is Outcome.WATCH_REFUSED and waited < POLL_PAUSE:
            what = f"polling allows it after {POLL_PAUSE:.3f} s"
        if what:
            what = f"requested after {waited:.3f} s, {what}"
            raise Violation(11, what, asked, transition, following)


def _judge_budget(pairs: list[tuple[Transition, Request]]) -> None:
    since: float | None = None
    eased = woken = False
    unreachable_since: float | None = None
    early: list[Request] = []
    late: list[Request] = []
    for transition, following in pairs:
        asked = transition.request
        was_unreachable_since = unreachable_since
        if transition.outcome is not Outcome.UNREACHABLE:
            unreachable_since = None
        elif unreachable_since is None:
            unreachable_since = transition.time
        answered = was_unreachable_since is not None and unreachable_since is None
        back = answered or _was_served(asked)
        early_end = following.time < transition.time + transition.delay - EPSILON
        if transition.time - asked.time > QUICK or transition.outcome in LASTING:
            since, eased, woken = None, False, False
        elif answered and transition.time - (was_unreachable_since or 0.0) >= LONG:
            # After minutes without an answer, another outage begins.
            since, eased, woken = asked.time, False, False
        elif since is None or (back and not eased) or (early_end and not woken):
            # The first sign that the server is back, and the first answer to another informer,
            # begin the outage again, once each.
            eased = since is not None and (eased or back)
            woken = since is not None and (woken or early_end)
            since = asked.time
        if transition.row not in WELL:
            if transition.outcome is not Outcome.APPEARED:  # an answer, after which it is read
                early.append(following)
            at_once = transition.outcome in ONE_MORE and following.time < transition.time + DRIFT
            if since is not None and following.time - since >= LONG and not at_once:
                late.append(following)
    _judge_count(early, *BUDGET)
    _judge_count(late, *LATER)


def _was_served(request: Request) -> bool:
    return bool(request.changes or request.bookmarks or request.initial_list_complete)


def _judge_count(asked: list[Request], seconds: float, most: int) -> None:
    """Check that no ``seconds`` have more than ``most`` of these requests."""
    for first, last in zip(asked, asked[most:], strict=False):
        if last.time - first.time < seconds - DRIFT:
            evidence = [each for each in asked if first.time <= each.time <= last.time]
            what = f"more than {most} requests follow failures in {seconds:.0f} s"
            raise Violation(11, what, *evidence)


def _judge_fallback(pairs: list[tuple[Transition, Request]]) -> None:
    """Check that a WatchList that failed is remembered, and that no other failure counts as one."""
    until = float("-inf")
    for transition, following in pairs:
        streaming = transition.phase is Phase.WATCHLIST
        if streaming and transition.outcome in FALLBACKS:
            until = transition.time + REMEMBERED
        what = ""
        if following.kind == "watchlist" and following.time < until:
            what = "a WatchList is requested again, although the server has none"
        elif streaming and transition.outcome in NO_REASON and following.kind != "watchlist":
            what = "lists are used instead of WatchLists without a reason"
        if what:
            raise Violation(11, what, transition, following)
