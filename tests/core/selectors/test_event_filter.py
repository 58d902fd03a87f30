"""Filters: the semantics of client-go's FilteringResourceEventHandler, and the differences."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Iterator
from functools import partial
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import (
    Added,
    ChangePredicate,
    Deleted,
    Event,
    KubeObject,
    ObjectPredicate,
    Updated,
    labels_changed,
    where,
)
from aioinformer._core.cache.indexer import Indexer
from aioinformer._core.delivery.mailbox import Mailbox
from aioinformer._core.delivery.replay import map_events
from aioinformer._core.objects.deltas import Delta, DeltaKind
from aioinformer._core.selectors.event_filter import EventFilter, Filter
from tests.core.builders import added, deleted, pod, updated

HERE = where("spec.nodeName", "here")
IN_1, IN_2 = pod("a", rv="1", node="here"), pod("a", rv="2", node="here")
OUT_1, OUT_2 = pod("a", rv="1", node="there"), pod("a", rv="2", node="there")
LABELLED = pod("a", rv="2", node="here", labels={"app": "shop"})


def passing(filter: Filter) -> EventFilter:
    def failed(obj: KubeObject, error: BaseException) -> None:
        raise AssertionError(f"the filter raised at {obj}") from error

    return EventFilter(filter, failed)


@pytest.mark.client_go(128)
@pytest.mark.parametrize(
    ("event", "delivered"),
    [
        (Added(IN_1), Added(IN_1)),
        (Added(IN_1, initial=True), Added(IN_1, initial=True)),
        (Added(OUT_1, initial=True), None),
        (Updated(IN_1, IN_2), Updated(IN_1, IN_2)),
        (Updated(IN_1, OUT_2), Deleted(IN_1, "filtered")),
        (Updated(OUT_1, IN_2), Added(IN_2)),
        (Updated(OUT_1, OUT_2), None),
        (Updated(IN_1, IN_1, resync=True), Updated(IN_1, IN_1, resync=True)),
        (Updated(OUT_1, OUT_1, resync=True), None),
        (Deleted(IN_2), Deleted(IN_2)),
        (Deleted(IN_2, "vanished"), Deleted(IN_2, "vanished")),
        (Deleted(OUT_1), None),
    ],
    ids=repr,
)
def test_an_object_is_added_when_it_begins_to_pass_and_deleted_when_it_ceases(
    event: Event, delivered: Event | None
) -> None:
    assert passing(HERE).apply(event) == delivered
    assert passing(lambda obj: obj["spec"]["nodeName"] == "here").apply(event) == delivered


@pytest.mark.parametrize(
    ("event", "delivered"),
    [
        (Added(OUT_1), True),
        (Deleted(OUT_1), True),
        (Updated(IN_1, LABELLED), True),
        (Updated(IN_1, IN_2), False),
        (Updated(IN_1, IN_1, resync=True), True),
    ],
    ids=repr,
)
def test_a_change_predicate_selects_updates_only(event: Event, delivered: bool) -> None:
    assert passing(labels_changed).apply(event) == (event if delivered else None)


def test_an_object_predicate_and_a_change_predicate_decide_independently() -> None:
    both = passing(HERE & labels_changed)

    assert both.apply(Updated(IN_1, IN_2)) is None
    assert both.apply(Updated(IN_1, LABELLED)) == Updated(IN_1, LABELLED)
    assert both.apply(Updated(IN_1, OUT_2)) == Deleted(IN_1, "filtered")
    assert both.apply(Updated(OUT_1, IN_2)) == Added(IN_2)


@pytest.mark.parametrize(
    "event",
    [Added(IN_1, initial=True), Updated(IN_1, IN_2), Deleted(IN_1, "vanished")],
    ids=lambda event: type(event).__name__,
)
def test_an_object_at_which_the_filter_raises_passes_and_that_is_reported(event: Event) -> None:
    failures: list[tuple[KubeObject, BaseException]] = []

    def clumsy(obj: KubeObject) -> bool:
        raise KeyError(obj.name)

    def failed(obj: KubeObject, error: BaseException) -> None:
        failures.append((obj, error))

    assert EventFilter(clumsy, failed).apply(event) == event
    assert {type(error) for _, error in failures} == {KeyError}
    assert failures[0][0] is event.obj


def test_a_filter_may_raise_anything() -> None:
    failures: list[BaseException] = []

    def cancels(obj: KubeObject) -> bool:
        raise CancelledError

    it = EventFilter(cancels, lambda _, error: failures.append(error))

    assert it.apply(Added(IN_1)) == Added(IN_1)
    assert isinstance(failures[0], CancelledError)


def test_a_change_at_which_the_filter_raises_is_delivered_and_reported_with_the_new_state() -> None:
    failures: list[tuple[KubeObject, BaseException]] = []
    clumsy = EventFilter(_raises(), lambda obj, error: failures.append((obj, error)))

    assert clumsy.apply(Updated(IN_1, IN_2)) == Updated(IN_1, IN_2)
    ((obj, error),) = failures
    assert obj is IN_2
    assert isinstance(error, ValueError)


def test_a_resync_calls_the_filter_once() -> None:
    asked: list[KubeObject] = []

    def count(obj: KubeObject) -> bool:
        asked.append(obj)
        return True

    resync = Updated(IN_1, IN_1, resync=True)

    assert passing(count).apply(resync) is resync
    assert asked == [IN_1]


def _raises() -> Filter:
    def compare(old: KubeObject, new: KubeObject) -> bool:
        raise ValueError(old, new)

    return ChangePredicate(compare)


async def _async_filter(obj: KubeObject) -> bool:
    return bool(obj.name)


def _yields(obj: KubeObject) -> Iterator[bool]:
    yield False


async def _async_object_test(obj: KubeObject) -> bool:
    return True


async def _async_test(old: KubeObject, new: KubeObject) -> bool:
    return old is new


class _AsyncFilter:
    async def __call__(self, obj: KubeObject) -> bool:
        return await _async_filter(obj)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("app=shop", "a predicate or a function of an object, not 'app=shop'"),
        (ObjectPredicate, "a predicate or a function of an object"),
        (_async_filter, "the filter _async_filter is async"),
        (partial(_async_filter), "the filter functools.partial.* is async"),
        (_AsyncFilter(), "the filter <.*_AsyncFilter.*> is async"),
        (ObjectPredicate(_async_filter), "the filter _async_filter is async"),
        (ChangePredicate(_async_test), "the filter _async_test is async"),
        (HERE & ChangePredicate(_async_test), "the filter _async_test is async"),
        (ObjectPredicate(_async_object_test) & labels_changed, "_async_object_test is async"),
        (_yields, "the filter _yields has a yield in it"),
    ],
)
def test_an_invalid_filter_is_a_type_error(wrong: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        passing(cast("Filter", wrong))


def test_the_repr_shows_the_predicate() -> None:
    assert repr(passing(HERE)) == "<EventFilter where('spec.nodeName', 'here')>"


# -- histories ---------------------------------------------------------------------------------

states = st.lists(st.sampled_from(["here", "there", "gone", "broken"]), max_size=12)


@given(states, st.booleans())
def test_a_filtered_listener_holds_the_object_if_its_last_state_passes(
    history: list[str], raises: bool
) -> None:
    """For any life of one object, a legal history, at the end of which the view is right."""

    def wanted(obj: KubeObject) -> bool:
        node = obj["spec"]["nodeName"]
        if node == "broken" and raises:
            raise ValueError(node)
        return bool(node == "here")

    held: KubeObject | None = None
    each = EventFilter(wanted, lambda _obj, _error: None).apply
    for event in map_events(_events(history), each):
        match event:
            case Added(obj):
                assert held is None
                held = obj
            case Updated(old, new):
                assert held is old
                held = new
            case Deleted():
                assert held is not None
                held = None

    last = history[-1] if history else "gone"
    expected = last == "here" or (last == "broken" and raises)
    assert (held is not None) is expected


def _events(history: list[str]) -> list[Event]:
    events: list[Event] = []
    held: KubeObject | None = None
    for number, node in enumerate(history):
        obj = pod("a", rv=str(number), node=node)
        if node == "gone":
            events += [Deleted(held)] if held else []
            held = None
        else:
            events.append(Updated(held, obj) if held else Added(obj))
            held = obj
    return events


def test_an_object_that_left_the_filter_returned_and_was_deleted_is_deleted_once() -> None:
    box = Mailbox(limit=1, holds=lambda _: True, event_map=passing(HERE).apply)
    history: list[Event] = [Updated(IN_1, OUT_2), Updated(OUT_2, LABELLED), Deleted(LABELLED)]
    box.put([Added(IN_1)])
    assert box.pop() == Added(IN_1)

    for event in history:
        box.put([event])

    assert [box.pop(), box.pop()] == [Deleted(LABELLED), None]


def test_the_deletion_of_an_object_that_an_index_function_rejects_is_delivered() -> None:
    """The state that is deleted is none that the filter has let pass."""

    def refuses(obj: KubeObject) -> str:
        if obj["spec"]["nodeName"] == "there":
            raise ValueError("refused")
        return "fine"

    indexer, events = Indexer({"some": refuses}), list[Event]()
    for delta in (added(IN_1), updated(OUT_2), deleted(OUT_2)):
        indexer.apply(delta, events)

    assert map_events(events, passing(HERE).apply) == (Added(IN_1), Deleted(IN_1))


def test_the_deletion_of_a_held_object_is_delivered_for_any_last_state() -> None:
    indexer, events = Indexer(), list[Event]()
    for delta in (added(IN_1), deleted(OUT_2)):
        indexer.apply(delta, events)

    assert map_events(events, passing(HERE).apply) == (Added(IN_1), Deleted(OUT_2))


def test_the_deletion_of_an_object_that_the_listener_never_had_is_not_delivered() -> None:
    indexer, events = Indexer(), list[Event]()
    for delta in (added(OUT_1), deleted(IN_2)):
        indexer.apply(delta, events)

    assert map_events(events, passing(HERE).apply) == ()


CHANGES = st.tuples(st.sampled_from(["Updated", "Deleted"]), st.sampled_from(["here", "there"]))


@given(st.lists(CHANGES, max_size=12))
def test_a_filtered_listener_holds_exactly_the_cached_objects_that_pass(
    changes: list[tuple[DeltaKind, str]],
) -> None:
    indexer, view = Indexer(), dict[str, KubeObject]()
    for number, (kind, node) in enumerate(changes, 1):
        events: list[Event] = []
        indexer.apply(Delta(kind, pod("a", rv=str(number), uid="u", node=node)), events)
        for event in map_events(events, passing(HERE).apply):
            if isinstance(event, Deleted):
                del view[event.obj.name]
            else:
                assert isinstance(event, Updated) == (event.obj.name in view)
                view[event.obj.name] = event.obj
        cached = indexer.state.objects.values()

        assert view == {obj.name: obj for obj in cached if obj["spec"]["nodeName"] == "here"}


class World:
    """Some objects, and a filtered listener that is behind."""

    def __init__(self, limit: int) -> None:
        self.objects: dict[str, KubeObject] = {}
        self.view: dict[str, KubeObject] = {}
        self.version = 0
        self.box = Mailbox(limit=limit, holds=self.holds, event_map=passing(HERE).apply)

    def holds(self, obj: KubeObject) -> bool:
        held = self.objects.get(obj.name)
        return held is not None and held.uid == obj.uid

    def current(self, obj: KubeObject) -> bool:
        return self.objects.get(obj.name) is obj

    def put(self, name: str, node: str) -> Event:
        self.version += 1
        old = self.objects.get(name)
        uid = old.uid if old else f"uid-{self.version}"
        new = self.objects[name] = pod(name, rv=str(self.version), uid=uid, node=node)
        return Updated(old, new) if old else Added(new)

    def delete(self, name: str) -> list[Event]:
        old = self.objects.pop(name, None)
        return [Deleted(old)] if old else []

    def take(self) -> bool:
        match self.box.pop():
            case Added(obj):
                assert obj.name not in self.view
                self.view[obj.name] = obj
            case Updated(old, new):
                assert self.view[old.name].uid == new.uid
                self.view[old.name] = new
            case Deleted(obj):
                assert self.view.pop(obj.name).uid == obj.uid
            case None:
                return self.box.should_yield
        return True


actions = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["here", "there", "gone", "take", "again"])),
    max_size=40,
)


@given(actions, actions, st.integers(1, 4))
def test_a_filtered_listener_that_is_behind_ends_with_the_objects_that_pass(
    before: list[tuple[str, str]], after: list[tuple[str, str]], limit: int
) -> None:
    world = World(limit)
    for name, action in before:
        world.delete(name) if action == "gone" else world.put(name, action)
    world.box.replay(list(world.objects.values()))
    for name, action in after:
        if action == "take":
            world.take()
        elif action == "again":
            world.box.resync(list(world.objects.values()), world.current)
        elif action == "gone":
            world.box.put(world.delete(name))
        else:
            world.box.put([world.put(name, action)])

    while world.take():
        pass

    assert world.view == {name: obj for name, obj in world.objects.items() if HERE(obj)}


def test_a_filter_that_takes_no_object_is_a_type_error() -> None:
    def everything() -> bool:
        return True

    wrong = r"is to be called as \(obj\): too many"
    with pytest.raises(TypeError, match=rf"^the filter test_\S+\.everything\(\).* {wrong}"):
        passing(cast("Filter", everything))
    with pytest.raises(TypeError, match=rf"^the filter functools\.partial\(.*\).* {wrong}"):
        passing(cast("Filter", partial(everything)))
