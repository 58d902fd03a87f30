"""The status of an informer, read from its parts: health for programs, gauges for metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING
from weakref import WeakMethod

from aioinformer._core.instrumentation import Levels
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.object_body import decoded_bodies
from aioinformer._core.objects.object_key import is_numeric
from aioinformer._runtime.delivery.registration import Registration
from aioinformer._runtime.informer.feature import Feature
from aioinformer._runtime.informer.pump import Pump
from aioinformer._runtime.informer.reflectors import Reflectors
from aioinformer._runtime.reflector.delta_queue import DeltaQueue
from aioinformer._runtime.reporting.reporter import InformerReporter

if TYPE_CHECKING:  # for programs that use these features, and for types
    from aioinformer._core.cache.memory import CacheMemory
    from aioinformer._core.cache.protocols import ObjectCache
    from aioinformer._runtime.reporting.health import Health

REPORTS = (
    ".delivery.statistics",
    ".reporting.error_copy",
    ".reporting.health",
    ".reporting.problem",
)
"""The modules that are needed when something fails."""

MAX_REJECTED_KEYS = 100
"""Keys of rejected objects that health lists: a wrong model or index function rejects them all."""


class InformerStatus:
    def __init__(
        self,
        reporter: InformerReporter,
        queue: DeltaQueue,
        indexer: ObjectCache,
        pump: Pump,
        reflectors: Reflectors,
        registrations: Iterable[Registration],
        features: Iterable[Feature] = (),
    ) -> None:
        self.started = False
        """True once the informer runs. Its reflectors may wait for a feature first."""
        self._registrations = registrations
        self._features = features
        self._reporter = reporter
        self._queue = queue
        self._indexer = indexer
        self._pump = pump
        self._reflectors = reflectors

    def start(self) -> None:
        """Load what reports failures: later, the program may have no free file descriptor."""
        for each in REPORTS:
            import_module(each, "aioinformer._runtime")
        self.started = True

    def health(self) -> Health:
        from dataclasses import replace  # when a program first reads it

        from aioinformer._runtime.reporting.health import Health

        status, state, view = self._reporter.status, self._indexer.state, self._indexer.view
        blocking = [each for each in self._registrations if each.blocking_calls and not each.closed]
        health = Health(
            state=status.state,
            since=status.since,
            error=status.error,
            retry_in=status.retry_in,
            synced=state.synced,
            resource_version=state.resource_version,
            objects=len(state.objects),
            rejected=tuple(map(str, islice(self._indexer.rejected, MAX_REJECTED_KEYS))),
            rejections=len(self._indexer.rejected),
            unconverted=0 if view is None else view.failures,
            blocked_by=self._pump.blocked_by,
            fresh=status.fresh,
            rewinds=self._reporter.rewinds,
            ignored=status.ignored,
            watches_cut_after=status.watches_cut_after,
            blocking_calls=sum(each.blocking_calls for each in blocking),
            blocking_handlers=tuple(each.name for each in blocking),
        )
        health = self._reflectors.summarize(health)
        for feature in self._features:
            health = feature.summarize(health)
        return (
            replace(health, state="listing") if self.started and health.state == "new" else health
        )

    def describe(self) -> str:
        """Return the health in one line, for errors."""
        return str(self.health())

    def weak_describe(self) -> Callable[[], str]:
        """Return ``describe`` without a reference to this status: a cycle would keep the cache."""
        weak = WeakMethod(self.describe)

        def describe() -> str:
            method = weak()
            return "the informer has ended" if method is None else method()

        return describe

    def levels(self) -> Levels:
        """Return the gauges for metrics. Called in any thread, so this reads attributes only."""
        state, fifo, fresh = self._indexer.state, self._queue.fifo, self._reflectors.fresh
        version = state.resource_version
        return Levels(
            resource_version=int(version) if is_numeric(version) else 0,
            freshness_seconds=float("inf") if fresh is None else fresh,
            queue_entries=len(fifo),
            queue_bytes=fifo.size,
            objects=len(state.objects),
            json_bytes=state.json_bytes,
            rejected=len(self._indexer.rejected),
            pending=self._pump.pending,
            blocking=len(self._pump.blocked_by),
            synced=state.synced,
        )

    def memory(self) -> CacheMemory:
        """Return an estimate of the memory that the informer takes. Called in the event loop."""
        from aioinformer._core.cache.memory import CacheMemory  # rarely needed

        state, fifo = self._indexer.state, self._queue.fifo
        get = state.objects.get
        return CacheMemory.estimate(
            objects=len(state.objects),
            json_bytes=state.json_bytes,
            overhead_bytes=state.overhead_bytes,
            opened=[
                len(obj.raw)
                for obj in decoded_bodies.objects()
                if isinstance(obj, KubeObject) and get(obj.key) is obj
            ],
            pending=self._pump.pending,
            queued_bytes=fifo.size + sum(each.memory_bytes for each in self._features),
        )

    def __repr__(self) -> str:
        return f"<InformerStatus {self.describe()}>"
