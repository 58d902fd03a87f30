"""Telling a state that is there: to a listener that joins, or once more in a resync.

What is told of is read as the listener gets to it, from a sequence that all listeners share; so
it costs nothing to be told of 100,000 objects, and what has changed meanwhile is known. An object
that went before a late listener got to it isn't told of, and neither is what happened to it: the
events in between are still pending, and are dropped when their turn comes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias, TypeVar

from msgspec import Struct

from aioinformer._core.delivery.coalescing import CoalescedEvents
from aioinformer._core.objects.kube_object import (
    Added,
    Deleted,
    Event,
    KubeObject,
    ObjectKey,
    Updated,
)

__all__ = [
    "EventMap",
    "Replay",
    "UnseenDeletions",
    "addition_events",
    "drain_batches",
    "free_in_steps",
    "initial_events",
    "map_events",
    "resync_events",
]

T = TypeVar("T")

FREE_STEP = 256
"""Objects that are let go of in one step: a tenth of a millisecond."""

EventMap: TypeAlias = Callable[[Event], Event | None]
"""What a listener is told instead of an event; ``None`` for nothing. It must not raise, and keep no
state: when it is asked depends on how fast the listener is."""


class UnseenDeletions:
    """Objects that a listener was never told of, and whose deletion is still pending."""

    def __init__(self) -> None:
        """None yet."""
        self.objects: set[tuple[ObjectKey, str]] = set()
        """By key and uid; to be read only. Looked at for every batch, so it is no property."""

    def add(self, obj: KubeObject) -> None:
        """``obj`` went before the listener got to it."""
        self.objects.add((obj.key, obj.uid))

    def discard_event(self, event: Event) -> bool:
        """Whether ``event`` is not to be told; with its deletion an object is forgotten."""
        told = (event.obj.key, event.obj.uid)
        if told not in self.objects:
            return False
        if isinstance(event, Deleted):
            self.objects.remove(told)
        return True

    def __bool__(self) -> bool:
        return bool(self.objects)

    def __repr__(self) -> str:
        return f"<UnseenDeletions {len(self.objects)}>"


class Replay(Struct, eq=False):
    """A state that is being told."""

    events: Iterator[Event | None]
    """``None`` for each object that is not told of."""
    source: Iterator[object]
    """Where they are made from; what is left of it keeps objects alive."""
    queued_at: float = 0.0
    """When it was asked for."""
    full: bool = True
    """Whether it is all that there is."""
    finished: bool = False
    """Whether all of it was told."""

    def next(self) -> Event | None:
        """The next event, if there is one and this is it."""
        for event in self.events:
            return event
        self.finished = True
        return None


def initial_events(
    events: Iterable[Event],
    event_map: EventMap | None,
    is_cached: Callable[[KubeObject], bool],
    skip: Callable[[KubeObject], None],
) -> Iterator[Event | None]:
    """What a listener finds; ``None`` for each object that it isn't told of, as those that the
    cache no longer ``is_cached``, which are given to ``skip``. A first list that came behind changes
    may have updates and deletions in it; those are told.
    """
    for event in _map_events(events, event_map):
        if not isinstance(event, Added) or is_cached(event.obj):
            yield event
        else:
            skip(event.obj)
            yield None


def resync_events(
    objects: Iterator[KubeObject],
    event_map: EventMap | None,
    current: Callable[[KubeObject], bool],
) -> Replay:
    """A resync: all but what is no longer ``current``."""
    told = (Updated(obj, obj, resync=True) if current(obj) else None for obj in objects)
    return Replay(_map_events(told, event_map), objects)


def addition_events(objects: Iterable[KubeObject]) -> Iterator[Added]:
    """Objects as those that a listener finds."""
    return (Added(obj, initial=True) for obj in objects)


def drain_batches(batches: Sequence[Sequence[T]]) -> Iterator[T]:
    """What is in ``batches``, each of which is let go of when it was read. Many share them: behind
    the last reader they fall away one by one, not 100,000 objects in one step.
    """
    left = deque(batches)
    del batches
    while left:
        yield from left.popleft()


def free_in_steps(
    merged: CoalescedEvents, queue: deque[T], *states: Replay | None
) -> Iterator[None]:
    """Empty all of these, in steps: behind the last who holds 100,000 objects, freeing them takes
    tens of milliseconds.
    """
    while merged:
        merged.drop(FREE_STEP)
        yield
    while queue:
        queue.popleft()  # a batch
        yield
    for state in states:
        while state is not None and deque(islice(state.source, FREE_STEP), maxlen=1):
            yield


def _map_events(
    events: Iterable[Event | None], event_map: EventMap | None
) -> Iterator[Event | None]:
    """What is told instead of each event."""
    if event_map is None:
        return iter(events)
    return (event and event_map(event) for event in events)


def map_events(events: Sequence[Event], event_map: EventMap | None) -> Sequence[Event]:
    """What is told instead of all of them."""
    if event_map is None:
        return events
    return tuple(told for event in events if (told := event_map(event)) is not None)
