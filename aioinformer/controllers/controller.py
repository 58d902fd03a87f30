"""``Controller``: informers request keys, and workers reconcile them.

Triggers are handlers that turn events into keys; ``Workers`` takes the keys; ``ControllerRun``
starts and ends everything.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from types import TracebackType
from typing import Any, Self, TypedDict, cast

from typing_extensions import TypeVar, Unpack

from aioinformer._core.arguments import check_names, suggest_keywords
from aioinformer._core.instrumentation import Metrics, Tracing
from aioinformer._core.objects.kube_object import Deleted, Event, KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer._core.objects.view import EventView
from aioinformer._core.selectors.event_filter import Filter, check_filter
from aioinformer._informers.informer import SharedInformer
from aioinformer._runtime.delivery.handlers import InternalHandler, handler_name
from aioinformer._runtime.reporting.problem import OnError
from aioinformer._runtime.tasks.event_loop import check_loop
from aioinformer._runtime.tasks.sync_timeout import start_limit, sync_timeout
from aioinformer._runtime.writing.resource_writer import WriterSource
from aioinformer.controllers.finalizer import FinalizerUse, finalized
from aioinformer.controllers.health import (
    ControllerHealth,
    ControllerState,
    ReconcileErrors,
    WarningEvents,
)
from aioinformer.controllers.key_gate import ReplicaGroup, check_group, find_division
from aioinformer.controllers.lifecycle import ControllerRun, TriggerSource
from aioinformer.controllers.options import ControllerOptions, RecordsEvents
from aioinformer.controllers.own_writes import OwnWrites
from aioinformer.controllers.reconcile_runs import (
    BlockingReconcile,
    Reconcile,
    ReconcileRuns,
    compile_functions,
)
from aioinformer.controllers.run_writes import WriteTarget
from aioinformer.controllers.state.owner_references import ControllerOf
from aioinformer.controllers.state.queue_items import Priority
from aioinformer.controllers.state.rate_limiters import RateLimiter
from aioinformer.controllers.state.reconcile import FailingKey, Reason
from aioinformer.controllers.triggers import (
    ObjectTrigger,
    ToKeys,
    Trigger,
    check_informer,
    check_to_keys,
)
from aioinformer.controllers.workers import Workers
from aioinformer.errors import NotRunning, UsageError

log = logging.getLogger("aioinformer.controller")

MAX_FAILING_KEYS = 100
"""The most failing keys that health lists. With a bug in the reconciler, all keys fail."""

REQUEST = Reason("request")

T = TypeVar("T", default=KubeObject)


class ReconcileKeywords(TypedDict, total=False):
    """The options of one controller, which ``Operator.controller`` takes, too."""

    name: str
    concurrency: int
    backoff: RateLimiter[ObjectKey] | None
    timeout: float | None
    resync: float | None
    finalizer: str | None
    cleanup: Reconcile | BlockingReconcile | None
    run_in_thread: bool
    field_manager: str | None
    failure_condition: str | None
    block_owner_deletion: bool


class ControllerKeywords(ReconcileKeywords, total=False):
    """The options as keywords, which ``ControllerOptions`` documents."""

    metrics: Metrics | None
    tracing: Tracing | None
    on_error: OnError | None
    shutdown_timeout: float
    client: WriterSource | None
    events: RecordsEvents | None


class Controller:
    """A controller: calls a reconciler for every key that an event affects.

        async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> Result | None:
            foo = foos.lister.get(key)     # None: the object was deleted
            ...

        async with Controller(foos, reconcile).owns(deployments):
            ...

    For each key one run is under way at a time. An event that arrives during a run is followed by
    another run. The cache is at least as new as the event. Keys of initial lists and resyncs wait
    behind keys of other events. Which events lead to which run is not promised: many events may be
    merged into one run, and a new process starts with all objects again. So a reconciler compares
    the wanted state with the actual state, and never relies on having seen a change.

    Leave a controller before its factory. On leaving, runs may finish for ``shutdown_timeout``
    seconds. If an exception or a cancellation leaves the block, runs are cancelled at once and
    awaited. A run that ignores its cancellation for longer than ``shutdown_timeout`` is logged by
    name. ``async with`` leaves such a run behind; ``run`` waits until it has ended. So await
    ``run`` in ``elector.leading()``: the lease isn't released before the last run has ended.

    ``aioinformer.controllers.ControllerOptions`` documents the options.
    """

    @suggest_keywords
    def __init__(
        self,
        informer: SharedInformer[T] | str | Resource,
        reconcile: Reconcile | BlockingReconcile,
        *,
        shards: ReplicaGroup | None = None,
        filter: Filter[T] | None = None,
        **keywords: Unpack[ControllerKeywords],
    ) -> None:
        """Make a controller. Enter it, or await ``run``, inside the informers' factory.

        Args:
            informer: the informer of the objects whose keys are reconciled. All of its events are
                triggers, deletions included. With ``shards``, the resource instead.
            reconcile: ``async def reconcile(key, ctx)``; returns a ``Result`` or ``None``. An
                exception is logged, counted, shown in ``health``, and the key is retried. Each call
                has a copy of the context variables as they are when the controller starts.
            shards: the group among whose members the objects are divided; an informer of the group
                needs no ``shards``. Only objects of shards that this member holds are reconciled, a
                shard moves away after the last reconcile of its keys, and writes through ``ctx``
                and of the finalizer raise ``ShardLost`` without the shard.
            filter: the events of ``informer`` that are triggers, as for ``add_handler``.
            **keywords: the other options; ``aioinformer.controllers.ControllerOptions`` documents
                each.

        Raises:
            TypeError: an argument has the wrong type or is unknown, ``reconcile`` or ``cleanup`` is
                not a function of a key and a context, or one is a plain function without
                ``run_in_thread=True`` or async with it.
            ValueError: a number is out of range, or ``finalizer`` is no qualified name.
            UsageError: ``finalizer`` or ``failure_condition`` is given without ``client``, or
                ``informer`` has a ``model=`` and so no metadata and conditions to read; or
                ``finalizer`` is given and ``informer`` forgets objects that leave its ``labels``,
                ``fields`` or followed namespaces; or both an informer and ``shards`` are given.
            UnknownResource: no built-in resource has that name.
        """
        check_names(keywords, ControllerKeywords.__annotations__, "shards", "filter")
        if shards is None:
            found = check_informer(cast("SharedInformer[Any]", informer))
        else:
            resource = check_group(informer, shards)
            found = shards.informer(resource)
        keywords["name"] = keywords.get("name") or handler_name(reconcile)
        options = ControllerOptions(filter=filter, **keywords)
        self.name = options.name
        self.informer: SharedInformer[Any] = found
        self._stop = asyncio.Event()
        self._sources: list[TriggerSource] = []
        self._make_parts(reconcile, options)
        self._add_own_triggers(options)

    def _make_parts(
        self, reconcile: Reconcile | BlockingReconcile, options: ControllerOptions
    ) -> None:
        """Make the parts that run the reconciler."""
        informer = self.informer
        self._errors = ReconcileErrors(informer.name, options)
        warnings = WarningEvents(informer, options.events)
        function, cleanup_function = compile_functions(reconcile, options, informer.rejection)
        self._functions = [each for each in (function, cleanup_function) if each is not None]
        division = find_division(informer)
        gate = self._gate = None if division is None else division.make_gate(informer.stored)
        program = finalized(function, cleanup_function, informer, warnings, options, gate)
        report = self._errors.report_blocking if informer.report_blocking else None
        self._reconcile_runs = ReconcileRuns(program, options, report)
        self._own_writes = OwnWrites(self.name, options.client)
        target = WriteTarget(options, informer, self._own_writes, gate)
        self._workers = Workers(self._reconcile_runs, self._errors, warnings, target, options)
        self._controller_run = ControllerRun(self._workers, self._reconcile_runs, options)

    def _add_own_triggers(self, options: ControllerOptions) -> None:
        """Reconcile an object when the object itself changes."""
        informer, enqueue = self.informer, self._workers.enqueue
        name = options.finalizer
        use = None if name is None else FinalizerUse(self.name, name, informer)
        own = InternalHandler(ObjectTrigger(informer.name, enqueue, self._gate))
        self._add_source(
            TriggerSource(
                informer,
                own,
                options.filter,
                options.resync,
                coalesce=True,
                on_rejected=self._workers.enqueue_rejected,
                begin=None if use is None else use.begin,
            )
        )
        if options.finalizer is not None and options.filter is not None:
            deletions = ObjectTrigger(informer.name, enqueue, self._gate, deletions=True)
            handler = InternalHandler(deletions)
            self._add_source(TriggerSource(informer, handler, resync=0.0, coalesce=True))
        if options.filter is not None:  # an object that the filter excludes is deleted without run
            forget = InternalHandler(self._forget_deleted)
            self._sources.append(TriggerSource(informer, forget, resync=0.0, coalesce=True))

    def _forget_deleted(self, event: Event[Any]) -> None:
        if isinstance(event, Deleted):
            self._workers.forget_absent(event.key)

    # -- triggers ------------------------------------------------------------------------------

    def owns(self, informer: SharedInformer[T], *, filter: Filter[T] | None = None) -> Self:
        """Reconcile an object when an object that it controls is added, updated or deleted.

        The entry of a child's ``ownerReferences`` with ``controller: true`` counts, if its group
        and kind are those of this controller's informer. If an update changes an object's
        controller, both controllers are reconciled.

        Args:
            informer: the informer of the children.
            filter: the events of the children that are triggers.

        Raises:
            UsageError: the controller has started; the children are cluster-scoped and their owners
                are namespaced, which no server accepts; or ``informer`` has a ``model=`` and so no
                ownerReferences (use ``watches`` then).
            TypeError: ``informer`` is not an informer, or ``filter`` is not a filter.
        """
        check_informer(informer)
        owner = self.informer.resource
        if owner.namespaced and not informer.resource.namespaced:
            raise UsageError(
                f"{informer.resource} are cluster-scoped and can't be owned by {owner}, which are "
                "namespaced; use watches() instead of owns()"
            )
        informer.check_bytes("owns() reads ownerReferences in", ", or watches() in place of owns()")
        # A child whose body can't be converted for the program still triggers its owner.
        self._add_trigger(informer, ControllerOf(owner), filter)
        self._own_writes.add_children(informer, filtered=filter is not None)
        return self

    def watches(
        self, informer: SharedInformer[T], to_keys: ToKeys[T], *, filter: Filter[T] | None = None
    ) -> Self:
        """Reconcile keys when objects of another informer change.

        Args:
            informer: the informer of the other objects.
            to_keys: a plain function of such an object that returns the keys that it affects. For
                an update it is called with the old and with the new object. If it raises, the error
                is logged, counted and reported, and the event is skipped. It should be quick: when
                thousands of events wait for it, the informer waits too and logs a warning.
            filter: the events of the other objects that are triggers.

        Raises:
            UsageError: the controller has started.
            TypeError: ``informer`` is not an informer, ``to_keys`` is not a plain function, or
                ``filter`` is not a filter.
        """
        check_informer(informer)
        check_to_keys(to_keys)
        self._add_trigger(informer, to_keys, filter, informer.make_event_view())
        return self

    def _add_trigger(
        self,
        informer: SharedInformer[Any],
        to_keys: ToKeys[T],
        event_filter: Filter[Any] | None,
        events: EventView[T] | None = None,
    ) -> None:
        trigger = Trigger(
            informer.name,
            self._workers.enqueue_affected,
            to_keys,
            parse_key=self.informer.lister.key,
            events=events,
            on_error=partial(self._errors.report_trigger_failure, informer.name),
        )
        on_rejected = partial(trigger.on_rejected, informer.stored)
        handler = InternalHandler(trigger)
        self._add_source(TriggerSource(informer, handler, event_filter, on_rejected=on_rejected))

    def _add_source(self, source: TriggerSource) -> None:
        if self._controller_run.loop is not None:
            raise UsageError(f"the controller {self.name} has started; add triggers before")
        check_filter(source.event_filter)
        self._sources.append(source)
        self._own_writes.add_informer(source.informer)

    def trigger(self, key: ObjectKey | str, *, priority: Priority = Priority.NORMAL) -> None:
        """Request a run of ``key`` for a reason that no informer reports.

        Raises:
            UsageError: the name alone doesn't identify the object, or in another event loop.
            NotRunning: the controller has stopped.
        """
        if self._workers.halted:
            raise NotRunning(f"the controller {self.name} has stopped; make another one")
        check_loop(self._controller_run.loop, f"the controller {self.name}")
        self._workers.enqueue(self.informer.lister.key(key), REQUEST, priority)

    @property
    def informers(self) -> tuple[SharedInformer[Any], ...]:
        """The informers whose events are triggers, that of the reconciled objects first."""
        return tuple(dict.fromkeys(each.informer for each in self._sources))

    # -- the program's view --------------------------------------------------------------------

    @property
    def state(self) -> ControllerState:
        """The current state."""
        return self._controller_run.state

    @property
    def health(self) -> ControllerHealth:
        """A snapshot: what runs, what fails, and what waits."""
        now, workers, run = self._now, self._workers, self._controller_run
        return ControllerHealth(
            state=run.state,
            error=run.error,
            waiting_for=run.waiting_for,
            running=self._reconcile_runs.durations(now),
            waiting=len(workers.pending),
            delayed=workers.pending.delayed,
            runs=workers.runs,
            failed_runs=self._errors.count,
            failing=workers.failures.longest_failing(MAX_FAILING_KEYS, now),
            failing_keys=len(workers.failures),
            queue=workers.queue.statistics(),
            blocking_runs=self._errors.blocking_runs,
        )

    def failing(self, key: ObjectKey | str) -> FailingKey | None:
        """Return how often, since when and why ``key`` fails; ``None`` if it doesn't.

        Raises:
            UsageError: the name alone doesn't identify the object.
        """
        return self._workers.failures.get(self.informer.lister.key(key), self._now)

    @property
    def _now(self) -> float:
        loop = self._controller_run.loop
        return 0.0 if loop is None else loop.time()

    async def wait_synced(self, timeout: float | None = None) -> None:
        """Wait until the workers start: every trigger has received all objects that were cached.

        Raises:
            SyncTimeout: not within ``timeout`` seconds. The error names the informers and the
                reasons.
            NotRunning: the controller ended before.
            UsageError: neither the controller nor its informer was started.
        """
        run = self._controller_run
        started = start_limit(
            lambda: run.loop is not None,
            f"controller {self.name}",
            "use it with 'async with', or await run()",
            tolerate=self._tolerate_late_start,
        )
        async with sync_timeout(timeout, self._describe_unsynced), started:
            await run.synced.wait()
        if self._workers.halted:
            raise NotRunning(f"the controller {self.name} has ended") from run.error

    def _tolerate_late_start(self, problem: str) -> bool:
        """Warn that the controller was not started. A standby starts it once it leads, and has
        started its informers before.
        """
        if self.informer.health.state == "new":
            return False
        log.warning("%s", problem)
        return True

    def _describe_unsynced(self) -> dict[str, str]:
        informers = [each.informer for each in self._sources]
        reasons = {each.name: str(each.health) for each in informers if not each.synced}
        return reasons or {self.name: str(self.health)}

    # -- running -------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run until ``stop``, or until this is cancelled, which cancels the runs at once.

        Returns when the last run has ended, however long a run takes that ignores its cancellation.
        A warning is logged every ten seconds meanwhile.

        Raises:
            NotRunning: one of the informers has ended. The ``__cause__`` is the reason.
            ShutdownIncomplete: after ``stop``, runs had to be cancelled; the error names them.
            UsageError: the controller was started before, the factory of its informers was not
                entered, or a controller that runs has the same finalizer for the same objects.
        """
        self._controller_run.check_new()
        try:
            await self._controller_run.enter(self._sources)
            try:
                await self._stop.wait()
            except BaseException as error:
                await self._controller_run.leave(error)
                raise
            await self._controller_run.leave(None)
        finally:
            await self._controller_run.wait_ended()
            if self.state != "new":  # else it was refused, and may be run later
                self._close_functions()

    def stop(self) -> None:
        """Start no more runs. ``run`` returns when the current runs have ended; the body of an
        ``async with`` continues. A signal handler may call it, and must cancel the program's task
        if the program still waits for a lease.
        """
        self._controller_run.halt()
        self._stop.set()

    async def __aenter__(self) -> Self:
        await self._controller_run.enter(self._sources)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self._controller_run.leave(error)
        finally:
            for function in self._functions:
                function.give_up()  # the block may end before a thread does; see run()
            self._close_functions()

    def _close_functions(self) -> None:
        for function in self._functions:
            function.close()
        if self._gate is not None:
            self._gate.close()

    def __repr__(self) -> str:
        return (
            f"<Controller {self.name} {self.state} triggers={len(self._sources)} "
            f"running={len(self._reconcile_runs.keys)} waiting={len(self._workers.pending)} "
            f"failing={len(self._workers.failures)}>"
        )
