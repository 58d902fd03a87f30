"""Errors for names that an object doesn't have: attributes and keys, with what to write instead.

A ``__getattr__`` with a hint would slow down the read of every other attribute by a third. So the
expected names are descriptors, which are added outside of the classes: type checkers report them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn, Self

LISTER_HINTS = {
    name: f"the cache is read through the informer's lister: write informer.lister.{name}(...)"
    for name in ("list", "get", "scan", "count", "by_index", "keys")
}


class Missing:
    """The base class of descriptors that raise at every access and say what to use instead."""


class _MissingAttribute(Missing):
    def __init__(self, name: str, hint: str) -> None:
        self._name = name
        self._hint = hint

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise AttributeError(f"a {owner.__name__} has no attribute {self._name!r}: {self._hint}")


def mapping_hints(*names: str, parent: str = "obj", others: str = "") -> dict[str, str]:
    """Return hints for keys of the mapping ``parent`` that programs read as attributes."""
    return {name: f"it is a mapping, write {parent}[{name!r}]{others}" for name in names}


def declare_missing(owner: type, hints: Mapping[str, str]) -> None:
    """Let the class raise an ``AttributeError`` with a hint for each name; ``hasattr`` is false."""
    for name, hint in hints.items():
        setattr(owner, name, _MissingAttribute(name, hint))


def missing_key(key: object, known: Mapping[str, object]) -> KeyError:
    """Return the error for a key that a JSON object lacks. Its text suggests the key that was
    meant, and is made when it is needed, since ``in`` and ``get()`` cause this error as well.
    """
    return KeyError(_KeyWithHint.of(key, known) if isinstance(key, str) else key)


class _KeyWithHint(str):
    """A key that equals its text. Its repr, which is the text of a KeyError, has a suggestion."""

    __slots__ = ("_known",)

    _known: Mapping[str, object]

    @classmethod
    def of(cls, key: str, known: Mapping[str, object]) -> Self:
        found = cls(key)
        found._known = known
        return found

    def __repr__(self) -> str:
        from difflib import get_close_matches  # rarely needed

        folded = {_fold(each): each for each in self._known}
        close = get_close_matches(_fold(self), folded, n=1)
        shown = super().__repr__()
        return f"{shown}; did you mean {folded[close[0]]!r}?" if close else shown

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


def _fold(key: str) -> str:
    """Return the key in lower case without separators, so that ``node_name`` is ``nodeName``."""
    return key.lower().replace("_", "").replace("-", "")
