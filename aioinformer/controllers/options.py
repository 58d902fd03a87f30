"""The options of a controller: checked once, in one frozen object that its parts share.

``ControllerKeywords`` beside ``Controller`` has the types of the keywords.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from aioinformer._core.arguments import check_field_manager, check_int, check_seconds
from aioinformer._core.instrumentation import Metrics, Tracing
from aioinformer._core.objects.kube_object import ObjectKey
from aioinformer._core.selectors.event_filter import Filter
from aioinformer._core.writing.write_requests import EventType
from aioinformer._runtime.reporting.error_hook import check_hook
from aioinformer._runtime.reporting.problem import OnError
from aioinformer._runtime.writing.resource_writer import WriterSource
from aioinformer.controllers.failure_condition import check_condition_type
from aioinformer.controllers.state.finalizer_steps import check_finalizer_name
from aioinformer.controllers.state.rate_limiters import RateLimiter


class RecordsEvents(Protocol):
    """Records Kubernetes Events: an ``EventRecorder``."""

    def record(
        self,
        obj: Mapping[str, Any],
        event_type: EventType,
        reason: str,
        note: str = "",
        *,
        action: str = "",
        related: Mapping[str, Any] | None = None,
    ) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerOptions:
    """The options of a ``Controller``, which it takes as keywords."""

    name: str
    """The name in logs, health and metrics; the reconciler's name by default."""
    filter: Filter[Any] | None = None
    """The events of the controller's informer that are triggers, as for ``add_handler``."""
    concurrency: int = 4
    """The most keys that are reconciled at once."""
    backoff: RateLimiter[ObjectKey] | None = None
    """Returns how long a key that failed waits. ``None`` for client-go's rule: 5 ms, doubled with
    every failure up to 1000 s, and at most 10 retries a second over all keys. An exception from it
    ends the controller."""
    timeout: float | None = None
    """Seconds that a run may take. After that it is cancelled and counts as a failure
    (``ReconcileTimeout``)."""
    resync: float | None = None
    """Seconds between two resyncs, which reconcile all keys at low priority; 0 for never; ``None``
    for the informer's interval."""
    metrics: Metrics | None = None
    """Receives the counts and times of the controller and its work queue."""
    tracing: Tracing | None = None
    """Makes a span of each run; see ``aioinformer.adapters.opentelemetry``."""
    on_error: OnError | None = None
    """Called in the event loop with a ``Problem`` for each run that failed and each ``to_keys``
    that raised. Must be quick."""
    shutdown_timeout: float = 10.0
    """Seconds that leaving waits for runs to finish."""
    client: WriterSource | None = None
    """Makes the writers of the controller: the ``Client``, or, under a ``LeaderElector``,
    ``elector.guarded_client(client)``."""
    events: RecordsEvents | None = None
    """Records Warning Events on objects that can't be reconciled."""
    finalizer: str | None = None
    """A name such as ``example.com/cleanup``, added to ``metadata.finalizers`` before the first
    reconcile of an object and removed after the cleanup, through ``client``. Objects that are being
    deleted are not passed to ``reconcile``. A ``filter`` doesn't exclude deletions of objects that
    have it. The informer must not have selectors or namespaces that an object can leave, and its
    ``transform=`` must keep ``metadata.finalizers`` and each object with the finalizer: what it
    drops isn't cleaned up, and so can't be deleted. No two controllers may have one finalizer for
    the same objects."""
    cleanup: Callable[[ObjectKey, Any], Any] | None = None
    """``async def cleanup(key, ctx)``, called for an object that is being deleted and has the
    finalizer. ``None`` removes the finalizer, and the server deletes the object. A ``Result`` means
    a later call. An exception is retried with backoff, never skipped, and recorded as a Warning
    Event ``CleanupFailed``. ``cleanup`` may be called again after it has succeeded, if the process
    ends, or loses the shard, before the finalizer is removed."""
    run_in_thread: bool = False
    """True to call ``reconcile`` and ``cleanup``, which must be plain functions then, in
    ``concurrency`` threads of the controller's own. These functions may block, and read caches. A
    thread can't be cancelled, so ``run`` waits until they return."""
    field_manager: str | None = None
    """The field manager of ``ctx.apply``, at most 128 characters; by default the controller's name.
    Two programs that apply to one object need two names, and a new name leaves the fields of the
    old one."""
    failure_condition: str | None = None
    """The type of a condition, such as ``"Reconciled"``, which the controller writes through the
    status subresource: False with the reason ``CleanupFailed``, ``PermanentError`` or
    ``ReconcileFailed`` after a run that has failed, True after a run that has succeeded. The
    message is the text of an error of this library, a ``PermanentError`` included. Of other errors
    it is the type alone, since their texts may quote secrets. Nothing is sent if nothing changes. A
    message that alone changes is written once a minute."""
    block_owner_deletion: bool = True
    """False for children that ``ctx.apply`` and ``ctx.create_or_update`` write, and for which a
    foreground deletion of their owner does not wait. True needs the right to update the subresource
    ``finalizers`` of the owner where OwnerReferencesPermissionEnforcement is on, as on OpenShift.
    """

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
        limiter = "a RateLimiter such as ItemExponential(base=1, cap=60)"
        _check_has("backoff", self.backoff, "when", limiter)

    def _check_finalizer(self) -> None:
        if (self.finalizer is None) != (self.cleanup is None):
            raise TypeError("finalizer= and cleanup= belong together: pass both, or none of them")
        if self.finalizer is not None:
            check_finalizer_name(self.finalizer)


def _check_has(name: str, given: object, method: str, expected: str) -> None:
    """Raise a TypeError if an argument is given and lacks the method that is called."""
    if given is not None and not callable(getattr(given, method, None)):
        raise TypeError(f"{name} must be {expected}, or None, not {given!r}")
