"""Which keys fail to be reconciled: since when, how often, and when they are tried again.

A key is kept from its first failed run to the next that succeeds, so that the book is as long as
the list of what is wrong now, whatever went wrong before. Errors are kept as text: an exception
holds the frames that it went through, with every object in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from aioinformer._core.objects import ObjectKey
from aioinformer._core.statuses import one_line

__all__ = ["Failing", "FailingKey"]

LONGEST = 500
"""Characters of an error that are kept. A server's message may quote the whole object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingKey:
    """A key whose last run failed. Times are relative to when this was asked for."""

    key: ObjectKey
    error: str
    """What went wrong last, in one line: the class of the exception, and what it says."""
    retries: int
    """How many runs have failed in a row."""
    since: float
    """Seconds since the first of these failed."""
    retry_in: float
    """Seconds to the next attempt; 0 if it is under way, or waits for a worker."""

    def __str__(self) -> str:
        return (
            f"{self.key} failed {self.retries} times in {self.since:.1f} s, "
            f"next attempt in {self.retry_in:.1f} s: {self.error}"
        )


@dataclass(slots=True)
class _Entry:
    error: str
    retries: int
    since: float
    due: float


class Failing:
    """The keys that fail, those that have failed for longest first."""

    def __init__(self) -> None:
        """Nothing has failed."""
        self._entries: dict[ObjectKey, _Entry] = {}

    def failed(self, key: ObjectKey, error: str, *, now: float, due: float) -> int:
        """A run failed; it is tried again at ``due``. How many have failed in a row."""
        error = one_line(error, LONGEST - len("..."))
        entry = self._entries.setdefault(key, _Entry(error, 0, now, due))
        entry.error, entry.due = error, due
        entry.retries += 1
        return entry.retries

    def succeeded(self, key: ObjectKey) -> None:
        """A run succeeded, and what was before is forgotten."""
        self._entries.pop(key, None)

    def retries(self, key: ObjectKey) -> int:
        """How many runs have failed in a row."""
        entry = self._entries.get(key)
        return 0 if entry is None else entry.retries

    def get(self, key: ObjectKey, now: float) -> FailingKey | None:
        """How it stands with ``key``; ``None`` if it doesn't fail."""
        entry = self._entries.get(key)
        return None if entry is None else _shown(key, entry, now)

    def first(self, count: int, now: float) -> tuple[FailingKey, ...]:
        """The ``count`` keys that have failed for longest."""
        entries = list(islice(self._entries.items(), count))
        return tuple(_shown(key, entry, now) for key, entry in entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"<Failing {len(self)} keys>"


def _shown(key: ObjectKey, entry: _Entry, now: float) -> FailingKey:
    return FailingKey(
        key=key,
        error=entry.error,
        retries=entry.retries,
        since=now - entry.since,
        retry_in=max(0.0, entry.due - now),
    )
