"""Falsify a history in one place: find a record, and change, remove or repeat it.

A LookupError says that a history has no such record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

from aioinformer import ObjectKey
from aioinformer._core.listwatch.transitions import Phase
from tests.simulation.plan import Visit
from tests.simulation.records import (
    Ending,
    EventDelivered,
    History,
    Joined,
    Record,
    Restored,
    Sample,
    Transition,
    Version,
    Visited,
)

T = TypeVar("T")
R = TypeVar("R", bound=Record)
Falsify: TypeAlias = Callable[[History], None]
"""Changes a history in one place. A LookupError lets the next history be tried."""

# -- records -----------------------------------------------------------------------------------


def first(records: Iterable[T], where: Callable[[T], bool] = lambda _: True) -> T:
    """Return the first such record; without one, a LookupError lets the next history be tried."""
    for each in records:
        if where(each):
            return each
    raise LookupError


def last_sample(history: History) -> Sample:
    return history.of(Sample)[-1]


def delivered(history: History, where: Callable[[EventDelivered], bool]) -> EventDelivered:
    return first(history.of(EventDelivered), where)


def held_at_the_end(history: History, where: Callable[[EventDelivered], bool]) -> EventDelivered:
    """Return an event, once more, of an object that its listener holds at the end."""
    last = last_sample(history)
    there = {each.listener for each in last.listeners}

    def is_held(each: EventDelivered) -> bool:
        return where(each) and each.listener in there and last.state.get(each.key) == each.version

    return replace(delivered(history, is_held), order=last.order + 1)


def call_of(history: History, behaviour: str) -> EventDelivered:
    """Return a call of a listener with such a behaviour that ended before the history."""
    behaviours = {each.listener.name: each.listener.behaviour for each in history.of(Joined)}
    last = last_sample(history).order
    return delivered(
        history,
        lambda each: (
            behaviours[each.listener] == behaviour and not each.note and 0 < each.returned < last
        ),
    )


def drained(history: History) -> Visited:
    names = {step.name for step in history.plan.steps if isinstance(step, Visit) and step.drains}
    if history.of(Restored):
        raise LookupError
    return first(
        history.of(Visited),
        lambda each: each.name in names and len(each.held) > 3 and not each.incomplete,
    )


def added(each: EventDelivered) -> bool:
    return each.what == "added"


def added_live(each: EventDelivered) -> bool:
    return each.what == "added" and not each.note


def updated(each: EventDelivered) -> bool:
    return each.what == "updated" and not each.note


def deleted(each: EventDelivered) -> bool:
    return each.what == "deleted"


def initial(each: EventDelivered) -> bool:
    return each.note == "initial"


def resynced(each: EventDelivered) -> bool:
    return each.note == "resync"


def vanished(each: EventDelivered) -> bool:
    return each.note == "vanished" and not each.merged


def of_another_uid(event: EventDelivered) -> Version:
    return Version("another", event.version.number)


def never_stored(event: EventDelivered) -> Version:
    """Return a version of the same object that the server never had."""
    return Version(event.version.uid, event.version.number + 1)


def own_version(event: EventDelivered) -> Version:
    return event.version


def old_version(event: EventDelivered) -> Version | None:
    return event.old


def without_first(sample: Sample) -> dict[ObjectKey, Version]:
    """Return the state of a sample without one object."""
    return dict(list(sample.state.items())[1:])


# -- simple falsifications ---------------------------------------------------------------------


def change(kind: type[R], where: Callable[[R], bool] = lambda _: True, **values: Any) -> Falsify:
    """Change the first such record. A function returns a value that depends on the record."""

    def falsify(history: History) -> None:
        record = first(history.of(kind), where)
        for name, value in values.items():
            setattr(record, name, value(record) if callable(value) else value)

    return falsify


def remove(kind: type[R], where: Callable[[R], bool] = lambda _: True) -> Falsify:
    """Remove the first such record."""

    def falsify(history: History) -> None:
        history.of(kind).remove(first(history.of(kind), where))

    return falsify


def again(where: Callable[[EventDelivered], bool], **values: Any) -> Falsify:
    """Deliver an event of an object that is still held once more at the end, with other values."""

    def falsify(history: History) -> None:
        history.of(EventDelivered).append(replace(held_at_the_end(history, where), **values))

    return falsify


def end_with(**values: Any) -> Falsify:
    """Have something be left at the end."""

    def falsify(history: History) -> None:
        history.ending = Ending(history.ending.order, history.ending.time, **values)

    return falsify


def has_state(sample: Sample) -> bool:
    return len(sample.state) > 3 and not sample.rejected


def waited_after(transition: Transition) -> bool:
    request = transition.request
    return bool(request.failure) and not request.expired and transition.phase is Phase.WATCH
