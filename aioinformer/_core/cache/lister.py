"""Reads of the cache.

Each read picks up the state once and copies its result in one step, so that reads are exact in any
thread while the event loop goes on writing. A read shows the cache, or one index, at one moment; in
a thread, the next read may show a later moment. A cached state is a past state of the server. No
maximum age is promised.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self

from typing_extensions import TypeVar

from aioinformer._core.arguments import suggest_keywords
from aioinformer._core.objects.decode_errors import hide_secret
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer._core.objects.view import ObjectView
from aioinformer.errors import IndexFailed, NotCached, NotSynced, UsageError

if TYPE_CHECKING:  # loaded by the first selection, and for types
    from aioinformer._core.cache.protocols import ObjectCache, ReadableIndex, ReadableState
    from aioinformer._core.cache.query import FieldChoice, LabelChoice, Search, Where
    from aioinformer._core.cache.store import IndexBucket

T = TypeVar("T", default=KubeObject)
S = TypeVar("S")

# Inside the class ``list`` is the method.
_List = list


class StartScan(Protocol):
    """Iterates over the results of a search, and yields to the event loop."""

    def __call__(self, search: Search[S], /) -> AsyncIterator[S]:
        """Start to iterate; raise ``UsageError`` without a running event loop."""
        ...


class Lister(Generic[T]):
    """Reads an informer's cache. All methods but ``scan`` are safe to use from any thread.

    Reads return ``KubeObject``s, or what the informer's ``model=`` or ``convert=`` makes of them.
    If ``convert=`` raises at an object, every read that would return the object raises
    ``ModelMismatch``.
    """

    def __init__(
        self,
        indexer: ObjectCache,
        resource: Resource,
        *,
        namespace: str | None = None,
        unsynced: bool = False,
        start_scan: StartScan | None = None,
    ) -> None:
        """Make a reader. ``SharedInformer.lister`` is the reader of an informer.

        Args:
            indexer: holds the cached objects.
            resource: the resource of the objects.
            namespace: the only namespace that is cached; ``None`` if there may be several.
            unsynced: True to allow reads before the initial list is complete.
            start_scan: starts the scans; ``None`` to allow no ``scan``.
        """
        self._indexer = indexer
        self._resource = resource
        self._namespace = namespace
        self._unsynced = unsynced
        self._start_scan = start_scan
        self._view: ObjectView[T] | None = indexer.view

    @property
    def unsynced(self) -> Self:
        """A lister that also reads the cache before the initial list is complete."""
        return type(self)(
            self._indexer,
            self._resource,
            namespace=self._namespace,
            unsynced=True,
            start_scan=self._start_scan,
        )

    @property
    def resource_version(self) -> str:
        """The version up to which everything was applied; empty before the initial list."""
        return self._indexer.state.resource_version

    # -- one object ------------------------------------------------------------------------------

    def get(self, key: ObjectKey | str, *, namespace: str | None = None) -> T | None:
        """Return the object of that key, or ``None``.

        Args:
            key: an ``ObjectKey``, ``"namespace/name"``, or a name alone if the namespace is known:
                given here, the only one that is cached, or none at all.
            namespace: the object's namespace.

        Raises:
            NotSynced: the initial list is not complete yet.
            UsageError: a name alone is ambiguous here.
        """
        found: Any = self._readable_state().objects.get(self.key(key, namespace=namespace))
        converted: T | None = found
        return converted if self._view is None or found is None else self._view.convert(found)

    def __getitem__(self, key: ObjectKey | str) -> T:
        """Return the object of that key; raise ``NotCached``, a ``KeyError``, if there is none."""
        full_key = self.key(key)
        obj = self._readable_state().objects.get(full_key)
        if obj is None:
            raise NotCached(self._resource, full_key)
        return self._convert(obj)

    def _convert(self, obj: KubeObject) -> T:
        found: Any = obj
        converted: T = found if self._view is None else self._view.convert(obj)
        return converted

    def _convert_all(self, objects: _List[KubeObject]) -> _List[T]:
        found: Any = objects
        converted: _List[T] = found if self._view is None else [*map(self._view.convert, objects)]
        return converted

    def key(self, key: ObjectKey | str, *, namespace: str | None = None) -> ObjectKey:
        """Return the key that ``get`` would look up; raise ``UsageError`` for an ambiguous name."""
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
                f"the name {key!r} alone is ambiguous: this cache of {self._resource} has several "
                f"namespaces; pass namespace=, 'namespace/{key}' or an ObjectKey"
            )
        return ObjectKey(scope, key)

    # -- a selection -----------------------------------------------------------------------------

    @suggest_keywords
    def list(
        self,
        *,
        labels: LabelChoice = None,
        namespace: str | None = None,
        fields: FieldChoice = None,
        where: Where[T] | None = None,
    ) -> _List[T]:
        """Return a new list of the selected objects, in no particular order.

        An index makes this fast: a ``label_index`` for label selectors, or an index made with
        ``field(path)`` for a field selector with that path. Without an index, every object is read
        in one step: for 100,000 objects, that takes a tenth of a second. In an event loop, use
        ``scan`` then.

        Args:
            labels: a label selector.
            namespace: selects the objects in this namespace; none if there is no such namespace.
            fields: a field selector, of any paths. Values are compared as a server prints them; an
                absent value is empty (for some, a server has a default: ``false``, ``0``), and so
                is every value of a misspelt path.
            where: a predicate, or a function that returns true for selected objects.

        Raises:
            NotSynced: the initial list is not complete yet.
            InvalidSelector: ``labels`` or ``fields`` don't parse.
            InvalidPath: ``fields`` contains an invalid path.
            UsageError: the informer has a ``model=``, and so no JSON for selectors or predicates to
                read: use ``where=``, or an index of what the model declares.
            ObjectDecodeError: the labels or fields of an object can't be read. A ``label_index``
                rejects such an object before it is cached, so that reads don't meet it.
        """
        return self._search(namespace, labels, fields, where).all()

    @suggest_keywords
    def scan(
        self,
        *,
        labels: LabelChoice = None,
        namespace: str | None = None,
        fields: FieldChoice = None,
        where: Where[T] | None = None,
    ) -> AsyncIterator[T]:
        """Return what ``list`` does, found in steps: ``async for obj in lister.scan(labels=...)``.

        The scan reads the state at the moment of this call. It can be iterated once, and left at
        any time. Arguments and errors are those of ``list``.

        Raises:
            UsageError: called without a running event loop, or the lister belongs to no informer.
        """
        if self._start_scan is None:
            raise UsageError(
                "this lister can't scan, because it was made without start_scan: read with list(), "
                "or use the lister of an informer"
            )
        return self._start_scan(self._search(namespace, labels, fields, where))

    def _search(
        self,
        namespace: str | None,
        labels: LabelChoice,
        fields: FieldChoice,
        where: Where[T] | None,
    ) -> Search[T]:
        from aioinformer._core.cache.query import Query  # for programs that select objects

        query = Query.of(
            namespace=namespace, labels=labels, fields=fields, where=where, view=self._view
        )
        return query.search(self._readable_state())

    @suggest_keywords
    def count(
        self,
        *,
        labels: LabelChoice = None,
        namespace: str | None = None,
        fields: FieldChoice = None,
        where: Where[T] | None = None,
    ) -> int:
        """Return the number of objects that ``list`` would return; it raises the same errors."""
        return len(self.list(labels=labels, namespace=namespace, fields=fields, where=where))

    # -- indexes ---------------------------------------------------------------------------------

    @property
    def indexers(self) -> tuple[str, ...]:
        """The names of the indexes."""
        return tuple(self._indexer.state.indexes)

    def by_index(self, index: str, value: str) -> _List[T]:
        """Return the objects that the index function filed under ``value``.

        Raises:
            NotSynced: the initial list is not complete yet.
            UsageError: no index has that name.
            TypeError: ``value`` is not text; every index value is.
        """
        return self._convert_all([*self._find_bucket(index, value).values()])

    def index(self, index: str, obj: T) -> _List[T]:
        """Return the objects that share a value of the index with ``obj``, each once.

        ``obj`` need not be cached; if it is, it is among them. The index function is called in the
        caller's thread.

        Raises:
            IndexFailed: the index function raised at ``obj``. Other errors are those of
                ``by_index``.
        """
        found = self._find_index(index)
        try:
            values = found.call_function(obj)
        except Exception as error:  # noqa: BLE001 - a program's function may raise anything
            key = obj.key if isinstance(obj, KubeObject) else f"a {type(obj).__name__}"
            cause = hide_secret(self._resource, error)
            raise IndexFailed(index, self._resource, key, cause) from cause
        merged: dict[ObjectKey, KubeObject] = {}
        for value in values:
            merged.update(found.buckets.get(value, {}))
        return self._convert_all([*merged.values()])

    def index_keys(self, index: str, value: str) -> _List[ObjectKey]:
        """Return the sorted keys of the objects under ``value``; errors as of ``by_index``."""
        return sorted([*self._find_bucket(index, value)])

    def index_values(self, index: str) -> _List[str]:
        """Return the values of the index that have objects; errors as of ``by_index``."""
        return [*self._find_index(index).buckets]

    def index_counts(self, index: str) -> dict[str, int]:
        """Return the number of objects of each value; errors as of ``by_index``.

        In another thread, an object that moves meanwhile may be counted twice, or not at all.
        """
        buckets = self._find_index(index).buckets
        # Without items(): making its tuples can run the garbage collector, and so another thread,
        # which may change the dict during the iteration.
        counts = {value: len(buckets.get(value, ())) for value in [*buckets]}
        return {value: count for value, count in counts.items() if count}

    # -- everything ------------------------------------------------------------------------------

    def keys(self) -> _List[ObjectKey]:
        """Return the keys of the cached objects."""
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

    def _readable_state(self) -> ReadableState:
        state = self._indexer.state
        if not (state.synced or self._unsynced):
            raise NotSynced(
                f"the initial list of {self._resource} is not complete yet; await wait_synced() "
                "first, inside of the factory's `async with`, or read through lister.unsynced"
            )
        return state

    def _find_bucket(self, name: str, value: object) -> IndexBucket:
        if not isinstance(value, str):  # a program without a type checker passes a number
            raise TypeError(
                f"the values of the index {name!r} are text, not {type(value).__name__}: "
                "look up the text that the index function returns, such as str(80)"
            )
        return self._find_index(name).buckets.get(value, {})

    def _find_index(self, name: str) -> ReadableIndex:
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
