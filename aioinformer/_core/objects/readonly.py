"""Deeply read-only views over decoded JSON.

A cached object is shared by every listener and reader, so nobody may write to it; client-go's
"never mutate what a lister returns" rule is a comment, here it is an error. A view wraps the
decoded ``dict`` or ``list`` without copying and wraps nested containers when they are read.
It leaves decoding, and the question of how long a decoded body is kept, to ``objects``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn, overload

import msgspec

READ_ONLY_HINT = (
    "a cached object is read-only; take a copy of your own with to_dict() (of a list in it, with "
    "to_list())"
)
"""Said to whoever tries to write."""

_MUTATING_METHODS = (
    *("update", "setdefault", "pop", "popitem", "clear"),
    *("append", "extend", "insert", "remove", "sort", "reverse"),
)
"""What a ``dict`` or a ``list`` can do to itself."""


def freeze(value: Any) -> Any:
    """The read-only view of a decoded JSON value; scalars are returned as they are."""
    # By the class alone: a decoder makes nothing that is derived from these.
    if value.__class__ is dict:
        return FrozenMapping(value)
    if value.__class__ is list:
        return FrozenSequence(value)
    return value


def thaw(value: Any) -> Any:
    """A deep copy of decoded JSON, which shares no container with it. Not for views."""
    return msgspec.to_builtins(value)  # six times as fast as a comprehension in a comprehension


class Missing:
    """Base class of descriptors that raise at every access and say what to use instead."""


class ReadOnly:
    """Refuses writes with a ``TypeError`` that names the way out.

    The methods of a ``dict`` or ``list`` that write aren't there, so that ``hasattr`` tells the
    truth: asking for one is an ``AttributeError`` too.
    """

    __slots__ = ()

    def __setitem__(self, key: object, value: object) -> NoReturn:
        raise TypeError(READ_ONLY_HINT)

    def __delitem__(self, key: object) -> NoReturn:
        raise TypeError(READ_ONLY_HINT)

    def __dir__(self) -> list[str]:
        """List the attributes that exist, for completion in a shell or an editor."""
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
    """Both what it is, and what every other attempt to write is."""


class _MissingMethod(Missing):
    """A method that isn't there, and says why."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type[ReadOnly]) -> NoReturn:
        raise _ReadOnlyError(f"'{owner.__name__}' has no '{self._name}': {READ_ONLY_HINT}")


class MissingAttribute(Missing):
    """A part of an object's JSON that is an attribute of generated models, and here a key: it isn't
    there, and says so.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise AttributeError(
            f"a {owner.__name__} has no attribute {self._name!r}: it is a mapping, write "
            f"obj[{self._name!r}]; attributes are key, name, namespace, labels and the like"
        )


class _NoDictConversion(Missing):
    """``keys`` of a sequence, for which only ``dict()`` asks. FastAPI's ``jsonable_encoder`` makes
    dicts of whatever it doesn't know: of a list of objects with two keys each one like
    ``{"name": "image"}``, and of an empty list ``{}``, and then nobody hears of it.
    """

    def __get__(self, instance: object, owner: type[ReadOnly]) -> NoReturn:
        raise TypeError(f"a '{owner.__name__}' is a list and makes no dict; {READ_ONLY_HINT}")


# One by one, since ``__getattr__`` would slow down every other attribute, and here, where type
# checkers don't take them for methods.
for _name in _MUTATING_METHODS:
    setattr(ReadOnly, _name, _MissingMethod(_name))


class _FrozenView(ReadOnly):
    """What the two kinds of view have in common."""

    __slots__ = ("_data",)

    _data: Any

    def __len__(self) -> int:
        return len(self._data)

    def __eq__(self, other: object) -> bool:
        equal: bool = self._data == (other._data if isinstance(other, _FrozenView) else other)
        return equal

    # Content can be equal to a dict's or a list's, and they have no hash. The ignore: for type
    # checkers, None is no method; for Python it is how a class says so.
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._data)


class FrozenMapping(_FrozenView, Mapping[str, Any]):
    """A JSON object: equal to the ``dict`` with the same content, and never written to."""

    __slots__ = ()

    _data: dict[str, Any]

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    def __getitem__(self, key: str) -> Any:
        return freeze(self._data[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __contains__(self, key: object) -> bool:
        return key in self._data

    def to_dict(self) -> dict[str, Any]:
        """A copy of one's own, all the way down."""
        copy: dict[str, Any] = thaw(self._data)
        return copy


class FrozenSequence(_FrozenView, Sequence[Any]):
    """A JSON array: equal to the ``list`` with the same content, and never written to."""

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
        """A copy of one's own, all the way down."""
        copy: list[Any] = thaw(self._data)
        return copy
