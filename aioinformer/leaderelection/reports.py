"""Reports of failed requests for Leases: the last error, log lines, metrics and the error hook."""

from __future__ import annotations

import logging

from msgspec import Struct

from aioinformer._core.instrumentation import Metrics
from aioinformer._core.listwatch.outcomes import classify
from aioinformer._runtime.reporting.error_hook import FailureLog, call_hook, check_hook
from aioinformer._runtime.reporting.error_texts import describe_error
from aioinformer._runtime.reporting.problem import OnError, Problem
from aioinformer._runtime.reporting.safe_metrics import wrap_metrics
from aioinformer.errors import Conflict, FetchError, UsageError
from aioinformer.leaderelection.suspend_clock import SuspendAwareClock

REPEAT_INTERVAL = 20.0
"""Seconds between two warnings of a failure that lasts: the longest wait of an informer between two
requests. A candidate asks every two seconds."""

LIFETIME = 60.0
"""Seconds after the next attempt was due for which a failure counts that isn't repeated: what was
to be written may not be due any more."""

_MISUSE = "the Lease has another user"


class _Failure(Struct):
    error: Exception
    reported_at: float
    ends_at: float


class LeaseReporter:
    """Reports the failures of one user of Leases, each action by itself.

    A failure is logged as a warning and passed to the hook when it begins, and again every
    ``REPEAT_INTERVAL``; metrics count each. A ``Conflict`` only means that another was faster.
    """

    def __init__(
        self,
        subject: str,
        log: logging.Logger,
        clock: SuspendAwareClock,
        *,
        metrics: Metrics | None = None,
        on_error: OnError | None = None,
    ) -> None:
        check_hook(on_error)
        self._subject = subject
        self._log = log
        self._clock = clock
        self._metrics = wrap_metrics(metrics)
        self._on_error = on_error
        self._hook_failures = FailureLog(log)
        self._failures: dict[str, _Failure] = {}
        """The last failure of each action that has not succeeded since, the newest last."""
        self._failing_since: float | None = None
        """The time of the first warning; ``None`` while nothing fails but Conflicts."""

    @property
    def error(self) -> Exception | None:
        """The last error; ``None`` once the request has succeeded, or isn't sent any more."""
        now = self._clock.now
        current = [each.error for each in tuple(self._failures.values()) if now < each.ends_at]
        return current[-1] if current else None

    def failed(self, action: str, error: Exception, retry_in: float | None = None) -> None:
        """Report a failure; ``action`` says in words what failed."""
        now = self._drop_ended()
        known = [each for each in self._failures.values() if type(each.error) is type(error)]
        reported_at = max((each.reported_at for each in known), default=float("-inf"))
        repeated = now - reported_at < REPEAT_INTERVAL
        ends_at = now + (retry_in or 0.0) + LIFETIME
        self._failures.pop(action, None)
        self._failures[action] = _Failure(error, reported_at if repeated else now, ends_at)
        normal = isinstance(error, Conflict)
        level = logging.DEBUG if repeated else logging.INFO if normal else logging.WARNING
        self._log.log(level, "%s: %s: %s", self._subject, action, describe_error(error))
        if normal:
            return
        self._metrics.failed(self._subject, "lease", type(error).__name__)
        if not repeated:
            self._failing_since = now if self._failing_since is None else self._failing_since
            cause = classify(error).name.lower() if isinstance(error, FetchError) else "other"
            problem = Problem(
                informer=self._subject, phase="lease", cause=cause, error=error, retry_in=retry_in
            )
            call_hook(self._on_error, self._hook_failures, problem)

    def misused(self, found: str) -> None:
        """Report that a Lease has two users. ``found`` says which; empty if that has ended."""
        if not found:
            self.succeeded(_MISUSE)
            return
        text = (
            f"the Lease {found}. With one Lease for both, neither works: give the election or the "
            "group another name, and delete the Lease"
        )
        self.failed(_MISUSE, UsageError(text))

    def succeeded(self, *actions: str) -> None:
        """Record that these actions succeed again, or are not due any more."""
        now, since = self._drop_ended(), self._failing_since
        for action in actions:
            self._failures.pop(action, None)
        self._drop_ended()
        if since is not None and self._failing_since is None:
            self._log.info("%s: requests succeed again after %.0f s", self._subject, now - since)

    def _drop_ended(self) -> float:
        """Forget what isn't due any more, and return the time."""
        now = self._clock.now
        for action in [key for key, each in self._failures.items() if now >= each.ends_at]:
            del self._failures[action]
        if all(isinstance(each.error, Conflict) for each in self._failures.values()):
            self._failing_since = None
        return now

    def __repr__(self) -> str:
        return f"<LeaseReporter of {self._subject} error={self.error!r}>"
