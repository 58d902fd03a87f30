"""One run of a controller, from the registration of its triggers to the end of its last reconcile.

The triggers are registered when the caches of all informers are complete, since a ``to_keys`` or a
filter may read another informer than that of its event.

If a worker or an informer ends unexpectedly, everything ends, and the reason is raised. On a normal
exit, runs may finish. If an exception leaves the block, they are cancelled in the same step of the
loop, since a lease may just have been lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

import anyio

from aioinformer._core.objects.kube_object import Event, ObjectKey
from aioinformer._core.quantities import quantity
from aioinformer._core.selectors.event_filter import Filter
from aioinformer._informers.informer import SharedInformer
from aioinformer._runtime.delivery.call import detached_context, leave_call
from aioinformer._runtime.delivery.registration import Registration
from aioinformer._runtime.reporting.error_copy import copy_error
from aioinformer._runtime.tasks.supervisor import ENTER_TURNS, Supervisor
from aioinformer.controllers.health import ControllerState
from aioinformer.controllers.options import ControllerOptions
from aioinformer.controllers.reconcile_runs import ReconcileRuns
from aioinformer.controllers.workers import Workers
from aioinformer.errors import NotRunning, ShutdownIncomplete, SyncTimeout, UsageError

log = logging.getLogger("aioinformer.controller")

CANCEL_GRACE = 1.0
"""Seconds that cancelled runs have to end, after they had ``shutdown_timeout`` to finish."""

SYNC_WARNING_DELAY = 30.0
"""Seconds of waiting for a trigger's initial objects until a warning, without which an API server
that can't be reached would look like a cluster without objects."""

PENDING_LIMIT = 16_384
"""Events that may be pending for a trigger. A trigger is quick."""


@dataclass(frozen=True, slots=True, eq=False)
class TriggerSource:
    """An informer, its trigger, and the options of their registration."""

    informer: SharedInformer[Any]
    trigger: Callable[[Event[Any]], None]
    event_filter: Filter[Any] | None = None
    resync: float | None = None
    coalesce: bool = False
    """True if pending events of one object may be merged. Not for children, whose owner would not
    be reconciled if a child was added and deleted meanwhile: the informer waits for the trigger."""
    on_rejected: Callable[[ObjectKey], None] | None = None
    """Called with the keys of objects whose newest version the informer rejects."""
    begin: Callable[[], Callable[[], None]] | None = None
    """Called when the controller is entered, and raises if it can't run yet. Returns the function
    to call when it starts no more runs."""

    def register(self, name: str) -> Registration:
        """Register the trigger with the informer."""
        return self.informer.add_handler(
            self.trigger,
            limit=PENDING_LIMIT,
            overflow="coalesce" if self.coalesce else "block",
            filter=self.event_filter,
            resync=self.resync,
            name=name,
        )


class ControllerRun:
    """The tasks and registrations of one controller, for its only run."""

    def __init__(
        self, workers: Workers, reconcile_runs: ReconcileRuns, options: ControllerOptions
    ) -> None:
        self._entered_at = 0.0
        self.synced = asyncio.Event()
        """Set when the workers start, or when it is certain that they never will."""
        self.loop: asyncio.AbstractEventLoop | None = None
        self.error: BaseException | None = None
        """The error that ended the run, if it failed."""
        self._name = options.name
        self._workers = workers
        self._reconcile_runs = reconcile_runs
        self._concurrency = options.concurrency
        self._shutdown_timeout = options.shutdown_timeout
        self._supervisor = Supervisor(f"controller {options.name}")
        self._sources: Sequence[TriggerSource] = ()
        self._registrations: dict[Registration, SharedInformer[Any]] = {}
        self._waiting: asyncio.Task[None] | None = None
        """Waits until the workers may start."""
        self._ends: list[Callable[[], None]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def state(self) -> ControllerState:
        """The current state."""
        if self.error is not None:
            return "failed"
        if self.loop is None:
            return "new"
        if not self._workers.halted:
            return "running" if self.synced.is_set() else "syncing"
        return "stopping" if self._tasks else "stopped"

    @property
    def waiting_for(self) -> tuple[str, ...]:
        """The names of the informers whose cached objects the triggers have not all received."""
        waits = self._registrations.items() or [(each.informer,) * 2 for each in self._sources]
        return tuple(dict.fromkeys(each.name for waited, each in waits if not waited.synced))

    # -- in and out ----------------------------------------------------------------------------

    def check_new(self) -> None:
        """Raise a ``UsageError`` if the run was entered before."""
        if self.loop is not None:
            raise UsageError(f"the controller {self._name} runs once; make another one")

    async def enter(self, sources: Sequence[TriggerSource]) -> None:
        """Start the task that registers the triggers when all informers are synced, and starts the
        workers when all triggers are: the first reconcile sees all cached objects.

        Raises:
            NotRunning: an informer has ended.
            UsageError: the run was entered before, an informer was not started, or a filter reads
                JSON that its informer doesn't keep.
        """
        self.check_new()
        self._ends += [each.begin() for each in sources if each.begin is not None]
        self.loop = asyncio.get_running_loop()
        self._entered_at = self.loop.time()
        # A controller that is started inside a handler must not count as a part of that call.
        self._reconcile_runs.use_context(detached_context())
        self._sources = sources
        try:
            for source in sources:
                source.informer.check_listener(source.event_filter)
            unstarted = await self._find_unstarted()
            if not unstarted:
                await self._supervisor.enter(
                    lambda: self._start_task(self._supervise(), "supervisor of")
                )
        except BaseException:
            self.halt()
            raise
        if unstarted:
            self._end_all()
            self._sources, self.loop = (), None  # so that the run can be entered once more
            raise UsageError(
                f"the controller {self._name} can't run, since the informer {unstarted} was not "
                "started: run the controller inside of 'async with' of the informers' factory, or "
                "of the ShardGroup"
            )

    async def _find_unstarted(self) -> str:
        """Return the name of an informer that no task has started or is starting, or nothing."""
        informers = [each.informer for each in self._sources]
        for _ in range(ENTER_TURNS):
            if all(each.synced for each in informers):
                return ""
            await asyncio.sleep(0)
        return next((each.name for each in informers if each.health.state == "new"), "")

    async def leave(self, error: BaseException | None) -> None:
        """End the runs: at once after an exception, otherwise when they have finished.

        Raises:
            ShutdownIncomplete: runs had to be cancelled, or didn't end even then.
            BaseException: the error that ended the run, if it failed.
        """
        self.halt()
        cancellation: asyncio.CancelledError | None = None
        unfinished: tuple[str, ...] = ()
        if error is None and self._supervisor.running:
            try:
                unfinished = await self._drain_runs()
            except asyncio.CancelledError as cancelled:
                error = cancellation = cancelled
        count = len(self._reconcile_runs.keys)
        # At once: the supervisor cancels the workers, which would cancel their runs a step later.
        self._reconcile_runs.cancel_all()
        grace = CANCEL_GRACE if error is None else max(CANCEL_GRACE, self._shutdown_timeout)
        try:
            # Unshielded, an outer anyio scope would cancel this again in every step of the loop.
            with anyio.CancelScope(shield=True):
                await self._supervisor.leave(
                    error, timeout=grace, running_names=self._running_names
                )
        finally:
            self._log_unfinished(count)
            if self.error is not None:  # its traceback refers to frames, and so to this run
                self.error = copy_error(self.error)
        if cancellation is not None:
            raise cancellation
        if unfinished:
            raise ShutdownIncomplete(unfinished, waited=self._shutdown_timeout)

    async def wait_ended(self) -> None:
        """Wait for runs that ignore their cancellation, for which ``leave`` doesn't wait."""
        cancelled: asyncio.CancelledError | None = None
        with anyio.CancelScope(shield=True):  # as in leave()
            while self._tasks:
                try:
                    await asyncio.wait(self._tasks)
                except asyncio.CancelledError as error:
                    cancelled = error  # raised when the runs have ended
        if cancelled is not None:
            raise cancelled

    def halt(self) -> None:
        """Remove the triggers, and start no more runs."""
        self._workers.halt()
        self.synced.set()  # wakes wait_synced(), which raises then
        if self._waiting is not None:
            self._waiting.cancel()
        for each in list(self._registrations):
            each.remove()
        self._end_all()

    def _end_all(self) -> None:
        for end in self._ends:
            end()
        self._ends.clear()

    async def _drain_runs(self) -> tuple[str, ...]:
        """Wait for runs to finish. Return the names of those that didn't in time."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._shutdown_timeout)
        return self._running_names()

    def _running_names(self) -> tuple[str, ...]:
        return tuple(sorted(f"{self._name}: {key}" for key in self._reconcile_runs.keys))

    def _log_unfinished(self, cancelled: int) -> None:
        waiting, delayed = self._workers.pending.counts
        if cancelled or waiting or delayed:
            # Keys always wait when a controller stops: each requeue_after is one. These keys are no
            # loss, since the next controller starts with all objects. A cancelled run may have half
            # done its work.
            log.log(
                logging.WARNING if cancelled else logging.INFO,
                "controller %s stopped: %s cancelled, %s and %s not reconciled; the next "
                "controller starts with all objects",
                self._name,
                quantity(cancelled, "run"),
                quantity(waiting, "waiting key"),
                quantity(delayed, "delayed key"),
            )

    # -- tasks ---------------------------------------------------------------------------------

    def _start_task(self, coroutine: Coroutine[Any, Any, None], name: str) -> None:
        task = self._supervisor.spawn(coroutine, name=f"{name} controller {self._name}")
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)

    async def _supervise(self) -> None:
        """Register the triggers, start the workers, and raise when a trigger ends."""
        leave_call()  # the controller is not a part of the handler's call that starts it
        self._waiting = asyncio.current_task()
        try:
            if not self._workers.halted:
                await self._register_triggers()
        except asyncio.CancelledError:
            if not self._workers.halted:
                raise
        self._waiting = None
        if self._workers.halted:
            return
        self.synced.set()
        if (waited := asyncio.get_running_loop().time() - self._entered_at) >= SYNC_WARNING_DELAY:
            log.info("controller %s starts its workers after %.1f s", self._name, waited)
        for number in range(self._concurrency):
            self._start_task(self._workers.work(), f"worker {number} of")
        # An informer that ends also ends the task of its handler, which is noticed here.
        tasks = {each.task: each for each in self._registrations if each.task is not None}
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not self._workers.halted:
            informer = self._registrations[tasks[done.pop()]]
            raise self._trigger_ended(informer) from informer.health.error

    async def _register_triggers(self) -> None:
        """Register the triggers when all informers are synced, and wait until the triggers have
        received all cached objects.
        """
        for source in self._sources:
            await self._wait_synced(source.informer, source.informer)
        for source in self._sources:
            try:
                registration = source.register(f"controller {self._name}")
            except NotRunning as error:
                raise self._trigger_ended(source.informer) from error
            self._registrations[registration] = source.informer
            if source.on_rejected is not None:
                self._ends.append(source.informer.observe_rejections(source.on_rejected))
        for registered, informer in self._registrations.items():
            await self._wait_synced(registered, informer)

    async def _wait_synced(
        self, waited: SharedInformer[Any] | Registration, informer: SharedInformer[Any]
    ) -> None:
        """Wait until an informer, or its trigger, has received all objects."""
        try:
            try:
                await waited.wait_synced(timeout=SYNC_WARNING_DELAY)
            except SyncTimeout as error:
                log.warning("controller %s has not started its workers yet: %s", self._name, error)
                await waited.wait_synced()  # no limit: the informer retries for ever
        except NotRunning as error:
            raise self._trigger_ended(informer) from error

    def _trigger_ended(self, informer: SharedInformer[Any]) -> NotRunning:
        """Return the error for a trigger that has ended: the controller would miss events."""
        return NotRunning(
            f"the controller {self._name} has ended, since it receives no more events of "
            f"{informer.name} ({informer.health}): the informers' factory was left before the "
            "controller, or the controller's handler was removed"
        )

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        """Halt the controller if a task has ended while the others run."""
        self._tasks.discard(task)
        error: BaseException | None = None
        if not task.cancelled():
            error = task.exception()
        elif self._supervisor.running:
            error = RuntimeError(f"the {task.get_name()} was cancelled, but not by its controller")
        # Only the first failure is reported; it makes the other tasks end.
        if error is not None and self.error is None:
            self.error = error
            log.critical("the controller %s failed", self._name, exc_info=error)
            self.halt()
            self._supervisor.fail(error)

    def __repr__(self) -> str:
        return f"<ControllerRun of {self._name} {self.state} tasks={len(self._tasks)}>"
