"""Controllers: results, rate limiters, health and statistics beside ``Controller`` itself.

``Operator``, ``Controller``, ``WorkQueue``, ``Result``, ``ReconcileContext``, ``EventRecorder`` and
``ResourceWriter`` are in ``aioinformer``. The names of this page are the types of their arguments
and results:

- ``Reconcile``, the function that a controller calls; ``Reason`` and ``Priority`` of a run.
- Rate limiters for ``backoff=``: the protocol ``RateLimiter``, and ``default_limiter``,
  ``ItemExponential``, ``FastSlow``, ``TokenBucket``, ``MaxOf`` with client-go's numbers.
- ``ControllerBuilder``, the result of ``Operator.controller``.
- Health and statistics: ``OperatorHealth``, ``ControllerHealth``, ``FailingKey``,
  ``QueueStatistics``, ``EventStatistics``.
- Writes: ``WriterSource``, ``Patch`` and ``Propagation``. ``controller_reference`` is another name
  of ``owner_reference``.
"""

from aioinformer._core.controllers.owner_references import controller_reference
from aioinformer._core.controllers.queue_items import Priority
from aioinformer._core.controllers.rate_limiters import (
    FastSlow,
    ItemExponential,
    MaxOf,
    RateLimiter,
    TokenBucket,
    default_limiter,
)
from aioinformer._core.controllers.reconcile import FailingKey, Reason
from aioinformer._core.instrumentation import QueueStatistics
from aioinformer._operator.builder import ControllerBuilder
from aioinformer._operator.health import OperatorHealth
from aioinformer._runtime.controllers.health import ControllerHealth
from aioinformer._runtime.controllers.reconcile_runs import Reconcile
from aioinformer._runtime.writing.event_recorder import EventStatistics
from aioinformer._runtime.writing.resource_writer import Patch, Propagation, WriterSource

__all__ = [
    "ControllerBuilder",
    "ControllerHealth",
    "EventStatistics",
    "FailingKey",
    "FastSlow",
    "ItemExponential",
    "MaxOf",
    "OperatorHealth",
    "Patch",
    "Priority",
    "Propagation",
    "QueueStatistics",
    "RateLimiter",
    "Reason",
    "Reconcile",
    "TokenBucket",
    "WriterSource",
    "controller_reference",
    "default_limiter",
]
