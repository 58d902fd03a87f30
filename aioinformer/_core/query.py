"""What a reader asks for: a namespace, selectors and a predicate, and the shortest way to it.

A ``Query`` is parsed once. Where an index answers a part of it, only what is filed there is looked
at: a ``label_index`` for ``app=shop`` and ``app in (shop, cart)``, and an index made with
``field(path)`` for a namespace or a field selector. Of several, the one that leaves least to look
at. A ``Search`` asks the rest of each object, all at once or bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, TypeAlias

from aioinformer._core.label_index import LabelIndex
from aioinformer._core.objects import KubeObject
from aioinformer._core.paths import parse_path
from aioinformer._core.projections import Field, fields
from aioinformer._core.selectors import FieldSelector, LabelRequirement, LabelSelector
from aioinformer._core.store import Bucket, Index, State

__all__ = ["FieldChoice", "LabelChoice", "Query", "Search", "Where"]

LabelChoice: TypeAlias = LabelSelector | str | Mapping[str, str] | None
"""A label selector, or what one is parsed from."""
FieldChoice: TypeAlias = FieldSelector | str | Mapping[str, str] | None
"""A field selector, or what one is parsed from."""
Where: TypeAlias = Callable[[KubeObject], object]
"""What is true of the objects that are meant."""

PARSED = 256
"""Texts of selectors that are kept parsed: a program has few, and parsing one takes 20 µs."""

NAMESPACE = "metadata.namespace"


@dataclass(frozen=True, slots=True)
class Query:
    """Which of the cached objects."""

    namespace: str | None = None
    labels: LabelSelector = field(default_factory=LabelSelector)
    fields: FieldSelector = field(default_factory=FieldSelector)
    where: Where | None = None

    @classmethod
    def of(
        cls,
        *,
        namespace: str | None = None,
        labels: LabelChoice = None,
        fields: FieldChoice = None,
        where: Where | None = None,
    ) -> Query:
        """The query that these arguments mean; ``None`` restricts nothing.

        Raises:
            InvalidSelector: ``labels`` or ``fields`` don't parse.
            InvalidPath: ``fields`` names something that is no path.
        """
        query = cls(namespace, _label_selector(labels), _field_selector(fields), where)
        for each in query.fields.requirements:
            parse_path(each.path)
        return query

    def search(self, state: State) -> Search:
        """Look for it in ``state`` as it is now."""
        ways = list(self._ways(state))
        if not ways:
            return Search(list(state.objects.values()), tuple(self._tests()))
        way = min(ways, key=lambda way: way.size)
        left = tuple(each for each in self.labels.requirements if each is not way.answers)
        rest = replace(self, labels=LabelSelector(left))
        return Search(way.objects(), tuple(rest._tests()))

    # -- where to look ---------------------------------------------------------------------------

    def _ways(self, state: State) -> Iterator[_Way]:
        for index in state.indexes.values():
            function = index.function
            if isinstance(function, LabelIndex):
                for each in self.labels.requirements:
                    if each.operator in ("=", "in") and function.covers(each.key):
                        values = [function.value(each.key, value) for value in each.values]
                        yield _Way.of(index, values, answers=each)
            elif isinstance(function, Field):
                for path, value in self._equalities():
                    if function.path == path:
                        yield _Way.of(index, [value])

    def _equalities(self) -> Iterator[tuple[str, str]]:
        """Paths that must have a value. An absent one counts as empty, and is in no index."""
        if self.namespace:
            yield NAMESPACE, self.namespace
        for each in self.fields.requirements:
            if each.operator == "=" and each.value:
                yield each.path, each.value

    # -- what to ask -----------------------------------------------------------------------------

    def _tests(self) -> Iterator[Where]:
        namespace, labels = self.namespace, self.labels
        if namespace is not None:
            yield lambda obj: obj.key.namespace == namespace
        if labels:
            yield lambda obj: labels.matches(obj.labels)
        if self.fields:
            yield _field_test(self.fields)
        if self.where is not None:
            yield self.where


@dataclass(frozen=True, slots=True)
class _Way:
    """Some buckets of one index that hold all that a query can mean."""

    buckets: tuple[Bucket, ...]
    answers: LabelRequirement | None
    """What all objects in them fulfil."""

    @classmethod
    def of(cls, index: Index, values: list[str], answers: LabelRequirement | None = None) -> _Way:
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
        merged: Bucket = {}
        for bucket in self.buckets:
            merged.update(bucket)
        return list(merged.values())


class Search:
    """The objects that were there when it began, and how far it has looked at them."""

    __slots__ = ("_objects", "_position", "_tests")

    def __init__(self, objects: list[KubeObject], tests: tuple[Where, ...]) -> None:
        """Look for those of ``objects``, a list of one's own, that pass all ``tests``."""
        self._objects = objects
        self._tests = tests
        self._position = 0

    @property
    def done(self) -> bool:
        """Whether every object was looked at."""
        return self._position >= len(self._objects)

    def step(self, n: int) -> list[KubeObject]:
        """Look at ``n`` more; those that were meant."""
        start, self._position = self._position, self._position + n
        return self._passing(self._objects[start : self._position])

    def all(self) -> list[KubeObject]:
        """Look at all that is left, at once."""
        start, self._position = self._position, len(self._objects)
        return self._passing(self._objects[start:] if start else self._objects)

    def _passing(self, objects: list[KubeObject]) -> list[KubeObject]:
        for test in self._tests:
            objects = [obj for obj in objects if test(obj)]
        return objects

    def __repr__(self) -> str:
        looked = min(self._position, len(self._objects))
        return f"<Search looked={looked}/{len(self._objects)}>"


# -- selectors ---------------------------------------------------------------------------------


def _label_selector(choice: LabelChoice) -> LabelSelector:
    if isinstance(choice, LabelSelector):
        return choice
    return _parsed_labels(choice) if isinstance(choice, str) else LabelSelector.parse(choice)


def _field_selector(choice: FieldChoice) -> FieldSelector:
    if isinstance(choice, FieldSelector):
        return choice
    return _parsed_fields(choice) if isinstance(choice, str) else FieldSelector.parse(choice)


_parsed_labels = lru_cache(maxsize=PARSED)(LabelSelector.parse)
_parsed_fields = lru_cache(maxsize=PARSED)(FieldSelector.parse)


def _field_test(selector: FieldSelector) -> Where:
    """Compares values as a server prints them; it reads all of them in one pass."""
    paths = tuple({each.path: None for each in selector.requirements})
    read = fields(*paths)

    def test(obj: KubeObject) -> bool:
        return selector.matches(dict(zip(paths, map(_text, read(obj)), strict=True)))

    return test


def _text(value: Any) -> str:
    """A field's value in a field selector. What is absent, and what has no text, is empty."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else ""
