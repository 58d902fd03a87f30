"""The workers of a controller: from a key in the queue to what becomes of its run.

Between ``get`` and ``done`` a key is one worker's. What the reconciler answers or raises decides
when it comes back: after a time, with the limiter's backoff, or when something happens. A worker
ends when the queue does; if it ends in any other way, something is wrong here.
"""

from __future__ import annotations

import asyncio

from aioinformer._core.controllers.queue_items import Priority
from aioinformer._core.controllers.rate_limiters import RateLimiter, default_limiter
from aioinformer._core.controllers.reconcile import (
    Failing,
    Reason,
    ReconcileContext,
    Result,
    Summons,
)
from aioinformer._core.instrumentation import Metrics
from aioinformer._core.objects.kube_object import ObjectKey
from aioinformer._runtime.controllers.health import Setbacks
from aioinformer._runtime.controllers.reconcile_runs import Reconciles
from aioinformer._runtime.controllers.work_queue import WorkQueue
from aioinformer._runtime.reporting.health import shown
from aioinformer.errors import QueueShutDown, ReconcileTimeout

__all__ = ["Workers"]

REQUEUE = Reason("requeue")
RETRY = Reason("retry")


class _Limiter:
    """A limiter that remembers what it said last: health tells when a key is tried again."""

    def __init__(self, limiter: RateLimiter[ObjectKey]) -> None:
        self.delay = 0.0
        self._limiter = limiter

    def when(self, key: ObjectKey, now: float) -> float:
        """Count a failure; the seconds to wait."""
        self.delay = self._limiter.when(key, now)
        return self.delay

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
        name: str,
        reconciles: Reconciles,
        setbacks: Setbacks,
        *,
        limiter: RateLimiter[ObjectKey] | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        """Nobody works yet; await ``work`` for each worker.

        Args:
            name: the controller's.
            reconciles: makes the runs.
            setbacks: is told of those that fail.
            limiter: how long a key that failed waits; client-go's by default.
            metrics: what the queue feeds.
        """
        self._limiter = _Limiter(default_limiter() if limiter is None else limiter)
        self.queue: WorkQueue[ObjectKey] = WorkQueue(
            name=name, limiter=self._limiter, metrics=metrics
        )
        self.failing = Failing()
        self.summons = Summons()
        self.runs = 0
        """Runs that have ended."""
        self._name = name
        self._reconciles = reconciles
        self._setbacks = setbacks

    # -- what is to be done --------------------------------------------------------------------

    def ask(self, key: ObjectKey, reason: Reason, priority: Priority) -> None:
        """Have ``key`` reconciled."""
        self.summons.now(key, reason, priority)
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
                await self._serve(key)
            finally:
                self.queue.done(key)

    async def _serve(self, key: ObjectKey) -> None:
        clock = asyncio.get_running_loop().time
        began = clock()
        reasons, priority = self.summons.take(key, began)
        context = ReconcileContext(
            controller=self._name,
            reasons=reasons,
            retries=self.failing.retries(key),
            priority=priority,
        )
        try:
            result = await self._reconciles.once(key, context)
        except Exception as error:  # noqa: BLE001 - a program's code; told and tried again
            ended = "timeout" if isinstance(error, ReconcileTimeout) else "error"
            self._retry(key, error, priority)
        else:
            ended = self._settle(key, result or Result(), priority)
        self.runs += 1
        self._setbacks.ran(ended, clock() - began)

    def _settle(self, key: ObjectKey, result: Result, priority: Priority) -> str:
        """A run succeeded; what to call its result."""
        self.failing.succeeded(key)
        if result.requeue:
            self._again(key, REQUEUE, priority)
            return "requeue"
        self.queue.forget(key)
        if result.requeue_after is None:
            return "success"
        due = asyncio.get_running_loop().time() + result.requeue_after
        self.summons.later(key, REQUEUE, priority, due)
        self.queue.add_after(key, result.requeue_after, priority=priority)
        return "requeue_after"

    def _retry(self, key: ObjectKey, error: Exception, priority: Priority) -> None:
        now = asyncio.get_running_loop().time()
        delay = self._again(key, RETRY, priority)
        retries = self.failing.failed(key, shown(error), now=now, due=now + delay)
        self._setbacks.failed(key, error, retries=retries, delay=delay)

    def _again(self, key: ObjectKey, reason: Reason, priority: Priority) -> float:
        """Have it run again when the limiter allows; in how many seconds."""
        now = asyncio.get_running_loop().time()
        self.queue.add_rate_limited(key, priority=priority)
        self.summons.later(key, reason, priority, now + self._limiter.delay)
        return self._limiter.delay

    def __repr__(self) -> str:
        return f"<Workers of {self._name} runs={self.runs} {self.queue!r}>"
