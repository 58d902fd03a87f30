"""Sample calls of ``Metrics`` by informers, queues and controllers, for all adapters."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager

from aioinformer import WorkQueue
from aioinformer._core.instrumentation import Levels, Metrics

SAMPLE_GAUGES = Levels(
    resource_version=41,
    freshness_seconds=3.5,
    queue_entries=2,
    queue_bytes=6600,
    objects=100,
    json_bytes=230_000,
    rejected=1,
    pending=7,
    blocking=1,
    synced=True,
)


def record_every_metric(metrics: Metrics, informer: str) -> None:
    """Each method once, so that each metric has a value."""
    metrics.request_started(informer, "list")
    metrics.request_ended(informer, "list", "complete", 0.1)
    metrics.received(informer, "list", 10, 1)
    metrics.failed(informer, "list", "Forbidden")
    metrics.other_shards(informer, 3)
    metrics.handled(informer, "print", 0.1, 1)
    metrics.handler_failed(informer, "print", "ValueError")
    metrics.handler_blocked(informer, "print", 0.4)
    metrics.informer_started(informer, lambda: SAMPLE_GAUGES)
    metrics.queue_started("pods", WorkQueue[str]().statistics)
    metrics.worked("pods", 0.1, 0.1)
    metrics.reconciled("pods", "success", 0.1)
    metrics.reconcile_blocked("pods", 0.4)
    metrics.leadership("web/operator", True)
    metrics.shards_held("shop", 16)
    metrics.shard_moved("shop", "acquired")
    metrics.shard_unowned("shop", 0.1)


@contextmanager
def fast_thread_switching() -> Generator[None]:
    """Threads take turns five hundred times as often as they do by default."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
