"""The cache of several scopes: one ``Indexer`` for each namespace, read as one cache.

A relist of a namespace replaces that namespace's objects only, in one step. Changes find their
indexer by the namespace in their key; whole states and bookmarks carry it as their ``scope``. The
indexer of a namespace exists from its first whole state on. ``protocols`` describes the methods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, ValuesView
from functools import partial
from itertools import chain
from typing import Any

from aioinformer._core.cache.indexer import Indexer, StagedReplacement
from aioinformer._core.cache.indexes import IndexBuild
from aioinformer._core.cache.store import CacheState, Index, IndexBucket, IndexFunction, IndexValues
from aioinformer._core.objects.deltas import Bookmark, Confirmed, Correction, Delta, Replaced
from aioinformer._core.objects.kube_object import Event, KubeObject, ObjectKey
from aioinformer._core.objects.object_key import oldest_version
from aioinformer._core.objects.view import ObjectView

_UNREAD = CacheState()
"""The state of a namespace whose first list has not been applied; never changed."""


class PartitionedState:
    """The states of all namespaces, read as one state.

    Each part is a true past state of its namespace; the parts may be of different moments.
    """

    def __init__(self, template: Indexer) -> None:
        """Make a state without namespaces; ``template`` is an empty indexer with all indexes."""
        self.scopes: set[str] = set()
        """The namespaces that the cache is to hold."""
        self.synced = False
        """True once the cache had the first state of each namespace that it waits for."""
        self._template = template
        self.objects = _PartitionedObjects()

    @property
    def parts(self) -> Mapping[str, Indexer]:
        """The indexers by namespace. A change makes a new mapping, for readers in threads."""
        return self.objects.parts

    @property
    def indexes(self) -> Mapping[str, _PartitionedIndex]:
        parts = [part.state for part in self.parts.values()]
        return {
            name: _PartitionedIndex(
                index, tuple(part.indexes[name] for part in parts if name in part.indexes)
            )
            for name, index in self._template.state.indexes.items()
        }

    @property
    def resource_version(self) -> str:
        """The oldest version of the namespaces' states; empty if they can't be compared."""
        return oldest_version(part.state.resource_version for part in self.parts.values())

    @property
    def json_bytes(self) -> int:
        return sum(part.state.json_bytes for part in self.parts.values())

    @property
    def overhead_bytes(self) -> int:
        return sum(part.state.overhead_bytes for part in self.parts.values())

    def part_of(self, key: ObjectKey) -> CacheState | None:
        """Return the state of the key's namespace; ``None`` if the cache is not to hold it."""
        if key.namespace not in self.scopes:
            return None
        part = self.parts.get(key.namespace)
        return _UNREAD if part is None else part.state

    def candidates(self, namespace: str | None) -> list[KubeObject]:
        if namespace is None:
            return list(self.objects.values())
        part = self.parts.get(namespace)
        return [] if part is None else list(part.state.objects.values())

    def copy_objects(self) -> dict[ObjectKey, KubeObject]:
        copied: dict[ObjectKey, KubeObject] = {}
        for part in self.parts.values():
            copied.update(part.state.objects)
        return copied

    def __repr__(self) -> str:
        return f"<PartitionedState parts={len(self.parts)}/{len(self.scopes)} synced={self.synced}>"


class _PartitionedObjects(Mapping[ObjectKey, KubeObject]):
    def __init__(self) -> None:
        # Not the PartitionedState, which has this mapping: a cycle would keep all objects alive.
        self.parts: Mapping[str, Indexer] = {}

    def dicts(self) -> list[dict[ObjectKey, KubeObject]]:
        return [part.state.objects for part in self.parts.values()]

    def __getitem__(self, key: ObjectKey) -> KubeObject:
        part = self.parts.get(key.namespace)
        if part is None:
            raise KeyError(key)
        return part.state.objects[key]

    def get(self, key: ObjectKey, default: Any = None) -> Any:
        part = self.parts.get(key.namespace)
        return default if part is None else part.state.objects.get(key, default)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, ObjectKey) and self.get(key) is not None

    def __iter__(self) -> Iterator[ObjectKey]:
        # Copies, because another thread may read while the pump changes a dict.
        return chain.from_iterable([list(each) for each in self.dicts()])

    def __len__(self) -> int:
        return sum(map(len, self.dicts()))

    def values(self) -> ValuesView[KubeObject]:
        return _PartitionedValues(self)


class _PartitionedValues(ValuesView[KubeObject]):
    """The values of ``_PartitionedObjects``, without a lookup of each."""

    def __init__(self, objects: _PartitionedObjects) -> None:
        super().__init__(objects)
        self._objects = objects

    def __iter__(self) -> Iterator[KubeObject]:
        return chain.from_iterable([list(each.values()) for each in self._objects.dicts()])


class _PartitionedIndex:
    def __init__(self, template: Index, parts: tuple[Index, ...]) -> None:
        self._template = template
        self.buckets: Mapping[str, IndexBucket] = _PartitionedBuckets(parts)

    @property
    def function(self) -> IndexFunction[Any]:
        return self._template.function

    def call_function(self, obj: Any) -> IndexValues:
        return self._template.call_function(obj)


class _PartitionedBuckets(Mapping[str, IndexBucket]):
    def __init__(self, parts: tuple[Index, ...]) -> None:
        self._parts = parts

    def __getitem__(self, value: str) -> IndexBucket:
        found = [bucket for part in self._parts if (bucket := part.buckets.get(value)) is not None]
        if not found:
            raise KeyError(value)
        if len(found) == 1:
            return found[0]
        merged: IndexBucket = {}
        for bucket in found:
            merged.update(bucket)
        return merged

    def __iter__(self) -> Iterator[str]:
        return iter(
            dict.fromkeys(chain.from_iterable([list(part.buckets) for part in self._parts]))
        )

    def __len__(self) -> int:
        return sum(1 for _ in self)


class PartitionedIndexer:
    """The only writer of a cache of several scopes: an ``Indexer`` for each namespace."""

    def __init__(
        self,
        indexers: Mapping[str, IndexFunction[Any]] | None = None,
        *,
        view: ObjectView[Any] | None = None,
    ) -> None:
        """Make an empty cache without namespaces. The cache is not synced before ``complete``."""
        self.view = view
        self._template = Indexer(indexers, view=view)
        self.state = PartitionedState(self._template)
        """The state, which is the same object at all times."""
        self._waiting: set[str] = set()
        self._removals = Counter[str]()
        """The number of queued removals of each namespace."""
        self._complete = False

    # -- scopes --------------------------------------------------------------------------------

    def add_scope(self, namespace: str) -> None:
        """Begin to hold a namespace. An unsynced cache waits for its first state, too."""
        self.state.scopes.add(namespace)
        self._waiting.add(namespace)

    def remove_scope(self, namespace: str) -> None:
        """Cease to hold a namespace. The caller must queue an empty state with the reason
        ``scope_removed``, which removes the objects, behind everything that was read of the
        namespace.
        """
        self.state.scopes.discard(namespace)
        self._removals[namespace] += 1
        self.skip_scope(namespace)

    def skip_scope(self, namespace: str) -> None:
        """Count the cache as synced without a namespace that can't be read now."""
        self._waiting.discard(namespace)
        self._update_synced()

    def complete(self) -> None:
        """Count the cache as synced once every namespace that was added is: all are known."""
        self._complete = True
        self._update_synced()

    def _update_synced(self) -> None:
        self.state.synced = self.state.synced or (self._complete and not self._waiting)

    def part(self, namespace: str) -> Indexer | None:
        """Return the indexer of a namespace; ``None`` before its first state is being applied."""
        return self.state.parts.get(namespace)

    def _get_or_create(self, namespace: str) -> Indexer:
        part = self.state.parts.get(namespace)
        if part is None:
            part = Indexer(view=self.view)
            part.state = self._template.state.empty_copy()
            self.state.objects.parts = {**self.state.parts, namespace: part}
        return part

    def _finish_replacement(self, replaced: Replaced) -> None:
        """Record that a namespace's new state was installed."""
        namespace = replaced.scope or ""
        if not replaced.is_whole:
            pass  # shards were gained or lost; the namespace stays
        elif replaced.reason == "scope_removed":
            self._removals -= Counter((namespace,))  # drops what becomes zero
            parts = {name: part for name, part in self.state.parts.items() if name != namespace}
            self.state.objects.parts = parts
        elif not self._removals[namespace] and not replaced.restored:
            # Otherwise this is a state from before a removal that is queued still.
            self._waiting.discard(namespace)
        self._update_synced()

    # -- writing -------------------------------------------------------------------------------

    def apply(self, delta: Delta, events: list[Event]) -> Exception | None:
        part = self.state.parts.get(delta.obj.key.namespace)
        return None if part is None else part.apply(delta, events)

    def correct(self, correction: Correction, events: list[Event]) -> Exception | None:
        part = self.state.parts.get(correction.key.namespace)
        if part is None:
            correction.guard.pending -= 1
            return None
        return part.correct(correction, events)

    def bookmark(self, bookmark: Bookmark) -> None:
        part = self.state.parts.get(bookmark.scope or "")
        if part is not None:
            part.bookmark(bookmark)

    def confirm_restored(self, confirmed: Confirmed) -> None:
        namespace = confirmed.scope or ""
        part = self.state.parts.get(namespace)
        if part is not None and not self._removals[namespace]:
            part.confirm_restored(confirmed)
            self._waiting.discard(namespace)
            self._update_synced()

    def scope_states(self) -> Mapping[str, CacheState]:
        return {namespace: part.state for namespace, part in self.state.parts.items()}

    def lacks(self, scope: str) -> bool:
        return self._complete and scope not in self.state.scopes

    def is_removing(self, scope: str) -> bool:
        return self._removals[scope] > 0

    def replace(self, replaced: Replaced) -> StagedReplacement:
        part = self._get_or_create(replaced.scope or "")
        kind = replaced.without_objects()
        return part.replace(replaced, partial(self._finish_replacement, kind))

    # -- reading -------------------------------------------------------------------------------

    @property
    def rejected(self) -> Mapping[ObjectKey, Exception]:
        merged: dict[ObjectKey, Exception] = {}
        for part in self.state.parts.values():
            merged.update(part.rejected)
        return merged

    def rejection(self, key: ObjectKey) -> Exception | None:
        part = self.state.parts.get(key.namespace)
        return None if part is None else part.rejection(key)

    def holds(self, obj: KubeObject) -> bool:
        part = self.state.parts.get(obj.key.namespace)
        return part is not None and part.holds(obj)

    def deduplicate(self, obj: KubeObject) -> KubeObject:
        part = self.state.parts.get(obj.key.namespace)
        return obj if part is None else part.deduplicate(obj)

    # -- indexes -------------------------------------------------------------------------------

    def add_indexers(self, indexers: Mapping[str, IndexFunction[Any]]) -> None:
        # The namespaces first: they know if objects are cached, and all of them have equal indexes.
        for part in self.state.parts.values():
            part.add_indexers(indexers)
        self._template.add_indexers(indexers)

    def build_index(self, name: str, function: IndexFunction[Any]) -> IndexBuild | None:
        index = self._template.new_index(name, function)
        return None if index is None else IndexBuild(index, self._all_states)

    def _all_states(self) -> list[CacheState]:
        """Return the states of all namespaces, and the template of those that come later."""
        parts = (self._template, *self.state.parts.values())
        return [state for part in parts for state in part.states]

    def __repr__(self) -> str:
        return f"<PartitionedIndexer {self.state!r} waiting={len(self._waiting)}>"
