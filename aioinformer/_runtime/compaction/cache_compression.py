"""The compression of one informer's cached objects at rest, in steps between other work.

The pump reports each changed object, and the compression looks at it once it has rested. After a
list, and with a new dictionary, it walks over the whole cache. The event loop is held for about a
millisecond at once; a dictionary is trained in a thread, and so are very large objects compressed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NoReturn

from aioinformer._core.cache.compressed_index import CompressedIndex
from aioinformer._core.cache.protocols import ObjectCache
from aioinformer._core.cache.store import Index
from aioinformer._core.chunked_list import drain_chunks, iter_chunks
from aioinformer._core.compression.compressed_object import (
    CompressedObject,
    KnownValues,
    saved_bytes,
)
from aioinformer._core.compression.compressor import CompressionBatch, Compressor
from aioinformer._core.compression.zstd import BodyCodec, find_zstd
from aioinformer._core.objects.deltas import Replaced
from aioinformer._core.objects.kube_object import (
    Added,
    Deleted,
    Event,
    KubeObject,
    ObjectKey,
    Updated,
    cached_body,
    held_state,
)
from aioinformer._runtime.compaction.free_memory import freed_memory
from aioinformer._runtime.tasks.event_loop import TimeSlice

__all__ = ["CacheCompression"]

STEP_SECONDS = 0.001
"""Seconds of work after which the compression yields to the loop: events pass it by then."""

OBJECTS_PER_CLOCK = 16
"""Objects between two readings of the clock: 0.3 ms of compressing pods."""

CLOCK_BYTES = 32 * 1024
"""Bytes of JSON from which on the clock is read after each object: 16 objects of nearly
``LARGE_BYTES`` would hold the loop for more than 10 ms."""

LARGE_BYTES = 256 * 1024
"""Bytes of JSON from which on an object is compressed in a thread: it takes a millisecond and
more."""

GROUPED_OBJECTS = 2048
"""Objects that are grouped by their owners at once: of 400 workloads there are five of each. In a
list, the objects of one owner are neighbours."""

FREED_PART = 2 * 1024 * 1024
"""Bytes that a walk frees before it returns them to the system: 0.5 to 1 ms, as one step."""

DICTIONARY_COPIES = 4
"""Bytes of memory for each byte of a dictionary: its text, its tables for both directions."""


class CacheCompression:
    """Compresses the objects of one cache that have rested."""

    def __init__(self, indexer: ObjectCache, rest: float) -> None:
        """Make the compression of a cache; ``run`` starts it.

        Args:
            indexer: holds the cache.
            rest: seconds that an object rests at least before it is compressed.
        """
        self.saved_bytes = 0
        """Bytes that the compressed objects of the cache take less than their JSON. Exact but for
        the time between a list and the walk over its objects."""
        self.compressor = Compressor(find_zstd())
        self._indexer = indexer
        self._rest = rest
        self._recent: dict[ObjectKey, bool] = {}
        """The keys of objects that have changed since the last pass; True for new objects."""
        self._resting: dict[ObjectKey, bool] = {}
        """The keys of objects that had changed before it, and are due in the next pass."""
        self._walk_due = False
        self._freed = 0
        """Bytes that were freed since memory was returned to the system."""
        self._indexes: Mapping[str, Index] = {}
        """The indexes of the object that was compressed last."""
        self._reading_indexes: list[CompressedIndex] = []
        """The indexes among these that read stored objects."""

    @property
    def overhead_bytes(self) -> int:
        """An estimate of the bytes of the dictionary and of the references."""
        compressor = self.compressor
        return DICTIONARY_COPIES * compressor.dictionary_bytes + compressor.references.total_bytes

    def record(self, events: Sequence[Event]) -> None:
        """Receive the events of one step."""
        recent = self._recent
        for event in events:
            if type(event) is Updated:
                recent.setdefault(event.new.key, False)
                old = event.old
                if type(old) is CompressedObject:
                    self.saved_bytes -= saved_bytes(old)
            elif type(event) is Added:
                recent[event.obj.key] = True
            elif type(event) is Deleted:  # the next pass finds no object of this key
                self.saved_bytes -= saved_bytes(held_state(event))

    def record_list(self, batches: Sequence[Sequence[Event]], kind: Replaced) -> None:
        """Receive the changes of a list, which are found by a walk over the cache."""
        self._walk_due = True

    async def run(self) -> NoReturn:
        """Compress objects that have rested, until cancelled."""
        while True:
            await asyncio.sleep(self._rest)
            await self._compress_rested()

    async def _compress_rested(self) -> None:
        due, self._resting, self._recent = self._resting, self._recent, {}
        state = self._indexer.state
        count, json_bytes = len(state.objects), state.json_bytes
        train = self.compressor.needs_training(count, json_bytes)
        if train or self._walk_due:
            self._walk_due = False
            await self._count_owners()
            if train:
                await self._train(json_bytes)
            await self._walk()
        else:
            await self._compress_changed(due)
        self.compressor.references.rest()
        self._indexes, self._reading_indexes = {}, []  # an index that is removed is freed

    async def _count_owners(self) -> None:
        """Count the objects of each owner in the cache, as far as they aren't compressed."""
        references, time_slice = self.compressor.references, TimeSlice()
        references.count_again()
        objects = drain_chunks([*iter_chunks(self._indexer.state.objects.values())])
        for number, obj in enumerate(objects, 1):
            if self.compressor.is_due(obj) and type(obj) is KubeObject:
                references.count(obj.raw)
            if number % OBJECTS_PER_CLOCK == 0:
                await time_slice.maybe_yield(STEP_SECONDS)

    async def _compress_changed(self, due: dict[ObjectKey, bool]) -> None:
        """Compress the objects with these keys; the new ones count for their owners before."""
        count, time_slice = self.compressor.references.count, TimeSlice()
        new = [key for key, is_new in due.items() if is_new]
        for number, obj in enumerate(self._find_cached(new), 1):
            if type(obj) is KubeObject:
                count(obj.raw)
            if number % OBJECTS_PER_CLOCK == 0:
                await time_slice.maybe_yield(STEP_SECONDS)
        await self._compress_all(self._find_cached(due))

    def _find_cached(self, keys: Iterable[ObjectKey]) -> Iterator[KubeObject]:
        """Return the objects with these keys that are cached when they are asked for."""
        for key in keys:
            obj = self._indexer.state.objects.get(key)
            if obj is not None:
                yield obj

    async def _train(self, json_bytes: int) -> None:
        compressor = self.compressor
        objects = list(self._indexer.state.objects.values())
        sample, count = compressor.choose_sample(objects, json_bytes), len(objects)
        del objects

        def train() -> BodyCodec | None:
            trained = compressor.train([obj.raw for obj in sample], json_bytes)
            # Release the memory of the training here, so that the loop need not wait.
            freed_memory.release_from_thread()
            return trained

        codec = await asyncio.to_thread(train)
        compressor.install(codec, json_bytes, count)

    async def _walk(self) -> None:
        """Compress all objects that the cache holds now, but for those that changed lately."""
        self.saved_bytes = 0
        objects = drain_chunks([*iter_chunks(self._indexer.state.objects.values())])
        await self._compress_all(objects, walk=True)
        await self._release(TimeSlice())

    async def _compress_all(self, objects: Iterable[KubeObject], *, walk: bool = False) -> None:
        """Compress these objects in steps, as far as they are due.

        Args:
            objects: the objects.
            walk: True to count the bytes that were saved before, too, and to return freed memory to
                the system. Otherwise the objects that arrive next need that memory.
        """
        due: list[KubeObject] = []
        time_slice = TimeSlice()
        for number, obj in enumerate(objects, 1):
            # An object that left the cache by an event during the walk was subtracted then. After a
            # list, the next walk counts again.
            if walk and (not self._walk_due or self._is_cached(obj)):
                self.saved_bytes += saved_bytes(obj)
            if self.compressor.is_due(obj):
                due.append(obj)
                if len(due) == GROUPED_OBJECTS:
                    await self._compress_grouped(due, time_slice, walk=walk)
                    due.clear()
            if number % OBJECTS_PER_CLOCK == 0:
                await time_slice.maybe_yield(STEP_SECONDS)
        await self._compress_grouped(due, time_slice, walk=walk)

    async def _compress_grouped(
        self, due: Sequence[KubeObject], time_slice: TimeSlice, *, walk: bool
    ) -> None:
        """Compress the objects of one owner after another: a batch of them takes less time."""
        compressor, batches = self.compressor, dict[bytes, list[KubeObject]]()
        for number, obj in enumerate(due, 1):
            batches.setdefault(compressor.owner_of(obj), []).append(obj)
            if number % OBJECTS_PER_CLOCK == 0:
                await time_slice.maybe_yield(STEP_SECONDS)
        for number, (batch, obj) in enumerate(self._open_batches(batches), 1):
            size = len(obj.stored)
            if self._has_rested(obj):
                values = self._index_values(obj)
                # Without a coroutine for each object, which would take a tenth of the time.
                if size < LARGE_BYTES:
                    saved = compressor.store(obj, batch.compress(obj, values))
                else:
                    saved = await self._compress_large(batch, obj, values)
                self.saved_bytes += saved
                self._freed += saved
            if number % OBJECTS_PER_CLOCK == 0 or size >= CLOCK_BYTES:
                await time_slice.maybe_yield(STEP_SECONDS)
            if walk and self._freed > FREED_PART:
                await self._release(time_slice)

    def _open_batches(
        self, batches: Mapping[bytes, Sequence[KubeObject]]
    ) -> Iterator[tuple[CompressionBatch, KubeObject]]:
        """Return the objects of each owner, with the batch that they are compressed in."""
        for owner, objects in batches.items():
            batch = self.compressor.batch(owner, objects)
            for obj in objects:
                yield batch, obj

    async def _release(self, time_slice: TimeSlice) -> None:
        """Return freed memory to the system, as one step."""
        await asyncio.sleep(0)
        freed_memory.release()
        time_slice.reset()
        self._freed = 0

    def _is_cached(self, obj: KubeObject) -> bool:
        return self._indexer.state.objects.get(obj.key) is obj

    def _has_rested(self, obj: KubeObject) -> bool:
        """Return True if an object is still cached and closed, and didn't change lately."""
        if cached_body(obj) is not None:
            self._recent.setdefault(obj.key, False)  # in use: look again later
            return False
        key = obj.key
        return key not in self._recent and key not in self._resting and self._is_cached(obj)

    async def _compress_large(
        self, batch: CompressionBatch, obj: KubeObject, values: KnownValues
    ) -> int:
        """Compress an object in a thread; return the bytes that are saved in addition."""
        compressed = await asyncio.to_thread(batch.compress, obj, values)
        still_due = self._is_cached(obj) and self.compressor.is_due(obj)
        return self.compressor.store(obj, compressed) if still_due else 0

    def _index_values(self, obj: KubeObject) -> KnownValues:
        """Return the values of the indexes that read stored objects; none if a function raises."""
        state = self._indexer.state.part_of(obj.key)
        if state is None:
            return {}
        if state.indexes is not self._indexes:
            self._indexes = state.indexes
            self._reading_indexes = [
                each
                for each in state.indexes.values()
                if isinstance(each, CompressedIndex) and each.adapter is None
            ]
        values: dict[str, tuple[str, ...]] = {}  # no comprehension: this runs for every object
        try:
            for index in self._reading_indexes:
                values[index.name] = index.take_values(obj)
        except Exception:  # noqa: BLE001 - the function didn't raise when the object was filed
            return {}
        return values

    def __repr__(self) -> str:
        return f"<CacheCompression rest={self._rest:g} s saved={self.saved_bytes} B>"
