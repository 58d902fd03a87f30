"""Reconciling one key: what is asked of a reconciler, why, and what it answers.

A work queue hands out a key and forgets why it was added. ``PendingReconciles`` remembers that beside it,
from the event to the run, in a few bits a key, so that a reconciler can be told. What has failed
is ``failing``'s to keep, the keys themselves the queue's.

Which keys fail to be reconciled: since when, how often, and when they are tried again.

A key is kept from its first failed run to the next that succeeds, so that the book is as long as
the list of what is wrong now, whatever went wrong before. Errors are kept as text: an exception
holds the frames that it went through, with every object in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from math import isfinite
from typing import Literal, TypeAlias

from aioinformer._core.codec.status_decoder import one_line
from aioinformer._core.controllers.queue_items import Priority
from aioinformer._core.objects.kube_object import Added, Deleted, Event, ObjectKey

__all__ = [
    "Cause",
    "FailingKey",
    "FailureTracker",
    "PendingReconciles",
    "Reason",
    "ReconcileContext",
    "Result",
    "cause_of",
]


Cause: TypeAlias = Literal[
    "initial", "added", "updated", "deleted", "resync", "requeue", "retry", "request"
]
"""Why a key is reconciled. The first five are events: ``initial`` is part of what was cached when
the controller began, ``resync`` the same state told again. ``requeue``: the run before asked for
it. ``retry``: the run before failed. ``request``: the program called ``trigger``."""


def cause_of(event: Event) -> Cause:
    """What an event is as a cause."""
    if isinstance(event, Added):
        return "initial" if event.initial else "added"
    if isinstance(event, Deleted):
        return "deleted"
    return "resync" if event.resync else "updated"


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason for a run."""

    cause: Cause
    informer: str = ""
    """The name of the informer whose event it was; empty if it was none."""

    def __str__(self) -> str:
        return f"{self.cause} in {self.informer}" if self.informer else self.cause


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a reconciler answers when it wants to be called again. ``None`` is: not before
    something happens.
    """

    requeue_after: float | None = None
    """Seconds after which to call again, if nothing happens before. Of several that are pending
    the earliest counts. What was counted of failures is forgotten."""
    requeue: bool = False
    """Call again, with the backoff of a failure and without being one."""

    def __post_init__(self) -> None:
        after = self.requeue_after
        if after is not None and not (isfinite(after) and after >= 0):
            raise ValueError(f"requeue_after must be seconds from 0 on, or None, not {after!r}")
        if after is not None and self.requeue:
            raise ValueError("requeue=True waits by its own backoff: requeue_after can't be given")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileContext:
    """Why a reconciler is called. To look at, to log: what is to be done follows from the state of
    the cluster alone, since reasons are merged, and some may be of before a restart.
    """

    controller: str
    """The controller's name."""
    reasons: tuple[Reason, ...]
    """What has happened since the last run of this key began; several things, merged."""
    retries: int
    """Runs of this key that have failed in a row, up to now."""
    priority: Priority
    """``LOW`` if nothing but initial lists and resyncs asked for it."""

    def because(self, *causes: Cause, informer: str = "") -> bool:
        """Whether one of the causes is among the reasons, of that informer if one is named."""
        return any(
            reason.cause in causes and informer in ("", reason.informer) for reason in self.reasons
        )

    def __str__(self) -> str:
        why = ", ".join(map(str, self.reasons))
        again = f", after {self.retries} failures" if self.retries else ""
        return f"{self.controller}: {why}{again}"


_NORMAL_BIT = 1
"""The bit that says that something more urgent than an initial list asked."""


class PendingReconciles:
    """Why keys are to be reconciled, until they are. It holds the keys that wait, no others.

    Reasons are the same few for all keys, so that each has a bit, and a key an integer.
    """

    def __init__(self) -> None:
        """Nothing is to be done."""
        self._reasons: list[Reason] = []
        self._bits: dict[Reason, int] = {}
        self._waiting: dict[ObjectKey, int] = {}
        self._scheduled: dict[ObjectKey, tuple[float, int]] = {}

    def add(self, key: ObjectKey, reason: Reason, priority: Priority) -> None:
        """``key`` is to be reconciled as soon as may be."""
        self._waiting[key] = self._waiting.get(key, 0) | self._reason_bits(reason, priority)

    def schedule(self, key: ObjectKey, reason: Reason, priority: Priority, due: float) -> None:
        """``key`` is to be reconciled at ``due``; of several times the earliest counts."""
        before, marks = self._scheduled.get(key, (due, 0))
        self._scheduled[key] = min(before, due), marks | self._reason_bits(reason, priority)

    def take(self, key: ObjectKey, now: float) -> tuple[tuple[Reason, ...], Priority]:
        """A run of ``key`` begins at ``add``: why, and how urgent it was."""
        marks = self._waiting.pop(key, 0)
        due, planned = self._scheduled.get(key, (now, 0))
        # Timers may be early by a tick; then nothing else can be what it runs for.
        if planned and (due <= now or not marks):
            del self._scheduled[key]
            marks |= planned
        reasons = tuple(each for each in self._reasons if marks & self._bits[each])
        priority = Priority.NORMAL if marks & _NORMAL_BIT else Priority.LOW
        return reasons, priority

    @property
    def counts(self) -> tuple[int, int]:
        """How many keys wait for a worker, and how many for their time; some may for both."""
        return len(self._waiting), len(self._scheduled)

    def __len__(self) -> int:
        """How many keys wait for either."""
        return len(self._waiting) + sum(key not in self._waiting for key in list(self._scheduled))

    def _reason_bits(self, reason: Reason, priority: Priority) -> int:
        bit = self._bits.get(reason)
        if bit is None:
            bit = self._bits[reason] = _NORMAL_BIT << (len(self._reasons) + 1)
            self._reasons.append(reason)
        return bit | _NORMAL_BIT if priority > Priority.LOW else bit

    def __repr__(self) -> str:
        return f"<PendingReconciles now={len(self._waiting)} later={len(self._scheduled)}>"


MAX_ERROR_LENGTH = 500
"""Characters of an error that are kept. A server's message may quote the whole object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingKey:
    """A key whose last run failed. Times are relative to when this was asked for."""

    key: ObjectKey
    error: str
    """What went wrong last, in one line: the class of the exception, and what it says."""
    failures: int
    """How many runs have failed in a row."""
    since: float
    """Seconds since the first of these failed."""
    retry_in: float
    """Seconds to the next attempt; 0 if it is under way, or waits for a worker."""

    @property
    def retries(self) -> int:
        """Another name for ``failures``."""
        return self.failures

    def __str__(self) -> str:
        return (
            f"{self.key} failed {self.failures} times in {self.since:.1f} s, "
            f"next attempt in {self.retry_in:.1f} s: {self.error}"
        )


@dataclass(slots=True)
class _Failure:
    error: str
    failures: int
    since: float
    due: float


class FailureTracker:
    """The keys that fail, those that have failed for longest first."""

    def __init__(self) -> None:
        """Nothing has failed."""
        self._failures: dict[ObjectKey, _Failure] = {}

    def record_failure(self, key: ObjectKey, error: str, *, now: float, due: float) -> int:
        """A run failed; it is tried again at ``due``. How many have failed in a row."""
        error = one_line(error, MAX_ERROR_LENGTH - len("..."))
        entry = self._failures.setdefault(key, _Failure(error, 0, now, due))
        entry.error, entry.due = error, due
        entry.failures += 1
        return entry.failures

    def record_success(self, key: ObjectKey) -> None:
        """A run succeeded, and what was before is forgotten."""
        self._failures.pop(key, None)

    def failures(self, key: ObjectKey) -> int:
        """Return how many runs of ``key`` have failed in a row."""
        entry = self._failures.get(key)
        return 0 if entry is None else entry.failures

    def get(self, key: ObjectKey, now: float) -> FailingKey | None:
        """How it stands with ``key``; ``None`` if it doesn't fail."""
        entry = self._failures.get(key)
        return None if entry is None else _make_failing_key(key, entry, now)

    def longest_failing(self, count: int, now: float) -> tuple[FailingKey, ...]:
        """The ``count`` keys that have failed for longest."""
        entries = list(islice(self._failures.items(), count))
        return tuple(_make_failing_key(key, entry, now) for key, entry in entries)

    def __len__(self) -> int:
        return len(self._failures)

    def __repr__(self) -> str:
        return f"<FailureTracker {len(self)} keys>"


def _make_failing_key(key: ObjectKey, entry: _Failure, now: float) -> FailingKey:
    return FailingKey(
        key=key,
        error=entry.error,
        failures=entry.failures,
        since=now - entry.since,
        retry_in=max(0.0, entry.due - now),
    )
