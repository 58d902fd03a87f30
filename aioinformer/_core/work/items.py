"""One key on its way through a work queue, and how urgent that is."""

from __future__ import annotations

from collections.abc import Hashable
from enum import IntEnum
from typing import Generic, TypeVar

from msgspec import Struct

__all__ = ["Item", "Priority"]

K = TypeVar("K", bound=Hashable)


class Priority(IntEnum):
    """How urgent a key is. The greater is handed out first."""

    LOW = 0
    """What nothing has happened to: initial lists and resyncs, thousands of keys at once."""
    NORMAL = 1
    """What has just changed."""


class Item(Struct, Generic[K], eq=False):
    """One run of a key, from when it was asked for until it is done.

    There is one for each key that waits: a ``Struct`` is made in half the time of a class.
    """

    key: K
    priority: Priority
    since: float
    """When the run was asked for."""
    started: float | None = None
    """When somebody began to work on it; ``None`` while it waits."""
    again: Item[K] | None = None
    """The run after this one, asked for while this one was under way."""

    def __repr__(self) -> str:
        state = "waiting" if self.started is None else "again" if self.again else "at work"
        return f"<Item {self.key!r} {self.priority.name} {state}>"
