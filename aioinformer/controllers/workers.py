"""The workers of a controller: each takes a key, runs the reconciler and handles the result.

From ``get`` to ``done`` a key belongs to one worker. The reconciler's result or exception decides
when the key runs again: after a time, after the backoff, or at the next event. A worker ends when
the queue is shut down. Any other end is a bug.
"""

from __future__ import annotations

import asyncio
import logging
from math import inf

from aioinformer._core.objects.kube_object import ObjectKey
from aioinformer._core.quantities import quantity
from aioinformer._runtime.reporting.error_texts import describe_error
from aioinformer._runtime.tasks.event_loop import TimeSlice
from aioinformer.controllers.failure_condition import FailureCondition
from aioinformer.controllers.health import ReconcileErrors, WarningEvents
from aioinformer.controllers.options import ControllerOptions
from aioinformer.controllers.reconcile_context import ReconcileContext
from aioinformer.controllers.reconcile_runs import ReconcileRuns
from aioinformer.controllers.run_writes import RunWrites, WriteTarget
from aioinformer.controllers.state.queue_items import Priority
from aioinformer.controllers.state.reconcile import (
    FailureTracker,
    PendingReconciles,
    Reason,
    Result,
)
from aioinformer.controllers.work_queue import WorkQueue
from aioinformer.errors import (
    CacheWaitTimeout,
    FetchError,
    IndexFailed,
    ModelMismatch,
    ObjectDecodeError,
    PermanentError,
    QueueShutDown,
    ReconcileTimeout,
    TemporaryError,
    TransformFailed,
    UsageError,
)

log = logging.getLogger("aioinformer.controller")

REQUEUE = Reason("requeue")
RETRY = Reason("retry")

REPEATING_CAUSES = ("resync", "requeue", "retry")
"""The causes that are no change. After a ``PermanentError`` they start no run."""

UNFIT = (ModelMismatch, TransformFailed, IndexFailed, ObjectDecodeError)
"""The errors for an object that doesn't fit the functions of its informer. They are shown as Events
too: the author of the object may read neither the log nor the health."""


class Workers:
    """The queue, the reasons and the failures that the workers of one controller share."""

    def __init__(
        self,
        reconcile_runs: ReconcileRuns,
        errors: ReconcileErrors,
        warnings: WarningEvents,
        write_target: WriteTarget,
        options: ControllerOptions,
    ) -> None:
        self.queue: WorkQueue[ObjectKey] = WorkQueue(
            name=options.name, backoff=options.backoff, metrics=options.metrics
        )
        self.failures = FailureTracker()
        self.pending = PendingReconciles()
        self.runs = 0
        self._name = options.name
        self._reconcile_runs = reconcile_runs
        self._errors = errors
        self._warnings = warnings
        self._write_target = write_target
        self._condition = _failure_condition(options)
        self._own_versions: dict[ObjectKey, str] = {}
        """The versions of failing objects that only their own last run has written since it began.
        Their events are no reason for another run."""
        self._own_writes = write_target.own_writes
        self._gate = write_target.gate
        if self._gate is not None:
            self._gate.on_unadmitted(self._discard)

    # -- requests ------------------------------------------------------------------------------

    def enqueue(self, key: ObjectKey, reason: Reason, priority: Priority) -> None:
        """Request a run of ``key``."""
        self.pending.add(key, reason, priority)
        self.queue.add(key, priority=priority)

    def enqueue_affected(self, key: ObjectKey, reason: Reason, priority: Priority) -> None:
        """Request a run of ``key``, which an object of another informer affects."""
        if self._gate is None or self._gate.may_request(key):
            self.enqueue(key, reason, priority)

    def enqueue_rejected(self, key: ObjectKey) -> None:
        """Request a run of ``key``, whose newest version the informer rejects without an event."""
        informer = self._write_target.informer
        if self._gate is not None:
            uid: str = getattr(informer.rejection(key), "uid", "")
            self._gate.note_uncached(key, uid)
        self.enqueue_affected(key, Reason("updated", informer.name), Priority.NORMAL)

    def halt(self) -> None:
        """Start no more runs. Requests from now on are only counted."""
        self.queue.shut_down(drop=True)
        self._own_writes.halt()

    @property
    def halted(self) -> bool:
        """True if no more runs are started."""
        return self.queue.is_shut_down

    # -- runs ----------------------------------------------------------------------------------

    async def work(self) -> None:
        """Process keys until the workers are halted."""
        time_slice = TimeSlice()
        while True:
            try:
                key = await self.queue.get()
            except QueueShutDown:
                return
            runs = self.runs
            try:
                if self._gate is None or self._gate.begin(key):
                    await self._process(key)
            finally:
                if self._gate is not None:
                    self._gate.end(key, requested=key in self.pending)
                self.queue.done(key)  # also if this worker is cancelled
                self.forget_absent(key)
            if self.runs == runs:
                # A key that is discarded or skipped doesn't suspend this worker, as a run does, and
                # all keys of a shard may be such keys.
                await time_slice.maybe_yield()

    def _discard(self, key: ObjectKey) -> None:
        """Forget a key whose shard another member of the group holds."""
        self.pending.take(key, asyncio.get_running_loop().time())
        self._forget(key)

    def forget_absent(self, key: ObjectKey) -> None:
        """Forget a key without an object and without a run: nothing else would end what is
        remembered.
        """
        if key in self.pending or self.queue.priority(key) is not None:
            return
        if self._write_target.informer.stored(key) is None:
            self._forget(key)

    def _forget(self, key: ObjectKey) -> None:
        self.failures.record_success(key)
        self._own_versions.pop(key, None)
        self.queue.forget(key)
        self._own_writes.retire(key)
        if self._condition is not None:
            self._condition.forget(key)

    async def _process(self, key: ObjectKey) -> None:
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            await self._own_writes.wait(key)
        except Exception as error:  # noqa: BLE001 - one key must not end the controller
            if not self.halted:
                self._retry(key, error, Priority.NORMAL)
                waited = isinstance(error, CacheWaitTimeout)
                self._errors.record_run("cache_timeout" if waited else "error", clock() - began)
            return
        # Reasons that arrive from now on belong to the next run.
        reasons, priority = self.pending.take(key, began)
        if self._is_skipped(key, reasons):
            return
        self._own_versions.pop(key, None)
        writes = RunWrites(self._write_target, key)
        context = ReconcileContext(
            controller=self._name,
            reasons=reasons,
            retries=self.failures.failures(key),
            priority=priority,
            writes=writes,
        )
        result, failure = None, None
        try:
            result = await self._reconcile_runs.run(key, context)
        except Exception as error:  # noqa: BLE001 - a program's code; reported and retried
            failure = error
        if self._condition is not None:
            failure = await self._show_condition(self._condition, writes, failure)
        if isinstance(failure, UNFIT):
            await self._warn_unfit(writes, failure)
        if failure is None:
            outcome = self._on_success(key, result or Result(), priority)
        else:
            outcome = self._on_failure(key, failure, priority)
            if version := writes.own_version:
                self._own_versions[key] = version
        del failure  # its traceback refers to this frame
        self.runs += 1
        self._errors.record_run(outcome, clock() - began)

    def _is_skipped(self, key: ObjectKey, reasons: tuple[Reason, ...]) -> bool:
        """Return True if a failing key has no reason to run now: a repetition after a
        ``PermanentError``, or the event of the status that the failed run itself has written, which
        would run again before the backoff is over.
        """
        if not self.failures.failures(key):
            return False
        permanent = self.failures.is_permanent(key)
        if permanent and _is_repetition(reasons):
            return True
        informer, version = self._write_target.informer, self._own_versions.get(key)
        if version is None or not self._own_writes.has_one_trigger(informer):
            return False
        cached, own = informer.stored(key), Reason("updated", informer.name)
        return (
            cached is not None
            and cached.resource_version == version
            and all(
                each == own or (permanent and each.cause in REPEATING_CAUSES) for each in reasons
            )
        )

    async def _show_condition(
        self, condition: FailureCondition, run: RunWrites, failure: Exception | None
    ) -> Exception | None:
        """Write the condition of a run. Return the failure to handle.

        If the condition can't be written, a run that would not be repeated counts as failed with
        that error, so that the retry writes the condition.
        """
        now = asyncio.get_running_loop().time()
        try:
            if failure is None:
                await condition.show_success(run, now)
            else:
                await condition.show_failure(run, failure, now)
        except Exception as error:  # noqa: BLE001 - a writer's error; reported and retried
            if failure is None or isinstance(failure, PermanentError):
                return error
            log.warning(
                "controller %s: the condition of %s was not written: %s",
                *(self._name, run.key, describe_error(error)),
            )
        return failure

    async def _warn_unfit(self, run: RunWrites, failure: Exception) -> None:
        """Record an Event on an object that doesn't fit, even if the cache doesn't have it."""
        if self._warnings.recorder is None:
            return
        try:
            obj = await run.newest()
        except (FetchError, UsageError):
            obj = run.obj
        self._warnings.record(run.key, type(failure).__name__, failure, action="Reconcile", obj=obj)

    def _on_failure(self, key: ObjectKey, error: Exception, priority: Priority) -> str:
        """Handle a run that has failed. Return the name of its result."""
        if isinstance(error, PermanentError):
            self._on_permanent_error(key, error)
            return "permanent_error"
        self._retry(key, error, priority)
        match error:
            case TemporaryError():
                return "temporary_error"
            case ReconcileTimeout():
                return "timeout"
            case _:
                return "error"

    def _on_success(self, key: ObjectKey, result: Result, priority: Priority) -> str:
        """Handle a run that returned. Return the name of its result."""
        if len(self.failures):
            self._log_recovery(key)
            self.failures.record_success(key)
        if result.requeue:
            # Without forget(): the backoff grows while the reconciler asks for it.
            self._requeue_rate_limited(key, REQUEUE, priority)
            return "requeue"
        self.queue.forget(key)  # the next failure starts with the shortest backoff again
        if result.requeue_after is None:
            return "success"
        self._requeue_after(key, REQUEUE, priority, result.requeue_after)
        return "requeue_after"

    def _log_recovery(self, key: ObjectKey) -> None:
        """Say that a key whose failures were logged has succeeded."""
        failing = self.failures.get(key, asyncio.get_running_loop().time())
        if failing is not None:
            failures = quantity(failing.failures, "failure")
            log.info(
                "controller %s: %s succeeds again after %s, %.1f s after the first one",
                *(self._name, key, failures, failing.since),
            )

    def _retry(self, key: ObjectKey, error: Exception, priority: Priority) -> None:
        now = asyncio.get_running_loop().time()
        delay = error.requeue_after if isinstance(error, TemporaryError) else None
        if delay is None:
            delay = self._requeue_rate_limited(key, RETRY, priority)
        else:
            self._requeue_after(key, RETRY, priority, delay)
        failures = self.failures.record_failure(
            key, describe_error(error), now=now, due=now + delay
        )
        self._errors.report_failure(key, error, failures=failures, delay=delay)

    def _on_permanent_error(self, key: ObjectKey, error: PermanentError) -> None:
        """Record a failure that only a change of the object can end."""
        self.queue.forget(key)
        now = asyncio.get_running_loop().time()
        failures = self.failures.record_failure(key, describe_error(error), now=now, due=inf)
        self._errors.report_failure(key, error, failures=failures, delay=inf)
        self._warnings.record(key, "PermanentError", error, action="Reconcile")

    def _requeue_after(
        self, key: ObjectKey, reason: Reason, priority: Priority, delay: float
    ) -> None:
        """Request a run after ``delay`` seconds, which the backoff doesn't count."""
        due = asyncio.get_running_loop().time() + delay
        self.pending.schedule(key, reason, priority, due)
        self.queue.add_after(key, delay, priority=priority)

    def _requeue_rate_limited(self, key: ObjectKey, reason: Reason, priority: Priority) -> float:
        """Request a run after the backoff. Return the seconds until then."""
        now = asyncio.get_running_loop().time()
        self.queue.add_rate_limited(key, priority=priority)
        self.pending.schedule(key, reason, priority, now + self.queue.last_backoff)
        return self.queue.last_backoff

    def __repr__(self) -> str:
        return f"<Workers of {self._name} runs={self.runs} {self.queue!r}>"


def _failure_condition(options: ControllerOptions) -> FailureCondition | None:
    """Return the writer of the condition of a controller's options; ``None`` without one."""
    if options.failure_condition is None:
        return None
    return FailureCondition(
        options.failure_condition, controller=options.name, finalizer=options.finalizer is not None
    )


def _is_repetition(reasons: tuple[Reason, ...]) -> bool:
    """Return True if no reason is a change or a request of the program."""
    return all(reason.cause in REPEATING_CAUSES for reason in reasons)
