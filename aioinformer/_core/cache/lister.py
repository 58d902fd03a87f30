"""Reading the cache.

A ``Lister`` can't change anything, and what it returns can't be changed either. It picks the
state up once for each read and copies what it returns in one step, so that reads are exact in
any thread while the event loop goes on writing. Each shows the cache, or the part of an index
that it is about, at one moment; in a thread the next one shows a later moment. Who writes is
``indexer``; how a selection is found is ``query``'s.

This is a cache: a read shows the past, how long past is not promised.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, Self

from typing_extensions import TypeVar

from aioinformer._core.cache.indexer import Indexer
from aioinformer._core.cache.query import FieldChoice, LabelChoice, Query, Search, Where
from aioinformer._core.cache.store import CacheState, Index
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer._core.objects.view import ObjectView
from aioinformer.errors import IndexFailed, NotCached, NotSynced, UsageError

__all__ = ["Lister"]

T = TypeVar("T", default=KubeObject)

# Inside the class ``list`` is the method.
_List = list


class Lister(Generic[T]):
    """Reads what an informer has cached. Safe to use from any thread.

    What it returns are ``KubeObject``s, or what the informer's ``model=`` or ``convert=`` makes of
    them; an object at which ``convert=`` raises is a ``ModelMismatch`` wherever it would be
    returned.
    """

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
        self._view: ObjectView[T] | None = indexer.view

    @property
    def unsynced(self) -> Self:
        """The same reader, which also answers before the first full state: with what there is."""
        again = type(self)
        return again(self._indexer, self._resource, namespace=self._namespace, unsynced=True)

    @property
    def resource_version(self) -> str:
        """The version up to which the cache has applied everything; empty before the first."""
        return self._indexer.state.resource_version

    # -- one object ------------------------------------------------------------------------------

    def get(self, key: ObjectKey | str, *, namespace: str | None = None) -> T | None:
        """The object of that key, or ``None``.

        Args:
            key: an ``ObjectKey``, ``"namespace/name"``, or a name alone where the namespace is
                clear: given here, the only one that is cached, or none at all.
            namespace: the object's namespace.

        Raises:
            NotSynced: the cache doesn't hold its first full state yet.
            UsageError: the name alone doesn't say which object is meant.
        """
        found: Any = self._readable_state().objects.get(self.key(key, namespace=namespace))
        shown: T | None = found
        return shown if self._view is None or found is None else self._view.convert(found)

    def __getitem__(self, key: ObjectKey | str) -> T:
        """The object of that key; raises ``NotCached``, a ``KeyError``, if there is none."""
        meant = self.key(key)
        obj = self._readable_state().objects.get(meant)
        if obj is None:
            raise NotCached(self._resource, meant)
        return self._convert(obj)

    def _convert(self, obj: KubeObject) -> T:
        found: Any = obj
        shown: T = found if self._view is None else self._view.convert(obj)
        return shown

    def _convert_all(self, objects: _List[KubeObject]) -> _List[T]:
        found: Any = objects
        shown: _List[T] = found if self._view is None else [*map(self._view.convert, objects)]
        return shown

    def key(self, key: ObjectKey | str, *, namespace: str | None = None) -> ObjectKey:
        """Which object ``get`` would look for.

        Raises:
            UsageError: the name alone doesn't say which object is meant.
        """
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

    # -- a selection -----------------------------------------------------------------------------

    def list(
        self,
        *,
        labels: LabelChoice = None,
        namespace: str | None = None,
        fields: FieldChoice = None,
        where: Where[T] | None = None,
    ) -> _List[T]:
        """The cached objects that are meant, in no particular order, as a list of one's own.

        What an index answers, it finds at once: a ``label_index``, or an index made with
        ``field(path)``, for a selector with that path. Else it looks at every object in one step:
        at 100,000 of them, a tenth of a second. In an event loop, ``scan`` serves better then.

        Args:
            labels: a label selector.
            namespace: only those in this namespace.
            fields: a field selector, of any paths. Values are compared as a server prints them;
                what is absent is empty (a server has a default for some: ``false``, ``0``).
            where: a predicate, or a function that is true of the objects that are meant.

        Raises:
            NotSynced: the cache doesn't hold its first full state yet.
            InvalidSelector: ``labels`` or ``fields`` don't parse.
            InvalidPath: ``fields`` names something that is no path.
            UsageError: the informer has a ``model=``, and so no JSON for selectors or predicates
                to read: use ``where=``, or an index of what the model declares.
            ObjectDecodeError: the labels or fields of an object that had to be looked at can't be
                read, so that nobody knows whether it is meant; to leave it out would be a lie. A
                ``label_index`` rejects such an object as it comes, and doesn't meet it here.
        """
        return self._search(namespace, labels, fields, where).all()

    def _search(
        self,
        namespace: str | None,
        labels: LabelChoice,
        fields: FieldChoice,
        where: Where[T] | None,
    ) -> Search[T]:
        query = Query.of(
            namespace=namespace, labels=labels, fields=fields, where=where, view=self._view
        )
        return query.search(self._readable_state())

    def count(
        self,
        *,
        labels: LabelChoice = None,
        namespace: str | None = None,
        fields: FieldChoice = None,
        where: Where[T] | None = None,
    ) -> int:
        """How many objects ``list`` would give; the same arguments and errors."""
        return len(self.list(labels=labels, namespace=namespace, fields=fields, where=where))

    # -- indexes ---------------------------------------------------------------------------------

    @property
    def indexers(self) -> tuple[str, ...]:
        """The names of the indexes."""
        return tuple(self._indexer.state.indexes)

    def by_index(self, index: str, value: str) -> _List[T]:
        """The objects that the index function filed under ``value``.

        Raises:
            NotSynced: the cache doesn't hold its first full state yet.
            UsageError: there is no index of that name.
        """
        return self._convert_all([*self._find_index(index).buckets.get(value, {}).values()])

    def index(self, index: str, obj: T) -> _List[T]:
        """The objects that share a value of the index with ``obj``, each once: itself too, if it
        is cached. ``obj`` need not be. This calls the index function, in whatever thread it is.

        Raises:
            NotSynced: the cache doesn't hold its first full state yet.
            UsageError: there is no index of that name.
            IndexFailed: the index function raised at ``obj``.
        """
        found = self._find_index(index)
        try:
            values = found.call_function(obj)
        except Exception as error:
            key = obj.key if isinstance(obj, KubeObject) else f"a {type(obj).__name__}"
            raise IndexFailed(index, self._resource, key, error) from error
        merged: dict[ObjectKey, KubeObject] = {}
        for value in values:
            merged.update(found.buckets.get(value, {}))
        return self._convert_all([*merged.values()])

    def index_keys(self, index: str, value: str) -> _List[ObjectKey]:
        """The keys of the objects under ``value``, sorted; errors as of ``by_index``."""
        return sorted([*self._find_index(index).buckets.get(value, {})])

    def index_values(self, index: str) -> _List[str]:
        """The values under which the index holds anything; errors as of ``by_index``."""
        return [*self._find_index(index).buckets]

    def index_counts(self, index: str) -> dict[str, int]:
        """How many objects each value has; errors as of ``by_index``.

        In a thread, an object that moves meanwhile may be counted twice, or not at all.
        """
        buckets = self._find_index(index).buckets
        # Not by items(): making its pairs may run the garbage collector, and so other threads.
        counts = {value: len(buckets.get(value, ())) for value in [*buckets]}
        return {value: count for value, count in counts.items() if count}

    # -- everything ------------------------------------------------------------------------------

    def keys(self) -> _List[ObjectKey]:
        """The keys of the cached objects."""
        return [*self._readable_state().objects]

    def __iter__(self) -> Iterator[T]:
        found: Any = [*self._readable_state().objects.values()]
        return iter(found if self._view is None else map(self._view.convert, found))

    def __len__(self) -> int:
        return len(self._readable_state().objects)

    def __contains__(self, key: object) -> bool:
        if isinstance(key, KubeObject):
            key = key.key
        if not isinstance(key, ObjectKey | str):
            return False
        return self.key(key) in self._readable_state().objects

    def _readable_state(self) -> CacheState:
        state = self._indexer.state
        if not (state.synced or self._unsynced):
            raise NotSynced(
                f"the cache of {self._resource} doesn't hold its first full state yet; await "
                "wait_synced() first, or read through lister.unsynced"
            )
        return state

    def _find_index(self, name: str) -> Index:
        indexes = self._readable_state().indexes
        index = indexes.get(name)
        if index is None:
            known = ", ".join(indexes) or "none"
            raise UsageError(f"{self._resource} has no index {name!r}; its indexes: {known}")
        return index

    def __repr__(self) -> str:
        state = self._indexer.state
        count = len(state.objects)
        return f"<{type(self).__name__} {self._resource} objects={count} synced={state.synced}>"
