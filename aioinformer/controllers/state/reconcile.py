"""Reconciles of one key: the reasons and the result, and the keys that fail.

A work queue holds keys without reasons. ``PendingReconciles`` holds the reasons beside it, from the
event to the run, in a few bits for each key. ``FailureTracker`` holds a key from its first failed
run until a run succeeds, or the object is deleted and no run is to come. Errors are stored as text,
since an exception keeps its frames alive, with every object in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from math import inf
from typing import Literal, Never, TypeAlias

from aioinformer._core.objects.kube_object import Added, Deleted, Event, ObjectKey
from aioinformer._core.quantities import quantity
from aioinformer.controllers.state.queue_items import Priority
from aioinformer.errors.delays import delay_seconds
from aioinformer.errors.texts import one_line

Cause: TypeAlias = Literal[
    "initial", "added", "updated", "deleted", "resync", "requeue", "retry", "request"
]
"""The reason for a run. The first five are events: ``initial`` belongs to the objects that were
cached when the controller began, ``resync`` is the same state delivered again. ``requeue``: the
previous run asked for it. ``retry``: the previous run failed. ``request``: ``trigger`` was called.
"""


def cause_of(event: Event) -> Cause:
    """Return the cause that an event is."""
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
    """The name of the informer of the event; empty if the cause is not an event."""

    def __str__(self) -> str:
        return f"{self.cause} in {self.informer}" if self.informer else self.cause


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Result:
    """The result of a run that wants another run. ``None`` means: no run before the next event.

        return Result(requeue_after=30)
        return Result(requeue_after=timedelta(minutes=5))

    Args:
        requeue_after: seconds, or a ``timedelta``, from 0 on, until the next run, if no event comes
            before. Earlier failures of the key are forgotten. ``None`` for no other run.
        requeue: True to run the key again after the backoff of a failure, without counting as one.

    Raises:
        TypeError: an argument has another type, such as the text ``"30s"``.
        ValueError: the time is negative or not finite, or both arguments are given.
    """

    requeue_after: float | None
    requeue: bool

    def __init__(
        self, *args: Never, requeue_after: float | timedelta | None = None, requeue: bool = False
    ) -> None:
        if args:
            raise TypeError(f"write Result(requeue_after={args[0]!r}), with the argument's name")
        after = None if requeue_after is None else delay_seconds(requeue_after)
        if not _is_bool(requeue):
            raise TypeError(f"requeue must be True or False, not {requeue!r}")
        if after is not None and requeue:
            raise ValueError(
                "requeue=True waits by the backoff; give either requeue or requeue_after"
            )
        object.__setattr__(self, "requeue_after", after)
        object.__setattr__(self, "requeue", requeue)


def _is_bool(given: object) -> bool:
    """Return True for a bool; the program may not be type-checked."""
    return isinstance(given, bool)


_NORMAL_BIT = 1
"""The bit of keys that have another reason than an initial list or a resync."""


class PendingReconciles:
    """The reasons of the keys that wait. Each distinct reason has a bit, and those of a key are an
    integer.
    """

    def __init__(self) -> None:
        """Start without keys."""
        self._reasons: list[Reason] = []
        self._bits: dict[Reason, int] = {}
        self._waiting: dict[ObjectKey, int] = {}
        self._scheduled: dict[ObjectKey, tuple[float, int]] = {}

    def add(self, key: ObjectKey, reason: Reason, priority: Priority) -> None:
        """Add a reason for a run of ``key`` as soon as possible."""
        self._waiting[key] = self._waiting.get(key, 0) | self._reason_bits(reason, priority)

    def schedule(self, key: ObjectKey, reason: Reason, priority: Priority, due: float) -> None:
        """Add a reason for a run of ``key`` at ``due``; of several times the earliest counts."""
        earlier, bits = self._scheduled.get(key, (due, 0))
        self._scheduled[key] = min(earlier, due), bits | self._reason_bits(reason, priority)

    def take(self, key: ObjectKey, now: float) -> tuple[tuple[Reason, ...], Priority]:
        """Remove and return the reasons and the priority of a run of ``key`` that begins now."""
        bits = self._waiting.pop(key, 0)
        due, scheduled = self._scheduled.get(key, (now, 0))
        # A timer may fire a tick before ``due``. If there is no other reason, the key runs for it.
        if scheduled and (due <= now or not bits):
            del self._scheduled[key]
            bits |= scheduled
        reasons = tuple(each for each in self._reasons if bits & self._bits[each])
        priority = Priority.NORMAL if bits & _NORMAL_BIT else Priority.LOW
        return reasons, priority

    @property
    def counts(self) -> tuple[int, int]:
        """The number of keys that wait for a worker, and of keys that wait for their time; a key
        may be both.
        """
        return len(self._waiting), len(self._scheduled)

    @property
    def delayed(self) -> int:
        """The number of keys that wait for their time alone."""
        return sum(key not in self._waiting for key in list(self._scheduled))

    def __contains__(self, key: ObjectKey) -> bool:
        """Return True if a run of ``key`` is requested, at once or at a time."""
        return key in self._waiting or key in self._scheduled

    def __len__(self) -> int:
        """Return the number of keys that wait for either."""
        return len(self._waiting) + self.delayed

    def _reason_bits(self, reason: Reason, priority: Priority) -> int:
        bit = self._bits.get(reason)
        if bit is None:
            # Integers have no size limit, so neither has the number of reasons.
            bit = self._bits[reason] = _NORMAL_BIT << (len(self._reasons) + 1)
            self._reasons.append(reason)
        return bit | _NORMAL_BIT if priority > Priority.LOW else bit

    def __repr__(self) -> str:
        return f"<PendingReconciles waiting={len(self._waiting)} scheduled={len(self._scheduled)}>"


MAX_ERROR_LENGTH = 500
"""Characters of an error that are stored: a server's message may quote the whole object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingKey:
    """A key whose last run failed. Times are relative to the moment of this snapshot."""

    key: ObjectKey
    error: str
    """The last error, in one line: the class of the exception and its text."""
    failures: int
    """The number of runs that have failed in a row."""
    since: float
    """Seconds since the first of these failures."""
    retry_in: float
    """Seconds until the next run; 0 if it is under way or waits for a worker; ``inf`` after a
    ``PermanentError``."""

    @property
    def permanent(self) -> bool:
        """True if the key is not retried before the object changes."""
        return self.retry_in == inf

    def __str__(self) -> str:
        following = (
            "no attempt before the object changes"
            if self.permanent
            else f"next attempt in {self.retry_in:.1f} s"
        )
        return (
            f"{self.key} failed {quantity(self.failures, 'time')} in {self.since:.1f} s, "
            f"{following}: {self.error}"
        )


@dataclass(slots=True)
class _Failure:
    error: str
    failures: int
    since: float
    due: float


class FailureTracker:
    """The keys that fail, in the order of their first failure."""

    def __init__(self) -> None:
        """Start without keys."""
        self._failures: dict[ObjectKey, _Failure] = {}

    def record_failure(self, key: ObjectKey, error: str, *, now: float, due: float) -> int:
        """Count a failed run that is retried at ``due`` (``inf``: never); return the failures in a
        row.
        """
        error = one_line(error, MAX_ERROR_LENGTH - len("..."))
        # A dict keeps the order of insertion: the first entry has failed for the longest.
        entry = self._failures.setdefault(key, _Failure(error, 0, now, due))
        entry.error, entry.due = error, due
        entry.failures += 1
        return entry.failures

    def record_success(self, key: ObjectKey) -> None:
        """Forget the failures of ``key``."""
        self._failures.pop(key, None)

    def failures(self, key: ObjectKey) -> int:
        """Return how many runs of ``key`` have failed in a row."""
        entry = self._failures.get(key)
        return 0 if entry is None else entry.failures

    def is_permanent(self, key: ObjectKey) -> bool:
        """Return True if the last run of ``key`` failed and is not retried."""
        entry = self._failures.get(key)
        return entry is not None and entry.due == inf

    def get(self, key: ObjectKey, now: float) -> FailingKey | None:
        """Return the failures of ``key``, or ``None`` if its last run didn't fail."""
        entry = self._failures.get(key)
        return None if entry is None else _make_failing_key(key, entry, now)

    def longest_failing(self, count: int, now: float) -> tuple[FailingKey, ...]:
        """Return the ``count`` keys that have failed for longest."""
        entries = list(islice(self._failures.items(), count))
        return tuple(_make_failing_key(key, entry, now) for key, entry in entries)

    def __len__(self) -> int:
        return len(self._failures)

    def __repr__(self) -> str:
        return f"<FailureTracker {quantity(len(self), 'key')}>"


def _make_failing_key(key: ObjectKey, entry: _Failure, now: float) -> FailingKey:
    return FailingKey(
        key=key,
        error=entry.error,
        failures=entry.failures,
        since=now - entry.since,
        retry_in=max(0.0, entry.due - now),
    )
