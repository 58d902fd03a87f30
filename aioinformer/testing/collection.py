"""The objects of one resource, in key order, now and as of an earlier resourceVersion."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from aioinformer.testing.encoding import Encoding, Stored
from aioinformer.testing.history import Change


@dataclass(frozen=True, slots=True)
class View:
    """A state of a collection: keys in order, and what each held."""

    keys: Sequence[str]
    objects: Mapping[str, Stored]
    undone: Mapping[str, Stored | None]
    """What later changes replaced."""

    def __getitem__(self, key: str) -> Stored:
        return self.undone.get(key) or self.objects[key]


class Collection:
    """The objects of one resource."""

    def __init__(self, encoding: Encoding) -> None:
        self.encoding = encoding
        self.objects: dict[str, Stored] = {}
        self._keys: list[str] = []

    def put(self, stored: Stored) -> None:
        """Store a new object, or a new state of one."""
        key = stored.key
        if key not in self.objects:
            insort(self._keys, key)
        self.objects[key] = stored

    def remove(self, key: str) -> None:
        """Forget an object."""
        del self.objects[key]
        del self._keys[bisect_left(self._keys, key)]

    def view(self, later: Iterable[Change], *, prefix: str = "", start: str = "") -> View:
        """The state before the changes ``later``, which are given oldest first.

        Args:
            later: every change since.
            prefix: how the wanted keys begin: ``namespace/``, or empty.
            start: the first key wanted.
        """
        undone: dict[str, Stored | None] = {}
        for change in later:
            touched = change.old or change.new
            if touched is not None:
                undone.setdefault(touched.key, change.old)  # the first change saw the wanted state
        low = bisect_left(self._keys, max(prefix, start))
        high = bisect_left(self._keys, _after(prefix)) if prefix else len(self._keys)
        keys = self._keys[low:high]
        if undone:
            there = {key for key in undone if key >= start and key.startswith(prefix)}
            keys = sorted(there.union(keys))
            keys = [key for key in keys if undone.get(key, _PRESENT) is not None]
        return View(keys, self.objects, undone)

    def __len__(self) -> int:
        return len(self._keys)

    def __repr__(self) -> str:
        return f"<Collection {self.encoding.resource} {len(self)} objects>"


_PRESENT = object()


def _after(prefix: str) -> str:
    """The first string after all those that begin with ``prefix``."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)
