"""The interface of features: optional parts of one informer, which attach themselves to it.

A feature is a package of its own. The pipeline of an informer makes the parts that each informer
has, and offers them to its features; it knows none of these by name. A feature overrides what
concerns it, and costs an informer without it nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from aioinformer._core.cache.store import Indexers
from aioinformer._core.codec.shape import Shape
from aioinformer._core.objects.deltas import Replaced
from aioinformer._core.objects.kube_object import Event, KubeObject
from aioinformer._core.objects.object_key import ObjectFilter
from aioinformer._core.objects.resources import Resource
from aioinformer._core.objects.view import ObjectView
from aioinformer._runtime.informer.reflector_builder import ReflectorBuilder
from aioinformer._runtime.informer.reflectors import Reflectors, RunReflector
from aioinformer._runtime.reflector.delta_queue import DeltaQueue, EntryQueue
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher
from aioinformer._runtime.tasks.task_group import StrictTaskGroup

if TYPE_CHECKING:  # for types alone
    from aioinformer._core.cache.protocols import ObjectCache
    from aioinformer._runtime.reporting.health import Health

F = TypeVar("F")

MakeReflectors: TypeAlias = Callable[[RunReflector], Reflectors]
"""Makes the reflectors of an informer, each of which is run by the function that is passed. A
feature that runs them itself, as a cache file does, ignores the function that it is passed."""


class DepartureGuard(Protocol):
    """Objects to the departure of existing objects from a cache."""

    def check(self, departure: str) -> None:
        """Raise if there is something that an object may leave, and with it the cache, without
        being deleted: a selector, for example. Empty for nothing.
        """

    def dropped(self, obj: KubeObject) -> None:
        """Take a version of an object that ``transform=`` drops, before the transform."""


class Selection(NamedTuple):
    """The objects that an informer reads."""

    namespaces: frozenset[str] | None
    """``None`` for all."""
    selectors: frozenset[tuple[str, str]]
    """The label selectors and field selectors, unless both are empty."""
    part: object = None
    """The part of these objects that a feature has chosen; ``None`` for all."""


class InformerParts(Struct, frozen=True, eq=False):
    """The parts of one informer, to which a feature attaches itself."""

    name: str
    source: ListerWatcher
    shape: Shape[Any]
    queue: DeltaQueue
    cache: ObjectCache
    builder: ReflectorBuilder
    update_synced: Callable[[], None]
    """Is to be called when the cache may be synced without another list."""
    guards: Mapping[DepartureGuard, None]
    features: tuple[Feature, ...]
    """All features of the informer, in order of their attachment."""


class Feature:
    """One feature of one informer. As it stands it does nothing; a feature overrides methods.

    The methods are called in the order in which they stand here. A feature must not keep the
    ``InformerParts``, which refer to it: only a garbage collection would free such a cycle.
    """

    def make_cache(
        self, indexers: Indexers[Any], view: ObjectView[Any] | None
    ) -> ObjectCache | None:
        """Return the cache of the informer; ``None`` to leave that to others. Only one feature can
        return a cache.
        """

    def select(
        self, resource: Resource, queue: EntryQueue
    ) -> tuple[EntryQueue, ObjectFilter | None]:
        """Return the queue and the filter of a new reflector that feeds ``queue``; ``None`` for no
        filter. Only one feature can return a filter.
        """
        return queue, None

    def attach(self, parts: InformerParts) -> None:
        """Take the parts that this feature needs. The informer does not run yet."""

    def wrap_reflectors(self, make: MakeReflectors, parts: InformerParts) -> MakeReflectors:
        """Return what makes the reflectors, by ``make`` or in its place."""
        return make

    def start(self, tasks: StrictTaskGroup) -> None:
        """Start the tasks of this feature. The informer begins to run."""

    def record(self, events: Sequence[Event]) -> None:
        """Receive changes of the cache, in the step that makes them."""

    def record_list(self, batches: Sequence[Sequence[Event]], kind: Replaced) -> None:
        """Receive the changes of a state that was installed; ``kind`` is without its objects."""

    async def prepare_removal(self, scope: str) -> None:
        """Prepare for the removal of a namespace, which is delivered afterwards."""

    async def close(self) -> None:
        """End the work of this feature. The informer's tasks have ended, and later features have
        closed.
        """

    def summarize(self, health: Health) -> Health:
        """Return the informer's health with the state of this feature in it.

        If this raises, so does each reading of the health.
        """
        return health

    @property
    def memory_bytes(self) -> int:
        """Bytes that this feature keeps beside the cache, as an estimate."""
        return 0

    def exclusion(self, obj: KubeObject) -> str:
        """Return what certainly keeps an object out of the cache; empty if nothing does."""
        return ""

    def narrow(self, selection: Selection) -> Selection:
        """Return the objects that are read, if this feature reads others than the source has."""
        return selection

    @property
    def departure(self) -> str:
        """Text of a selection that an object may leave without being deleted, and with it the
        cache; empty for none.
        """
        return ""

    @property
    def identity(self) -> Mapping[str, str]:
        """Texts that differ where this feature selects other objects, or changes their stored form;
        by names that no other feature has.
        """
        return {}


def find_feature(features: Iterable[Feature], kind: type[F]) -> F | None:
    """Return the feature of a class or runtime protocol; ``None`` if there is none."""
    return next((each for each in features if isinstance(each, kind)), None)
