"""Each check of each promise finds a history that is falsified in one place."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from typing import TypeVar

import pytest

from aioinformer import ObjectKey
from aioinformer._core.listwatch.outcomes import Outcome
from aioinformer._core.listwatch.transitions import Phase
from tests.simulation.checks.promises import judge
from tests.simulation.checks.violation import Violation
from tests.simulation.generator import draw
from tests.simulation.plan import Visit
from tests.simulation.records import (
    Ending,
    EventDelivered,
    FilterRaised,
    History,
    Joined,
    Left,
    Logged,
    Overflowed,
    ProblemReported,
    Record,
    Request,
    Restored,
    Sample,
    Transition,
    Version,
    Visited,
    Write,
)
from tests.simulation.runner import simulate

T = TypeVar("T")
R = TypeVar("R", bound=Record)

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


def first(records: Iterable[T], where: Callable[[T], bool] = lambda _: True) -> T:
    """Return the first such record; without one, a LookupError lets the next history be tried."""
    for each in records:
        if where(each):
            return each
    raise LookupError


def remove_first(
    history: History, kind: type[R], where: Callable[[R], bool] = lambda _: True
) -> None:
    found = first(history.of(kind), where)
    history.of(kind).remove(found)


def first_delivered(history: History, where: Callable[[EventDelivered], bool]) -> EventDelivered:
    return first(history.of(EventDelivered), where)


def last_sample(history: History) -> Sample:
    return history.of(Sample)[-1]


# -- falsifications --------------------------------------------------------------------------


def an_addition_is_forgotten(history: History) -> None:
    again = first_delivered(history, lambda each: each.what == "updated" and not each.note)
    history.of(EventDelivered)[:] = [
        each
        for each in history.of(EventDelivered)
        if (each.listener, each.key, each.version) != (again.listener, again.key, again.old)
    ]


def it_is_added_twice(history: History) -> None:
    history.of(EventDelivered).append(
        _at_the_end(history, lambda each: each.what == "added" and not each.note)
    )


def it_is_found_twice(history: History) -> None:
    history.of(EventDelivered).append(_at_the_end(history, lambda each: each.note == "initial"))


def _at_the_end(history: History, where: Callable[[EventDelivered], bool]) -> EventDelivered:
    """Something once more that is still held at the end."""
    there = {sample_listener.listener for sample_listener in last_sample(history).listeners}
    final = last_sample(history).state
    again = first_delivered(
        history,
        lambda each: where(each) and each.listener in there and final.get(each.key) == each.version,
    )
    return replace(again, order=last_sample(history).order + 1)


def something_is_made_up(history: History) -> None:
    some = first_delivered(history, lambda each: each.what == "added")
    history.of(EventDelivered).insert(0, replace(some, order=0, key=ELSEWHERE, note=""))


def it_crosses_uids(history: History) -> None:
    some = first_delivered(history, lambda each: each.what == "updated" and not each.note)
    some.version = Version("another", some.version.number)


def what_is_there_is_deleted(history: History) -> None:
    some = _at_the_end(history, lambda each: each.what == "added")
    history.of(EventDelivered).append(replace(some, what="deleted", note="deleted", cached=None))


def what_is_not_held_is_deleted(history: History) -> None:
    some = first_delivered(history, lambda each: each.what == "deleted")
    history.of(EventDelivered).append(replace(some, key=ELSEWHERE))


def what_vanished_has_changed(history: History) -> None:
    some = first_delivered(history, lambda each: each.note == "vanished" and not each.merged)
    some.version = Version(some.version.uid, some.version.number + 1)


def what_one_who_merges_sees_vanish_has_changed(history: History) -> None:
    """Deliver an old state to a listener that merges, although nothing was merged."""
    merging = {
        each.listener.name
        for each in history.of(Joined)
        if each.listener.overflow == "coalesce" and not each.listener.changes
    }
    some = first_delivered(
        history,
        lambda each: each.note == "vanished" and not each.merged and each.listener in merging,
    )
    some.version = Version(some.version.uid, some.version.number + 1)


def a_filtered_change_is_delivered(history: History) -> None:
    joined = first(history.of(Joined), lambda each: each.listener.changes == "node")
    writes = {(each.key, each.version): each for each in history.of(Write)}
    first_delivered(
        history, lambda each: each.listener == joined.listener.name and _moved(each, writes)
    )
    joined.listener = replace(joined.listener, changes="app")


def _moved(each: EventDelivered, writes: dict[tuple[ObjectKey, int], Write]) -> bool:
    """Return True if the event changes the node of an object, and nothing else."""
    if each.what != "updated" or each.old is None or each.note or each.merged:
        return False
    before, after = writes[each.key, each.old.number], writes[each.key, each.version.number]
    return before.node != after.node and before.app == after.app


def a_filter_raises_and_nobody_hears_of_it(history: History) -> None:
    filter_error = first(history.of(FilterRaised))
    history.of(FilterRaised).append(replace(filter_error))


def a_handler_was_to_end_its_factory(history: History) -> None:
    first(history.of(Visited), lambda each: bool(each.broke)).raised = ""


def an_end_comes_late(history: History) -> None:
    first(history.of(Visited), lambda each: bool(each.broke)).lasted = 5.0


def a_rejection_is_not_reported(history: History) -> None:
    some = first(history.of(ProblemReported), lambda each: each.phase == "object")
    history.of(ProblemReported).remove(some)


def the_unchanged_is_delivered(history: History) -> None:
    some = first_delivered(history, lambda each: each.note == "resync")
    some.note = ""


def a_resync_has_news(history: History) -> None:
    some = first_delivered(history, lambda each: each.what == "updated" and not each.note)
    some.note = "resync"


def it_hears_after_leaving(history: History) -> None:
    receivers = {each.listener for each in history.of(EventDelivered)}
    left: Left = first(history.of(Left), lambda each: each.listener in receivers)
    left.order = 0


def the_cache_is_behind(history: History) -> None:
    some = first_delivered(history, lambda each: each.what == "updated" and not each.note)
    some.cached = some.old


def the_cache_is_empty(history: History) -> None:
    some = _at_the_end(history, lambda each: each.what == "added")
    which = (some.listener, some.version)
    first_delivered(history, lambda each: (each.listener, each.version) == which).cached = None


def the_cache_still_has_it(history: History) -> None:
    some = first_delivered(history, lambda each: each.what == "deleted")
    some.cached = some.version


def what_it_found_was_older(history: History) -> None:
    joined = first(history.of(Joined), lambda each: bool(each.cached))
    found = joined.cached or {}
    joined.cached = {key: Version(each.uid, each.number - 1) for key, each in found.items()}
    first_delivered(
        history, lambda each: each.listener == joined.listener.name and each.note == "initial"
    )


def what_it_found_was_not_initial(history: History) -> None:
    late = {each.listener.name for each in history.of(Joined) if each.cached}
    first_delivered(
        history, lambda each: each.listener in late and each.note == "initial"
    ).note = ""


def the_state_is_not_true(history: History) -> None:
    sample = first(history.of(Sample), lambda each: len(each.state) > 3 and not each.rejected)
    sample.state = dict(list(sample.state.items())[1:])


def the_cache_was_emptied(history: History) -> None:
    sample = first(history.of(Sample), lambda each: len(each.state) > 3 and not each.rejected)
    sample.state = {}


def the_version_goes_back(history: History) -> None:
    samples = [
        each for each in history.of(Sample) if each.informer == "everything" and each.version
    ]
    samples[-1].order, samples[0].order = samples[0].order, samples[-1].order
    history.of(Sample).remove(samples[-1])
    history.of(Sample).insert(history.of(Sample).index(samples[0]), samples[-1])


def the_end_is_not_reached(history: History) -> None:
    ours = [each for each in history.of(Sample) if each.informer == "everything"]
    early = first(ours, lambda each: bool(each.version) and not each.rejected)
    late = replace(early, order=ours[-1].order, listeners=ours[-1].listeners)
    others = [each for each in history.of(Sample) if each.informer != "everything"]
    history.of(Sample)[:] = [early, late, *others]


def synced_did_not_last(history: History) -> None:
    last_sample(history).synced = False


def objects_came_before_synced(history: History) -> None:
    sample = first(history.of(Sample), lambda each: each.synced)
    sample.synced = False


def a_latch_did_not_last(history: History) -> None:
    sample = last_sample(history)
    sample.listeners = tuple(
        sample_listener._replace(synced=False) for sample_listener in sample.listeners
    )


def a_listener_was_never_synced(history: History) -> None:
    for sample in history.of(Sample):
        sample.listeners = tuple(
            sample_listener._replace(synced=False) for sample_listener in sample.listeners
        )


def a_listener_waits(history: History) -> None:
    sample = last_sample(history)
    sample.listeners = tuple(
        sample_listener._replace(pending=1, dropping=False) for sample_listener in sample.listeners
    )


def an_error_was_not_logged(history: History) -> None:
    remove_first(history, Logged, _is_of_a_handler)


def _is_of_a_handler(log: Logged) -> bool:
    return log.message.startswith("handler ") and " raised at " in log.message


def the_queue_was_overfull(history: History) -> None:
    first(history.of(Sample), lambda each: each.informer == "shop").queued = 64 + 16 + 5


def _call(history: History, behaviour: str) -> EventDelivered:
    """Return a call of a listener with such a behaviour that ended before the history."""
    behaviours = {each.listener.name: each.listener.behaviour for each in history.of(Joined)}
    last = last_sample(history).order
    return first_delivered(
        history,
        lambda each: (
            behaviours[each.listener] == behaviour and not each.note and 0 < each.returned < last
        ),
    )


def a_key_is_busy_twice(history: History) -> None:
    call = _call(history, "parallel")
    following = first_delivered(
        history,
        lambda each: (
            (each.listener, each.key) == (call.listener, call.key) and each.order > call.returned
        ),
    )
    call.returned = following.order + 1


def two_calls_overlap(history: History) -> None:
    call = _call(history, "slow")
    following = first_delivered(
        history,
        lambda each: (
            each.listener == call.listener and each.key != call.key and each.order > call.returned
        ),
    )
    call.returned = following.order + 1


def a_call_outlasts_its_time(history: History) -> None:
    _call(history, "timed").until += 10


def a_call_has_no_time(history: History) -> None:
    first_delivered(
        history, lambda each: each.raised != "" and each.until - each.time > 0.4
    ).time += 0.3
    _call(history, "timed")


def a_call_does_not_end(history: History) -> None:
    first_delivered(history, lambda each: "slow" in each.listener and not each.note).returned = 0


def an_error_was_not_hooked(history: History) -> None:
    remove_first(history, ProblemReported, lambda each: "HandlerCancelled" in each.error)


def an_overflow_was_not_logged(history: History) -> None:
    remove_first(history, Logged, lambda each: " was ended: " in each.message)


def an_overflow_was_none(history: History) -> None:
    overflowed = first(history.of(Overflowed))
    overflowed.high, overflowed.twice = overflowed.limit, False


def it_hears_after_its_end(history: History) -> None:
    receivers = {each.listener for each in history.of(EventDelivered)}
    first(history.of(Overflowed), lambda each: each.listener in receivers).order = 0


def what_does_not_pass_is_delivered(history: History) -> None:
    filtered = {each.listener.name: each.listener.passing for each in history.of(Joined)}
    joined = first(history.of(Joined), lambda each: each.listener.passing == "app=shop")
    first_delivered(history, lambda each: each.listener == joined.listener.name)
    assert filtered[joined.listener.name]
    joined.listener = replace(joined.listener, passing="app=blog")


def what_passes_is_taken_away(history: History) -> None:
    passing = {each.listener.name: each.listener.passing for each in history.of(Joined)}
    some = _at_the_end(history, lambda each: bool(passing[each.listener]) and each.what == "added")
    history.of(EventDelivered).append(replace(some, what="deleted", note="filtered", cached=None))


def it_is_told_again_too_often(history: History) -> None:
    again = first_delivered(history, lambda each: each.note == "resync")
    joined = first(history.of(Joined), lambda each: each.listener.name == again.listener)
    joined.time = again.time - 1


def it_is_not_told_again(history: History) -> None:
    there = {sample_listener.listener for sample_listener in last_sample(history).listeners}
    again = first_delivered(
        history,
        lambda each: each.note == "resync" and "quick" in each.listener and each.listener in there,
    )
    history.of(EventDelivered)[:] = [
        each
        for each in history.of(EventDelivered)
        if (each.listener, each.note) != (again.listener, "resync")
    ]


def what_was_waited_for_goes_on(history: History) -> None:
    left = first(history.of(Left), lambda each: each.waited)
    first_delivered(history, lambda each: each.listener == left.listener).returned = left.order + 1


def _drained(history: History) -> Visited:
    names = {step.name for step in history.plan.steps if isinstance(step, Visit) and step.drains}
    if history.of(Restored):
        raise LookupError
    return first(
        history.of(Visited),
        lambda each: each.name in names and len(each.held) > 3 and not each.incomplete,
    )


def something_was_not_drained(history: History) -> None:
    visited = _drained(history)
    since = {each.key for each in history.of(Write) if each.order > visited.order}
    key = first(visited.held, lambda each: each not in since)
    visited.held = {each: held for each, held in visited.held.items() if each != key}


def a_visit_goes_on(history: History) -> None:
    first(history.of(Visited)).late = 1


def a_visit_takes_long(history: History) -> None:
    first(history.of(Visited)).lasted = 30.0


def draining_was_cut_short(history: History) -> None:
    visited = _drained(history)
    visited.incomplete = f"still running: {visited.name}"


def a_failure_was_not_logged(history: History) -> None:
    remove_first(history, Logged, lambda each: "connection broke" in each.message)


def health_shows_another_failure(history: History) -> None:
    first(history.of(Sample), lambda each: each.condition == "waiting").error = "Another: one"


def a_failure_was_not_reported(history: History) -> None:
    remove_first(history, ProblemReported)


def a_failure_was_not_counted(history: History) -> None:
    del history.counted[first(history.counted)]


def a_failure_was_taken_for_an_end(history: History) -> None:
    transition = first(history.of(Transition), lambda each: bool(each.request.failure))
    transition.phase, transition.outcome = Phase.WATCH, Outcome.ENDED


def a_rewind_was_made_up(history: History) -> None:
    if history.of(Restored):
        raise LookupError
    history.of(ProblemReported).append(
        ProblemReported(1, 0.0, "shop", "rewind", "rewound", "ServerRewound: no")
    )


def a_rewind_was_not_announced(history: History) -> None:
    remove_first(history, ProblemReported, lambda each: each.phase == "rewind")


def a_rewind_is_not_shown(history: History) -> None:
    first(history.of(Sample), lambda each: each.rewinds > 0).rewinds = 0


def silence_was_borne(history: History) -> None:
    silent = first(history.of(Transition), lambda each: each.request.awaited)
    silent.request.ended = 1e6
    if silent.request.kind not in ("watch", "watchlist") or silent.request.answered > 1e9:
        raise LookupError


def a_lively_watch_was_given_up(history: History) -> None:
    given_up = first(history.of(Transition), lambda each: each.outcome is Outcome.IDLE_TIMEOUT)
    given_up.request.last_read = (given_up.request.ended or 0.0) - 10


def an_initial_state_took_long(history: History) -> None:
    streamed = first(
        history.of(Transition),
        lambda each: each.phase is Phase.WATCHLIST and each.request.answered < 1e9,
    )
    streamed.request.answered -= 400


def it_asked_too_soon(history: History) -> None:
    first(history.of(Transition), _waited_after).time = 1e9


def _waited_after(transition: Transition) -> bool:
    request = transition.request
    return bool(request.failure) and not request.expired and transition.phase is Phase.WATCH


def the_server_asked_for_more(history: History) -> None:
    first(history.of(Transition), _waited_after).request.retry_after = 1e5


def a_fallback_was_forgotten(history: History) -> None:
    transition = first(
        history.of(Transition),
        lambda each: (
            each.row == (Phase.WATCHLIST, Outcome.WATCHLIST_UNSUPPORTED) and not each.version
        ),
    )
    first(history.of(Request), lambda each: _follows(each, transition)).kind = "watchlist"


def _follows(request: Request, transition: Transition) -> bool:
    return request.informer == transition.informer and request.order > transition.order


def something_is_left(history: History) -> None:
    history.ending = Ending(history.ending.order, history.ending.time, tasks=("stray",))


def something_was_only_logged(history: History) -> None:
    history.ending = Ending(history.ending.order, history.ending.time, complaints=("never",))


CASES: list[tuple[Callable[[History], None], set[int]]] = [
    (an_addition_is_forgotten, {2}),
    (it_is_added_twice, {2}),
    (it_is_found_twice, {5}),
    (something_is_made_up, {2}),
    (it_crosses_uids, {2}),
    (what_is_there_is_deleted, {2}),
    (what_is_not_held_is_deleted, {2}),
    (what_vanished_has_changed, {4}),
    (what_one_who_merges_sees_vanish_has_changed, {4}),
    (a_filtered_change_is_delivered, {2}),
    (a_filter_raises_and_nobody_hears_of_it, {7}),
    (a_handler_was_to_end_its_factory, {7}),
    (an_end_comes_late, {9}),
    (a_rejection_is_not_reported, {10}),
    (the_unchanged_is_delivered, {4}),
    (a_resync_has_news, {2}),
    (it_hears_after_leaving, {2}),
    (the_cache_is_behind, {3}),
    (the_cache_is_empty, {3}),
    (the_cache_still_has_it, {3}),
    (what_it_found_was_older, {5}),
    (what_it_found_was_not_initial, {5}),
    (the_state_is_not_true, {3}),
    (the_cache_was_emptied, {10}),
    (the_version_goes_back, {2}),
    (the_end_is_not_reached, {1}),
    (synced_did_not_last, {6}),
    (objects_came_before_synced, {6}),
    (a_latch_did_not_last, {6}),
    (a_listener_was_never_synced, {9}),
    (a_listener_waits, {7}),
    (an_error_was_not_logged, {7}),
    (a_key_is_busy_twice, {2}),
    (two_calls_overlap, {2}),
    (a_call_outlasts_its_time, {7}),
    (a_call_has_no_time, {7}),
    (a_call_does_not_end, {2, 6, 9}),
    (an_error_was_not_hooked, {7}),
    (an_overflow_was_not_logged, {8}),
    (an_overflow_was_none, {8}),
    (it_hears_after_its_end, {8}),
    (what_does_not_pass_is_delivered, {2}),
    (what_passes_is_taken_away, {2}),
    (it_is_told_again_too_often, {2}),
    (it_is_not_told_again, {9}),
    (what_was_waited_for_goes_on, {2, 6, 9}),
    (something_was_not_drained, {9}),
    (a_visit_goes_on, {9}),
    (a_visit_takes_long, {9}),
    (draining_was_cut_short, {9}),
    (the_queue_was_overfull, {8}),
    (a_failure_was_not_logged, {10}),
    (health_shows_another_failure, {10}),
    (a_failure_was_not_reported, {10}),
    (a_failure_was_not_counted, {10}),
    (a_failure_was_taken_for_an_end, {10}),
    (a_rewind_was_made_up, {10}),
    (a_rewind_was_not_announced, {1, 2, 3, 10}),
    (a_rewind_is_not_shown, {10}),
    (silence_was_borne, {9}),
    (a_lively_watch_was_given_up, {9}),
    (an_initial_state_took_long, {9}),
    (it_asked_too_soon, {11}),
    (the_server_asked_for_more, {11}),
    (a_fallback_was_forgotten, {11}),
    (something_is_left, {9}),
    (something_was_only_logged, {9}),
]


@pytest.mark.parametrize(
    ("falsify", "promises"), CASES, ids=lambda each: getattr(each, "__name__", "")
)
def test_a_falsified_history_is_a_violation(
    falsify: Callable[[History], None], promises: set[int]
) -> None:
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
