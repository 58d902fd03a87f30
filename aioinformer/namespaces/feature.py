"""Several namespaces as a feature of an informer: ``namespaces=["web", "shop"]``."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

from aioinformer._core.cache.store import Indexers
from aioinformer._core.objects.kube_object import KubeObject
from aioinformer._core.objects.view import ObjectView
from aioinformer._runtime.informer.feature import (
    DepartureGuard,
    Feature,
    InformerParts,
    MakeReflectors,
    Selection,
)
from aioinformer._runtime.informer.pipeline import departure_from
from aioinformer._runtime.informer.reflector_builder import ReflectorBuilder
from aioinformer._runtime.informer.reflectors import RunReflector
from aioinformer._runtime.reflector.reflector import Reflector
from aioinformer._runtime.reporting.reporter import InformerReporter
from aioinformer._runtime.tasks.task_group import StrictTaskGroup
from aioinformer.namespaces.scope_set import ScopeQueue, ScopeSet
from aioinformer.namespaces.scoped_source import ScopedSource
from aioinformer.namespaces.state.partitions import PartitionedIndexer
from aioinformer.namespaces.state.scopes import Scope, check_namespace, check_scope


class NamespacesFeature(Feature):
    scopes: ScopeSet
    """The namespaces that the informer reads. Made with the reflectors."""
    _cache: PartitionedIndexer
    _reporter: InformerReporter
    _guards: Mapping[DepartureGuard, None]

    def __init__(self, source: ScopedSource) -> None:
        self._source = source

    def make_cache(
        self, indexers: Indexers[Any], view: ObjectView[Any] | None
    ) -> PartitionedIndexer:
        self._cache = PartitionedIndexer(indexers, view=view)
        return self._cache

    def attach(self, parts: InformerParts) -> None:
        self._reporter, self._guards = parts.builder.reporter, parts.guards

    def wrap_reflectors(self, make: MakeReflectors, parts: InformerParts) -> MakeReflectors:
        return partial(self._make_scopes, parts)

    def _make_scopes(self, parts: InformerParts, run: RunReflector) -> ScopeSet:
        self.scopes = ScopeSet(
            parts.name,
            self._source,
            parts.queue,
            self._cache,
            make_reflector=partial(_make_reflector, self._source, parts.builder),
            update_synced=parts.update_synced,
            run=run,
        )
        return self.scopes

    def start(self, tasks: StrictTaskGroup) -> None:
        # The reflectors have reporters of their own.
        self._reporter.start(asyncio.get_running_loop().time)

    def exclusion(self, obj: KubeObject) -> str:
        key = obj.key
        lacks = self._cache.state.part_of(key) is None
        return f"namespace {key.namespace}" if lacks else ""

    def narrow(self, selection: Selection) -> Selection:
        return Selection(
            frozenset(self.scopes.namespaces),
            frozenset(filter(any, self._source.scope_selectors)),
            selection.part,
        )

    @property
    def departure(self) -> str:
        if (followed := self._source.followed) is not None:
            return f"the namespaces that match {followed.predicate!r}"
        return ""

    @property
    def identity(self) -> Mapping[str, str]:
        return {"scopes": "several"}

    @property
    def scope_selectors(self) -> str:
        """The selectors of a namespace that has none of its own, as text."""
        return self._source.selectors

    def add(self, namespace: str, scope: Scope | None) -> None:
        """Read one more namespace, with the selectors of the informer without a ``scope``."""
        self.scopes.check_changeable()
        chosen = check_scope(Scope() if scope is None else scope)
        departure = departure_from([(chosen.label_selector, chosen.field_selector)])
        for guard in self._guards:
            guard.check(departure)
        self.scopes.add(check_namespace(namespace), chosen)

    def remove(self, namespace: str) -> None:
        """Stop reading a namespace."""
        self.scopes.check_changeable()
        self.scopes.remove(namespace)


def _make_reflector(
    source: ScopedSource, builder: ReflectorBuilder, namespace: str, scope: Scope, queue: ScopeQueue
) -> Reflector:
    opened, reporter = source.open(namespace, scope), builder.reporter.make_part(namespace)
    return builder.make(opened, queue, reporter=reporter, optional=scope.optional)
