"""Queries of the cache, answered by the cheapest index.

If an index answers a part of the query, only the objects in its buckets are read: a ``label_index``
serves ``app=shop`` and ``app in (shop, cart)``, an index made with ``field(path)`` a namespace or a
field selector. Of several indexes the one with the fewest objects is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Generic, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace
from typing_extensions import TypeVar

from aioinformer._core.cache.indexes import LabelIndex
from aioinformer._core.cache.protocols import ReadableIndex, ReadableState
from aioinformer._core.cache.store import IndexBucket
from aioinformer._core.callables import check_not_async
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.stored import NeedsJson
from aioinformer._core.objects.view import ObjectView, name_of
from aioinformer._core.selectors.label_parser import LabelMapping
from aioinformer._core.selectors.parsed_selectors import FieldSelector, LabelSelector
from aioinformer._core.selectors.paths import parse_path
from aioinformer._core.selectors.projections import Field, Fields, fields
from aioinformer._core.selectors.projections import field as make_field
from aioinformer._core.selectors.requirements import LabelRequirement
from aioinformer.errors import ObjectDecodeError

T = TypeVar("T", default=KubeObject)

LabelChoice: TypeAlias = LabelSelector | str | LabelMapping | None
"""A label selector, or a text or mapping to parse as one."""
FieldChoice: TypeAlias = FieldSelector | str | Mapping[str, str] | None
"""A field selector, or a text or mapping to parse as one."""
Where: TypeAlias = Callable[[T], object] | NeedsJson
"""A function of an object as the lister returns it, or one that reads the stored object."""

_Test: TypeAlias = Callable[[KubeObject], object]

PARSE_CACHE_SIZE = 256
"""Parsed selectors that are remembered; parsing one takes 20 µs."""

NAMESPACE = "metadata.namespace"

_DERIVED_FIELDS = frozenset(
    {
        *("spec.host", "spec.hostNetwork", "spec.unschedulable", "status.replicas"),
        *("status.successful", "reportingComponent", "source"),
    }
)
"""Paths of a server's field selectors whose value it has although the object may lack the path."""


class Query(Struct, frozen=True):
    """A selection of the cached objects, parsed once."""

    namespace: str | None = None
    labels: LabelSelector = field(default_factory=LabelSelector)
    fields: FieldSelector = field(default_factory=FieldSelector)
    where: Where[Any] | None = None
    view: ObjectView[Any] | None = None
    """Converts stored objects to what programs see; ``None`` if programs see stored objects."""

    @classmethod
    def of(
        cls,
        *,
        namespace: str | None = None,
        labels: LabelChoice = None,
        fields: FieldChoice = None,
        where: Where[Any] | None = None,
        view: ObjectView[Any] | None = None,
    ) -> Query:
        """Return the query for these arguments; ``None`` restricts nothing.

        Raises:
            InvalidSelector: ``labels`` or ``fields`` don't parse.
            InvalidPath: ``fields`` names an invalid path.
            TypeError: ``where`` is no plain function; the coroutine of an async one is always true.
            UsageError: the query reads JSON that isn't kept.
        """
        if where is not None:
            if not callable(where):
                raise TypeError(
                    "where= must be a function of an object, or a predicate such as "
                    f"where('status.phase', 'Running'), not {where!r}"
                )
            check_not_async(where, f"where={name_of(where)}")
        query = cls(namespace, label_selector(labels), field_selector(fields), where, view)
        for each in query.fields.requirements:
            parse_path(each.path)
        if view is not None:
            query._require_json(view)
        return query

    def _require_json(self, view: ObjectView[Any]) -> None:
        if self.labels:
            view.require_json(f"the label selector {str(self.labels)!r} reads")
        if self.fields and _field_reader(self.fields).needs_bytes:
            view.require_json(f"the field selector {str(self.fields)!r} reads")
        if self.where is not None:
            view.adapter_for(self.where, "where:")

    def matches(self) -> Callable[[KubeObject], bool]:
        """Return the test of stored objects, without ``where``."""
        tests = tuple(self._object_tests())
        return lambda obj: all(test(obj) for test in tests)

    def excludes(self, obj: KubeObject) -> str:
        """Return a requirement of the selectors that a server certainly denies for an object; empty
        if there is none.
        """
        for label in self.labels.requirements:
            if not label.matches(obj.labels):
                return str(label)
        for each in self.fields.requirements:
            value = make_field(each.path)(obj)
            known = value is not None or each.path not in _DERIVED_FIELDS
            if known and not each.matches({each.path: _field_text(value)}):
                return str(each)
        return ""

    def search(self, state: ReadableState) -> Search[Any]:
        lookups = list(self._index_candidates(state))
        if not lookups:
            return self._search(state.candidates(self.namespace))
        lookup = min(lookups, key=lambda lookup: lookup.size)
        rest = tuple(each for each in self.labels.requirements if each is not lookup.requirement)
        return replace(self, labels=LabelSelector(rest))._search(lookup.objects())

    def _search(self, objects: list[KubeObject]) -> Search[Any]:
        if self.view is None or isinstance(self.where, NeedsJson):
            return Search(objects, tuple(self._object_tests(self.where)), view=self.view)
        return Search(objects, tuple(self._object_tests()), view=self.view, where=self.where)

    # -- indexes ---------------------------------------------------------------------------------

    def _index_candidates(self, state: ReadableState) -> Iterator[_IndexLookup]:
        for index in state.indexes.values():
            function = index.function
            if isinstance(function, LabelIndex):
                for each in self.labels.requirements:
                    if each.operator in ("=", "in") and function.covers(each.key):
                        values = [function.value(each.key, value) for value in each.values]
                        yield _IndexLookup.of(index, values, answers=each)
            elif isinstance(function, Field):
                for path, value in self._required_values():
                    if function.path == path:
                        yield _IndexLookup.of(index, [value])

    def _required_values(self) -> Iterator[tuple[str, str]]:
        """Return the paths that must have a value. An absent value counts as empty, not indexed."""
        if self.namespace:
            yield NAMESPACE, self.namespace
        for each in self.fields.requirements:
            if each.operator == "=" and each.value:
                yield each.path, each.value

    # -- tests -----------------------------------------------------------------------------------

    def _object_tests(self, where: _Test | None = None) -> Iterator[_Test]:
        namespace, labels = self.namespace, self.labels
        if namespace is not None:
            yield lambda obj: obj.key.namespace == namespace
        if labels:
            yield lambda obj: labels.matches(obj.labels)
        if self.fields:
            yield _make_field_test(self.fields)
        if where is not None:
            yield where


class _IndexLookup(Struct, frozen=True):
    """Buckets of one index that contain every object that a query selects."""

    buckets: tuple[IndexBucket, ...]
    requirement: LabelRequirement | None
    """The requirement that all objects in the buckets fulfil."""

    @classmethod
    def of(
        cls, index: ReadableIndex, values: list[str], answers: LabelRequirement | None = None
    ) -> _IndexLookup:
        found = (index.buckets.get(value) for value in values)
        return cls(tuple(bucket for bucket in found if bucket is not None), answers)

    @property
    def size(self) -> int:
        return sum(map(len, self.buckets))

    def objects(self) -> list[KubeObject]:
        """Return the objects in the buckets, each once, in its latest copied version."""
        if len(self.buckets) == 1:
            return list(self.buckets[0].values())
        merged: IndexBucket = {}
        for bucket in self.buckets:
            merged.update(bucket)
        return list(merged.values())


class Search(Generic[T]):
    """A search of the objects that were cached when it began: all at once or in steps."""

    __slots__ = ("_objects", "_position", "_tests", "_view", "_where")

    def __init__(
        self,
        objects: list[KubeObject],
        tests: tuple[_Test, ...],
        *,
        view: ObjectView[T] | None = None,
        where: Callable[[T], object] | None = None,
    ) -> None:
        self._objects = objects
        self._tests = tests
        self._view = view
        self._where = where
        self._position = 0

    @property
    def is_fast(self) -> bool:
        """True if the conversion of the selected objects takes no time worth measuring."""
        return self._view is None or self._view.is_fast

    @property
    def done(self) -> bool:
        """True if every object was searched."""
        return self._position >= len(self._objects)

    def step(self, n: int) -> list[T]:
        """Search ``n`` more objects; return the selected ones."""
        start, self._position = self._position, self._position + n
        return self._filter(self._objects[start : self._position])

    def all(self) -> list[T]:
        """Search the rest at once; return the selected objects."""
        start, self._position = self._position, len(self._objects)
        return self._filter(self._objects[start:] if start else self._objects)

    def _filter(self, objects: list[KubeObject]) -> list[T]:
        for test in self._tests:
            objects = [obj for obj in objects if test(obj)]
        found: list[Any] = objects
        converted: list[T] = found if self._view is None else list(map(self._view.convert, objects))
        where = self._where
        return converted if where is None else [obj for obj in converted if where(obj)]

    def __repr__(self) -> str:
        searched = min(self._position, len(self._objects))
        return f"<Search searched={searched}/{len(self._objects)}>"


# -- selectors ---------------------------------------------------------------------------------


def label_selector(choice: LabelChoice) -> LabelSelector:
    """Return the selector of a choice; ``None`` selects everything. Raises ``InvalidSelector``."""
    return _parse_labels(choice) if isinstance(choice, str) else LabelSelector.parse(choice)


def field_selector(choice: FieldChoice) -> FieldSelector:
    """Return the selector of a choice; ``None`` selects everything. Raises ``InvalidSelector``."""
    return _parse_fields(choice) if isinstance(choice, str) else FieldSelector.parse(choice)


_parse_labels = lru_cache(maxsize=PARSE_CACHE_SIZE)(LabelSelector.parse)
_parse_fields = lru_cache(maxsize=PARSE_CACHE_SIZE)(FieldSelector.parse)


def _field_reader(selector: FieldSelector) -> Fields:
    """Return a reader of all the selector's fields, which scans an object once."""
    return fields(*{each.path: None for each in selector.requirements})


def _make_field_test(selector: FieldSelector) -> _Test:
    read = _field_reader(selector)

    def test(obj: KubeObject) -> bool:
        try:
            values = read(obj)
        except ObjectDecodeError:  # of an object that must not keep the others from being selected
            values = read.read_shallow(obj)
        return selector.matches(dict(zip(read.paths, map(_field_text, values), strict=True)))

    return test


def _field_text(value: Any) -> str:
    """Return a value as text of a field selector; empty for an absent value or a container."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else ""
