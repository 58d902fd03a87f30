"""The cache file as a feature of an informer: ``cache=CacheFile("pods.db")``."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol, runtime_checkable

from aioinformer._runtime.informer.feature import Feature, InformerParts, MakeReflectors
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher
from aioinformer._runtime.reporting.health import Health
from aioinformer._runtime.tasks.task_group import StrictTaskGroup
from aioinformer.cachefile.cache_file import CacheFile
from aioinformer.cachefile.checkpointer import Checkpointer, StateParts
from aioinformer.cachefile.durable_position import DurablePosition, DurableSince
from aioinformer.cachefile.file_access import StoredParts
from aioinformer.cachefile.state.identity import scope_identity
from aioinformer.errors import UsageError


@runtime_checkable
class ReadsScopes(Protocol):
    """A feature that reads several scopes, which come and go."""

    @property
    def scope_selectors(self) -> str:
        """The selectors of a scope that has none of its own, as text."""
        ...


@runtime_checkable
class ReadsParts(Protocol):
    """A feature that reads parts of each scope, which come and go."""

    @property
    def durable_refusal(self) -> str:
        """The reason why no listener can be durable."""
        ...


class CacheFileFeature(Feature):
    def __init__(self, file: CacheFile) -> None:
        self._file = file
        self._checkpointer: Checkpointer | None = None
        self._name = ""

    @property
    def checkpointer(self) -> Checkpointer:
        if self._checkpointer is None:
            raise AssertionError("a feature is attached before it is used")
        return self._checkpointer

    def attach(self, parts: InformerParts) -> None:
        source, shape = parts.source, parts.shape
        selection = {
            "managed fields": str(parts.managed_fields),
            "shape": str(shape),
            "version": self._file.version,
        }
        for feature in parts.features:
            if taken := selection.keys() & feature.identity.keys():
                raise UsageError(
                    f"{type(feature).__name__}.identity has the name {min(taken)!r}, which another "
                    "part of the informer has in the cache file; choose another name"
                )
            selection.update(feature.identity)
        selection = {"shard": "None", "scopes": "one", **selection}
        several, divided = parts.find(ReadsScopes), parts.find(ReadsParts)
        family = ""
        if several is not None:
            chosen = {**selection, "selectors": several.scope_selectors}
            family = scope_identity(source.resource, chosen, shape.transform)
        self._name = parts.name
        self._checkpointer = Checkpointer(
            parts.name,
            self._file,
            parts.cache,
            selection=selection,
            transform=shape.transform,
            refusal=self._file.refusal(source.resource, shape),
            durable_refusal="" if divided is None else divided.durable_refusal,
            family=family,
        )
        parts.observers.append(self._checkpointer)

    def wrap_reflectors(self, make: MakeReflectors, parts: InformerParts) -> MakeReflectors:
        return lambda _: make(self.checkpointer.restore_and_run)

    def start(self, tasks: StrictTaskGroup) -> None:
        tasks.start(self.checkpointer.run(), name=f"cache file of {self._name}")

    async def close(self) -> None:
        await self.checkpointer.close()

    def summarize(self, health: Health) -> Health:
        found = self.checkpointer
        return replace(health, restored=found.restored, cache_problem=found.problem)

    async def open_parts(
        self, source: ListerWatcher, scope: str, parts: StateParts
    ) -> StoredParts | None:
        return await self.checkpointer.open_parts(source, scope, parts)

    def position(self, name: str, since: DurableSince) -> DurablePosition:
        """Return the position of a listener of that name, which takes the position by joining."""
        return DurablePosition(name, since, self.checkpointer)


def check_option(value: object) -> None:
    """Raise ``TypeError`` unless ``value`` is a ``CacheFile``."""
    if not isinstance(value, CacheFile):
        raise TypeError(f"cache is a CacheFile: write cache=CacheFile({value!r})")


def make_feature(file: CacheFile) -> CacheFileFeature:
    """Return the feature of a new informer."""
    return CacheFileFeature(file)
