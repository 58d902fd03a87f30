"""Controllers: the types that ``Controller`` takes and returns, rate limiters, and health.

The names of this page are the types of arguments and results of ``Controller``, ``WorkQueue``,
``ReconcileContext`` and ``ResourceWriter`` in ``aioinformer``. The rate limiters are for
``backoff=``, with client-go's numbers.

    informer ──▶ triggers ──▶ WorkQueue ──▶ workers ──▶ reconcile_runs ──▶ the program's reconcile

Example::

    from aioinformer.controllers import (
        ControllerHealth, ControllerOptions, FailingKey, FastSlow, ItemExponential, MaxOf, Priority,
        QueueStatistics, RateLimiter, Reason, Reconcile, TokenBucket, default_limiter,
    )

    defaults = ControllerOptions(name="shop")  # a Controller takes them as keywords
    assert (defaults.concurrency, defaults.shutdown_timeout) == (4, 10.0)

    async def reconcile(key: ObjectKey, run: ReconcileContext) -> Result | None:
        reasons: list[Reason] = list(run.reasons)
        if run.priority is Priority.LOW:  # an initial list or a resync, and nothing else
            assert {each.cause for each in reasons} <= {"initial", "resync"}
        return None

    function: Reconcile = reconcile
    backoff: RateLimiter[ObjectKey] = MaxOf(
        ItemExponential(base=0.1, cap=60), TokenBucket(rate=5, burst=10)
    )
    assert backoff.when(ObjectKey("web", "shop"), 0.0) == 0.1
    assert FastSlow(fast=1, slow=60, attempts=3).when("shop", 0.0) == 1
    assert default_limiter().when("shop", 0.0) == 0.005

    async with Controller(deployments, function, backoff=backoff) as controller:
        await controller.wait_synced(timeout=30)
        health: ControllerHealth = controller.health
        queue: QueueStatistics = health.queue
        failing: FailingKey | None = controller.failing("shop")
        assert (queue.adds, failing) == (1, None)

Example::

    from aioinformer.controllers import Patch, Propagation, WriterSource

    source: WriterSource = client
    configmaps = source.api("configmaps", namespace="web")
    owner = owner_reference(deployments.lister.get("shop"))
    metadata = {"name": "settings", "ownerReferences": [owner]}
    await configmaps.create({"metadata": metadata, "data": {"size": "1"}})
    change: Patch = {"data": {"size": "2"}}
    await configmaps.patch("settings", change)
    how: Propagation = "Foreground"
    await configmaps.delete("settings", propagation=how)
"""

from aioinformer._core.instrumentation import QueueStatistics
from aioinformer._core.writing.write_requests import Patch, Propagation
from aioinformer._runtime.writing.resource_writer import WriterSource
from aioinformer.controllers.health import ControllerHealth
from aioinformer.controllers.options import ControllerOptions
from aioinformer.controllers.reconcile_runs import Reconcile
from aioinformer.controllers.state.queue_items import Priority
from aioinformer.controllers.state.rate_limiters import (
    FastSlow,
    ItemExponential,
    MaxOf,
    RateLimiter,
    TokenBucket,
    default_limiter,
)
from aioinformer.controllers.state.reconcile import FailingKey, Reason

__all__ = [
    "ControllerHealth",
    "ControllerOptions",
    "FailingKey",
    "FastSlow",
    "ItemExponential",
    "MaxOf",
    "Patch",
    "Priority",
    "Propagation",
    "QueueStatistics",
    "RateLimiter",
    "Reason",
    "Reconcile",
    "TokenBucket",
    "WriterSource",
    "default_limiter",
]
