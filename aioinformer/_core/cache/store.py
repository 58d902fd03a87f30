"""The data of the cache: the objects by key, and the indexes over them.

A relist replaces the whole ``CacheState`` by assigning one attribute, so that a reader in any
thread never sees half of a relist. An index holds the objects themselves, not their keys: a copy of
one dict is then an exact answer in any thread, while a look-up of each key could find an object
that has left the index since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from itertools import islice, repeat
from typing import Any, TypeAlias, cast

from msgspec.structs import force_setattr
from typing_extensions import TypeVar

from aioinformer._core.chunked_list import iter_chunks
from aioinformer._core.objects.decode_errors import hide_secret
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.stored import NeedsJson
from aioinformer.errors import IndexFailed, ModelMismatch, ObjectDecodeError, UsageError

T = TypeVar("T", default=KubeObject)

IndexFunction: TypeAlias = Callable[[T], Iterable[str] | str | None]
"""Returns the values under which an object is found: several, one, or none; the same values for the
same object every time. The function runs in the event loop."""

Indexers: TypeAlias = Mapping[str, IndexFunction[T] | NeedsJson]
"""Index functions by index name: functions of objects as programs see them, or functions such as
``field``, which read the stored object."""

IndexValues: TypeAlias = tuple[str, ...]
"""The index values of one object, without repetitions."""

IndexBucket: TypeAlias = dict[ObjectKey, KubeObject]
"""The objects under one value."""

_FULL_SIZES = frozenset((2 << bits) // 3 for bits in range(14, 40))
"""The numbers of entries at which the next insertion resizes a dict (CPython's
``USABLE_FRACTION``), from the size on where that takes long: 3 ms at 87,381 entries."""

DICT_RESIZE_POINTS = frozenset(size - short for size in _FULL_SIZES for short in (0, 1))
"""The numbers of entries at which ``CacheState.resize_dicts`` may have something to do."""

RESIZE_COST = 64
"""Steps that one resize counts for: after so many objects the runtime reads the clock."""

_DICT_VALUES: type[object] = type(dict[str, str]().values())

MAX_BUCKETS_CHECKED = 1024
"""Buckets that are checked for a due resize. If an index has more, few can be that large."""


def check_indexers(indexers: Indexers[Any] | None) -> Indexers[Any]:
    """Return the index functions by name; raise a ``TypeError`` unless they are a mapping."""
    # A program without a type checker may pass one function.
    if indexers is not None and not isinstance(cast("object", indexers), Mapping):
        raise TypeError(
            "indexers must be a mapping of names to index functions, such as "
            f"{{'node': field('spec.nodeName')}}, not {indexers!r}"
        )
    return indexers or {}


class Index:
    """One index: the objects under each value. A bucket is never empty."""

    # Without slots, because pyright takes a callable in a slot for a method.

    def __init__(
        self,
        name: str,
        function: IndexFunction[Any],
        adapter: Callable[[KubeObject], Any] | None = None,
    ) -> None:
        """Make an empty index; ``adapter`` makes the function's argument from the cached object."""
        self.name = name
        self.function = function
        self.adapter = adapter
        self.buckets: dict[str, IndexBucket] = {}
        self.single_valued = True
        """True if no object was ever filed under more than one value."""

    def values(self, obj: KubeObject) -> IndexValues:
        """Return the values of a cached object; pass the errors through ``hide_secret``."""
        adapter = self.adapter
        try:
            return self.call_function(obj if adapter is None else adapter(obj))
        except Exception as error:
            failure = hide_secret(obj.resource, error)
            if failure is error:
                raise
        try:
            raise failure  # not above, where its ``__context__`` would quote the Secret
        finally:
            del failure  # the traceback refers to this frame

    def call_function(self, obj: Any) -> IndexValues:
        """Return the values for the function's argument. Exceptions of the function pass through.

        Raises:
            TypeError: the function returned something else than text.
            UsageError: the function raised a BaseException; a CancelledError would end the task.
        """
        try:
            found = self.function(obj)
            if isinstance(found, str):
                return (found,)
            return () if found is None else _text_values(found)
        except (Exception, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            message = f"the function of the index {self.name!r} raised a {type(error).__name__}"
            raise UsageError(message) from error

    def replace(self, old: KubeObject, obj: KubeObject, values: IndexValues) -> None:
        """File ``obj`` under ``values`` in the place of ``old``, which has the same key."""
        if self.single_valued and len(values) == 1:
            bucket = self.buckets.get(values[0])
            if bucket is not None and obj.key in bucket:
                # ``old`` was filed here and nowhere else, so that its values, for which the
                # function may read a whole body, need not be known.
                bucket[obj.key] = obj
                return
        self.move(obj, self.filed_values(old), values)

    def move(self, obj: KubeObject, old: IndexValues, new: IndexValues) -> None:
        """File ``obj`` under ``new``, and remove its key from the other values in ``old``."""
        key, buckets = obj.key, self.buckets
        if len(new) > 1:
            self.single_valued = False
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
        if len(bucket) == 1:  # else unused values would pile up
            del self.buckets[value]  # still filled, so that no reader finds an empty bucket
        else:
            del bucket[key]

    def filed_values(self, obj: KubeObject) -> IndexValues:
        """Return the values under which ``obj`` is filed, even if the function raises by now."""
        try:
            return self.values(obj)
        except Exception:  # noqa: BLE001 - the function didn't raise when the object was filed
            return tuple(value for value, bucket in self.buckets.items() if obj.key in bucket)

    def empty_copy(self) -> Index:
        return Index(self.name, self.function, self.adapter)


def _text_values(returned: object) -> IndexValues:
    """Return each text in the result of an index function once; raise a ``TypeError`` for another
    result. The error shows types only, since the values may be a Secret's.
    """
    found = returned  # of which type checkers learn no type
    # The keys of a mapping are text, but its values are meant. Lists are decided at once.
    if not isinstance(found, (list, tuple)) and (
        isinstance(found, Mapping) or not isinstance(found, Iterable)
    ):
        raise _no_text(type(returned).__name__)
    values = tuple(cast("Iterable[str]", found))
    for each in cast("Iterable[object]", values):
        if not isinstance(each, str):
            raise _no_text(f"{type(returned).__name__} with {type(each).__name__} in it")
    return tuple(dict.fromkeys(values))


def _no_text(shown: str) -> TypeError:
    return TypeError(
        f"it returned {shown}; an index function returns a string, a list of strings or None: "
        "return str() of a number"
    )


class CacheState:
    """The objects and indexes of the cache at one moment.

    The growth of a dict is one step: 10 ms at 350,000 objects, and up to 37 ms in a list of a
    million. That is the limit of one scope; shards divide larger resources.
    """

    __slots__ = (
        "_building",
        "_indexes",
        "_resized",
        "all_indexes",
        "json_bytes",
        "objects",
        "resource_version",
        "restored",
        "synced",
    )

    def __init__(self, indexes: Mapping[str, Index] | None = None) -> None:
        self.objects: dict[ObjectKey, KubeObject] = {}
        self._indexes: Mapping[str, Index] = {} if indexes is None else indexes
        self._building: tuple[Index, ...] = ()
        self.all_indexes: tuple[Index, ...] = tuple(self._indexes.values())
        """The indexes with those under construction, to be read only. Every change reads them."""
        self.resource_version = ""
        """The version up to which everything was applied; empty before the first list."""
        self.synced = False
        self.json_bytes = 0
        """Bytes of JSON of all objects."""
        self.restored = False
        """True if this is a state of an earlier time that the server has not confirmed yet."""
        self._resized: set[int] = set()
        """The identities of the dicts that ``resize_dicts`` has resized."""

    @property
    def indexes(self) -> Mapping[str, Index]:
        return self._indexes

    @indexes.setter
    def indexes(self, indexes: Mapping[str, Index]) -> None:
        self._indexes = indexes
        self.all_indexes = (*indexes.values(), *self._building)

    @property
    def building(self) -> tuple[Index, ...]:
        """Indexes under construction, which readers don't see, and whose functions never raise."""
        return self._building

    @building.setter
    def building(self, building: tuple[Index, ...]) -> None:
        self._building = building
        self.all_indexes = (*self._indexes.values(), *building)

    def part_of(self, key: ObjectKey) -> CacheState | None:
        return self

    @property
    def overhead_bytes(self) -> int:
        """An estimate of the bytes of everything but the JSON."""
        from aioinformer._core.cache.memory import (
            estimate_index,
            estimate_overhead,
        )  # rarely needed

        sizes = (estimate_index(index.buckets) for index in self.all_indexes)
        return estimate_overhead(self.objects) + sum(sizes)

    def candidates(self, namespace: str | None) -> list[KubeObject]:
        return list(self.objects.values())

    def copy_objects(self) -> dict[ObjectKey, KubeObject]:
        return self.objects.copy()

    def empty_copy(self) -> CacheState:
        return CacheState({name: index.empty_copy() for name, index in self.indexes.items()})

    def resize_dicts(self) -> Iterator[None]:
        """Resize the dicts that are due one after the other, in a state that has no readers yet,
        before one object that is filed in several dicts resizes all of them in one step.
        """
        full: list[dict[Any, Any]] = [self.objects]
        for index in self.all_indexes:
            full += [index.buckets, *islice(index.buckets.values(), MAX_BUCKETS_CHECKED)]
        for each in full:
            # The deleted key keeps its place in the dict, which is full one entry earlier then.
            if len(each) + (id(each) in self._resized) in _FULL_SIZES:
                # A dict stays large once it was resized. The key is one that the garbage collector
                # doesn't track: with any other, the collector would walk the dict.
                each[None] = None
                del each[None]
                self._resized.add(id(each))
                yield from repeat(None, RESIZE_COST)

    def put(self, obj: KubeObject, old: KubeObject | None) -> None:
        """Store ``obj`` in the place of ``old``; if an index function raises, change nothing.

        Raises ``IndexFailed`` (raised, or returned no text), ``ModelMismatch`` (``convert=``
        raised) or ``ObjectDecodeError`` (an index function read an invalid part of the body).
        """
        filed: list[tuple[Index, IndexValues]] = []  # no comprehension: this runs for every event
        for index in self.all_indexes:
            try:
                values = index.values(obj)
            except (ModelMismatch, ObjectDecodeError):  # the object is at fault, not the function
                raise
            except Exception as error:
                raise IndexFailed(index.name, obj.resource, obj.key, error, uid=obj.uid) from error
            filed.append((index, values))
        if old is not None:
            # A dict keeps the key object of the first insertion. Sharing that key object keeps the
            # name in memory once.
            force_setattr(obj, "key", old.key)
            self.json_bytes -= len(old.raw)
        self.json_bytes += len(obj.raw)
        self.objects[obj.key] = obj
        for index, values in filed:
            if old is None:
                index.move(obj, (), values)
            else:
                index.replace(old, obj, values)

    def remove(self, old: KubeObject) -> None:
        """Remove ``old`` from the objects and all indexes."""
        for index in self.all_indexes:
            index.move(old, index.filed_values(old), ())
        del self.objects[old.key]
        self.json_bytes -= len(old.raw)

    def batches_to_free(self) -> Iterator[list[Any]]:
        """Return lists that keep alive what dropping this state would free at once, to be emptied
        the last list first: then no item frees anything that an earlier list still holds.
        """
        indexes = self.all_indexes
        yield from map(list, iter_chunks(self.objects.values()))
        yield from map(list, iter_chunks(self.objects))
        for index in indexes:
            yield list(index.buckets.values())
        yield [self.objects, *(index.buckets for index in indexes)]


def free_batches(batches: list[list[Any]]) -> Iterator[None]:
    """Empty the batches item by item, the last batch first, one step after the other."""
    while batches:
        batch = batches[-1]
        while batch:
            yield from work_units(batch.pop())
        batches.pop()


def work_units(item: object) -> Iterator[None]:
    """Return one step for ``item``, and one more for each 64 entries of a container."""
    is_container = isinstance(item, dict | list | tuple) or type(item) is _DICT_VALUES
    size = len(cast("Sized", item)) if is_container else 0
    return repeat(None, 1 + size // 64)
