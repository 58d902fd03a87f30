"""``Operator``: controllers as a whole program: leader election, Events, probes and signals."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, NoReturn

from typing_extensions import Unpack

from aioinformer._core.arguments import check_names
from aioinformer._core.objects.resources import find_built_in
from aioinformer._core.selectors.event_filter import Filter
from aioinformer._informers.factory import SharedInformerFactory
from aioinformer._informers.options import InformerKeywords
from aioinformer._runtime.tasks.event_loop import check_loop
from aioinformer._runtime.tasks.sync_timeout import start_limit, sync_timeout
from aioinformer.controllers.controller import Controller, ReconcileKeywords
from aioinformer.controllers.reconcile_runs import BlockingReconcile, Reconcile
from aioinformer.errors import NotRunning, UsageError
from aioinformer.eventrecorder.event_recorder import EventRecorder
from aioinformer.operator.builder import ControllerBuilder, WatchedResource
from aioinformer.operator.health import OperatorHealth, OperatorState
from aioinformer.operator.options import OperatorKeywords, OperatorOptions, default_identity
from aioinformer.operator.process import run_process
from aioinformer.operator.run import OperatorClient, OperatorRun

if TYPE_CHECKING:  # for operators with groups alone
    from aioinformer.shardgroup.group import ShardGroup


class Operator:
    """Controllers as a whole program.

    Of several replicas with ``leader_election`` one leads and reconciles. The others keep their
    caches filled, and one of them takes over when the leader ends. A replica that loses the lease
    cancels its runs and becomes a candidate again. Controllers with ``shards=`` run on all
    replicas, which divide the objects among themselves. All controllers share one factory of
    informers. ``main`` runs the operator as a process. ``aioinformer.operator.OperatorOptions``
    documents the options.

    Example::

        from aioinformer.operator import ControllerBuilder, OperatorHealth

        async def reconcile(key: ObjectKey, run: ReconcileContext) -> None:
            print(key)

        operator = Operator(client, name="shop-operator", namespace="web")
        builder: ControllerBuilder = operator.controller("deployments", reconcile)
        builder.owns("replicasets")
        running = asyncio.create_task(operator.run())
        await operator.wait_synced(timeout=30)
        health: OperatorHealth = operator.health
        assert health.error is None
        operator.stop()
        await running
    """

    def __init__(
        self, client: OperatorClient, *, name: str, **keywords: Unpack[OperatorKeywords]
    ) -> None:
        """Make an operator. Nothing is sent before ``run`` or ``main``.

        Args:
            client: a ``Client``. The operator opens and closes a client that was not entered.
            name: the name for Events and logs, and the field manager of ``ctx.apply``.
            **keywords: the other options; ``aioinformer.operator.OperatorOptions`` documents each.

        Raises:
            TypeError: an argument has the wrong type or is unknown.
            ValueError: a number is out of range, ``name`` can't be a field manager, or the times of
                the election don't fit together.
            UsageError: ``name`` is empty, or ``leader_election`` is not ``namespace/name``.
        """
        check_names(keywords, OperatorKeywords.__annotations__, "name")
        _check_client(client)
        keywords["identity"] = keywords.get("identity") or default_identity()
        options = self._options = OperatorOptions(name=name, **keywords)
        shared: InformerKeywords = {
            "metrics": options.metrics,
            "tracing": options.tracing,
            "on_error": options.on_error,
        }
        self.informers = SharedInformerFactory(
            client, namespace=options.namespace, **(shared | (options.informer_options or {}))
        )
        """The informers of all controllers, through which a reconciler reads other objects."""
        self.events = EventRecorder(
            client.api(find_built_in("events.events.k8s.io")),
            controller=name,
            instance=options.identity,
            on_error=options.on_error,
        )
        """Records Kubernetes Events in the name of the operator."""
        self._run = OperatorRun(
            client, self.informers, self.events, options, health=lambda: self.health
        )
        self._builders: dict[str, ControllerBuilder] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._error: BaseException | None = None
        self._ended = False

    # -- controllers -----------------------------------------------------------------------------

    def controller(
        self,
        resource: WatchedResource,
        reconcile: Reconcile | BlockingReconcile,
        *,
        shards: ShardGroup | None = None,
        filter: Filter[Any] | None = None,
        **keywords: Unpack[ReconcileKeywords],
    ) -> ControllerBuilder:
        """Declare a controller, and return it for ``owns`` and ``watches``.

        Args:
            resource: the name of a built-in or custom resource, a ``Resource``, or an informer of
                ``informers``. The server is asked for a custom resource's name when the operator
                starts.
            reconcile: ``async def reconcile(key, ctx)``, as for ``Controller``.
            shards: as for ``Controller``. The controller runs on each replica, with or without a
                leader election, and the operator enters and leaves the group unless the program has
                entered it.
            filter: as for ``Controller``.
            **keywords: options of a ``Controller``, except ``client``, ``events``, ``metrics``,
                ``tracing``, ``on_error`` and ``shutdown_timeout``, which the operator sets;
                ``aioinformer.controllers.ControllerOptions`` documents each. ``name`` is the
                resource's name by default, ``field_manager`` the operator's.

        Raises:
            UsageError: the operator has started, or has a controller of that name already, or one
                with the same finalizer for the same objects; or both an informer and ``shards`` are
                given.
            TypeError: an argument has the wrong type, or is unknown.
            ValueError: a number is out of range.
        """
        if self._loop is not None:
            raise UsageError(
                f"the operator {self._options.name} has started; add controllers before"
            )
        builder = ControllerBuilder(
            self.informers, resource, reconcile, shards=shards, filter=filter, **keywords
        )
        if builder.name in self._builders:
            raise UsageError(
                f"the operator has a controller called {builder.name} already; pass another name="
            )
        builder.check_finalizer(self._builders.values())
        self._builders[builder.name] = builder
        return builder

    @property
    def controllers(self) -> tuple[Controller, ...]:
        """The controllers that run: those with ``shards=``, and on the leader the others."""
        return self._run.controllers

    # -- running ---------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run until ``stop`` is called, or until this is cancelled, which cancels runs at once.

        No signal is handled: see ``main``. Returns when the last run has ended, the lease was
        released, and the shards were given away.

        Raises:
            UsageError: there is no controller, the operator was started before, the server serves
                no resource of a declared name (``UnknownResource``), or ``shards=`` and
                ``leader_election=`` leave a controller on several replicas, or none to lead.
            NotRunning: an informer has ended.
            ShutdownIncomplete: after ``stop``, runs had to be cancelled; the error names them.
        """
        if not self._builders:
            raise UsageError("the operator has no controller: call operator.controller(...) first")
        if self._loop is not None:
            raise UsageError(f"the operator {self._options.name} runs once; make another one")
        self._loop = asyncio.get_running_loop()
        try:
            await self._run.run(tuple(self._builders.values()))
        except Exception as error:
            self._error = error
            raise
        finally:
            self._ended = True
            self._run.started.set()  # wakes wait_synced(), which raises then

    def stop(self) -> None:
        """End ``run``. A leader finishes its runs within ``shutdown_timeout``, a replica that
        starts or waits ends at once. A signal handler of the event loop may call this.
        """
        self._run.stop()

    def main(self, *, log_level: int | str | None = logging.INFO) -> NoReturn:
        """Run the operator as a whole process, and exit.

        SIGTERM and SIGINT end every replica as ``stop`` does. A second signal ends the process at
        once.

        ==== =====================================================================================
        code reason
        ==== =====================================================================================
        0    a signal, and all runs have finished
        1    a failure, or runs that did not finish in time; the log names the error
        2    wrong configuration: no kubeconfig, no such resource, a port that is in use
        ==== =====================================================================================

        Args:
            log_level: logs of this level and above are written to stderr, unless the program has
                set up logging itself; ``None`` to leave logging alone.

        Raises:
            SystemExit: always, with the code.
            UsageError: the caller isn't in the main thread, where alone Python handles signals.
        """
        raise SystemExit(run_process(self, name=self._options.name, log_level=log_level))

    # -- the program's view ----------------------------------------------------------------------

    @property
    def is_leader(self) -> bool:
        """True if this replica leads at this moment, or runs without an election."""
        elector = self._run.elector
        return bool(self.controllers) if elector is None else elector.is_leader

    @property
    def state(self) -> OperatorState:
        """The current state."""
        if self._ended:
            return "stopped" if self._error is None else "failed"
        if self._loop is None:
            return "new"
        if self._run.stopping:
            return "stopping"
        if self.controllers:
            return "running"
        return "waiting" if self._run.started.is_set() else "starting"

    @property
    def health(self) -> OperatorHealth:
        """A snapshot of the operator, its controllers and its informers."""
        elector = self._run.elector
        return OperatorHealth(
            state=self.state,
            error=self._error,
            leader="" if elector is None else elector.leader,
            controllers={each.name: each.health for each in self.controllers},
            informers={each.name: each.health for each in self._run.list_informers()},
            groups={each.name: each.health for each in self._run.groups},
            election=None if elector is None else elector.health,
        )

    @property
    def port(self) -> int | None:
        """The port that serves probes and metrics; ``None`` while no port is open."""
        return self._run.port

    async def wait_synced(self, timeout: float | None = None) -> None:
        """Wait until the cache of every informer holds its initial list, while a task runs ``run``.

        Raises:
            SyncTimeout: not within ``timeout`` seconds (``None``: no limit); the error says why.
            NotRunning: the operator ended before.
            UsageError: the operator runs in another event loop, or was not started.
        """
        check_loop(self._loop, f"the operator {self._options.name}")
        name = self._options.name
        started = start_limit(lambda: self._loop is not None, f"operator {name}", "await run()")
        async with sync_timeout(timeout, lambda: {name: str(self.health)}), started:
            await self._run.started.wait()
        if self._ended:
            error = self._error
            why = "" if error is None else f": {type(error).__name__}: {error}"
            raise NotRunning(f"the operator {self._options.name} has ended{why}") from error
        await self.informers.wait_synced(timeout)
        for group in self._run.groups:
            await group.informers.wait_synced(timeout)

    def __repr__(self) -> str:
        return f"<Operator {self._options.name} {self.state} controllers={len(self._builders)}>"


def _check_client(client: object) -> None:
    """Raise a TypeError at once for something else, such as the class ``Client``."""
    if isinstance(client, type) or not all(
        hasattr(client, name) for name in ("lister_watcher", "api", "resource")
    ):
        raise TypeError(f"an Operator takes a Client, such as Client.connect(), not {client!r}")
