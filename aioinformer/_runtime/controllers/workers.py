"""The workers of a controller: from a key in the queue to what becomes of its run.

Between ``get`` and ``done`` a key is one worker's. What the reconciler answers or raises decides
when it comes back: after a time, with the limiter's backoff, or when something happens. A worker
ends when the queue does; if it ends in any other way, something is wrong here.
"""

from __future__ import annotations

import asyncio

from aioinformer._core.controllers.queue_items import Priority
from aioinformer._core.controllers.rate_limiters import RateLimiter
from aioinformer._core.controllers.reconcile import (
    FailureTracker,
    PendingReconciles,
    Reason,
    ReconcileContext,
    Result,
)
from aioinformer._core.objects.kube_object import ObjectKey
from aioinformer._runtime.controllers.health import ReconcileErrors
from aioinformer._runtime.controllers.options import ControllerOptions
from aioinformer._runtime.controllers.reconcile_runs import ReconcileRuns
from aioinformer._runtime.controllers.work_queue import WorkQueue
from aioinformer._runtime.reporting.health import describe_error
from aioinformer.errors import QueueShutDown, ReconcileTimeout

__all__ = ["Workers"]

REQUEUE = Reason("requeue")
RETRY = Reason("retry")


class _RecordingLimiter:
    """A limiter that remembers what it said last: health tells when a key is tried again."""

    def __init__(self, limiter: RateLimiter[ObjectKey]) -> None:
        self.last_delay = 0.0
        self._limiter = limiter

    def when(self, key: ObjectKey, now: float) -> float:
        """Count a failure; the seconds to wait."""
        self.last_delay = self._limiter.when(key, now)
        return self.last_delay

    def forget(self, key: ObjectKey) -> None:
        """Its failures don't count any more."""
        self._limiter.forget(key)

    def retries(self, key: ObjectKey) -> int:
        """How many failures of it count."""
        return self._limiter.retries(key)

    def __repr__(self) -> str:
        return repr(self._limiter)


class Workers:
    """What the workers of one controller share."""

    def __init__(
        self,
        reconcile_runs: ReconcileRuns,
        errors: ReconcileErrors,
        options: ControllerOptions,
    ) -> None:
        """Make the queue. Each worker is one task that awaits ``work``.

        Args:
            reconcile_runs: calls the reconciler.
            errors: counts and reports the runs that fail.
            options: those of the controller.
        """
        self._limiter = _RecordingLimiter(options.backoff)
        self.queue: WorkQueue[ObjectKey] = WorkQueue(
            name=options.name, backoff=self._limiter, metrics=options.metrics
        )
        self.failures = FailureTracker()
        self.pending = PendingReconciles()
        self.runs = 0
        """Runs that have ended."""
        self._name = options.name
        self._reconcile_runs = reconcile_runs
        self._errors = errors

    # -- what is to be done --------------------------------------------------------------------

    def enqueue(self, key: ObjectKey, reason: Reason, priority: Priority) -> None:
        """Have ``key`` reconciled."""
        self.pending.add(key, reason, priority)
        self.queue.add(key, priority=priority)

    def halt(self) -> None:
        """Start no more runs. What is asked for from now on is only counted."""
        self.queue.shut_down(drop=True)

    @property
    def halted(self) -> bool:
        """Whether no more runs are started."""
        return self.queue.is_shut_down

    # -- doing it ------------------------------------------------------------------------------

    async def work(self) -> None:
        """Be one of the workers, until they are halted."""
        while True:
            try:
                key = await self.queue.get()
            except QueueShutDown:
                return
            try:
                await self._process(key)
            finally:
                self.queue.done(key)

    async def _process(self, key: ObjectKey) -> None:
        clock = asyncio.get_running_loop().time
        began = clock()
        reasons, priority = self.pending.take(key, began)
        context = ReconcileContext(
            controller=self._name,
            reasons=reasons,
            retries=self.failures.failures(key),
            priority=priority,
        )
        try:
            result = await self._reconcile_runs.run(key, context)
        except Exception as error:  # noqa: BLE001 - a program's code; told and tried again
            ended = "timeout" if isinstance(error, ReconcileTimeout) else "error"
            self._retry(key, error, priority)
        else:
            ended = self._on_success(key, result or Result(), priority)
        self.runs += 1
        self._errors.record_run(ended, clock() - began)

    def _on_success(self, key: ObjectKey, result: Result, priority: Priority) -> str:
        """A run succeeded; what to call its result."""
        self.failures.record_success(key)
        if result.requeue:
            self._requeue_rate_limited(key, REQUEUE, priority)
            return "requeue"
        self.queue.forget(key)
        if result.requeue_after is None:
            return "success"
        due = asyncio.get_running_loop().time() + result.requeue_after
        self.pending.schedule(key, REQUEUE, priority, due)
        self.queue.add_after(key, result.requeue_after, priority=priority)
        return "requeue_after"

    def _retry(self, key: ObjectKey, error: Exception, priority: Priority) -> None:
        now = asyncio.get_running_loop().time()
        delay = self._requeue_rate_limited(key, RETRY, priority)
        failures = self.failures.record_failure(
            key, describe_error(error), now=now, due=now + delay
        )
        self._errors.report_failure(key, error, failures=failures, delay=delay)

    def _requeue_rate_limited(self, key: ObjectKey, reason: Reason, priority: Priority) -> float:
        """Have it run again when the limiter allows; in how many seconds."""
        now = asyncio.get_running_loop().time()
        self.queue.add_rate_limited(key, priority=priority)
        self.pending.schedule(key, reason, priority, now + self._limiter.last_delay)
        return self._limiter.last_delay

    def __repr__(self) -> str:
        return f"<Workers of {self._name} runs={self.runs} {self.queue!r}>"
