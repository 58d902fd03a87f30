"""The protocols of a cache, which has one scope (``Indexer``) or several (``PartitionedIndexer``).

The pump writes through ``ObjectCache``. Readers read a ``ReadableState``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from aioinformer._core.cache.indexer import StagedReplacement
from aioinformer._core.cache.indexes import IndexBuild
from aioinformer._core.cache.store import CacheState, IndexBucket, IndexFunction, IndexValues
from aioinformer._core.objects.deltas import Bookmark, Confirmed, Correction, Delta, Replaced
from aioinformer._core.objects.kube_object import Event, KubeObject, ObjectKey
from aioinformer._core.objects.view import ObjectView


class ReadableIndex(Protocol):
    """An index as readers see it."""

    @property
    def function(self) -> IndexFunction[Any]: ...

    @property
    def buckets(self) -> Mapping[str, IndexBucket]: ...

    def call_function(self, obj: Any) -> IndexValues:
        """Return the values for the function's argument. Its exceptions pass through."""
        ...


class ReadableState(Protocol):
    """The state of a cache as readers see it."""

    @property
    def objects(self) -> Mapping[ObjectKey, KubeObject]: ...

    @property
    def indexes(self) -> Mapping[str, ReadableIndex]: ...

    @property
    def resource_version(self) -> str:
        """The version up to which everything was applied; empty before the first list."""
        ...

    @property
    def synced(self) -> bool:
        """True once the first state was applied. The value stays true."""
        ...

    @property
    def json_bytes(self) -> int:
        """Bytes of JSON of all objects. May be read from any thread."""
        ...

    @property
    def overhead_bytes(self) -> int:
        """An estimate of the bytes of everything but the JSON."""
        ...

    def part_of(self, key: ObjectKey) -> CacheState | None:
        """Return the state of the scope of this key; ``None`` if the cache has no such scope."""
        ...

    def candidates(self, namespace: str | None) -> list[KubeObject]:
        """Return all objects that may be in ``namespace``, and perhaps others."""
        ...

    def copy_objects(self) -> Mapping[ObjectKey, KubeObject]: ...


class ObjectCache(Protocol):
    """A cache as the pump and the other parts of an informer see it."""

    @property
    def state(self) -> ReadableState:
        """The current state. A reader picks it up once for each read."""
        ...

    @property
    def view(self) -> ObjectView[Any] | None:
        """Converts stored objects to what programs see; ``None`` if programs see stored objects."""
        ...

    @property
    def rejected(self) -> Mapping[ObjectKey, Exception]:
        """Errors by key of the objects whose newest version was rejected."""
        ...

    def rejection(self, key: ObjectKey) -> Exception | None:
        """Return the error of the newest version of this key, if that was rejected."""
        ...

    def apply(self, delta: Delta, events: list[Event]) -> Exception | None:
        """Apply one change and append its events. Returns the error that rejected the object."""
        ...

    def correct(self, correction: Correction, events: list[Event]) -> Exception | None:
        """Apply a correction, unless the object has changed since the comparison."""
        ...

    def bookmark(self, bookmark: Bookmark) -> None:
        """Move the applied version on to the bookmark's, unless that is older."""

    def confirm_restored(self, confirmed: Confirmed) -> None:
        """Record that the server has confirmed the restored state of a scope."""

    def scope_states(self) -> Mapping[str, CacheState]:
        """Return the state of each scope by its name; the name of an only scope is empty."""
        ...

    def lacks(self, scope: str) -> bool:
        """Return True if it is certain that the cache isn't to hold this scope."""
        ...

    def is_removing(self, scope: str) -> bool:
        """Return True if the removal of this scope is queued."""
        ...

    def replace(self, replaced: Replaced) -> StagedReplacement:
        """Begin to replace the state of a scope."""
        ...

    def holds(self, obj: KubeObject) -> bool:
        """Return True if this object, by uid, is still cached in any version."""
        ...

    def deduplicate(self, obj: KubeObject) -> KubeObject:
        """Return the cached object if it equals ``obj`` in version and content, else ``obj``."""
        ...

    def add_indexers(self, indexers: Mapping[str, IndexFunction[Any]]) -> None:
        """Add indexes to an empty cache."""

    def build_index(self, name: str, function: IndexFunction[Any]) -> IndexBuild | None:
        """Begin to build an index over the cached objects; return ``None`` if it exists already."""
        ...
