"""The options of an informer: checked once, passed on as one frozen object.

Callers write the options as keywords, which ``InformerOptions.merge`` reads; the typed dictionaries
give them their types. Every option is documented on its field, here, in ``PipelineOptions`` or in
``ReflectorOptions``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from aioinformer._core.arguments import check_names
from aioinformer._core.codec.shape import Transform
from aioinformer._informers.features import MakeFeature, check_features
from aioinformer._runtime.informer.options import PipelineKeywords, PipelineOptions

if TYPE_CHECKING:  # for programs that use these features, and for types
    from aioinformer._core.selectors.label_parser import LabelMapping
    from aioinformer._core.selectors.parsed_selectors import FieldSelector, LabelSelector
    from aioinformer.cachefile.cache_file import CacheFile
    from aioinformer.namespaces.state.scopes import Namespaces
    from aioinformer.sharding.state.assignment import ShardAssignment
    from aioinformer.sharding.state.shard import Shard

SHAPE_NAMES = ("indexers", "model", "convert")
"""The keywords of ``informer()`` that depend on the type of objects."""


class InformerKeywords(PipelineKeywords, total=False):
    """The options as keywords; ``None`` and a missing keyword both mean the default."""

    shard: Shard | ShardAssignment | None
    cache: CacheFile | None
    features: tuple[MakeFeature, ...]


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


class InformerOptions(PipelineOptions, frozen=True, kw_only=True):
    """The options of one informer, those of its reflector and its features included."""

    shard: Shard | ShardAssignment | None = None
    """The part of the objects that is read: ``Shard(0, 4)`` is the first of four. The server
    selects the part if it has the feature (KEP-5866, alpha), otherwise this library does, by the
    same hash. ``None`` and ``Shard(0, 1)`` read all objects. A group of replicas reads the shards
    that this member holds."""
    cache: CacheFile | None = None
    """The file that keeps the objects, so that a restart needs no list; see ``CacheFile``."""
    features: tuple[MakeFeature, ...] = ()
    """Features of the program: functions that are called without arguments for each informer, and
    return its ``aioinformer.lowlevel.Feature``."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_features(self, self.features)


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
