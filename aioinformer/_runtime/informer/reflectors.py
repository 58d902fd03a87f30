"""The reflectors of one informer, as the informer sees them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from msgspec import Struct

from aioinformer._core.cache.indexer import Indexer
from aioinformer._core.objects.object_key import ObjectFilter
from aioinformer._runtime.reflector.delta_queue import EntryQueue
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher
from aioinformer._runtime.reflector.reflector import Reflector
from aioinformer._runtime.tasks.task_group import StrictTaskGroup

if TYPE_CHECKING:  # for types alone
    from aioinformer._runtime.reporting.health import Health

RunReflector: TypeAlias = Callable[[Reflector, EntryQueue, str], Coroutine[Any, Any, None]]
"""Runs a reflector that feeds a queue with the scope of that name (empty for the only scope)."""


def run_reflector(reflector: Reflector, queue: EntryQueue, scope: str) -> Coroutine[Any, Any, None]:
    return reflector.run()


class ScopePart(Struct, frozen=True, eq=False):
    """The source and the cache of one scope, to compare them."""

    source: ListerWatcher
    indexer: Indexer
    filter: ObjectFilter | None
    """Selects the objects that are read, and may change; ``None`` for all of the source."""
    has_left: Callable[[], bool] = bool
    """Returns True if the informer doesn't read the scope any more."""

    @classmethod
    def of(
        cls, reflector: Reflector, indexer: Indexer, has_left: Callable[[], bool] = bool
    ) -> ScopePart:
        return cls(reflector.unfiltered_source, indexer, reflector.filter, has_left)


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


def with_excluded(health: Health, reflectors: Iterable[Reflector]) -> Health:
    """Return ``health`` with what the filters of the reflectors have dropped."""
    filtered = [each.status for each in reflectors if each.filter is not None]
    if not filtered:
        return health
    from dataclasses import replace  # when the health is first read

    return replace(
        health,
        shard_filter="client" if any(each.excludes for each in filtered) else "server",
        other_shards=sum(each.excluded for each in filtered),
    )


class SingleReflector:
    def __init__(
        self,
        name: str,
        reflector: Reflector,
        queue: EntryQueue,
        indexer: Indexer,
        run: RunReflector,
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
        return with_excluded(health, [self._reflector])

    @property
    def fresh(self) -> float | None:
        return self._reflector.status.fresh

    def parts(self) -> Sequence[ScopePart]:
        return [ScopePart.of(self._reflector, self._indexer)]

    def find(self, namespace: str) -> Reflector | None:
        return self._reflector

    def __repr__(self) -> str:
        return f"<SingleReflector {self._reflector!r}>"
