"""The options of what runs an informer: checked once, passed on as one frozen object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from aioinformer._core.arguments import check_seconds
from aioinformer._core.instrumentation import Metrics, Tracing
from aioinformer._runtime.reflector.options import ReflectorKeywords, ReflectorOptions
from aioinformer._runtime.reporting.error_hook import check_hook
from aioinformer._runtime.reporting.reporter import InformerReporter
from aioinformer._runtime.reporting.safe_call import check_instrumentation
from aioinformer.errors import FetchError

if TYPE_CHECKING:  # for types alone
    from aioinformer._runtime.reporting.problem import OnError

ReportBlocking: TypeAlias = bool | Literal["stack"]


class PipelineKeywords(ReflectorKeywords, total=False):
    """The options as keywords; ``None`` and a missing keyword both mean the default."""

    resync: float
    fail_fast: tuple[type[FetchError], ...]
    report_blocking: ReportBlocking
    on_error: OnError | None
    metrics: Metrics | None
    tracing: Tracing | None


class PipelineOptions(ReflectorOptions, frozen=True, kw_only=True):
    """The options of one informer, those of its reflector included."""

    resync: float = 0.0
    """Seconds between two resyncs, which deliver the cached state to the listeners again as
    ``Updated(resync=True)``, without a request; 0 for never. A listener can have its own period."""
    fail_fast: tuple[type[FetchError], ...] = ()
    """Errors of requests, ``Forbidden`` for example, that end the informer and its factory instead
    of being retried: ``run`` raises them, and so does the factory's body, which is cancelled."""
    report_blocking: ReportBlocking = True
    """True to report each call of a handler, or of a reconciler of this informer, that held the
    event loop for more than 250 ms, after the call returned: with its name and the seconds in the
    log, in ``Registration.statistics()``, in health and in metrics. ``"stack"`` also logs the stack
    of any code that holds the loop, while it does so: one thread for all such informers of a loop
    looks ten times a second. Nothing is reported in a loop with virtual time."""
    on_error: OnError | None = None
    """Called with every ``Problem``, in the event loop. The function must be quick."""
    metrics: Metrics | None = None
    """Receives the numbers of the informer; see ``aioinformer.adapters.prometheus``."""
    tracing: Tracing | None = None
    """Makes spans of requests and calls of handlers; see ``aioinformer.adapters.opentelemetry``."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_seconds("resync", self.resync, zero="never")
        if not isinstance(self.report_blocking, bool) and self.report_blocking != "stack":
            raise ValueError(
                f'report_blocking must be True, False or "stack", not {self.report_blocking!r}'
            )
        check_hook(self.on_error)
        _check_fail_fast(self.fail_fast)
        check_instrumentation("metrics", self.metrics, Metrics)
        check_instrumentation("tracing", self.tracing, Tracing)

    def make_reporter(self, name: str, *, label: str, resource: str) -> InformerReporter:
        return InformerReporter(
            name,
            label=label,
            resource=resource,
            metrics=self.metrics,
            tracing=self.tracing,
            on_error=self.on_error,
        )


def _check_fail_fast(errors: object) -> None:
    classes = cast("tuple[object, ...]", errors) if isinstance(errors, tuple) else (errors,)
    if not isinstance(errors, tuple) or not all(
        isinstance(each, type) and issubclass(each, Exception) for each in classes
    ):
        raise TypeError(
            f"fail_fast must be a tuple of errors such as (Forbidden,), not {errors!r}; to end the "
            "informer with an error of a handler, pass fail_fast=True to add_handler()"
        )
