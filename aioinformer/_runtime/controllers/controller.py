"""The controller: informers trigger keys, workers reconcile them.

What client-go's handlers, queue and workers are together; this is what a program sees. Triggers
are handlers (``triggers``); what becomes of a key is ``workers``', the life of it all ``shifts``'.
"""

from __future__ import annotations

import asyncio
from functools import partial
from types import TracebackType
from typing import Any, Self

from typing_extensions import TypeVar

from aioinformer._core.controllers.owner_references import ControllerOf
from aioinformer._core.controllers.queue_items import Priority
from aioinformer._core.controllers.rate_limiters import RateLimiter, default_limiter
from aioinformer._core.controllers.reconcile import FailingKey, Reason
from aioinformer._core.instrumentation import Metrics, Tracing
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._core.selectors.event_filter import EventFilter, Filter
from aioinformer._runtime.controllers.health import (
    ControllerHealth,
    ControllerState,
    ReconcileErrors,
)
from aioinformer._runtime.controllers.lifecycle import ControllerRun, TriggerSource
from aioinformer._runtime.controllers.options import (
    DEFAULT_CONCURRENCY,
    SHUTDOWN_TIMEOUT,
    ControllerOptions,
    resolve_alias,
)
from aioinformer._runtime.controllers.reconcile_runs import Reconcile, ReconcileRuns
from aioinformer._runtime.controllers.triggers import (
    InternalTrigger,
    ObjectTrigger,
    ToKeys,
    Trigger,
    check_informer,
    check_to_keys,
)
from aioinformer._runtime.controllers.workers import Workers
from aioinformer._runtime.delivery.handlers import handler_name
from aioinformer._runtime.informer.informer import SharedInformer
from aioinformer._runtime.reporting.error_hook import OnError
from aioinformer._runtime.tasks.event_loop import check_loop
from aioinformer.errors import NotRunning, SyncTimeout, UsageError

__all__ = ["Controller"]

MAX_FAILING_KEYS = 100
"""Failing keys that health lists: with a mistake in the reconciler, all of them fail."""

REQUEST = Reason("request")

T = TypeVar("T", default=KubeObject)


class Controller:
    """Calls a reconciler for every key about which something has happened.

        async def reconcile(key: ObjectKey, ctx: ReconcileContext) -> Result | None:
            foo = foos.lister.get(key)     # None: it is gone
            ...

        async with Controller(foos, reconcile).owns(deployments):
            ...

    For each key: one run at a time; an event that comes during a run is followed by another run;
    the cache is at least as new as the event. Keys of initial lists and resyncs wait behind those
    of fresh events. What a run raises is logged, counted, kept in ``health`` and tried again with
    backoff. Nothing is promised about which events a run stands for: many may be merged into one,
    and a new process begins with all objects again. So a reconciler compares what should be with
    what is, and never relies on having been told of a change.

    Leave it before its factory. Runs are let finish first, for ``shutdown_timeout``; left by an
    exception or a cancellation, they are cancelled at once, and waited for. What ignores that for
    longer than ``shutdown_timeout`` is logged by name; ``async with`` leaves it behind, ``run``
    stays until it has ended. So in ``elector.leading()``, await ``run``: the lease is not given up
    before the last run has ended.
    """

    def __init__(
        self,
        informer: SharedInformer[T],
        reconcile: Reconcile,
        *,
        concurrency: int | None = None,
        name: str = "",
        backoff: RateLimiter[ObjectKey] | None = None,
        filter: Filter[T] | None = None,  # noqa: A002 - what everybody calls it
        timeout: float | None = None,
        resync: float | None = None,
        metrics: Metrics | None = None,
        tracing: Tracing | None = None,
        on_error: OnError | None = None,
        shutdown_timeout: float = SHUTDOWN_TIMEOUT,
        workers: int | None = None,
        limiter: RateLimiter[ObjectKey] | None = None,
    ) -> None:
        """Make a controller; enter it, or await ``run``, inside the informers' factory.

        Args:
            informer: of the objects whose keys are reconciled. All of its events are triggers,
                deletions included.
            reconcile: ``async def reconcile(key, ctx)``; answers a ``Result`` or ``None``. Each
                call has a copy of the context variables as they are when the controller starts.
            concurrency: the most keys that are reconciled at once; 4 by default.
            name: for logs, health and metrics; the reconciler's own by default.
            backoff: returns how long a key that failed waits. By default client-go's rule: 5 ms,
                doubled with every failure up to 1000 s, and at most 10 retries a second over all
                keys. An exception from it ends the controller.
            filter: which events of ``informer`` are triggers, as for ``add_handler``.
            timeout: seconds that a run may take. Then it is cancelled, which is a failure
                (``ReconcileTimeout``).
            resync: seconds between two times that all keys are reconciled again, at low priority;
                0 for never; ``None`` for what the informer does.
            metrics: what it and its work queue feed.
            tracing: what makes a span of each run; see ``aioinformer.adapters.opentelemetry``.
            on_error: is told of every ``Problem``: of each run that failed and each ``to_keys``
                that raised, in the event loop; must be quick.
            shutdown_timeout: seconds that leaving waits for runs to finish.
            workers: another name for ``concurrency``, as in client-go.
            limiter: another name for ``backoff``, as in client-go.

        Raises:
            TypeError: an argument has the wrong type, ``reconcile`` is not a function of a key
                and a context, or an argument is given by both of its names.
            ValueError: a number is out of range.
        """
        options = ControllerOptions(
            name=name or handler_name(reconcile),
            filter=filter,
            timeout=timeout,
            resync=resync,
            metrics=metrics,
            tracing=tracing,
            on_error=on_error,
            shutdown_timeout=shutdown_timeout,
            concurrency=resolve_alias(
                DEFAULT_CONCURRENCY, concurrency=concurrency, workers=workers
            ),
            backoff=resolve_alias(default_limiter(), backoff=backoff, limiter=limiter),
        )
        self.name = options.name
        """What it is called in logs, health and metrics."""
        self.informer: SharedInformer[Any] = check_informer(informer)
        """The informer of the objects that are reconciled."""
        self._reconcile_runs = ReconcileRuns(reconcile, options)
        self._errors = ReconcileErrors(informer.name, options)
        self._workers = Workers(self._reconcile_runs, self._errors, options)
        self._controller_run = ControllerRun(self._workers, self._reconcile_runs, options)
        self._sources: list[TriggerSource] = []
        self._stop = asyncio.Event()
        own = ObjectTrigger(informer.name, self._workers.enqueue)
        self._add_source(
            TriggerSource(informer, own, options.filter, options.resync, coalesce=True)
        )

    # -- triggers ------------------------------------------------------------------------------

    def owns(
        self,
        informer: SharedInformer[T],
        *,
        filter: Filter[T] | None = None,  # noqa: A002 - what everybody calls it
    ) -> Self:
        """Reconcile an object when one that it controls changes, comes or goes.

        The controller of an object is the one of its ``ownerReferences`` that has ``controller:
        true``; it is this informer's by group and kind. An object that changes hands concerns
        both.

        Args:
            informer: of the children.
            filter: which of their events are triggers.

        Raises:
            UsageError: the controller has started; or the children are cluster-scoped and their
                owners aren't, which no server accepts; or ``informer`` has a ``model=`` and so no
                ownerReferences, where ``watches`` does.
            TypeError: ``filter`` is none.
        """
        owner = self.informer.resource
        if owner.namespaced and not informer.resource.namespaced:
            raise UsageError(
                f"{informer.resource} are cluster-scoped, so that none of {owner}, which are in "
                "namespaces, can own one"
            )
        informer.check_bytes("owns() reads ownerReferences in")
        trigger = InternalTrigger(self._make_trigger(informer, ControllerOf(owner)))
        self._add_source(TriggerSource(informer, trigger, filter))
        return self

    def watches(
        self,
        informer: SharedInformer[T],
        to_keys: ToKeys[T],
        *,
        filter: Filter[T] | None = None,  # noqa: A002 - what everybody calls it
    ) -> Self:
        """Reconcile keys when other objects change.

        Args:
            informer: of the other objects.
            to_keys: a plain function of one of them that gives the keys that it concerns. After an
                update it is asked about the object as it was and as it is. Should it raise, that
                is logged, counted and told, and the event is passed over. It should be quick: for
                one that thousands of events wait for, the informer waits, and says so.
            filter: which of their events are triggers.

        Raises:
            UsageError: the controller has started.
            TypeError: ``to_keys`` is no plain function, or ``filter`` none.
        """
        check_to_keys(to_keys)
        trigger = self._make_trigger(informer, to_keys)
        self._add_source(TriggerSource(informer, trigger, filter))
        return self

    def _make_trigger(self, informer: SharedInformer[Any], to_keys: ToKeys[T]) -> Trigger[T]:
        return Trigger(
            informer.name,
            self._workers.enqueue,
            to_keys,
            parse_key=self.informer.lister.key,
            on_error=partial(self._errors.report_trigger_failure, informer.name),
        )

    def _add_source(self, source: TriggerSource) -> None:
        if self._controller_run.loop is not None:
            raise UsageError(f"the controller {self.name} has started: triggers are added before")
        if source.event_filter is not None:
            EventFilter(source.event_filter, _ignore)  # raises TypeError if it is none
        self._sources.append(source)

    def trigger(self, key: ObjectKey | str, *, priority: Priority = Priority.NORMAL) -> None:
        """Have ``key`` reconciled, for reasons that no informer knows of.

        Raises:
            UsageError: the name alone doesn't say which object is meant, or this isn't the
                controller's event loop.
            NotRunning: the controller has stopped.
        """
        if self._workers.halted:
            raise NotRunning(f"the controller {self.name} has stopped; make another one")
        check_loop(self._controller_run.loop, f"the controller {self.name}")
        self._workers.enqueue(self.informer.lister.key(key), REQUEST, priority)

    # -- the program's view --------------------------------------------------------------------

    @property
    def state(self) -> ControllerState:
        """How far it is."""
        return self._controller_run.state

    @property
    def health(self) -> ControllerHealth:
        """What it does, what fails, and what there is to do."""
        now, workers, shift = self._now, self._workers, self._controller_run
        return ControllerHealth(
            state=shift.state,
            error=shift.error,
            waiting_for=shift.waiting_for,
            running=self._reconcile_runs.durations(now),
            waiting=len(workers.pending),
            runs=workers.runs,
            failed_runs=self._errors.count,
            failing=workers.failures.longest_failing(MAX_FAILING_KEYS, now),
            failing_keys=len(workers.failures),
            queue=workers.queue.statistics(),
        )

    def failing(self, key: ObjectKey | str) -> FailingKey | None:
        """How often, since when and why ``key`` fails; ``None`` if its last run went well, or there
        was none.

        Raises:
            UsageError: the name alone doesn't say which object is meant.
        """
        return self._workers.failures.get(self.informer.lister.key(key), self._now)

    @property
    def _now(self) -> float:
        loop = self._controller_run.loop
        return 0.0 if loop is None else loop.time()

    async def wait_synced(self, timeout: float | None = None) -> None:
        """Wait until it works: its triggers have heard of everything that is cached.

        Args:
            timeout: seconds.

        Raises:
            SyncTimeout: not within that time; it says which informers, and why.
            NotRunning: it ended before.
        """
        try:
            async with asyncio.timeout(timeout):
                await self._controller_run.synced.wait()
        except TimeoutError:
            waiting = [each.informer for each in self._sources]
            why = {each.name: str(each.health) for each in waiting if not each.synced}
            raise SyncTimeout(timeout or 0.0, why or {self.name: str(self.health)}) from None
        if self._workers.halted:
            raise NotRunning(
                f"the controller {self.name} has ended"
            ) from self._controller_run.error

    # -- running -------------------------------------------------------------------------------

    async def run(self) -> None:
        """Work until ``stop`` is called, or until this is cancelled: then runs are cancelled too,
        at once, as under a ``LeaderElector`` whose lease is lost.

        Returns when the last run has ended, however long one takes that ignores its cancellation;
        every ten seconds a warning says so.

        Raises:
            NotRunning: one of its informers has ended. The ``__cause__`` says why.
            ShutdownIncomplete: after ``stop``, runs had to be cancelled; it names them.
            UsageError: it was started before.
        """
        self._controller_run.check_new()
        try:
            async with self:
                await self._stop.wait()
        finally:
            await self._controller_run.wait_ended()

    def stop(self) -> None:
        """Start no more runs. ``run`` waits for those under way, and returns; of ``async with``,
        the body goes on. For signal handlers: ``loop.add_signal_handler(SIGTERM, it.stop)``.
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
        await self._controller_run.leave(error)

    def __repr__(self) -> str:
        return (
            f"<Controller {self.name} {self.state} triggers={len(self._sources)} "
            f"running={len(self._reconcile_runs.keys)} waiting={len(self._workers.pending)} "
            f"failing={len(self._workers.failures)}>"
        )


def _ignore(*_: object) -> None:
    """A filter that is only tried on fails at nothing."""
