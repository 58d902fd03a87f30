"""The options of a controller, gathered in one object that its parts share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypedDict

from aioinformer._core.arguments import check_field_manager, check_int, check_seconds
from aioinformer._core.instrumentation import Metrics, Tracing
from aioinformer._core.objects.kube_object import ObjectKey
from aioinformer._core.selectors.event_filter import Filter
from aioinformer._runtime.reporting.error_hook import check_hook
from aioinformer._runtime.reporting.problem import OnError
from aioinformer._runtime.writing.resource_writer import WriterSource
from aioinformer.controllers.failure_condition import check_condition_type
from aioinformer.controllers.state.finalizers import check_finalizer_name
from aioinformer.controllers.state.rate_limiters import RateLimiter, default_limiter
from aioinformer.eventrecorder.event_recorder import EventRecorder
from aioinformer.shardgroup.group import ShardGroup

CONCURRENCY = 4

SHUTDOWN_TIMEOUT = 10.0
"""Seconds that leaving a controller waits for runs to finish."""


class ControllerKeywords(TypedDict, total=False):
    """The keywords of ``Operator.controller``. ``Controller`` documents each of them."""

    shards: ShardGroup
    name: str
    concurrency: int
    backoff: RateLimiter[ObjectKey]
    filter: Filter[Any]
    timeout: float
    resync: float
    finalizer: str
    cleanup: Callable[[ObjectKey, Any], Any]
    run_in_thread: bool
    field_manager: str
    failure_condition: str
    block_owner_deletion: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerOptions:
    """The arguments of ``Controller``, checked."""

    name: str
    concurrency: int = CONCURRENCY
    backoff: RateLimiter[ObjectKey] = field(default_factory=default_limiter)
    filter: Filter[Any] | None = None
    timeout: float | None = None
    resync: float | None = None
    metrics: Metrics | None = None
    tracing: Tracing | None = None
    on_error: OnError | None = None
    shutdown_timeout: float = SHUTDOWN_TIMEOUT
    client: WriterSource | None = None
    events: EventRecorder | None = None
    finalizer: str | None = None
    cleanup: Callable[[ObjectKey, Any], Any] | None = None
    run_in_thread: bool = False
    field_manager: str | None = None
    """The field manager of ``ctx.apply``; ``None`` for the controller's name."""
    failure_condition: str | None = None
    block_owner_deletion: bool = True

    def __post_init__(self) -> None:
        self._check_finalizer()
        if self.field_manager is not None:
            check_field_manager("field_manager", self.field_manager)
        if self.failure_condition is not None:
            check_condition_type(self.failure_condition)
        _check_has("client", self.client, "api", "a Client")
        _check_has("events", self.events, "record", "an EventRecorder")
        check_int("concurrency", self.concurrency)
        if self.concurrency < 1:
            raise ValueError(f"concurrency must be at least 1, not {self.concurrency}")
        if self.timeout is not None:
            check_seconds("timeout", self.timeout)
        check_seconds("shutdown_timeout", self.shutdown_timeout, zero="no wait")
        check_hook(self.on_error)
        if not callable(getattr(self.backoff, "when", None)):
            raise TypeError(
                "backoff must be a RateLimiter such as ItemExponential(base=1, cap=60), "
                f"not {self.backoff!r}"
            )

    def _check_finalizer(self) -> None:
        if (self.finalizer is None) != (self.cleanup is None):
            raise TypeError("finalizer= and cleanup= belong together: pass both, or none of them")
        if self.finalizer is not None:
            check_finalizer_name(self.finalizer)


def _check_has(name: str, given: object, method: str, expected: str) -> None:
    """Raise a TypeError if an argument is given and lacks the method that is called."""
    if given is not None and not callable(getattr(given, method, None)):
        raise TypeError(f"{name} must be {expected}, or None, not {given!r}")
