"""What a reader asks for: a namespace, selectors and a predicate, and the shortest way to it.

A ``Query`` is parsed once. Where an index answers a part of it, only what is filed there is looked
at: a ``label_index`` for ``app=shop`` and ``app in (shop, cart)``, and an index made with
``field(path)`` for a namespace or a field selector. Of several, the one that leaves least to look
at. A ``Search`` asks the rest of each object, all at once or bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Generic, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace
from typing_extensions import TypeVar

from aioinformer._core.cache.indexes import LabelIndex
from aioinformer._core.cache.store import CacheState, Index, IndexBucket
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.stored import NeedsJson
from aioinformer._core.objects.view import ObjectView
from aioinformer._core.selectors.label_parser import LabelMapping
from aioinformer._core.selectors.paths import parse_path
from aioinformer._core.selectors.projections import Field, Fields, fields
from aioinformer._core.selectors.requirements import LabelRequirement
from aioinformer._core.selectors.selectors import FieldSelector, LabelSelector

__all__ = ["FieldChoice", "LabelChoice", "Query", "Search", "Where"]

T = TypeVar("T", default=KubeObject)

LabelChoice: TypeAlias = LabelSelector | str | LabelMapping | None
"""A label selector, or what one is parsed from."""
FieldChoice: TypeAlias = FieldSelector | str | Mapping[str, str] | None
"""A field selector, or what one is parsed from."""
Where: TypeAlias = Callable[[T], object] | NeedsJson
"""What is true of the objects that are meant: a function of what the lister returns, or a predicate
or ``field``, which read the object itself."""

_Test: TypeAlias = Callable[[KubeObject], object]

PARSE_CACHE_SIZE = 256
"""Texts of selectors that are kept parsed: a program has few, and parsing one takes 20 µs."""

NAMESPACE = "metadata.namespace"


class Query(Struct, frozen=True):
    """Which of the cached objects."""

    namespace: str | None = None
    labels: LabelSelector = field(default_factory=LabelSelector)
    fields: FieldSelector = field(default_factory=FieldSelector)
    where: Where[Any] | None = None
    view: ObjectView[Any] | None = None
    """How the objects are shown to who asks; ``None`` if as they are."""

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
        """The query that these arguments mean; ``None`` restricts nothing.

        Raises:
            InvalidSelector: ``labels`` or ``fields`` don't parse.
            InvalidPath: ``fields`` names something that is no path.
            UsageError: this would read JSON that isn't kept.
        """
        query = cls(namespace, _label_selector(labels), _field_selector(fields), where, view)
        for each in query.fields.requirements:
            parse_path(each.path)
        if view is not None:
            query._require_json(view)
        return query

    def _require_json(self, view: ObjectView[Any]) -> None:
        """Raise if this would read JSON that isn't kept."""
        if self.labels:
            view.require_json(f"the label selector {str(self.labels)!r} reads")
        if self.fields and _field_reader(self.fields).needs_bytes:
            view.require_json(f"the field selector {str(self.fields)!r} reads")
        if self.where is not None:
            view.adapter_for(self.where, "where:")

    def search(self, state: CacheState) -> Search[Any]:
        """Look for it in ``state`` as it is now."""
        ways = list(self._index_candidates(state))
        if not ways:
            return self._search(list(state.objects.values()))
        way = min(ways, key=lambda way: way.size)
        left = tuple(each for each in self.labels.requirements if each is not way.requirement)
        return replace(self, labels=LabelSelector(left))._search(way.objects())

    def _search(self, objects: list[KubeObject]) -> Search[Any]:
        if self.view is None or isinstance(self.where, NeedsJson):
            return Search(objects, tuple(self._object_tests(self.where)), view=self.view)
        return Search(objects, tuple(self._object_tests()), view=self.view, where=self.where)

    # -- where to look ---------------------------------------------------------------------------

    def _index_candidates(self, state: CacheState) -> Iterator[_IndexLookup]:
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
        """Paths that must have a value. An absent one counts as empty, and is in no index."""
        if self.namespace:
            yield NAMESPACE, self.namespace
        for each in self.fields.requirements:
            if each.operator == "=" and each.value:
                yield each.path, each.value

    # -- what to ask -----------------------------------------------------------------------------

    def _object_tests(self, where: _Test | None = None) -> Iterator[_Test]:
        """What to ask of the objects themselves."""
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
    """Some buckets of one index that hold all that a query can mean."""

    buckets: tuple[IndexBucket, ...]
    requirement: LabelRequirement | None
    """What all objects in them fulfil."""

    @classmethod
    def of(
        cls, index: Index, values: list[str], answers: LabelRequirement | None = None
    ) -> _IndexLookup:
        found = (index.buckets.get(value) for value in values)
        return cls(tuple(bucket for bucket in found if bucket is not None), answers)

    @property
    def size(self) -> int:
        return sum(map(len, self.buckets))

    def objects(self) -> list[KubeObject]:
        """What is in them. Each is copied at once; a thread may see one object move in between,
        and then has its later version, once.
        """
        if len(self.buckets) == 1:
            return list(self.buckets[0].values())
        merged: IndexBucket = {}
        for bucket in self.buckets:
            merged.update(bucket)
        return list(merged.values())


class Search(Generic[T]):
    """The objects that were there when it began, and how far it has looked at them."""

    __slots__ = ("_objects", "_position", "_tests", "_view", "_where")

    def __init__(
        self,
        objects: list[KubeObject],
        tests: tuple[_Test, ...],
        *,
        view: ObjectView[T] | None = None,
        where: Callable[[T], object] | None = None,
    ) -> None:
        """Look for what is meant.

        Args:
            objects: among which; a list of one's own.
            tests: what all must be true of an object.
            view: how objects are shown; ``None`` if as they are.
            where: what must be true of an object as it is shown.
        """
        self._objects = objects
        self._tests = tests
        self._view = view
        self._where = where
        self._position = 0

    @property
    def is_fast(self) -> bool:
        """Whether showing what is found takes no time worth speaking of."""
        return self._view is None or self._view.is_fast

    @property
    def done(self) -> bool:
        """Whether every object was looked at."""
        return self._position >= len(self._objects)

    def step(self, n: int) -> list[T]:
        """Look at ``n`` more; those that were meant."""
        start, self._position = self._position, self._position + n
        return self._filter(self._objects[start : self._position])

    def all(self) -> list[T]:
        """Look at all that is left, at once."""
        start, self._position = self._position, len(self._objects)
        return self._filter(self._objects[start:] if start else self._objects)

    def _filter(self, objects: list[KubeObject]) -> list[T]:
        for test in self._tests:
            objects = [obj for obj in objects if test(obj)]
        found: list[Any] = objects
        shown: list[T] = found if self._view is None else list(map(self._view.convert, objects))
        where = self._where
        return shown if where is None else [obj for obj in shown if where(obj)]

    def __repr__(self) -> str:
        looked = min(self._position, len(self._objects))
        return f"<Search looked={looked}/{len(self._objects)}>"


# -- selectors ---------------------------------------------------------------------------------


def _label_selector(choice: LabelChoice) -> LabelSelector:
    if isinstance(choice, LabelSelector):
        return choice
    return _parse_labels(choice) if isinstance(choice, str) else LabelSelector.parse(choice)


def _field_selector(choice: FieldChoice) -> FieldSelector:
    if isinstance(choice, FieldSelector):
        return choice
    return _parse_fields(choice) if isinstance(choice, str) else FieldSelector.parse(choice)


_parse_labels = lru_cache(maxsize=PARSE_CACHE_SIZE)(LabelSelector.parse)
_parse_fields = lru_cache(maxsize=PARSE_CACHE_SIZE)(FieldSelector.parse)


def _field_reader(selector: FieldSelector) -> Fields:
    """What reads all of its fields in one pass."""
    return fields(*{each.path: None for each in selector.requirements})


def _make_field_test(selector: FieldSelector) -> _Test:
    """Compares values as a server prints them."""
    read = _field_reader(selector)

    def test(obj: KubeObject) -> bool:
        return selector.matches(dict(zip(read.paths, map(_field_text, read(obj)), strict=True)))

    return test


def _field_text(value: Any) -> str:
    """A field's value in a field selector. What is absent, and what has no text, is empty."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else ""
