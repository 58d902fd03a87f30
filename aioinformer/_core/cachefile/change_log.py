"""The log of changes in a cache file that several processes share.

One process, the leader, watches the server. In the transaction that stores a later state, the
leader appends each change to a log, in the order in which its own cache has changed. The other
processes apply the log in this order, so that their caches are past states of the server at every
moment. Each change has a sequence number. A follower reads the changes behind its position.

The log is bounded. A follower whose position was trimmed reads the whole state and delivers the
difference, as after a relist. The same happens after a relist of the leader: the changes of a list
must become visible in one step, and the log shows them one by one. Both cases are expressed by
``floor``, the lowest position from which the log alone leads to the present state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from aioinformer._core.objects.deltas import Delta
from aioinformer._core.objects.kube_object import Deleted, Event, KubeObject
from aioinformer._core.objects.stored import ExcludedObject

__all__ = [
    "ENTRIES_KEPT",
    "EntryKind",
    "LogEntry",
    "LogRecord",
    "LogSequence",
    "choose_read",
    "make_delta",
    "make_entries",
]

ENTRIES_KEPT = 8192
"""Entries that a trimmed log keeps: 8 s at 1,000 changes a second, and 20 MB of pods. Followers
usually read them within 0.1 s."""

TRIM_STEP = 1024
"""Entries by which a log exceeds ``ENTRIES_KEPT`` before it is trimmed, so that a transaction in 20
removes rows, and not each of them."""

EntryKind: TypeAlias = Literal["stored", "deleted", "vanished", "dropped"]
"""``stored``: the object is cached in this state. The others are the reasons of ``Deleted``."""


class LogEntry(Struct, frozen=True):
    """One change of a cache."""

    kind: EntryKind
    obj: KubeObject


def make_entries(events: Iterable[Event]) -> Iterator[LogEntry]:
    """Return an iterator over the entries for the events of one step of the pump."""
    for event in events:
        if type(event) is not Deleted:
            yield LogEntry("stored", event.obj)
        elif event.reason == "deleted" or event.reason == "dropped":
            yield LogEntry(event.reason, event.obj)
        else:
            yield LogEntry("vanished", event.obj)


def make_delta(entry: LogEntry) -> Delta:
    """Return the change that leads a follower's cache to the same event.

    An excluded object removes the cached one: with the reason ``vanished`` if the uids differ.
    """
    obj = entry.obj
    if entry.kind == "stored":
        return Delta("Updated", obj)
    if entry.kind == "deleted":
        return Delta("Deleted", obj)
    uid = obj.uid if entry.kind == "dropped" else ""
    return Delta("Updated", ExcludedObject(obj.key, b"", obj.resource, stored_uid=uid))


class LogRecord:
    """The changes of one informer since its last write, in order."""

    def __init__(self, limit: int = ENTRIES_KEPT) -> None:
        """Begin without a change.

        Args:
            limit: the number of changes above which followers read the whole state instead. So
                a slow disk costs bounded memory.
        """
        self.batches: list[Sequence[Event]] = []
        """The recorded steps. To be read only."""
        self.relisted: set[str] = set()
        """The scopes whose whole state is to be read again."""
        self._limit = limit
        self._count = 0
        self._overflowed = False

    def record(self, events: Sequence[Event]) -> None:
        """Record the events of one step of the pump."""
        if self._overflowed:
            return
        self._count += len(events)
        if self._count > self._limit:
            self.require_state()
        else:
            self.batches.append(events)

    def record_list(self, scope: str) -> None:
        """Record that the state of a scope was replaced."""
        self.relisted.add(scope)

    def require_state(self) -> None:
        """Have followers read the whole state of all scopes."""
        self._overflowed, self.batches = True, []

    def needs_state(self, scope: str) -> bool:
        """Return True if the changes don't lead from the last write to the present state."""
        return self._overflowed or scope in self.relisted

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"<LogRecord changes={self._count} relisted={len(self.relisted)}>"


class LogSequence:
    """The sequence numbers of a log, as its only writer counts them."""

    def __init__(self, head: int = 0, oldest: int = 0, *, keep: int = ENTRIES_KEPT) -> None:
        """Continue a log.

        Args:
            head: the number of the last entry; 0 for an empty log.
            oldest: the number of the first entry that is kept; 0 for an empty log.
            keep: the number of entries that a trimmed log keeps.
        """
        self.head = head
        self.oldest = oldest or 1
        self._keep = keep

    def take(self, count: int) -> range:
        """Return the numbers of the next ``count`` entries."""
        first = self.head + 1
        self.head += count
        return range(first, self.head + 1)

    def trim(self) -> int:
        """Return the number up to which entries are to be removed now; 0 for none.

        Positions below this number can't be continued from.
        """
        if self.head - self.oldest < self._keep + min(TRIM_STEP, self._keep):
            return 0
        removed = self.head - self._keep
        self.oldest = removed + 1
        return removed

    def __repr__(self) -> str:
        return f"<LogSequence {self.oldest}..{self.head}>"


def choose_read(position: int | None, floor: int, head: int) -> Literal["state", "changes"]:
    """Return what a follower must read to reach the present state.

    Args:
        position: the number up to which the follower has read; ``None`` before the first state.
        floor: the lowest position from which the log leads to the present state.
        head: the number of the last entry. A position beyond it belongs to another log.
    """
    return "changes" if position is not None and floor <= position <= head else "state"
