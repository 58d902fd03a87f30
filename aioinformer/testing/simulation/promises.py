"""The promises, as assertions over a history.

One function a promise, in the order of the design's section 6; what concerns one listener is in
``hearing``, what the server held in ``truth``, requests and memory in ``manners``. ``judge`` raises
the first violation; it knows nothing of how the history came about.
"""

from __future__ import annotations

from itertools import pairwise

from aioinformer._core.objects import ObjectKey
from aioinformer.testing.simulation.hearing import Hearing
from aioinformer.testing.simulation.history import History, Latch, Sample, State, Told
from aioinformer.testing.simulation.manners import (
    judge_bounds,
    judge_liveness,
    judge_politeness,
    judge_silence,
)
from aioinformer.testing.simulation.plan import InformerSpec, ListenerSpec
from aioinformer.testing.simulation.truth import Truth
from aioinformer.testing.simulation.violation import Violation

__all__ = ["Violation", "judge"]

PROMPT = 2.0
"""Seconds that a quick listener may wait for its next event: none, but for what the clock costs."""


def judge(history: History) -> None:
    """Hold a history to the promises.

    Raises:
        Violation: one was broken.
    """
    judge_liveness(history)
    told: dict[str, list[Told]] = {}
    for each in history.told:
        told.setdefault(each.listener, []).append(each)
    for spec in history.plan.informers:
        samples = [each for each in history.samples if each.informer == spec.name]
        truth = Truth(history.writes, spec)
        _judge_states(samples, truth)
        _judge_synced(history, spec, samples)
        hearings = _hear(history, spec, truth, told)
        _judge_promptness(history, samples, told)
        _judge_latches(samples, hearings, history)
        judge_bounds(history, spec, samples)
        judge_silence(history, spec, samples)
        _judge_convergence(history, samples[-1], truth, hearings)
    judge_politeness(history)


# -- 3: a true past state; 4: never half of a new one ------------------------------------------


def _judge_states(samples: list[Sample], truth: Truth) -> None:
    synced = [sample for sample in samples if sample.version]
    for sample, state in truth.beside(synced):
        if not sample.rejected:
            same = sample.state == state
        else:
            same = _without(sample.state, sample) == _without(state, sample)
        if not same:
            _not_true(sample, state, truth)
        if sample.index is not None:
            _judge_index(sample, truth)
    for before, after in pairwise(synced):
        if int(before.version) > int(after.version):
            what = f"the cache goes back from rv={before.version} to rv={after.version}"
            raise Violation(2, what, time=after.time, evidence=[before, after])


def _without(state: State, sample: Sample) -> State:
    return {key: version for key, version in state.items() if str(key) not in sample.rejected}


def _not_true(sample: Sample, state: State, truth: Truth) -> None:
    wrong = sorted(
        key
        for key in state.keys() | sample.state.keys()
        if state.get(key) != sample.state.get(key) and str(key) not in sample.rejected
    )
    key = wrong[0]
    what = (
        f"{sample.informer} shows {sample.state.get(key)} where the server had {state.get(key)}, "
        f"and differs at {len(wrong)} of {len(state)} keys"
    )
    promise = 10 if state and not sample.state else 3
    raise Violation(promise, what, time=sample.time, key=key, evidence=[sample, truth])


def _judge_index(sample: Sample, truth: Truth) -> None:
    """An index leads to exactly the objects that the cache holds under its values."""
    expected: dict[str, set[ObjectKey]] = {}
    for key, version in sample.state.items():
        write = truth.stored.get((key, version))
        if write is not None:
            expected.setdefault(write.node, set()).add(key)
    found = sample.index or {}
    for value in sorted(expected.keys() | found.keys()):
        wrong = sorted(expected.get(value, set()) ^ found.get(value, frozenset()))
        if wrong:
            what = f"the index of {sample.informer} is wrong at {value}"
            raise Violation(3, what, time=sample.time, key=wrong[0], evidence=[sample])


# -- 6: synced ---------------------------------------------------------------------------------


def _judge_synced(history: History, spec: InformerSpec, samples: list[Sample]) -> None:
    listed = min(
        (
            closed.order
            for closed in history.closings
            if closed.request.informer == spec.name
            and closed.request.kind == "list"
            and not closed.request.failure
        ),
        default=None,
    )
    latched = False
    for sample in samples:
        if latched and not sample.synced:
            raise Violation(6, "synced did not last", time=sample.time, evidence=[sample])
        if sample.synced and (listed is None or listed > sample.order):
            what = "synced before a list was read"
            raise Violation(6, what, time=sample.time, evidence=[sample])
        if not sample.synced and (sample.state or sample.version):
            what = "there are objects before the first full state"
            raise Violation(6, what, time=sample.time, evidence=[sample])
        latched = sample.synced


# -- listeners ---------------------------------------------------------------------------------


def _hear(
    history: History, spec: InformerSpec, truth: Truth, told: dict[str, list[Told]]
) -> dict[str, Hearing]:
    left = {each.listener: each for each in history.left}
    hearings: dict[str, Hearing] = {}
    for joined in history.joined:
        name = joined.listener.name
        if joined.listener.informer != spec.name:
            continue
        events = told.get(name, [])
        if name in left and events and events[-1].order > left[name].order:
            what = f"{name} is told something after it has left"
            raise Violation(2, what, time=events[-1].time, evidence=[left[name], events[-1]])
        hearing = hearings[name] = Hearing(joined, events, truth)
        hearing.judge()
        hearing.judge_logs(history)
    return hearings


def _judge_latches(samples: list[Sample], hearings: dict[str, Hearing], history: History) -> None:
    synced: set[str] = set()
    for sample in samples:
        for latch in sample.latches:
            if latch.synced and latch.listener not in synced:
                synced.add(latch.listener)
                hearings[latch.listener].judge_latch(sample, latch)
            elif not latch.synced and latch.listener in synced:
                what = f"synced of {latch.listener} did not last"
                raise Violation(6, what, time=sample.time, evidence=[sample])
    for latch in samples[-1].latches:
        hearings[latch.listener].judge_errors(samples[-1], latch)
        if not latch.synced and latch.listener not in _stuck(history):
            what = f"{latch.listener} never was synced"
            raise Violation(9, what, time=samples[-1].time, evidence=[samples[-1], latch])


def _judge_promptness(history: History, samples: list[Sample], told: dict[str, list[Told]]) -> None:
    """A listener that is quick hears what waits for it at once, whatever others do (promise 7)."""
    prompt = {each.listener.name for each in history.joined if _is_prompt(each.listener)}
    left = {each.listener: each.time for each in history.left}
    for name in prompt:
        events = told.get(name, [])
        following = 0
        for sample in samples:
            while following < len(events) and events[following].order < sample.order:
                following += 1
            if not any(_waits_for(latch, name) for latch in sample.latches):
                continue
            heard = events[following].time if following < len(events) else float("inf")
            if min(heard, left.get(name, heard)) > sample.time + PROMPT:
                what = f"{name} has something to hear, and hears it at {heard:.6f} s"
                raise Violation(7, what, time=sample.time, evidence=[sample, *sample.latches])


def _waits_for(latch: Latch, name: str) -> bool:
    return latch.listener == name and latch.pending > 0 and not latch.dropping


def _is_prompt(spec: ListenerSpec) -> bool:
    return spec.temper in ("quick", "raising", "stream") and not spec.delay


def _stuck(history: History) -> set[str]:
    return {each.listener.name for each in history.joined if each.listener.temper == "stuck"}


# -- 1: convergence ----------------------------------------------------------------------------


def _judge_convergence(
    history: History, last: Sample, truth: Truth, hearings: dict[str, Hearing]
) -> None:
    gone = sorted(last.rejected - {str(key) for key in truth.final})
    if gone:
        what = f"{last.informer} still rejects {gone[0]}, which the server has no more"
        raise Violation(1, what, time=last.time, evidence=[last])
    expected, shown = _without(truth.final, last), _without(last.state, last)
    if expected != shown:
        wrong = sorted(
            key for key in expected.keys() | shown.keys() if expected.get(key) != shown.get(key)
        )
        key = wrong[0]
        what = (
            f"{last.informer} shows {shown.get(key)} where the server has {expected.get(key)}, "
            f"{history.plan.settle:g} s after the last step; {len(wrong)} keys differ"
        )
        raise Violation(1, what, time=last.time, key=key, evidence=[last])
    there = {latch.listener for latch in last.latches} - _stuck(history)
    for name in sorted(there):
        held = hearings[name].held
        wrong = sorted(
            key for key in held.keys() | last.state.keys() if held.get(key) != last.state.get(key)
        )
        if wrong:
            key = wrong[0]
            what = f"{name} was told {held.get(key)}, the cache shows {last.state.get(key)}"
            raise Violation(1, what, time=last.time, key=key, evidence=[last])
