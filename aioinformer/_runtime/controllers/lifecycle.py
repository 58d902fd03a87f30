"""A controller's shift: from when its triggers are registered to when its last run has ended.

The workers begin when every trigger has heard of what is cached, so that the first run sees all
of it. None of the tasks ends alone: a worker that does, or an informer, ends everything, and that
is raised. Left in peace, runs are let finish; left by an exception, they are cancelled at once, in
the step in which that is known: a lease may just have been lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

import anyio

from aioinformer._core.objects.kube_object import Event
from aioinformer._core.selectors.event_filter import Filter
from aioinformer._runtime.controllers.health import ControllerState
from aioinformer._runtime.controllers.options import ControllerOptions
from aioinformer._runtime.controllers.reconcile_runs import ReconcileRuns
from aioinformer._runtime.controllers.workers import Workers
from aioinformer._runtime.delivery.call import detached_context
from aioinformer._runtime.delivery.registration import Registration
from aioinformer._runtime.informer.informer import SharedInformer
from aioinformer._runtime.tasks.supervisor import Supervisor
from aioinformer.errors import NotRunning, ShutdownIncomplete, SyncTimeout, UsageError

__all__ = ["ControllerRun", "TriggerSource"]

log = logging.getLogger("aioinformer.controller")

CANCEL_GRACE = 1.0
"""Seconds that runs have to honour their cancellation after they had their time to finish."""

SYNC_WARNING_DELAY = 30.0
"""Seconds of waiting for a trigger's first state after which that is said, once: a factory that was
never entered would look like one that has nothing to do."""

PENDING_LIMIT = 16_384
"""Events that may be pending for a trigger, which is quick."""


@dataclass(frozen=True, slots=True, eq=False)
class TriggerSource:
    """An informer to be triggered by, and how."""

    informer: SharedInformer[Any]
    trigger: Callable[[Event[Any]], None]
    event_filter: Filter[Any] | None = None
    resync: float | None = None
    coalesce: bool = False
    """Whether events of one object may be merged when many are pending. Of a child that came and
    went nothing would be left, and its owner not hear of it: then the informer waits for the
    trigger instead, and says so."""

    def register(self, name: str) -> Registration:
        """Register the trigger."""
        return self.informer.add_handler(
            self.trigger,
            limit=PENDING_LIMIT,
            overflow="coalesce" if self.coalesce else "block",
            filter=self.event_filter,
            resync=self.resync,
            name=name,
        )


class ControllerRun:
    """Runs the workers of one controller, once."""

    def __init__(
        self, workers: Workers, reconcile_runs: ReconcileRuns, options: ControllerOptions
    ) -> None:
        """Start nothing before ``enter``.

        Args:
            workers: the queue, and the coroutine of each worker.
            reconcile_runs: the runs that the workers start.
            options: those of the controller.
        """
        self.synced = asyncio.Event()
        """Set when the workers begin, or never will."""
        self.loop: asyncio.AbstractEventLoop | None = None
        self.error: BaseException | None = None
        """What has ended it, if it failed."""
        self._name = options.name
        self._workers = workers
        self._reconcile_runs = reconcile_runs
        self._concurrency = options.concurrency
        self._shutdown_timeout = options.shutdown_timeout
        self._supervisor = Supervisor(f"controller {options.name}")
        self._registrations: dict[Registration, SharedInformer[Any]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def state(self) -> ControllerState:
        """How far it is."""
        if self.error is not None:
            return "failed"
        if self.loop is None:
            return "new"
        if not self._workers.halted:
            return "running" if self.synced.is_set() else "syncing"
        return "stopping" if self._tasks else "stopped"

    @property
    def waiting_for(self) -> tuple[str, ...]:
        """The triggers that have not heard of everything that was cached."""
        return tuple(each.name for each in self._registrations if not each.synced)

    # -- in and out ----------------------------------------------------------------------------

    def check_new(self) -> None:
        """Raise unless it can be entered.

        Raises:
            UsageError: it was entered before.
        """
        if self.loop is not None:
            raise UsageError(f"the controller {self._name} runs once; make another one")

    async def enter(self, sources: Sequence[TriggerSource]) -> None:
        """Register the triggers, and have the workers start when they are synced.

        Raises:
            NotRunning: an informer has ended.
            UsageError: it was entered before.
        """
        self.check_new()
        self.loop = asyncio.get_running_loop()
        self._reconcile_runs.context = detached_context()
        try:
            for source in sources:
                self._registrations[source.register(f"controller {self._name}")] = source.informer
            await self._supervisor.enter(lambda: self._start_task(self._supervise(), "lead of"))
        except BaseException:
            self.halt()
            raise

    async def leave(self, error: BaseException | None) -> None:
        """End the runs: left by an exception at once, else when they have finished.

        Raises:
            ShutdownIncomplete: runs had to be cancelled, or didn't end even then.
            BaseException: what has ended it, if it failed.
        """
        self.halt()
        left, hurry = error, None
        cut: tuple[str, ...] = ()
        if error is None and self._supervisor.running:
            try:
                cut = await self._drain_runs()
            except asyncio.CancelledError as cancelled:
                left = hurry = cancelled
        count = len(self._reconcile_runs.keys)
        self._reconcile_runs.cancel_all()  # now, not when the tasks above them come to it
        grace = CANCEL_GRACE if left is None else max(CANCEL_GRACE, self._shutdown_timeout)
        try:
            # A scope of anyio's would cancel this in every turn of the loop, and do nothing else.
            with anyio.CancelScope(shield=True):
                await self._supervisor.leave(left, timeout=grace, running_names=self._running_names)
        finally:
            self._log_unfinished(count)
        if hurry is not None:
            raise hurry
        if cut:
            raise ShutdownIncomplete(cut, waited=self._shutdown_timeout)

    async def wait_ended(self) -> None:
        """Wait for the end of runs that ignore their cancellation, and so outlast ``leave``."""
        cancelled: asyncio.CancelledError | None = None
        with anyio.CancelScope(shield=True):  # as above
            while self._tasks:
                try:
                    await asyncio.wait(self._tasks)
                except asyncio.CancelledError as error:
                    cancelled = error
        if cancelled is not None:
            raise cancelled

    def halt(self) -> None:
        """Hear of nothing more, and start no more runs."""
        self._workers.halt()
        self.synced.set()
        for each in list(self._registrations):
            each.remove()

    async def _drain_runs(self) -> tuple[str, ...]:
        """Let runs come to their end; the names of those that didn't in time."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._shutdown_timeout)
        return self._running_names()

    def _running_names(self) -> tuple[str, ...]:
        return tuple(sorted(f"{self._name}: {key}" for key in self._reconcile_runs.keys))

    def _log_unfinished(self, cancelled: int) -> None:
        queued, later = self._workers.pending.counts
        if cancelled or queued or later:
            log.warning(
                "controller %s stopped: %d runs cancelled, %d keys left in line, %d left that were "
                "to run later; whoever starts next begins with all objects",
                self._name,
                cancelled,
                queued,
                later,
            )

    # -- tasks ---------------------------------------------------------------------------------

    def _start_task(self, coroutine: Coroutine[Any, Any, None], name: str) -> None:
        task = self._supervisor.spawn(coroutine, name=f"{name} controller {self._name}")
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)

    async def _supervise(self) -> None:
        """Wait for the triggers, start the workers, and see to it that the triggers live on."""
        for each in self._registrations:
            try:
                await self._wait_synced(each)
            except NotRunning as error:
                if not self._workers.halted:
                    raise self._trigger_ended(each) from error
        if self._workers.halted:
            return
        self.synced.set()
        for number in range(self._concurrency):
            self._start_task(self._workers.work(), f"worker {number} of")
        tasks = {each.task: each for each in self._registrations if each.task is not None}
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not self._workers.halted:
            ended = tasks[done.pop()]
            raise self._trigger_ended(ended) from self._registrations[ended].health.error

    async def _wait_synced(self, registration: Registration) -> None:
        """Wait until a trigger has heard of what is cached."""
        try:
            await registration.wait_synced(timeout=SYNC_WARNING_DELAY)
        except SyncTimeout as error:
            log.warning("controller %s does nothing yet: %s", self._name, error)
            await registration.wait_synced()

    def _trigger_ended(self, registration: Registration) -> NotRunning:
        """A trigger has ended, and with it the point of going on."""
        informer = self._registrations[registration]
        return NotRunning(
            f"the controller {self._name} has ended, since it hears no more of {informer.name} "
            f"({informer.health}): its factory was left before it, or its handler removed"
        )

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        """One of the tasks has ended. None may while the others go on, unless it is halted."""
        self._tasks.discard(task)
        error: BaseException | None = None
        if not task.cancelled():
            error = task.exception()
        elif self._supervisor.running:
            error = RuntimeError(f"the {task.get_name()} was cancelled, but not by its controller")
        if error is not None and self.error is None:
            self.error = error
            log.critical("the controller %s failed", self._name, exc_info=error)
            self.halt()
            self._supervisor.fail(error)

    def __repr__(self) -> str:
        return f"<ControllerRun of {self._name} {self.state} tasks={len(self._tasks)}>"
