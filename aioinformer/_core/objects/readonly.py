"""Deeply read-only views over decoded JSON, which every listener and reader shares.

A view wraps the decoded ``dict`` or ``list`` without copying, and wraps nested containers when they
are read. The views of a Secret show their size only, as the Secret does. Whether they are such is
decided where the body is decoded (``SecretBody``), so that other objects have no cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, cast, overload

import msgspec

from aioinformer._core.missing_names import Missing, declare_missing, mapping_hints, missing_key
from aioinformer._core.objects.pydantic_schema import PydanticSerializer, make_schema

if TYPE_CHECKING:
    from pydantic_core import CoreSchema

READ_ONLY_HINT = (
    "a cached object is read-only; take a copy of your own with to_dict() (of a list in it, with "
    "to_list())"
)

_MUTATING_METHODS = (
    *("update", "setdefault", "pop", "popitem", "clear"),
    *("append", "extend", "insert", "remove", "sort", "reverse"),
)


def freeze(value: Any) -> Any:
    """Return a read-only view of a decoded JSON value. Scalars are returned unchanged."""
    # An exact comparison is enough: a decoder makes no instances of subclasses.
    if value.__class__ is dict:
        return FrozenMapping(value)
    if value.__class__ is list:
        return FrozenSequence(value)
    return value


def thaw(value: Any) -> Any:
    """Return a deep copy of decoded JSON. Not for views."""
    return msgspec.to_builtins(value)  # six times as fast as nested comprehensions


class ReadOnly:
    """A mixin that rejects writes with a ``TypeError``, which names ``to_dict()``.

    The methods of ``dict`` and ``list`` that write are missing, so that ``hasattr`` is right:
    access to one is an ``AttributeError`` too.
    """

    __slots__ = ()

    __pydantic_serializer__ = PydanticSerializer()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> CoreSchema:
        """Return the schema with which pydantic and FastAPI validate and serialize instances."""
        return make_schema(cls)

    def __setitem__(self, key: object, value: object) -> NoReturn:
        raise TypeError(READ_ONLY_HINT)

    def __delitem__(self, key: object) -> NoReturn:
        raise TypeError(READ_ONLY_HINT)

    def __dir__(self) -> list[str]:
        missing = {
            name
            for cls in type(self).__mro__
            for name, value in vars(cls).items()
            if isinstance(value, Missing)
        }
        return sorted(set(super().__dir__()) - missing)

    def __ior__(self, other: object) -> NoReturn:
        raise TypeError(READ_ONLY_HINT)

    def __iadd__(self, other: object) -> NoReturn:
        raise TypeError(READ_ONLY_HINT)


class _ReadOnlyError(AttributeError, TypeError):
    """Raised for missing methods: an ``AttributeError``, and a ``TypeError`` as for any write."""


class _MissingMethod(Missing):
    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type[ReadOnly]) -> NoReturn:
        raise _ReadOnlyError(f"'{owner.__name__}' has no '{self._name}': {READ_ONLY_HINT}")


class _NoDictConversion(Missing):
    """The missing ``keys`` of a sequence, which only ``dict()`` reads.

    FastAPI's ``jsonable_encoder`` makes a dict of every type that it doesn't know: a list of
    objects with two keys each would become a dict like ``{"name": "image"}``, and an empty list
    ``{}``, unnoticed.
    """

    def __get__(self, instance: object, owner: type[ReadOnly]) -> NoReturn:
        raise TypeError(
            f"a '{owner.__name__}' is a list and makes no dict; {READ_ONLY_HINT}; a FastAPI "
            "endpoint that returns cached objects needs a return type, such as "
            "`-> list[KubeObject]`"
        )


# One by one, because ``__getattr__`` would slow down every other attribute; outside of the class,
# so that type checkers don't take them for methods.
for _name in _MUTATING_METHODS:
    setattr(ReadOnly, _name, _MissingMethod(_name))


class _FrozenView(ReadOnly):
    __slots__ = ("_data",)

    _data: Any

    def __len__(self) -> int:
        return len(self._data)

    def __eq__(self, other: object) -> bool:
        equal: bool = self._data == (other._data if isinstance(other, _FrozenView) else other)
        return equal

    # A view can be equal to a dict or a list, which have no hash. In Python a class declares that
    # by None; type checkers expect a method.
    __hash__ = None  # type: ignore[assignment]  # as a dict: a class without hashes

    def __repr__(self) -> str:
        return repr(self._data)

    @staticmethod
    def encode_content(view: object) -> Any:
        """Return the content of a view, as msgspec's ``enc_hook``."""
        if isinstance(view, _FrozenView):
            return view._data
        raise NotImplementedError(f"a {type(view).__name__} is no JSON")


class FrozenMapping(_FrozenView, Mapping[str, Any]):
    """A read-only JSON object, equal to the ``dict`` with the same content."""

    __slots__ = ()

    _data: dict[str, Any]

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    def __getitem__(self, key: str) -> Any:
        try:
            return freeze(self._data[key])
        except KeyError:
            raise missing_key(key, self._data) from None

    def get(self, key: str, /, default: Any = None) -> Any:
        try:
            return freeze(self._data[key])
        except KeyError:
            return default

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __contains__(self, key: object) -> bool:
        return key in self._data

    def to_dict(self) -> dict[str, Any]:
        """Return a deep copy, which can be changed."""
        copy: dict[str, Any] = thaw(self._data)
        return copy


declare_missing(
    FrozenMapping,
    mapping_hints(
        *("name", "namespace", "labels", "annotations", "nodeName", "containers", "replicas"),
        *("selector", "template", "phase", "conditions"),
    ),
)


class FrozenSequence(_FrozenView, Sequence[Any]):
    """A read-only JSON array, equal to the ``list`` with the same content."""

    __slots__ = ()

    _data: list[Any]
    keys = _NoDictConversion()

    def __init__(self, data: list[Any]) -> None:
        self._data = data

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> FrozenSequence: ...
    def __getitem__(self, index: int | slice) -> Any:
        return freeze(self._data[index])

    def to_list(self) -> list[Any]:
        """Return a deep copy, which can be changed."""
        copy: list[Any] = thaw(self._data)
        return copy


def has_levels(view: object, levels: int) -> bool:
    """Return True if a view is nested as many levels deep, or deeper. A scalar has none."""
    todo: list[tuple[object, int]] = [(view, 1)] if isinstance(view, _FrozenView) else []
    while todo:
        each, level = todo.pop()
        if level >= levels:
            return True
        parts = each.values() if isinstance(each, FrozenMapping) else cast("FrozenSequence", each)
        todo += [(part, level + 1) for part in parts if isinstance(part, _FrozenView)]
    return False


# -- parts of Secrets ----------------------------------------------------------------------------


def freeze_secret(value: Any) -> Any:
    """Return a read-only view of a decoded value in a Secret. Scalars are returned unchanged."""
    if value.__class__ is dict:
        return SecretMapping(value)
    return SecretSequence(value) if value.__class__ is list else value


class SecretMapping(FrozenMapping):
    """A read-only JSON object of a Secret, whose repr shows no content."""

    __slots__ = ()

    def __getitem__(self, key: str) -> Any:
        try:
            return freeze_secret(self._data[key])
        except KeyError:
            raise missing_key(key, self._data) from None

    def get(self, key: str, /, default: Any = None) -> Any:
        return freeze_secret(self._data[key]) if key in self._data else default

    def __repr__(self) -> str:
        return f"<part of a Secret keys={len(self)}>"


class SecretSequence(FrozenSequence):
    """A read-only JSON array of a Secret, whose repr shows no content."""

    __slots__ = ()

    def __getitem__(self, index: int | slice) -> Any:
        return freeze_secret(self._data[index])

    def __repr__(self) -> str:
        return f"<part of a Secret items={len(self)}>"


class SecretBody(dict[str, Any]):
    """The decoded body of a Secret. Its items are views, which ``freeze`` leaves as they are."""

    __slots__ = ()

    def __getitem__(self, key: str) -> Any:
        return freeze_secret(super().__getitem__(key))

    def __repr__(self) -> str:  # for tools that show the variables of a traceback
        return f"<body of a Secret keys={len(self)}>"


# -- comparison ----------------------------------------------------------------------------------


def is_same_json(old: Any, new: Any) -> bool:
    """Return True for equal JSON values or views. Python's ``True == 1`` is no equality of JSON."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        left, right = cast("Mapping[str, object]", old), cast("Mapping[str, object]", new)
        return left.keys() == right.keys() and all(
            is_same_json(left[name], right[name]) for name in left
        )
    if _is_list(old) and _is_list(new):
        first, second = cast("Sequence[object]", old), cast("Sequence[object]", new)
        return len(first) == len(second) and all(map(is_same_json, first, second))
    return isinstance(old, bool) == isinstance(new, bool) and old == new


def is_same_decoded(old: Any, new: Any) -> bool:
    """Return the result of ``is_same_json`` for decoded JSON, or for views and tuples of such.

    Equal values nearly always have the same JSON, which is made in a tenth of the time that a
    comparison in Python takes.
    """
    return _encode(old) == _encode(new) or (old == new and is_same_json(old, new))


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


_encode = msgspec.json.Encoder(enc_hook=_FrozenView.encode_content).encode
