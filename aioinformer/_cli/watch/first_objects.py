"""The first objects of an initial list, to print before the list is complete.

An informer delivers nothing before, and a list of 50,000 objects takes seconds, in which a reader
would see nothing. Once the list is complete, the initial events of these objects become the changes
since: nothing if an object is unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from aioinformer import Added, Deleted, Event, KubeObject, ObjectKey, Updated

MAX_OBJECTS = 500
"""One page of a list. A higher number would keep more objects in memory twice."""


class FirstObjects:
    def __init__(self) -> None:
        self._arrived: list[KubeObject] = []
        self._shown: dict[ObjectKey, KubeObject] = {}
        self._collecting = True

    def collect(self, objects: Sequence[KubeObject]) -> None:
        """Keep the objects of a page that has arrived, up to a limit."""
        if self._collecting:
            self._arrived += objects[: MAX_OBJECTS - len(self._shown)]

    def take(self) -> list[KubeObject]:
        """Return the objects that have arrived since the last call, each key once."""
        arrived, self._arrived = self._arrived, []
        new = [obj for obj in arrived if obj.key not in self._shown]
        self._shown |= {obj.key: obj for obj in new}
        return new

    def deletions(self, is_cached: Callable[[ObjectKey], bool]) -> Iterator[Event]:
        """Yield the deletion of each shown object that is not cached; the list is complete now."""
        self._collecting = False
        self._arrived.clear()
        for key in [key for key in self._shown if not is_cached(key)]:
            yield Deleted(self._shown.pop(key), "vanished")

    def change_since(self, event: Event) -> Event | None:
        """Return the change since the object was shown, ``None`` if there is none.

        An event of an object that was not shown is returned as it is.
        """
        old = self._shown.pop(event.obj.key, None)
        if old is None or not isinstance(event, Added):
            return event
        new = event.obj
        if old.uid == new.uid and old.resource_version == new.resource_version:
            return None
        return Updated(old, new) if old.uid == new.uid else event
