"""The cache's data: the objects by key, and the indexes over them.

A ``State`` belongs together: objects and indexes of one moment. It is replaced as a whole, by
assigning one attribute, so that a reader who picks it up once never sees half of a relist, not
even from another thread. Who writes is ``indexer``, who reads is ``lister``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from aioinformer._core.objects import KubeObject, ObjectKey

__all__ = ["Index", "IndexFunction", "State"]

IndexFunction: TypeAlias = Callable[[KubeObject], Iterable[str] | str | None]
"""The values under which an object is found: several, one, or none. It must give the same answer
for the same object every time; it runs in the event loop."""


@dataclass(slots=True, eq=False)
class Index:
    """One index: the keys of the objects under each value."""

    name: str
    function: IndexFunction
    keys: dict[str, set[ObjectKey]] = field(default_factory=dict[str, set[ObjectKey]])

    def values(self, obj: KubeObject) -> frozenset[str]:
        """The values of ``obj``; raises whatever the function raises."""
        found = self.function(obj)
        if found is None:
            return frozenset()
        return frozenset((found,) if isinstance(found, str) else found)

    def move(self, key: ObjectKey, old: frozenset[str], new: frozenset[str]) -> None:
        """File ``key`` under ``new`` instead of ``old``."""
        for value in old - new:
            self._remove(value, key)
        for value in new - old:
            self._add(value, key)

    def _add(self, value: str, key: ObjectKey) -> None:
        keys = self.keys.get(value)
        if keys is None:
            self.keys[value] = {key}
        else:
            keys.add(key)

    def _remove(self, value: str, key: ObjectKey) -> None:
        keys = self.keys.get(value)
        if keys is None:
            return
        keys.discard(key)
        if not keys:  # a value that nothing has any more must not stay for ever
            del self.keys[value]

    def empty(self) -> Index:
        """The same index over nothing."""
        return Index(self.name, self.function)


@dataclass(slots=True, eq=False)
class State:
    """What the cache holds at one moment."""

    objects: dict[ObjectKey, KubeObject] = field(default_factory=dict[ObjectKey, KubeObject])
    indexes: Mapping[str, Index] = field(default_factory=dict[str, Index])
    resource_version: str = ""
    """The version up to which everything was applied; empty before the first list."""
    synced: bool = False

    def empty(self) -> State:
        """A state with the same indexes over nothing."""
        return State(indexes={name: index.empty() for name, index in self.indexes.items()})

    def index_values(self, obj: KubeObject) -> list[tuple[Index, frozenset[str]]]:
        """The values of ``obj`` in every index; raises whatever an index function raises."""
        return [(index, index.values(obj)) for index in self.indexes.values()]

    def put(self, obj: KubeObject, old: KubeObject | None) -> None:
        """Hold ``obj`` instead of ``old``. If an index function raises, nothing has changed."""
        moves = self.index_values(obj)
        if old is not None:
            moves = self.unfile(old, moves)
        self.objects[obj.key] = obj
        for index, values in moves:
            index.move(obj.key, frozenset(), values)

    def remove(self, old: KubeObject) -> None:
        """Hold it no longer."""
        self.unfile(old, [(index, frozenset()) for index in self.indexes.values()])
        del self.objects[old.key]

    def unfile(
        self, old: KubeObject, keep: Iterable[tuple[Index, frozenset[str]]]
    ) -> list[tuple[Index, frozenset[str]]]:
        """Take ``old`` out of the indexes, except from under the values to ``keep``; the part of
        ``keep`` under which it is not filed as it should be.
        """
        moves: list[tuple[Index, frozenset[str]]] = []
        for index, kept in keep:
            try:
                values = index.values(old)
            except Exception:  # noqa: BLE001 - it didn't raise when the object was filed
                values = frozenset(value for value, keys in index.keys.items() if old.key in keys)
            if values != kept:  # most changes move nothing
                index.move(old.key, values, values & kept)
                moves.append((index, kept))
        return moves

    def residue(self) -> Iterator[list[object]]:
        """Lists that keep alive what dropping this state would free, to be emptied in steps."""
        yield list(self.objects.values())
        for index in self.indexes.values():
            yield list(index.keys.values())
