"""The library's guarantees, as checks of a history.

There is one function for each guarantee, in the order of their numbers. Other modules check what
concerns one listener (``ordering``, ``handler_calls``), the server's past states (``oracle``), and
requests and memory (``limits``, ``idle_timeouts``). ``judge`` raises the first violation; it reads
the records alone and doesn't know how the history was made.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NoReturn

from aioinformer._core.objects.kube_object import ObjectKey
from tests.simulation.checks.handler_calls import judge_calls, judge_departures, judge_resyncs
from tests.simulation.checks.idle_timeouts import judge_idle_timeouts
from tests.simulation.checks.limits import (
    judge_bounds,
    judge_counts,
    judge_liveness,
    judge_pages,
    judge_politeness,
    judge_reporting,
)
from tests.simulation.checks.oracle import Oracle, Rewinds, TimelineCursor
from tests.simulation.checks.ordering import OrderingCheck
from tests.simulation.checks.recovery import judge_recovery
from tests.simulation.checks.violation import Violation
from tests.simulation.plan import NAMESPACE_INFORMER, InformerSpec, ListenerSpec
from tests.simulation.records import (
    EventDelivered,
    History,
    Joined,
    Left,
    ListenerSample,
    NamespaceWritten,
    Overflowed,
    Request,
    Restored,
    Sample,
    ScopeClosed,
    ScopeOpened,
    State,
    Write,
)

PROMPT = 2.0
"""Seconds that a quick listener may wait for its next event: the cost of looking at the clock."""

FIRST_STARTS = 0.2
"""Seconds in which the reflectors of the first namespaces are started."""

_PROMPT = ("quick", "raising", "stream", "interrupted", "merged")


def judge(history: History) -> None:
    """Hold a history to the promises.

    Raises:
        Violation: a promise was broken.
    """
    judge_liveness(history)
    delivered: dict[str, list[EventDelivered]] = {}
    for each in history.of(EventDelivered):
        delivered.setdefault(each.listener, []).append(each)
    known = {spec.name: _judge_reader(history, spec) for spec in history.readers()}
    for spec in history.plan.informers:
        _judge_informer(history, spec, delivered, *known.get(spec.name) or _know(history, spec))
    judge_departures(history, delivered)
    judge_idle_timeouts(history)
    judge_recovery(history)
    judge_pages(history)
    judge_politeness(history)


def _judge_reader(history: History, spec: InformerSpec) -> tuple[Oracle, Rewinds]:
    """Judge the cache and the requests of an informer of one scope, or of one of several scopes.

    Returns:
        The states that the server had, and its rewinds.
    """
    samples = history.of_informer(Sample, spec.name)
    rewinds = Rewinds(history, spec.name)
    rewinds.judge()
    oracle = Oracle(history.of(Write), spec, history.of(Restored))
    _judge_states([each for each in samples if each.order < rewinds.lost], oracle, rewinds)
    _judge_synced(history, spec, samples)
    judge_reporting(history, spec, samples)
    closed = history.of_informer(ScopeClosed, spec.name)
    if samples and not closed and samples[-1].order < rewinds.lost:
        _judge_cache(history, samples[-1], oracle)
    return oracle, rewinds


def _know(history: History, spec: InformerSpec) -> tuple[Oracle, Rewinds]:
    """Return the states that the server had in all scopes of an informer, and its rewinds."""
    rewinds = Rewinds(history, *history.readers_of(spec))
    begin = f"{spec.name} ("
    changes: list[ScopeOpened | ScopeClosed] = [*history.of(ScopeOpened), *history.of(ScopeClosed)]
    scopes = [each for each in changes if each.informer.startswith(begin)]
    return Oracle(history.of(Write), spec, history.of(Restored), scopes), rewinds


def _judge_informer(
    history: History,
    spec: InformerSpec,
    delivered: dict[str, list[EventDelivered]],
    oracle: Oracle,
    rewinds: Rewinds,
) -> None:
    """Judge the listeners of an informer."""
    samples = history.of_informer(Sample, spec.name)
    if spec.scoped:
        _judge_common_latch(history, spec, samples)
    if spec.follows:
        _judge_followed(history, samples[-1])
    checks = _check_order(history, spec, oracle, delivered, rewinds)
    _judge_promptness(history, samples, delivered)
    _judge_latches(samples, checks, history)
    judge_bounds(history, spec, samples)
    judge_counts(history, spec)
    judge_calls(history, spec, samples[-1], delivered)
    if samples[-1].order < rewinds.lost:
        judge_resyncs(history, spec, samples[-1], checks)
        if spec.scoped:
            _judge_cache(history, samples[-1], oracle)
        _judge_held(history, samples[-1], checks)


# -- 3: a true past state; 4: never half of a new one ------------------------------------------


def _judge_states(samples: list[Sample], oracle: Oracle, rewinds: Rewinds) -> None:
    """Check that each sample shows the server's state at its version.

    The state is on the timeline of the sample before, or on a later one if a rewind of the server
    was announced.
    """
    cursors = oracle.cursors(until=samples[-1].order) if samples else []
    before: Sample | None = None
    undone = 0
    for sample in (each for each in samples if each.version):
        now = next((each for each in cursors if _is_true(sample, each)), None)
        if now is None:
            if not sample.state and rewinds.not_served(sample.order):
                continue
            _not_true(sample, before, cursors[0])
        if now is not cursors[0]:
            undone += before is not None and int(before.version) > now.backup_version
            cursors = cursors[cursors.index(now) :]
        if undone > rewinds.by(sample.order):
            what = f"the cache goes back to rv={sample.version} without an announced rewind"
            raise Violation(2, what, before, sample)
        if sample.index is not None:
            _judge_index(sample, oracle)
        before = sample


def _is_true(sample: Sample, cursor: TimelineCursor) -> bool:
    if int(sample.version) < cursor.version:
        return False
    return _without(cursor.to(int(sample.version)), sample) == _without(sample.state, sample)


def _without(state: State, sample: Sample) -> State:
    if not sample.rejected:
        return state
    return {key: version for key, version in state.items() if str(key) not in sample.rejected}


def _not_true(sample: Sample, before: Sample | None, cursor: TimelineCursor) -> NoReturn:
    if before is not None and int(before.version) > int(sample.version):
        what = f"the cache goes back from rv={before.version} to rv={sample.version}"
        raise Violation(2, what, before, sample)
    state, shown = _without(cursor.to(int(sample.version)), sample), _without(sample.state, sample)
    wrong = sorted(key for key in state.keys() | shown.keys() if state.get(key) != shown.get(key))
    key = wrong[0]
    what = (
        f"{sample.informer} shows {shown.get(key)} where the server had {state.get(key)}, "
        f"and differs at {len(wrong)} of {len(state)} keys"
    )
    promise = 10 if state and not sample.state else 3
    raise Violation(promise, what, sample, key=key)


def _judge_index(sample: Sample, oracle: Oracle) -> None:
    """Check that an index leads to exactly the cached objects with each of its values."""
    expected: dict[str, set[ObjectKey]] = {}
    for key, version in sample.state.items():
        write = oracle.stored.get((key, version))
        if write is not None:
            expected.setdefault(write.node, set()).add(key)
    found = sample.index or {}
    for value in sorted(expected.keys() | found.keys()):
        wrong = sorted(expected.get(value, set()) ^ found.get(value, frozenset()))
        if wrong:
            what = f"the index of {sample.informer} is wrong at {value}"
            raise Violation(3, what, sample, key=wrong[0])


# -- 6: synced ---------------------------------------------------------------------------------


def _judge_synced(history: History, spec: InformerSpec, samples: list[Sample]) -> None:
    read = min(
        (
            each.initial_list_complete
            for each in history.of(Request)
            if each.informer == spec.name
            and each.initial_list_complete
            and each.kind != "freshness_check"
        ),
        default=None,
    )
    latched = False
    for sample in samples:
        if latched and not sample.synced:
            raise Violation(6, "synced did not last", sample)
        if sample.synced and (read is None or read > sample.order):
            what = "synced before a whole state was read"
            raise Violation(6, what, sample)
        if not sample.synced and (sample.state or sample.version):
            what = "there are objects before the first full state"
            raise Violation(6, what, sample)
        latched = sample.synced


def _judge_common_latch(history: History, spec: InformerSpec, samples: list[Sample]) -> None:
    """Check that an informer of several scopes is synced after the first state of each, for good.

    Optional scopes don't count, nor do those that are added or removed meanwhile.
    """
    closed = {each.informer for each in history.of(ScopeClosed)}
    needed = {f"{spec.name} ({each})" for each in _first_namespaces(history, spec) or ()}
    needed |= {NAMESPACE_INFORMER} if spec.follows else set()
    latched = False
    for sample in samples:
        if latched and not sample.synced:
            raise Violation(6, "synced did not last", sample)
        if sample.synced and not latched:
            read = {
                each.informer
                for each in history.of(Request)
                if 0 < each.initial_list_complete < sample.order
            }
            if missing := needed - read - closed:
                raise Violation(6, f"synced before {sorted(missing)} was read", sample)
        latched = sample.synced


def _first_namespaces(history: History, spec: InformerSpec) -> set[str] | None:
    """Return the namespaces that the first state of an informer must have; ``None`` for one scope.

    An informer that follows namespaces begins to read those of the first list at one moment.
    """
    if not spec.follows:
        scopes = {each.namespace for each in spec.scopes if not each.optional}
        return scopes if spec.scoped else None
    lists = history.of_informer(Request, NAMESPACE_INFORMER)
    whole = next((each for each in lists if each.initial_list_complete), None)
    known, end = (whole.answered, whole.initial_list_complete) if whole else (0.0, 0)
    opened = (each for each in history.of(ScopeOpened) if each.time < known + FIRST_STARTS)
    written = history.of(NamespaceWritten)
    first = (
        each
        for each in opened
        if not any(  # a namespace that matches since the list
            write.namespace == each.spec.namespace and end < write.order < each.order
            for write in written
        )
    )
    return {each.spec.namespace or "" for each in first}


def _judge_followed(history: History, last: Sample) -> None:
    """Check that the namespaces are read, at the end, that must be, each since its creation."""
    written: dict[str, NamespaceWritten] = {}
    created: dict[str, int] = {}
    for each in history.of(NamespaceWritten):
        created.setdefault(each.uid, each.order)
        written[each.namespace] = each
    needed = {name: created[each.uid] for name, each in written.items() if each.matches}
    closed = {each.informer for each in history.of(ScopeClosed)}
    read = {
        each.spec.namespace: each.order
        for each in history.of(ScopeOpened)
        if each.informer not in closed and each.order < last.order
    }
    if read.keys() != needed.keys():
        raise Violation(1, f"reads {sorted(map(str, read))}, matching are {sorted(needed)}", last)
    for name, order in read.items():
        if order < needed[name or ""]:
            again = written[name or ""]
            raise Violation(1, f"{name} was created again and is not read anew", again)


# -- listeners ---------------------------------------------------------------------------------


def _check_order(
    history: History,
    spec: InformerSpec,
    oracle: Oracle,
    delivered: dict[str, list[EventDelivered]],
    rewinds: Rewinds,
) -> dict[str, OrderingCheck]:
    left = {each.listener: each for each in history.of(Left)}
    checks: dict[str, OrderingCheck] = {}
    first = _first_namespaces(history, spec)
    for joined in history.joined(spec):
        name = joined.listener.name
        events = delivered.get(name, [])
        if name in left and events and events[-1].order > left[name].order:
            what = f"{name} receives an event after it has left"
            raise Violation(2, what, left[name], events[-1], time=events[-1].time)
        check = checks[name] = OrderingCheck(joined, events, oracle, rewinds, scopes=first)
        check.judge()
    return checks


def _judge_latches(
    samples: list[Sample], checks: dict[str, OrderingCheck], history: History
) -> None:
    synced: set[str] = set()
    for sample in samples:
        for sample_listener in sample.listeners:
            if sample_listener.synced and sample_listener.listener not in synced:
                synced.add(sample_listener.listener)
                checks[sample_listener.listener].judge_latch(sample, sample_listener)
            elif not sample_listener.synced and sample_listener.listener in synced:
                what = f"synced of {sample_listener.listener} did not last"
                raise Violation(6, what, sample)
    for sample_listener in samples[-1].listeners:
        if not sample_listener.synced and sample_listener.listener not in _stuck(history):
            what = f"{sample_listener.listener} never was synced"
            raise Violation(9, what, samples[-1], sample_listener, time=samples[-1].time)


def _judge_promptness(
    history: History, samples: list[Sample], delivered: dict[str, list[EventDelivered]]
) -> None:
    """Check that a quick listener receives pending events at once, whatever others do."""
    left = {each.listener: each.time for each in history.of(Left)}
    left |= {each.listener: each.time for each in history.of(Overflowed)}
    for joined in history.of(Joined):
        name, merges = joined.listener.name, joined.listener.overflow == "coalesce"
        if not _is_prompt(joined.listener):
            continue
        events = delivered.get(name, [])
        following = 0
        for sample, later in pairwise((*samples, samples[-1])):
            while following < len(events) and events[following].order < sample.order:
                following += 1
            if not _has_pending(sample, name):
                continue
            delivered_at = events[following].time if following < len(events) else float("inf")
            until = min(delivered_at, left.get(name, delivered_at))
            if merges:  # pending events may merge into none, which are not delivered
                until = min(until, later.time if _has_pending(later, name) else sample.time)
            if until > sample.time + PROMPT:
                what = f"{name} has a pending event, which is delivered at {delivered_at:.6f} s"
                raise Violation(7, what, sample, *sample.listeners)


def _has_pending(sample: Sample, name: str) -> bool:
    return any(_is_pending(sample_listener, name) for sample_listener in sample.listeners)


def _is_pending(sample_listener: ListenerSample, name: str) -> bool:
    return (
        sample_listener.listener == name
        and sample_listener.pending > 0
        and not sample_listener.dropping
    )


def _is_prompt(spec: ListenerSpec) -> bool:
    return spec.behaviour in _PROMPT and not spec.delay


def _stuck(history: History) -> set[str]:
    return {each.listener.name for each in history.of(Joined) if each.listener.behaviour == "stuck"}


# -- 1: convergence ----------------------------------------------------------------------------


def _judge_cache(history: History, last: Sample, oracle: Oracle) -> None:
    unknown = sorted(last.rejected - {str(key) for key in oracle.final})
    if unknown:
        what = f"{last.informer} still rejects {unknown[0]}, which the server no longer has"
        raise Violation(1, what, last)
    expected, shown = _without(oracle.final, last), _without(last.state, last)
    if expected != shown:
        wrong = sorted(
            key for key in expected.keys() | shown.keys() if expected.get(key) != shown.get(key)
        )
        key = wrong[0]
        what = (
            f"{last.informer} shows {shown.get(key)} where the server has {expected.get(key)}, "
            f"{history.plan.settle:g} s after the last step; {len(wrong)} keys differ"
        )
        raise Violation(1, what, last, key=key)


def _judge_held(history: History, last: Sample, checks: dict[str, OrderingCheck]) -> None:
    there = {sample_listener.listener for sample_listener in last.listeners} - _stuck(history)
    for name in sorted(there):
        held, selected = checks[name].held, checks[name].selected(last.state)
        wrong = sorted(
            key
            for key in held.keys() | selected.keys()
            if not checks[name].stands_for(key, held.get(key), selected.get(key))
        )
        if wrong:
            key = wrong[0]
            what = (
                f"{name} holds {held.get(key)} from its events, the cache shows {selected.get(key)}"
            )
            raise Violation(1, what, last, key=key)
