"""Deeply read-only views over decoded JSON.

A cached object is shared by every listener and reader, so nobody may write to it; client-go's
"never mutate what a lister returns" rule is a comment, here it is a ``TypeError``. A view wraps
the decoded ``dict`` or ``list`` without copying and wraps nested containers when they are read.
It leaves decoding, and the question of how long a decoded body is kept, to ``objects``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeGuard, overload

_ADVICE = "a cached object is read-only; take a copy of your own with to_dict()"


def freeze(value: Any) -> Any:
    """The read-only view of a decoded JSON value; scalars are returned as they are."""
    if _is_object(value):
        return FrozenMapping(value)
    if _is_array(value):
        return FrozenSequence(value)
    return value


def thaw(value: Any) -> Any:
    """A deep copy of decoded JSON, which shares no container with it. Not for views."""
    if _is_object(value):
        return {key: thaw(item) for key, item in value.items()}
    if _is_array(value):
        return [thaw(item) for item in value]
    return value


def _is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_array(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


class ReadOnly:
    """Refuses item writes with an error that names the way out."""

    __slots__ = ()

    def __setitem__(self, key: object, value: object) -> NoReturn:
        raise TypeError(_ADVICE)

    def __delitem__(self, key: object) -> NoReturn:
        raise TypeError(_ADVICE)


class FrozenMapping(ReadOnly, Mapping[str, Any]):
    """A JSON object: equal to the ``dict`` with the same content, and never written to."""

    __slots__ = ("_data",)

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    def __getitem__(self, key: str) -> Any:
        return freeze(self._data[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __contains__(self, key: object) -> bool:
        return key in self._data

    def __eq__(self, other: object) -> bool:
        if isinstance(other, FrozenMapping):
            return self._data == other._data
        return self._data == other

    # Content can be equal to a dict's, and a dict has no hash.
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._data)

    def to_dict(self) -> dict[str, Any]:
        """A copy of one's own, all the way down."""
        copy: dict[str, Any] = thaw(self._data)
        return copy


class FrozenSequence(ReadOnly, Sequence[Any]):
    """A JSON array: equal to the ``list`` with the same content, and never written to."""

    __slots__ = ("_data",)

    def __init__(self, data: list[Any]) -> None:
        self._data = data

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> FrozenSequence: ...
    def __getitem__(self, index: int | slice) -> Any:
        return freeze(self._data[index])

    def __len__(self) -> int:
        return len(self._data)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, FrozenSequence):
            return self._data == other._data
        return self._data == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._data)
