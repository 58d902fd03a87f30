"""The options of an informer: checked once, passed on as one frozen object.

Callers write them as keywords of ``SharedInformerFactory``, of ``informer()`` and ``use()`` for one
informer, or of ``SharedInformer``. The typed dictionaries below give these keywords their types, so
that no signature repeats them; ``InformerOptions.merge`` builds the object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Any, Self, TypedDict

from aioinformer._core.codec.shape import Transform
from aioinformer._core.codec.watch_decoder import LINE_CAP
from aioinformer._core.instrumentation import Metrics, Tracing
from aioinformer._core.listwatch.backoff import BackoffPolicy
from aioinformer._core.listwatch.idle_timeout import LivenessPolicy
from aioinformer._core.selectors.label_parser import LabelMapping
from aioinformer._runtime.reporting.error_hook import OnError, check_hook
from aioinformer.errors import FetchError

__all__ = [
    "InformerKeywords",
    "InformerOptions",
    "InformerRequest",
    "InformerScope",
]


class InformerKeywords(TypedDict, total=False):
    """The fields of ``InformerOptions``, as keywords."""

    resync: float
    verify_every: float
    backoff: BackoffPolicy | None
    liveness: LivenessPolicy | None
    watch_list: bool
    page_size: int
    line_cap: int
    fail_fast: tuple[type[FetchError], ...]
    on_error: OnError | None
    metrics: Metrics | None
    tracing: Tracing | None


class InformerScope(TypedDict, total=False):
    """The part of a resource's objects that an informer reads, and the form that it keeps."""

    namespace: str | None
    """The scope; ``None`` for the factory's, ``ALL_NAMESPACES`` for all."""
    labels: str | LabelMapping
    """A label selector, applied by the server."""
    fields: str | Mapping[str, str]
    """A field selector, applied by the server."""
    managed_fields: bool
    """True to keep ``metadata.managedFields`` of objects."""
    transform: Transform | None
    """A function that replaces or drops objects before anything else sees them."""


class InformerRequest(InformerScope, InformerKeywords, total=False):
    """The keywords of ``informer()`` and ``use()`` that don't depend on the type of objects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InformerOptions:
    """How an informer lists, watches, resyncs and reports."""

    resync: float = 0.0
    """Seconds between two resyncs, which deliver the cached state to the listeners again, as
    ``Updated(resync=True)``, without a request to the server; 0 for never. A listener can ask for
    a period of its own."""
    verify_every: float = 0.0
    """Seconds, a minute at least, between two comparisons of the cache with the server, as made by
    ``SharedInformer.verify``; 0 for never. Each comparison costs the server a full list. A
    difference is reported as a ``Problem`` with ``CacheDiffers``, and in health."""
    backoff: BackoffPolicy | None = None
    """How long to wait after failed requests; client-go's numbers by default."""
    liveness: LivenessPolicy | None = None
    """After how long without data a watch is replaced; see ``LivenessPolicy`` for the defaults."""
    watch_list: bool = True
    """True to read the initial list by a WatchList where the server supports WatchLists; False to
    use paginated lists."""
    page_size: int = 0
    """Items a page of a list; 0 for client-go's rule: 500, or what the server's cache gives."""
    line_cap: int = LINE_CAP
    """The longest watch event, in bytes, that is accepted."""
    fail_fast: tuple[type[FetchError], ...] = ()
    """Errors of requests, ``Forbidden`` for example, that end the informer instead of being
    retried: ``SharedInformer.run`` raises them. A factory ends, too: its body is cancelled, and
    the error is raised there."""
    on_error: OnError | None = None
    """A function that is called with every ``Problem``, in the event loop. It must be quick."""
    metrics: Metrics | None = None
    """Receives the numbers of the informer; see ``aioinformer.adapters.prometheus``."""
    tracing: Tracing | None = None
    """Makes spans of requests, and of calls of handlers if it wants to; see
    ``aioinformer.adapters.opentelemetry``."""

    def __post_init__(self) -> None:
        check_hook(self.on_error)
        for name, given in (("metrics", self.metrics), ("tracing", self.tracing)):
            if isinstance(given, type):
                raise TypeError(f"{name} is an object: pass {given.__name__}(), not the class")

    @staticmethod
    def chosen_in(request: InformerRequest) -> dict[str, Any]:
        """Return the options in ``request``: everything in it that is no part of the scope."""
        return {
            name: value
            for name, value in request.items()
            if name not in InformerScope.__annotations__
        }

    def merge(self, keywords: Mapping[str, Any]) -> Self:
        """Return these options with ``keywords`` in the place of their values.

        Raises:
            TypeError: a keyword is no option, ``on_error`` is no plain function, or ``metrics`` or
                ``tracing`` is a class.
        """
        names = [each.name for each in fields(self)]
        for name in keywords:
            if name not in names:
                close = get_close_matches(name, names, n=1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                raise TypeError(f"{name!r} is no option of an informer{hint}")
        return replace(self, **keywords) if keywords else self
