"""The options of an informer: checked once, passed on as one frozen object.

Callers write the options as keywords, which ``InformerOptions.merge`` reads; the typed dictionaries
give them their types. Every option is documented on its field, here or in ``ReflectorOptions``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, cast

from aioinformer._core.arguments import check_names, check_seconds
from aioinformer._core.codec.shape import Transform
from aioinformer._core.instrumentation import Metrics, Tracing
from aioinformer._runtime.reflector.options import ReflectorKeywords, ReflectorOptions
from aioinformer._runtime.reporting.error_hook import check_hook
from aioinformer._runtime.reporting.reporter import InformerReporter
from aioinformer._runtime.reporting.safe_call import check_instrumentation
from aioinformer.errors import FetchError

if TYPE_CHECKING:  # for programs that use these features, and for types
    from aioinformer._core.selectors.label_parser import LabelMapping
    from aioinformer._core.selectors.parsed_selectors import FieldSelector, LabelSelector
    from aioinformer._runtime.reporting.problem import OnError
    from aioinformer.cachefile.cache_file import CacheFile
    from aioinformer.namespaces.state.scopes import Namespaces
    from aioinformer.sharding.state.assignment import ShardAssignment
    from aioinformer.sharding.state.shard import Shard

ReportBlocking: TypeAlias = bool | Literal["stack"]

SHAPE_NAMES = ("indexers", "model", "convert")
"""The keywords of ``informer()`` that depend on the type of objects."""


class InformerKeywords(ReflectorKeywords, total=False):
    """The options as keywords; ``None`` and a missing keyword both mean the default."""

    resync: float
    fail_fast: tuple[type[FetchError], ...]
    report_blocking: ReportBlocking
    on_error: OnError | None
    metrics: Metrics | None
    tracing: Tracing | None
    shard: Shard | ShardAssignment | None
    cache: CacheFile | None


class InformerScope(TypedDict, total=False):
    """The objects that an informer reads, as keywords of ``informer()`` and ``use()``."""

    namespace: str | None
    namespaces: Namespaces | None
    labels: LabelSelector | str | LabelMapping
    fields: FieldSelector | str | Mapping[str, str]
    managed_fields: bool
    metadata_only: bool
    transform: Transform | None


class InformerRequest(InformerScope, InformerKeywords, total=False):
    """The keywords of ``informer()`` and ``use()`` that don't depend on the type of objects."""


class InformerOptions(ReflectorOptions, frozen=True, kw_only=True):
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

    shard: Shard | ShardAssignment | None = None
    """The part of the objects that is read: ``Shard(0, 4)`` is the first of four. The server
    selects the part if it has the feature (KEP-5866, alpha), otherwise this library does, by the
    same hash. ``None`` and ``Shard(0, 1)`` read all objects. A group of replicas reads the shards
    that this member holds."""
    cache: CacheFile | None = None
    """The file that keeps the objects, so that a restart needs no list; see ``CacheFile``."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_seconds("resync", self.resync, zero="never")
        if not isinstance(self.report_blocking, bool) and self.report_blocking != "stack":
            raise ValueError(
                f'report_blocking must be True, False or "stack", not {self.report_blocking!r}'
            )
        _check_shard(self.shard)
        check_hook(self.on_error)
        _check_cache(self.cache)
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


def _check_shard(shard: object) -> None:
    if shard is None:
        return
    from aioinformer.sharding.state.assignment import ShardAssignment  # for informers of shards
    from aioinformer.sharding.state.shard import Shard

    if isinstance(shard, type) or not isinstance(shard, Shard | ShardAssignment):
        raise TypeError(f"shard must be a Shard such as Shard(0, 4), or a group, not {shard!r}")


def _check_cache(cache: object) -> None:
    if cache is None:
        return
    from aioinformer.cachefile.cache_file import CacheFile  # for its users alone

    if not isinstance(cache, CacheFile):
        raise TypeError(f"cache is a CacheFile: write cache=CacheFile({cache!r})")


def check_factory_options(options: Iterable[str]) -> None:
    """Raise ``TypeError`` unless all informers of a factory can have these options."""
    for name in options:
        if name in (*InformerScope.__annotations__, *SHAPE_NAMES):
            raise TypeError(
                f"a factory has no option {name!r}: pass {name}= to informer() or use()"
            )
    check_names(options, InformerOptions.__struct_fields__, "namespace", "shutdown_timeout")


def chosen_options(request: InformerRequest) -> dict[str, Any]:
    """Return the options in ``request``. Raises ``TypeError`` for an unknown keyword."""
    scope = InformerScope.__annotations__
    options = InformerOptions.__struct_fields__
    check_names(request, (*scope, *options), *SHAPE_NAMES)
    return {
        name: value for name, value in request.items() if name not in scope and value is not None
    }
