"""The reflectors of one informer, as the informer sees them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from msgspec import Struct

from aioinformer._core.cache.indexer import Indexer
from aioinformer._core.objects.object_key import Admit
from aioinformer._runtime.reflector.delta_queue import EntryQueue
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher
from aioinformer._runtime.reflector.reflector import Reflector
from aioinformer._runtime.tasks.task_group import StrictTaskGroup

if TYPE_CHECKING:
    from aioinformer._runtime.reporting.health import Health

RunReflector: TypeAlias = Callable[[Reflector, EntryQueue, str], Coroutine[Any, Any, None]]
"""Runs a reflector that feeds a queue with the scope of that name (empty for the only scope)."""


def run_reflector(reflector: Reflector, queue: EntryQueue, scope: str) -> Coroutine[Any, Any, None]:
    return reflector.run()


class ScopePart(Struct, frozen=True, eq=False):
    """The source and the cache of one scope, to compare them."""

    source: ListerWatcher
    indexer: Indexer
    admit: Admit | None
    """Admits the objects of the source that belong to the cache; ``None`` for all."""
    has_left: Callable[[], bool] = bool
    """Returns True if the informer doesn't read the scope any more."""

    @classmethod
    def of(
        cls, reflector: Reflector, indexer: Indexer, has_left: Callable[[], bool] = bool
    ) -> ScopePart:
        return cls(reflector.source, indexer, reflector.ranges, has_left)


class Reflectors(Protocol):
    def start(self, group: StrictTaskGroup) -> None: ...

    def close(self) -> None: ...

    def summarize(self, health: Health) -> Health:
        """Return the informer's health with the state of the reflectors in it."""
        ...

    @property
    def fresh(self) -> float | None:
        """Seconds since the server last proved that the cache is up to date."""
        ...

    def parts(self) -> Sequence[ScopePart]:
        """Return the source and the cache of each scope that has a state."""
        ...

    def find(self, namespace: str) -> Reflector | None:
        """Return the reflector that reads a namespace; ``None`` before it starts."""
        ...


def with_shards(health: Health, reflectors: Iterable[Reflector]) -> Health:
    """Return ``health`` with what the reflectors have received of other shards."""
    filters = [each.shard for each in reflectors if each.shard is not None]
    if not filters:
        return health
    from dataclasses import replace  # when the health is first read

    by_server = all(each.filtered_by == "server" for each in filters)
    return replace(
        health,
        shard_filter="server" if by_server else "client",
        other_shards=sum(each.excluded for each in filters),
    )


class SingleReflector:
    def __init__(
        self,
        name: str,
        reflector: Reflector,
        queue: EntryQueue,
        indexer: Indexer,
        run: RunReflector = run_reflector,
    ) -> None:
        self._queue = queue
        self._run = run
        self._name = name
        self._reflector = reflector
        self._indexer = indexer

    def start(self, group: StrictTaskGroup) -> None:
        work = self._run(self._reflector, self._queue, "")
        group.start(work, name=f"reflector of {self._name}")

    def close(self) -> None: ...

    def summarize(self, health: Health) -> Health:
        from dataclasses import replace  # when the health is first read

        health = replace(health, strategy=self._reflector.strategy)
        return with_shards(health, [self._reflector])

    @property
    def fresh(self) -> float | None:
        return self._reflector.status.fresh

    def parts(self) -> Sequence[ScopePart]:
        return [ScopePart.of(self._reflector, self._indexer)]

    def find(self, namespace: str) -> Reflector | None:
        return self._reflector

    def __repr__(self) -> str:
        return f"<SingleReflector {self._reflector!r}>"
