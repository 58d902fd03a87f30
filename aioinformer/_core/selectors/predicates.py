"""Predicates: conditions on objects and on changes, for filters.

An ``ObjectPredicate`` tests one state of an object: a listener with such a filter receives an
addition when an object starts to pass, and a deletion when it stops. A ``ChangePredicate`` tests
two states: it selects updates, and nothing else. Predicates of one type combine with ``&``, ``|``
and ``~``. ``&`` also joins the two types; ``|`` and ``~`` across them have no meaning, since a
change predicate has no result for an addition::

    labelled("app=shop") & ~where("status.phase", "Succeeded") & changed("spec", "metadata.labels")
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NoReturn, TypeAlias, overload

from msgspec import Struct

from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.readonly import is_same_decoded, is_same_json
from aioinformer._core.objects.stored import NeedsJson
from aioinformer._core.selectors.label_parser import LabelMapping
from aioinformer._core.selectors.parsed_selectors import LabelSelector
from aioinformer._core.selectors.projections import field, fields
from aioinformer.errors import ObjectDecodeError

_ONLY_AND = (
    "a predicate of objects and a predicate of changes can be joined by & only; wrap a function "
    "as ObjectPredicate(f) or ChangePredicate(f)"
)

_ObjectTest: TypeAlias = Callable[[KubeObject], object]
_ChangeTest: TypeAlias = Callable[[KubeObject, KubeObject], object]


class ObjectPredicate(Struct, NeedsJson, frozen=True, eq=False):
    """A test of one state of an object. The result must depend on nothing but that state."""

    test: _ObjectTest
    text: str = ""
    """The text of ``repr``; the name of ``test`` by default."""
    operator: str = ""

    def __call__(self, obj: KubeObject) -> bool:
        return bool(self.test(obj))

    @overload
    def __and__(self, other: ObjectPredicate) -> ObjectPredicate: ...
    @overload
    def __and__(self, other: ChangePredicate | CombinedPredicate) -> CombinedPredicate: ...
    def __and__(self, other: object) -> Predicate:
        if isinstance(other, ObjectPredicate):
            return ObjectPredicate(
                lambda obj: self.test(obj) and other.test(obj), _join_texts(self, "&", other), "&"
            )
        if isinstance(other, ChangePredicate):
            return CombinedPredicate(self, other)
        if isinstance(other, CombinedPredicate):
            return CombinedPredicate(self & other.objects, other.changes)
        return NotImplemented

    def __or__(self, other: ObjectPredicate) -> ObjectPredicate:
        _check_kind(self, "|", other)
        return ObjectPredicate(
            lambda obj: self.test(obj) or other.test(obj), _join_texts(self, "|", other), "|"
        )

    def __invert__(self) -> ObjectPredicate:
        return ObjectPredicate(lambda obj: not self.test(obj), f"~{_operand_text(self, '~')}")

    def __repr__(self) -> str:
        return self.text or _test_name(self.test)


class ChangePredicate(Struct, frozen=True, eq=False):
    """A test of two states of an object, the old one and the new one.

    Updates that don't pass are not delivered. Additions, deletions and resyncs always are, since
    they have no change to test. (controller-runtime's predicates drop resyncs too; here a listener
    that requested resyncs receives them.)
    """

    test: _ChangeTest
    text: str = ""
    operator: str = ""

    def __call__(self, old: KubeObject, new: KubeObject) -> bool:
        return bool(self.test(old, new))

    @overload
    def __and__(self, other: ChangePredicate) -> ChangePredicate: ...
    @overload
    def __and__(self, other: ObjectPredicate | CombinedPredicate) -> CombinedPredicate: ...
    def __and__(self, other: object) -> Predicate:
        if isinstance(other, ChangePredicate):
            return ChangePredicate(
                lambda old, new: self.test(old, new) and other.test(old, new),
                _join_texts(self, "&", other),
                "&",
            )
        if isinstance(other, ObjectPredicate):
            return CombinedPredicate(other, self)
        if isinstance(other, CombinedPredicate):
            return CombinedPredicate(other.objects, self & other.changes)
        return NotImplemented

    def __or__(self, other: ChangePredicate) -> ChangePredicate:
        _check_kind(self, "|", other)
        return ChangePredicate(
            lambda old, new: self.test(old, new) or other.test(old, new),
            _join_texts(self, "|", other),
            "|",
        )

    def __invert__(self) -> ChangePredicate:
        return ChangePredicate(
            lambda old, new: not self.test(old, new), f"~{_operand_text(self, '~')}"
        )

    def __repr__(self) -> str:
        return self.text or _test_name(self.test)


class CombinedPredicate(Struct, frozen=True, eq=False):
    """A test of objects and of their changes: an ``ObjectPredicate & ChangePredicate``."""

    objects: ObjectPredicate
    changes: ChangePredicate

    def __and__(self, other: object) -> CombinedPredicate:
        if isinstance(other, CombinedPredicate):
            return CombinedPredicate(self.objects & other.objects, self.changes & other.changes)
        if isinstance(other, ObjectPredicate):
            return CombinedPredicate(self.objects & other, self.changes)
        if isinstance(other, ChangePredicate):
            return CombinedPredicate(self.objects, self.changes & other)
        return NotImplemented

    def __or__(self, other: object) -> NoReturn:
        raise TypeError(f"{self!r} | {other!r}: {_ONLY_AND}")

    def __invert__(self) -> NoReturn:
        raise TypeError(f"~({self!r}): {_ONLY_AND}")

    def __repr__(self) -> str:
        return _join_texts(self.objects, "&", self.changes)


Predicate: TypeAlias = ObjectPredicate | ChangePredicate | CombinedPredicate
"""The predicates that can be combined, and passed as ``filter=``."""


# -- over objects ------------------------------------------------------------------------------


CACHE_SIZE = 256
"""Selectors that are remembered, so that equal ones give the same predicate: informers that follow
the same namespaces are one informer."""


def labelled(selector: LabelSelector | str | LabelMapping) -> ObjectPredicate:
    """Return a predicate for objects that a label selector matches.

    Args:
        selector: ``app=web,tier in (a, b),!canary``, or a mapping as ``LabelSelector.parse`` takes.

    Raises:
        InvalidSelector: the selector doesn't parse. The message marks the place.
    """
    return _labelled(str(LabelSelector.parse(selector)))


@lru_cache(maxsize=CACHE_SIZE)
def _labelled(selector: str) -> ObjectPredicate:
    parsed = LabelSelector.parse(selector)
    return ObjectPredicate(lambda obj: parsed.matches(obj.labels), f"labelled({str(parsed)!r})")


def where(path: str, *values: Any) -> ObjectPredicate:
    """Return a predicate for objects whose field has one of these values.

    Args:
        path: as for ``field``.
        values: strings, numbers, booleans, or ``None`` for a field that is absent. As in JSON, 1 is
            not ``True``.

    Raises:
        InvalidPath: ``path`` doesn't parse.
        ValueError: no value is given.
    """
    if not values:
        raise ValueError(
            f"where({path!r}) has no value; for any value write ~where({path!r}, None)"
        )
    read = field(path)
    shown = ", ".join(map(repr, (path, *values)))

    def test(obj: KubeObject) -> bool:
        try:
            found = read(obj)
        except ObjectDecodeError:  # as in a field selector
            found = read.read_shallow(obj)
        if found not in values:
            return False
        # Most values are strings, which equal no value of another type.
        return type(found) is str or any(is_same_json(found, value) for value in values)

    return ObjectPredicate(test, f"where({shown})")


# -- over changes ------------------------------------------------------------------------------


def changed(*paths: str) -> ChangePredicate:
    """Return a predicate for changes of at least one of these fields, such as ``spec``.

    Raises:
        InvalidPath: a path doesn't parse.
        ValueError: there is no path.
    """
    if not paths:
        raise ValueError("changed() has no field; for any change of the spec write changed('spec')")
    read = fields(*paths)
    return ChangePredicate(
        lambda old, new: not is_same_decoded(read(old), read(new)),
        f"changed({', '.join(map(repr, paths))})",
    )


_labels = field("metadata.labels")
_annotations = field("metadata.annotations")
_generation = field("metadata.generation")


def _generation_differs(old: KubeObject, new: KubeObject) -> bool:
    before, now = _generation(old), _generation(new)
    return before is None or now is None or bool(before != now)


generation_changed = ChangePredicate(_generation_differs, "generation_changed")
"""Changes of the desired state, and not of the status: the server counts them in
``metadata.generation``. For resources without that count (ConfigMaps, Secrets) every change passes,
where controller-runtime's predicate of this name drops all of them."""

# The server treats an empty map and an absent one alike.
labels_changed = ChangePredicate(
    lambda old, new: (_labels(old) or {}) != (_labels(new) or {}), "labels_changed"
)
"""Changes of ``metadata.labels``."""

annotations_changed = ChangePredicate(
    lambda old, new: (_annotations(old) or {}) != (_annotations(new) or {}), "annotations_changed"
)
"""Changes of ``metadata.annotations``."""


# -- texts of predicates -----------------------------------------------------------------------


def _test_name(test: Callable[..., object]) -> str:
    name: str = getattr(test, "__qualname__", None) or type(test).__qualname__
    return name.replace("<locals>.", "")


def _operand_text(predicate: ObjectPredicate | ChangePredicate, operator: str) -> str:
    text = repr(predicate)
    return text if predicate.operator in ("", operator) else f"({text})"


def _join_texts(
    left: ObjectPredicate | ChangePredicate, operator: str, right: ObjectPredicate | ChangePredicate
) -> str:
    return f"{_operand_text(left, operator)} {operator} {_operand_text(right, operator)}"


def _check_kind(left: Predicate, operator: str, right: object) -> None:
    if type(left) is not type(right):
        raise TypeError(f"{left!r} {operator} {right!r}: {_ONLY_AND}")
