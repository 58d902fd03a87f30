"""An estimate of the memory that a cache takes, without a walk over its objects.

The bytes of JSON are counted as objects come and go; the rest is computed from a few objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass
from itertools import islice
from sys import getsizeof

from aioinformer._core.objects.kube_object import KubeObject, ObjectKey, is_packed


def _allocate(size: int) -> int:
    return (size + 15) // 16 * 16


_EMPTY_STRING = getsizeof("")  # 49 bytes; 41 since Python 3.12

OBJECT_BYTES = 48 + 32 + 33 + 12
"""Bytes of an object, its key, the header of its JSON, and the unused end of the JSON's block."""
NAME_BYTES = _EMPTY_STRING + 15
"""Bytes of a string without its characters, as the allocator rounds them up."""
UNPACKED_BYTES = _allocate(40) + _allocate(_EMPTY_STRING + 36) + _allocate(_EMPTY_STRING + 7)
"""Bytes of the holder, the uid and the version of an object that a watch has brought."""
EVENT_BYTES = 64
"""Bytes of a pending event, beside the objects in it."""
DECODED_FACTOR = 6
"""Bytes of a decoded body for each byte of its JSON."""
SAMPLED = 64
"""Objects whose sizes stand for all: half are the first of the cache, half the last; or buckets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheMemory:
    """An estimate of the bytes that an informer takes, as ``SharedInformer.memory()`` returns it.

    ``json_bytes`` is exact. The sum is within a tenth of what the cache allocates, without the
    results of ``model=`` and ``convert=``, whose sizes only their program knows, and without the
    memory that Python keeps free. No number is promised to stay the same between versions.

    Example::

        memory = pods.memory()
        print(f"{memory.objects} pods take {memory.total // memory.objects} bytes each")
    """

    objects: int
    """Cached objects."""
    json_bytes: int
    """Bytes of the objects' JSON; 0 with ``model=``, which keeps none."""
    overhead_bytes: int
    """Bytes of the objects, keys and dicts around the JSON, indexes included."""
    open_bytes: int
    """Bytes of the decoded bodies that are kept, of this informer's objects."""
    pending_bytes: int
    """Bytes of queued deltas, of pending events with the objects' previous states, and of changes
    that are to be written to a file."""

    @property
    def total(self) -> int:
        """The sum of all bytes."""
        return self.json_bytes + self.overhead_bytes + self.open_bytes + self.pending_bytes

    @classmethod
    def estimate(
        cls,
        *,
        objects: int,
        json_bytes: int,
        overhead_bytes: int,
        opened: Iterable[int],
        pending: int,
        queued_bytes: int,
    ) -> CacheMemory:
        """Return the estimate for ``objects`` with ``json_bytes`` of JSON.

        ``opened`` has the bytes of JSON of each object whose decoded body is kept, ``pending`` is
        the number of events in mailboxes, and ``queued_bytes`` what waits elsewhere.
        """
        each = json_bytes // objects if objects else 0
        return cls(
            objects=objects,
            json_bytes=json_bytes,
            overhead_bytes=overhead_bytes,
            open_bytes=DECODED_FACTOR * sum(opened),
            pending_bytes=queued_bytes + pending * (each + OBJECT_BYTES + EVENT_BYTES),
        )


def estimate_overhead(objects: dict[ObjectKey, KubeObject]) -> int:
    """Return the bytes of objects, keys and their dict, without JSON."""
    values, half = objects.values(), SAMPLED // 2
    sizes = [
        len(obj.name) + (0 if is_packed(obj) else UNPACKED_BYTES)
        for obj in (*islice(values, half), *islice(reversed(values), half))
    ]
    each = sum(sizes) // len(sizes) if sizes else 0
    return getsizeof(objects) + len(objects) * (OBJECT_BYTES + NAME_BYTES + each)


def estimate_index(buckets: Mapping[str, Sized]) -> int:
    """Return the bytes of an index: its dict, its values and their buckets."""
    sample = [
        getsizeof(bucket) + getsizeof(value) for value, bucket in islice(buckets.items(), SAMPLED)
    ]
    each = sum(sample) // len(sample) if sample else 0
    return getsizeof(buckets) + len(buckets) * each
