"""The compression of one informer's objects: its dictionary, and the objects that are worth it.

A frame of zstd that stands alone holds one object and can refer to nothing else: a pod of 7 kB
takes 2.3 kB. Objects of one owner, such as the pods of a ReplicaSet, share nearly everything. Once
an owner has enough objects, one of them becomes their reference, and a pod takes 0.3 kB. A
reference is freed with the last object that needs it (``ReferenceTable``).

All other objects have a dictionary, trained on a sample of the cache: a pod takes 0.7 kB. The
dictionary is trained again once frames have become larger than they were with it at first, as
another kind of objects does, and once the cache has outgrown it. Objects with an older dictionary
are then compressed again, so that it is freed.

Training belongs into a thread: the caller takes the sample, calls ``train`` there, and ``install``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from aioinformer._core.compression.compressed_object import (
    COMPRESSED_BYTES,
    CompressedBytes,
    CompressedObject,
    CompressionGroup,
    KnownValues,
    ValueItems,
    keep_uncompressed,
    saved_bytes,
    store_compressed,
)
from aioinformer._core.compression.references import MAX_REFERENCE, ReferenceTable, find_owner
from aioinformer._core.compression.zstd import BodyCodec, DictionaryCodec, train_dictionary
from aioinformer._core.objects.kube_object import KubeObject

__all__ = ["CompressionBatch", "Compressor"]

MIN_BYTES: Final = 512
"""Bytes of the smallest JSON that is compressed. A smaller object saves less than a compressed one
takes in addition, 100 bytes, and a third of its JSON."""

MIN_SAVED: Final = 128
"""Bytes that compression must save: it adds an object of 32 bytes, and reading takes longer."""

MIN_SAMPLES: Final = 64
"""Objects of which a dictionary is made at least. For fewer objects it would save less than it
takes."""
MAX_SAMPLES: Final = 2048
"""Objects of a sample: five of each of 400 workloads."""
MIXING_STEPS: Final = (997, 991)
"""Primes by which a sample is mixed: zstd takes parts of the dictionary from one piece of the
sample after the other, and neighbours in a list are of one workload. A pod takes a tenth less."""
MAX_SAMPLE_BYTES: Final = 16 * 1024 * 1024
"""Bytes of a sample, which is in memory during the training."""

DICTIONARY_PART: Final = 256
"""The dictionary takes one byte for so many bytes of JSON of objects without a reference,"""
SHARED_DICTIONARY_PART: Final = 4096
"""and one for so many of the others, since each owner's first objects have none; in these limits:
"""
MIN_DICTIONARY: Final = 16 * 1024
MAX_DICTIONARY: Final = 512 * 1024
"""Beyond, a frame shrinks by a twentieth for each doubling, and compressing takes longer."""

GROWTH: Final = 8
"""A dictionary is trained again when the cache has so many times the JSON that it had then, unless
the dictionary has the greatest size."""

WINDOW: Final = 512
"""Objects over which the share of the bytes that is left is measured; more in a large cache:"""
WINDOW_PART: Final = 4
"""One object in so many, since neighbours are alike, and a new dictionary compresses all again."""
WORSE: Final = 1.25
"""A dictionary has stopped fitting when frames are larger than at first by this factor."""

MAX_VALUES: Final = 8192
"""Different index values that are kept for objects, 2 MB at most. Objects with others are read when
they are filed again."""


class Compressor:
    """Compresses the objects of one informer."""

    def __init__(self, zstd: Any) -> None:
        """Create a compressor without a dictionary.

        Args:
            zstd: the module that ``find_zstd`` has found.
        """
        self._zstd = zstd
        self._trained_on = 0
        """Bytes of the cache's JSON when the dictionary was trained last; 0 before."""
        self._window = WINDOW
        self._known: list[ValueItems] = [()]
        """The index values by number. Objects with others have the number 0."""
        self._numbers: dict[ValueItems, int] = {(): 0}
        self.references = ReferenceTable(zstd, self._known)
        """The references of owners with many objects."""
        self.trainings = 0
        """Dictionaries that were installed."""
        self._use(DictionaryCodec(zstd))

    @property
    def dictionary_bytes(self) -> int:
        """Bytes of the dictionary; 0 without one."""
        return self._codec.dictionary_bytes

    def _use(self, codec: BodyCodec) -> None:
        self._codec = codec
        self.dictionary_group = CompressionGroup(codec, self._known)
        """The group of the objects that have the dictionary."""
        self._window_json, self._window_stored, self._window_count = 0, 0, 0
        self._first_share = 0.0
        """The share of the bytes that was left in the first window of this dictionary."""
        self._worse = False

    # -- the dictionary --------------------------------------------------------------------------

    def needs_training(self, objects: int, json_bytes: int) -> bool:
        """Return True if a dictionary should be made of a cache of this size."""
        if objects < MIN_SAMPLES or json_bytes < MIN_SAMPLES * MIN_BYTES:
            return False
        if not self._trained_on or self._worse:
            return True
        full_size = self.dictionary_bytes > MAX_DICTIONARY // 2
        return json_bytes >= GROWTH * self._trained_on and not full_size

    def choose_sample(self, objects: Sequence[KubeObject], json_bytes: int) -> list[KubeObject]:
        """Return objects from all parts of the cache, for a sample of bounded size."""
        wanted = min(MAX_SAMPLES, max(MAX_SAMPLE_BYTES * len(objects) // (json_bytes or 1), 1))
        chosen = objects[:: max(len(objects) // wanted, 1)]
        count = len(chosen)
        step = next((each for each in MIXING_STEPS if count % each), 1)
        return [chosen[number * step % count] for number in range(count)]

    def train(self, sample: Sequence[bytes], json_bytes: int) -> BodyCodec | None:
        """Return a codec with a dictionary made of ``sample``. For a thread: it takes 0.7 s.

        Args:
            sample: JSON of objects.
            json_bytes: bytes of the cache's JSON.

        Returns:
            ``None`` if the objects have too little in common.
        """
        shared = int(json_bytes * self.references.expected_share)
        size = (json_bytes - shared) // DICTIONARY_PART + shared // SHARED_DICTIONARY_PART
        size = min(max(size, MIN_DICTIONARY), MAX_DICTIONARY)
        dictionary = train_dictionary(self._zstd, sample, size)
        return DictionaryCodec(self._zstd, dictionary) if dictionary else None

    def install(self, codec: BodyCodec | None, json_bytes: int, objects: int = 0) -> None:
        """Use what ``train`` has returned; ``None`` keeps the codec until the cache has grown.

        Args:
            codec: the result of ``train``.
            json_bytes: bytes of the cache's JSON.
            objects: the number of objects in the cache.
        """
        self._trained_on = json_bytes
        self._worse = False
        self._window = max(WINDOW, objects // WINDOW_PART)
        if codec is not None:
            self.trainings += 1
            self._use(codec)

    # -- objects ---------------------------------------------------------------------------------

    def is_due(self, obj: KubeObject) -> bool:
        """Return True if ``obj`` can be compressed, and has not been with this dictionary."""
        kind = type(obj)
        if kind is KubeObject:
            return len(obj.stored) >= MIN_BYTES
        if kind is CompressedObject:
            stored = obj.stored
            if type(stored) is CompressedBytes:
                group = stored.group
                return group is not self.dictionary_group and not group.is_reference
        return False

    def batch(self, owner: bytes, objects: Sequence[KubeObject]) -> CompressionBatch:
        """Return a compression of objects of one owner, which takes less time than one for each.

        Args:
            owner: the result of ``owner_of`` for all ``objects``.
            objects: the objects that will be compressed, at least one.
        """
        group = self.references.find(objects[0].raw) if owner else None
        if group is None:
            return CompressionBatch(self, self.dictionary_group, self._codec.compress)
        largest = max([len(obj.stored) for obj in objects])
        return CompressionBatch(self, group, group.codec.batch(len(objects), largest))

    def owner_of(self, obj: KubeObject) -> bytes:
        """Return the uid of the owner of an object that ``is_due``.

        Empty if it has no reference in any case: without an owner, if its JSON is too large, and if
        it is compressed with an older dictionary, since no reference fitted it.
        """
        if type(obj) is not KubeObject or len(obj.stored) > MAX_REFERENCE:
            return b""
        return find_owner(obj.raw)

    def compress(self, obj: KubeObject, values: KnownValues) -> CompressedBytes | None:
        """Return the JSON of an object that ``is_due``, compressed, as a batch of one object."""
        return self.batch(self.owner_of(obj), [obj]).compress(obj, values)

    def store(self, obj: KubeObject, compressed: CompressedBytes | None) -> int:
        """Keep the result of ``compress`` in the object, which is still due, if it is worth it.

        Returns:
            The bytes that are saved in addition.
        """
        first = type(obj) is KubeObject
        size, taken = len(obj.stored), 0 if compressed is None else len(compressed.data)
        if compressed is None or taken + MIN_SAVED > size:
            if first:
                keep_uncompressed(obj)
            return 0
        before = 0 if first else saved_bytes(obj)
        store_compressed(obj, compressed)
        if not compressed.group.is_reference:
            self._measure(size, taken)
        return size - taken - COMPRESSED_BYTES - before

    def number_of(self, values: KnownValues) -> int:
        """Return the number of these index values; 0 if there is no room for them."""
        key = tuple(values.items())
        number = self._numbers.get(key)
        if number is None:
            if len(self._known) > MAX_VALUES:
                return 0
            number = self._numbers[key] = len(self._known)
            self._known.append(key)
        return number

    def _measure(self, before: int, after: int) -> None:
        """Record the size of a frame, and find out if the dictionary still fits."""
        self._window_json += before
        self._window_stored += after
        self._window_count += 1
        if self._window_count < self._window:
            return
        share = self._window_stored / self._window_json
        self._window_json, self._window_stored, self._window_count = 0, 0, 0
        if not self._first_share:
            self._first_share = share
        elif share > self._first_share * WORSE:
            self._worse = True

    def __repr__(self) -> str:
        return f"<Compressor dictionary={self.dictionary_bytes} B trainings={self.trainings}>"


class CompressionBatch:
    """Objects of one owner, compressed one after another with one compressor of zstd.

    They have the reference of the owner as long as it fits, and otherwise the dictionary.
    """

    __slots__ = ("_compress_frame", "_compressor", "_group")

    def __init__(
        self,
        compressor: Compressor,
        group: CompressionGroup,
        compress_frame: Callable[[bytes], bytes],
    ) -> None:
        """Create a batch.

        Args:
            compressor: has the dictionary and the references.
            group: the group of the objects.
            compress_frame: compresses a body for this group.
        """
        self._compressor = compressor
        self._group = group
        self._compress_frame = compress_frame

    def compress(self, obj: KubeObject, values: KnownValues) -> CompressedBytes | None:
        """Return the JSON of an object that ``is_due``, compressed. For one thread at a time.

        Args:
            obj: the object.
            values: its index values, so that the indexes need not read it.

        Returns:
            ``None`` if the object can't be compressed.
        """
        raw, compressor = obj.raw, self._compressor
        frame = self._compress_frame(raw)
        if self._group.is_reference and not compressor.references.fits(raw, frame):
            self._group = compressor.dictionary_group
            self._compress_frame = self._group.codec.compress
            frame = self._compress_frame(raw)
        number = compressor.number_of(values)
        try:
            uid, version = obj.uid, obj.resource_version
            return CompressedBytes.of(raw, frame, uid, version, self._group, number)
        except ValueError:  # such a uid or version is no API server's
            return None

    def __repr__(self) -> str:
        return f"<CompressionBatch of {self._group.codec!r}>"
