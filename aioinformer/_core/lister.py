"""Reading the cache.

A ``Lister`` can't change anything, and what it returns can't be changed either. It picks the
state up once for each read and copies what it returns in one step, so that reads are safe from
any thread while the event loop goes on writing. Who writes is ``indexer``.

This is a cache: a read shows the past, how long past is not promised.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from aioinformer._core.indexer import Indexer
from aioinformer._core.objects import KubeObject, ObjectKey
from aioinformer._core.resources import Resource
from aioinformer._core.selectors import LabelSelector
from aioinformer._core.store import Index, State
from aioinformer.errors import NotSynced, UsageError

__all__ = ["Lister"]

# Inside the class ``list`` is the method.
_Objects: TypeAlias = list[KubeObject]
_Keys: TypeAlias = list[ObjectKey]
_Names: TypeAlias = list[str]


class Lister:
    """Reads what an informer has cached. Safe to use from any thread."""

    def __init__(
        self,
        indexer: Indexer,
        resource: Resource,
        *,
        namespace: str | None = None,
        unsynced: bool = False,
    ) -> None:
        """Make a reader.

        Args:
            indexer: where the objects are.
            resource: what they are.
            namespace: the only namespace that is cached; ``None`` if it may be any.
            unsynced: whether reads are allowed before the first full state.
        """
        self._indexer = indexer
        self._resource = resource
        self._namespace = namespace
        self._unsynced = unsynced

    @property
    def unsynced(self) -> Lister:
        """The same reader, which also answers before the first full state: with what there is."""
        return Lister(self._indexer, self._resource, namespace=self._namespace, unsynced=True)

    @property
    def resource_version(self) -> str:
        """The version up to which the cache has applied everything; empty before the first."""
        return self._indexer.state.resource_version

    def get(self, key: ObjectKey | str, *, namespace: str | None = None) -> KubeObject | None:
        """The object of that key, or ``None``.

        Args:
            key: an ``ObjectKey``, ``"namespace/name"``, or a name alone where the namespace is
                clear: given here, the only one that is cached, or none at all.
            namespace: the object's namespace.

        Raises:
            NotSynced: the cache doesn't hold its first full state yet.
            UsageError: the name alone doesn't say which object is meant.
        """
        return self._state().objects.get(self._key(key, namespace))

    def list(
        self,
        *,
        namespace: str | None = None,
        labels: LabelSelector | str | Mapping[str, str] | None = None,
    ) -> _Objects:
        """The cached objects, in no particular order, as a list of one's own.

        With a selector it looks at every object in one step: at 100,000 of them, a tenth of a
        second. In an event loop, an index serves better.

        Args:
            namespace: only those in this namespace.
            labels: only those that this label selector matches.

        Raises:
            NotSynced: the cache doesn't hold its first full state yet.
            InvalidSelector: ``labels`` doesn't parse.
        """
        objects = list(self._state().objects.values())
        if namespace is not None:
            objects = [obj for obj in objects if obj.namespace == namespace]
        if labels:
            selector = labels if isinstance(labels, LabelSelector) else LabelSelector.parse(labels)
            objects = [obj for obj in objects if selector.matches(obj.labels)]
        return objects

    def by_index(self, index: str, value: str) -> _Objects:
        """The objects that the index function filed under ``value``.

        A thread that reads while the event loop files a change may see that one object under
        its value of before, or under none; the loop itself never does.

        Raises:
            NotSynced: the cache doesn't hold its first full state yet.
            UsageError: there is no index of that name.
        """
        state = self._state()
        keys = list(self._index(state, index).keys.get(value, ()))
        found = (state.objects.get(key) for key in keys)
        # Between the two look-ups, another thread's reader may see an object go.
        return [obj for obj in found if obj is not None]

    def index_values(self, index: str) -> _Names:
        """The values under which the index holds anything."""
        return list(self._index(self._state(), index).keys)

    @property
    def indexes(self) -> tuple[str, ...]:
        """The names of the indexes."""
        return tuple(self._indexer.state.indexes)

    def keys(self) -> _Keys:
        """The keys of the cached objects."""
        return list(self._state().objects)

    def __iter__(self) -> Iterator[KubeObject]:
        return iter(self.list())

    def __len__(self) -> int:
        return len(self._state().objects)

    def __contains__(self, key: object) -> bool:
        if isinstance(key, KubeObject):
            key = key.key
        if not isinstance(key, ObjectKey | str):
            return False
        return self.get(key) is not None

    def _state(self) -> State:
        state = self._indexer.state
        if not (state.synced or self._unsynced):
            raise NotSynced(
                f"the cache of {self._resource} doesn't hold its first full state yet; await "
                "wait_synced() first, or read through lister.unsynced"
            )
        return state

    def _index(self, state: State, name: str) -> Index:
        index = state.indexes.get(name)
        if index is None:
            known = ", ".join(state.indexes) or "none"
            raise UsageError(f"{self._resource} has no index {name!r}; its indexes: {known}")
        return index

    def _key(self, key: ObjectKey | str, namespace: str | None) -> ObjectKey:
        if isinstance(key, ObjectKey):
            return key
        if "/" in key:
            parsed = ObjectKey.parse(key)
            if namespace not in (None, parsed.namespace):
                raise UsageError(f"{key!r} is not in the namespace {namespace!r}")
            return parsed
        if not self._resource.namespaced:
            return ObjectKey("", key)
        scope = namespace or self._namespace
        if not scope:
            raise UsageError(
                f"which {self._resource.singular} {key!r}? This cache has every namespace: pass "
                f"namespace=, 'namespace/{key}' or an ObjectKey"
            )
        return ObjectKey(scope, key)

    def __repr__(self) -> str:
        state = self._indexer.state
        return f"<Lister {self._resource} objects={len(state.objects)} synced={state.synced}>"
