"""One replica of the program: it keeps its caches filled, waits to lead, and reconciles while it
leads.

Of two replicas only the leader writes. The caches of the other are filled when it takes over: at
once if the leader releases the lease, and after the lease's duration if the leader was killed. A
replica that loses the lease cancels its runs and becomes a candidate again.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from aioinformer import (
    Client,
    Controller,
    EventRecorder,
    LeaderElector,
    SharedInformer,
    SharedInformerFactory,
)
from aioinformer.errors import LeadershipLost
from examples.sample_controller.kinds import EVENTS, FOOS, LEASES, WORKLOADS
from examples.sample_controller.reconciler import FooReconciler
from examples.sample_controller.settings import Settings

__all__ = ["Replica"]

log = logging.getLogger(__name__)

NAME = "sample-controller"

RUN_TIMEOUT = 30.0
"""Seconds that one reconcile may take: a few requests, and the wait for the cache."""


class Replica:
    """One replica: ``await Replica(client, settings).run()`` until ``stop`` is called."""

    def __init__(self, client: Client, settings: Settings) -> None:
        """Send nothing before ``run``."""
        self._client = client
        self._settings = settings
        self._elector = LeaderElector(
            client.api(LEASES),
            settings.lease,
            identity=settings.identity,
            lease_duration=settings.lease_duration,
            renew_deadline=settings.renew_deadline,
            retry_period=settings.retry_period,
        )
        self._controller: Controller | None = None
        self._task: asyncio.Task[Any] | None = None
        self._stopping = False

    async def run(self) -> None:
        """Lead whenever possible, until ``stop``. A replica that doesn't lead then is cancelled."""
        self._task = asyncio.current_task()
        namespace, identity = self._settings.namespace, self._settings.identity
        async with (
            SharedInformerFactory(self._client, namespace=namespace) as informers,
            EventRecorder(self._client.api(EVENTS), controller=NAME, instance=identity) as events,
        ):
            foos, workloads = informers.informer(FOOS), informers.informer(WORKLOADS)
            while not self._stopping:
                try:
                    async with self._elector.leading():
                        await self._lead(foos, workloads, events)
                except LeadershipLost as lost:
                    log.warning("%s", lost)

    async def _lead(
        self, foos: SharedInformer, workloads: SharedInformer, events: EventRecorder
    ) -> None:
        """Reconcile for one term. A controller runs once, so each term makes a new one."""
        log.info("%s leads %s", self._settings.identity, self._settings.lease)
        guarded, api = self._elector.guarded, self._client.api
        reconciler = FooReconciler(
            foos,
            workloads,
            # Guarded: after a pause of the process, in which another replica began to lead,
            # no write is sent.
            foo_writer=guarded(api(FOOS)),
            workload_writer=guarded(api(WORKLOADS)),
            events=events,
        )
        self._controller = Controller(
            foos, reconciler, name=NAME, concurrency=self._settings.concurrency, timeout=RUN_TIMEOUT
        ).owns(workloads)
        try:
            await self._controller.run()
        finally:
            self._controller = None

    @property
    def leads(self) -> bool:
        """True if this replica is the leader."""
        return self._elector.is_leader

    def stop(self) -> None:
        """Finish the runs under way and release the lease, so that the next replica can lead."""
        self._stopping = True
        if self._controller is not None:
            self._controller.stop()
        elif self._task is not None:
            self._task.cancel()
