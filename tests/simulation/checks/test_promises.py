"""Each check of each promise finds a history that is falsified in one place."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from aioinformer import ObjectKey
from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.transitions import Phase
from tests.simulation.checks.falsify import (
    Falsify,
    added,
    added_live,
    again,
    call_of,
    change,
    deleted,
    delivered,
    drained,
    end_with,
    first,
    has_state,
    held_at_the_end,
    initial,
    last_sample,
    never_stored,
    of_another_uid,
    old_version,
    own_version,
    remove,
    resynced,
    updated,
    vanished,
    waited_after,
    without_first,
)
from tests.simulation.checks.promises import judge
from tests.simulation.checks.violation import Violation
from tests.simulation.generator import draw
from tests.simulation.records import (
    EventDelivered,
    FilterRaised,
    History,
    Joined,
    Left,
    Logged,
    Overflowed,
    ProblemReported,
    Request,
    Restored,
    Sample,
    Transition,
    Version,
    Visited,
    Write,
)
from tests.simulation.runner import simulate

ELSEWHERE = ObjectKey("web", "never-was")
SEEDS = (0, 1, 2, 3, 6, 7, 9, 10, 12, 15, 24, *range(40))
"""The histories to falsify, until one has the record that a case needs. The first few have all of
the records, so that the others need not run unless the generator changes."""


@cache
def pickled_history(seed: int) -> bytes:
    """Return the history of a seed, in which nothing is wrong."""
    history = simulate(draw(seed))
    judge(history)
    history.clock = float
    return pickle.dumps(history)


FUNCTIONS: dict[str, tuple[set[int], Falsify]] = {}
"""The cases that are functions: the promises that may be seen to be broken, and the function."""


def falsifies(*promises: int) -> Callable[[Falsify], Falsify]:
    """Return a decorator that makes a case of a function, with the name of the function."""

    def add(falsify: Falsify) -> Falsify:
        FUNCTIONS[getattr(falsify, "__name__", "").replace("_", " ")] = set(promises), falsify
        return falsify

    return add


# -- falsifications that need more than one record -------------------------------------------------


@falsifies(2)
def an_addition_is_forgotten(history: History) -> None:
    event, events = delivered(history, updated), history.of(EventDelivered)
    which = event.listener, event.key, event.old
    events[:] = [each for each in events if (each.listener, each.key, each.version) != which]


@falsifies(2)
def something_is_made_up(history: History) -> None:
    event = replace(delivered(history, added), order=0, key=ELSEWHERE, note="")
    history.of(EventDelivered).insert(0, event)


@falsifies(2)
def what_is_not_held_is_deleted(history: History) -> None:
    history.of(EventDelivered).append(replace(delivered(history, deleted), key=ELSEWHERE))


@falsifies(4)
def a_vanished_object_has_changed_without_a_merge(history: History) -> None:
    """Deliver an old state to a listener that merges, although nothing was merged."""
    specs = (each.listener for each in history.of(Joined))
    merging = {each.name for each in specs if each.overflow == "coalesce" and not each.changes}
    event = delivered(history, lambda each: vanished(each) and each.listener in merging)
    event.version = never_stored(event)


@falsifies(2)
def a_filtered_change_is_delivered(history: History) -> None:
    joined = first(history.of(Joined), lambda each: each.listener.changes == "node")
    writes = {(each.key, each.version): each for each in history.of(Write)}

    def moved(each: EventDelivered) -> bool:
        """Return True if the event changes the node of an object, and nothing else."""
        if each.listener != joined.listener.name or not updated(each) or each.merged:
            return False
        if each.old is None:
            return False
        before, after = writes[each.key, each.old.number], writes[each.key, each.version.number]
        return before.node != after.node and before.app == after.app

    delivered(history, moved)
    joined.listener = replace(joined.listener, changes="app")


@falsifies(7)
def the_error_of_a_filter_is_not_reported(history: History) -> None:
    history.of(FilterRaised).append(replace(first(history.of(FilterRaised))))


@falsifies(2)
def an_event_is_delivered_after_leaving(history: History) -> None:
    receivers = {each.listener for each in history.of(EventDelivered)}
    first(history.of(Left), lambda each: each.listener in receivers).order = 0


@falsifies(8)
def an_event_is_delivered_after_an_overflow(history: History) -> None:
    receivers = {each.listener for each in history.of(EventDelivered)}
    first(history.of(Overflowed), lambda each: each.listener in receivers).order = 0


@falsifies(3)
def the_cache_is_empty(history: History) -> None:
    event = held_at_the_end(history, added)
    which = (event.listener, event.version)
    delivered(history, lambda each: (each.listener, each.version) == which).cached = None


@falsifies(5)
def an_initial_object_was_older_in_the_cache(history: History) -> None:
    joined = first(history.of(Joined), lambda each: bool(each.cached))
    found = joined.cached or {}
    joined.cached = {key: Version(each.uid, each.number - 1) for key, each in found.items()}
    delivered(history, lambda each: each.listener == joined.listener.name and initial(each))


@falsifies(5)
def an_initial_object_is_delivered_as_a_later_one(history: History) -> None:
    late = {each.listener.name for each in history.of(Joined) if each.cached}
    delivered(history, lambda each: each.listener in late and initial(each)).note = ""


@falsifies(2)
def the_version_goes_back(history: History) -> None:
    samples = history.of(Sample)
    ours = [each for each in samples if each.informer == "everything" and each.version]
    ours[-1].order, ours[0].order = ours[0].order, ours[-1].order
    samples.remove(ours[-1])
    samples.insert(samples.index(ours[0]), ours[-1])


@falsifies(1)
def the_end_is_not_reached(history: History) -> None:
    ours = [each for each in history.of(Sample) if each.informer == "everything"]
    early = first(ours, lambda each: bool(each.version) and not each.rejected)
    late = replace(early, order=ours[-1].order, listeners=ours[-1].listeners)
    others = [each for each in history.of(Sample) if each.informer != "everything"]
    history.of(Sample)[:] = [early, late, *others]


def shown_by_listeners(history: History, samples: Iterable[Sample], **values: Any) -> None:
    for sample in samples:
        sample.listeners = tuple(each._replace(**values) for each in sample.listeners)


@falsifies(2)
def a_key_is_busy_twice(history: History) -> None:
    call = call_of(history, "parallel")
    which = call.listener, call.key
    following = delivered(
        history, lambda each: (each.listener, each.key) == which and each.order > call.returned
    )
    call.returned = following.order + 1


@falsifies(2)
def two_calls_overlap(history: History) -> None:
    call = call_of(history, "slow")
    following = delivered(
        history,
        lambda each: (
            each.listener == call.listener and each.key != call.key and each.order > call.returned
        ),
    )
    call.returned = following.order + 1


@falsifies(7)
def a_call_outlasts_its_time(history: History) -> None:
    call_of(history, "timed").until += 10


@falsifies(7)
def a_call_has_no_time(history: History) -> None:
    delivered(history, lambda each: each.raised != "" and each.until - each.time > 0.4).time += 0.3
    call_of(history, "timed")


@falsifies(8)
def an_overflow_had_room(history: History) -> None:
    overflowed = first(history.of(Overflowed))
    overflowed.high, overflowed.twice = overflowed.limit, False


@falsifies(2)
def what_does_not_pass_is_delivered(history: History) -> None:
    joined = first(history.of(Joined), lambda each: each.listener.passing == "app=shop")
    delivered(history, lambda each: each.listener == joined.listener.name)
    joined.listener = replace(joined.listener, passing="app=blog")


@falsifies(2)
def what_passes_is_taken_away(history: History) -> None:
    passing = {each.listener.name: each.listener.passing for each in history.of(Joined)}
    again(
        lambda each: bool(passing[each.listener]) and added(each),
        what="deleted",
        note="filtered",
        cached=None,
    )(history)


@falsifies(2)
def there_are_too_many_resyncs(history: History) -> None:
    event = delivered(history, resynced)
    joined = first(history.of(Joined), lambda each: each.listener.name == event.listener)
    joined.time = event.time - 1


@falsifies(9)
def there_are_no_resyncs(history: History) -> None:
    there, events = {each.listener for each in last_sample(history).listeners}, EventDelivered
    event = delivered(
        history, lambda each: resynced(each) and "quick" in each.listener and each.listener in there
    )
    which = event.listener, "resync"
    history.of(events)[:] = [
        each for each in history.of(events) if (each.listener, each.note) != which
    ]


@falsifies(2, 6, 9)
def a_call_that_was_waited_for_goes_on(history: History) -> None:
    left = first(history.of(Left), lambda each: each.waited)
    delivered(history, lambda each: each.listener == left.listener).returned = left.order + 1


@falsifies(9)
def something_was_not_drained(history: History) -> None:
    visited = drained(history)
    since = {each.key for each in history.of(Write) if each.order > visited.order}
    key = first(visited.held, lambda each: each not in since)
    visited.held = {each: held for each, held in visited.held.items() if each != key}


@falsifies(9)
def draining_was_cut_short(history: History) -> None:
    visited = drained(history)
    visited.incomplete = f"still running: {visited.name}"


@falsifies(10)
def a_failure_was_not_counted(history: History) -> None:
    del history.counted[first(history.counted)]


@falsifies(10)
def a_rewind_was_made_up(history: History) -> None:
    if history.of(Restored):
        raise LookupError
    rewind = ProblemReported(1, 0.0, "shop", "rewind", "rewound", "ServerRewound: no")
    history.of(ProblemReported).append(rewind)


@falsifies(9)
def silence_was_not_noticed(history: History) -> None:
    silent = first(history.of(Transition), lambda each: each.request.awaited)
    silent.request.ended = 1e6
    if silent.request.kind not in ("watch", "watchlist") or silent.request.answered > 1e9:
        raise LookupError


@falsifies(9)
def a_live_watch_was_replaced(history: History) -> None:
    given_up = first(history.of(Transition), lambda each: each.outcome is Outcome.IDLE_TIMEOUT)
    given_up.request.last_read = (given_up.request.ended or 0.0) - 10


@falsifies(9)
def an_initial_state_took_long(history: History) -> None:
    streamed = first(
        history.of(Transition),
        lambda each: each.phase is Phase.WATCHLIST and each.request.answered < 1e9,
    )
    streamed.request.answered -= 400


@falsifies(11)
def a_request_comes_before_the_server_allows_it(history: History) -> None:
    first(history.of(Transition), waited_after).request.retry_after = 1e5


@falsifies(11)
def a_fallback_was_forgotten(history: History) -> None:
    row = Phase.WATCHLIST, Outcome.WATCHLIST_UNSUPPORTED
    fallen = first(history.of(Transition), lambda each: each.row == row and not each.version)
    following = first(
        history.of(Request),
        lambda each: each.informer == fallen.informer and each.order > fallen.order,
    )
    following.kind = "watchlist"


@falsifies(8, 9, 10, 11)
def a_list_has_pages_without_end(history: History) -> None:
    page = first(history.of(Request), lambda each: "continue=" in each.query)
    history.of(Request).extend([page] * 1200)


CASES: dict[str, tuple[set[int], Falsify]] = {
    **FUNCTIONS,
    "an object is added twice": ({2}, again(added_live)),
    "an initial object is delivered twice": ({5}, again(initial)),
    "an update crosses uids": ({2}, change(EventDelivered, updated, version=of_another_uid)),
    "what is there is deleted": ({2}, again(added, what="deleted", note="deleted", cached=None)),
    "what vanished has changed": ({4}, change(EventDelivered, vanished, version=never_stored)),
    "a handler was to end its factory": (
        {7},
        change(Visited, lambda each: bool(each.broke), raised=""),
    ),
    "an end comes late": ({9}, change(Visited, lambda each: bool(each.broke), lasted=5.0)),
    "a rejection is not reported": (
        {10},
        remove(ProblemReported, lambda each: each.phase == "object"),
    ),
    "the unchanged is delivered": ({4}, change(EventDelivered, resynced, note="")),
    "a resync has a new state": ({2}, change(EventDelivered, updated, note="resync")),
    "the cache is behind": ({3}, change(EventDelivered, updated, cached=old_version)),
    "the cache still has it": ({3}, change(EventDelivered, deleted, cached=own_version)),
    "the state is not true": ({3}, change(Sample, has_state, state=without_first)),
    "the cache was emptied": ({10}, change(Sample, has_state, state={})),
    "synced did not last": ({6}, lambda history: setattr(last_sample(history), "synced", False)),
    "objects came before synced": ({6}, change(Sample, lambda each: each.synced, synced=False)),
    "a latch did not last": (
        {6},
        lambda history: shown_by_listeners(history, [last_sample(history)], synced=False),
    ),
    "a listener was never synced": (
        {9},
        lambda history: shown_by_listeners(history, history.of(Sample), synced=False),
    ),
    "a listener waits": (
        {7},
        lambda history: shown_by_listeners(
            history, [last_sample(history)], pending=1, dropping=False
        ),
    ),
    "an error was not logged": (
        {7},
        remove(
            Logged, lambda log: log.message.startswith("handler ") and " raised at " in log.message
        ),
    ),
    "a call does not end": (
        {2, 6, 9},
        change(EventDelivered, lambda each: "slow" in each.listener and not each.note, returned=0),
    ),
    "an error was not hooked": (
        {7},
        remove(ProblemReported, lambda each: "HandlerCancelled" in each.error),
    ),
    "an overflow was not logged": ({8}, remove(Logged, lambda log: " was ended: " in log.message)),
    "a visit goes on": ({9}, change(Visited, late=1)),
    "a visit takes long": ({9}, change(Visited, lasted=30.0)),
    "the queue was overfull": (
        {8},
        change(Sample, lambda each: each.informer == "shop", queued=64 + 16 + 5),
    ),
    "a failure was not logged": (
        {10},
        remove(Logged, lambda log: "connection broke" in log.message),
    ),
    "health shows another failure": (
        {10},
        change(Sample, lambda each: each.condition == "waiting", error="Another: one"),
    ),
    "a failure was not reported": ({10}, remove(ProblemReported)),
    "a failure was taken for an end": (
        {10},
        change(
            Transition,
            lambda each: bool(each.request.failure),
            phase=Phase.WATCH,
            outcome=Outcome.ENDED,
        ),
    ),
    "a rewind was not announced": (
        {1, 2, 3, 10},
        remove(ProblemReported, lambda each: each.phase == "rewind"),
    ),
    "a rewind is not shown": ({10}, change(Sample, lambda each: each.rewinds > 0, rewinds=0)),
    "it asked too soon": ({11}, change(Transition, waited_after, time=1e9)),
    "something is left": ({9}, end_with(tasks=("stray",))),
    "something was only logged": ({9}, end_with(complaints=("never",))),
}


@pytest.mark.parametrize("name", [*CASES][::10])
def test_a_falsified_history_is_a_violation(name: str) -> None:
    find_violation(name)


@pytest.mark.simulation
@pytest.mark.parametrize("name", CASES)
def test_every_falsified_history_is_a_violation(name: str) -> None:
    find_violation(name)


def find_violation(name: str) -> None:
    """Fail unless the checks find a history that is falsified in this way."""
    promises, falsify = CASES[name]
    for seed in SEEDS:
        history: History = pickle.loads(pickled_history(seed))  # noqa: S301 - our own
        try:
            falsify(history)
        except LookupError:
            continue
        with pytest.raises(Violation) as caught:
            judge(history)
        assert caught.value.promise in promises, caught.value
        return
    pytest.fail("there was nothing to falsify")
