"""The cache's data: the objects by key, and the indexes over them.

A ``CacheState`` belongs together: objects and indexes of one moment. It is replaced as a whole, by
assigning one attribute, so that a reader who picks it up once never sees half of a relist, not
even from another thread. Who writes is ``indexer``, who reads is ``lister``.

An index holds the objects themselves, not their keys: one copy of one dict is then a whole and
exact answer, in whatever thread. With keys, a reader would look each of them up in a cache that
goes on changing, and might find an object that has left the index since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, repeat
from typing import Any, TypeAlias

from msgspec.structs import force_setattr
from typing_extensions import TypeVar

from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.stored import NeedsJson
from aioinformer.errors import UsageError

__all__ = ["CacheState", "Index", "IndexBucket", "IndexFunction", "IndexValues"]

T = TypeVar("T", default=KubeObject)

IndexFunction: TypeAlias = Callable[[T], Iterable[str] | str | None]
"""The values under which an object is found: several, one, or none. It must give the same answer
for the same object every time; it runs in the event loop."""

Indexers: TypeAlias = Mapping[str, IndexFunction[T] | NeedsJson]
"""Index functions by index name; of objects as programs see them, or such as ``field``, which read
the object itself."""

IndexValues: TypeAlias = tuple[str, ...]
"""The values of one object, each once."""

IndexBucket: TypeAlias = dict[ObjectKey, KubeObject]
"""The objects under one value."""

DICT_RESIZE_POINTS = frozenset((2 << bits) // 3 for bits in range(14, 40))
"""How many entries a dict has when the next one makes it grow (CPython's ``USABLE_FRACTION``), from
where on that takes a while: 3 ms at 87,381."""

RESIZE_COST = 64
"""What growing such a dict counts for: as many objects as it takes to look at the clock."""

MAX_BUCKETS_CHECKED = 1024
"""Buckets that are looked at for full ones. Where there are more, few can be as large."""


@dataclass(slots=True, eq=False)
class Index:
    """One index: the objects under each value. No bucket is ever empty."""

    name: str
    function: IndexFunction[Any]
    adapter: Callable[[KubeObject], Any] | None = None
    """What the function gets instead of the cached object, if it is something else."""
    buckets: dict[str, IndexBucket] = field(default_factory=dict[str, IndexBucket])

    def values(self, obj: KubeObject) -> IndexValues:
        """The values of a cached object; raises whatever the function raises."""
        seen = self.adapter
        return self.call_function(obj if seen is None else seen(obj))

    def call_function(self, obj: Any) -> IndexValues:
        """The values of what the function gets; raises whatever the function raises, or what
        stands for it: a CancelledError would end whoever files the object.
        """
        try:
            found = self.function(obj)
            if isinstance(found, str):
                return (found,)
            return () if found is None else tuple(dict.fromkeys(found))
        except (Exception, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            said = f"the function of the index {self.name!r} raised a {type(error).__name__}"
            raise UsageError(said) from error

    def move(self, obj: KubeObject, old: IndexValues, new: IndexValues) -> None:
        """File ``obj`` under ``new``, and what has its key no longer under ``old``."""
        key, buckets = obj.key, self.buckets
        for value in new:
            bucket = buckets.get(value)
            if bucket is None:
                buckets[value] = {key: obj}
            else:
                bucket[key] = obj
        if old != new:
            for value in old:
                if value not in new:
                    self._remove(value, key)

    def _remove(self, value: str, key: ObjectKey) -> None:
        bucket = self.buckets.get(value)
        if bucket is None or key not in bucket:
            return
        if len(bucket) == 1:  # a value that nothing has any more must not stay for ever
            del self.buckets[value]  # with what is in it: a reader never finds it empty
        else:
            del bucket[key]

    def filed_values(self, obj: KubeObject) -> IndexValues:
        """The values under which ``obj`` is filed, also if the function has come to raise."""
        try:
            return self.values(obj)
        except Exception:  # noqa: BLE001 - it didn't raise when the object was filed
            return tuple(value for value, bucket in self.buckets.items() if obj.key in bucket)

    def empty_copy(self) -> Index:
        """The same index over nothing."""
        return Index(self.name, self.function, self.adapter)


@dataclass(slots=True, eq=False)
class CacheState:
    """What the cache holds at one moment."""

    objects: dict[ObjectKey, KubeObject] = field(default_factory=dict[ObjectKey, KubeObject])
    indexes: Mapping[str, Index] = field(default_factory=dict[str, Index])
    resource_version: str = ""
    """The version up to which everything was applied; empty before the first list."""
    synced: bool = False
    building: tuple[Index, ...] = ()
    """Indexes that nobody may read yet. They hear of every change, and their functions never
    raise: ``index_building`` sees to that."""

    def empty_copy(self) -> CacheState:
        """A state with the same indexes over nothing."""
        return CacheState(
            indexes={name: index.empty_copy() for name, index in self.indexes.items()}
        )

    def resize_dicts(self) -> Iterator[None]:
        """Grow what is full, one after the other, in a state that nobody reads yet. Else an object
        that is filed in several places would make all of them grow at once.
        """
        full: list[dict[Any, Any]] = [self.objects]
        for index in (*self.indexes.values(), *self.building):
            full += [index.buckets, *islice(index.buckets.values(), MAX_BUCKETS_CHECKED)]
        for each in full:
            if len(each) in DICT_RESIZE_POINTS:
                # A dict that has grown stays so; and one with a key that the garbage collector
                # knows would have to be walked by it.
                each[None] = None
                del each[None]
                yield from repeat(None, RESIZE_COST)

    def put(self, obj: KubeObject, old: KubeObject | None) -> None:
        """Hold ``obj`` instead of ``old``. If an index function raises, nothing has changed."""
        filed: list[tuple[Index, IndexValues]] = []  # no comprehension: each change comes by here
        for index in self.indexes.values():
            filed.append((index, index.values(obj)))  # noqa: PERF401 - as above
        for index in self.building:
            filed.append((index, index.values(obj)))  # noqa: PERF401 - as above
        if old is not None:
            # The dicts keep the key that they had first. One for all: its name is in memory once.
            force_setattr(obj, "key", old.key)
        self.objects[obj.key] = obj
        for index, values in filed:
            index.move(obj, () if old is None else index.filed_values(old), values)

    def remove(self, old: KubeObject) -> None:
        """Hold it no longer."""
        for index in (*self.indexes.values(), *self.building):
            index.move(old, index.filed_values(old), ())
        del self.objects[old.key]

    def batches_to_free(self) -> Iterator[list[Any]]:
        """Lists that keep alive what dropping this state would free. To be emptied item by item,
        the last list first: each item then lets go of nothing that an earlier list doesn't hold.
        """
        indexes = (*self.indexes.values(), *self.building)
        yield list(self.objects.values())
        yield list(self.objects)
        for index in indexes:
            yield list(index.buckets.values())
        yield [self.objects, *(index.buckets for index in indexes)]
