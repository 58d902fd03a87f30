"""The source of an informer of several namespaces."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from aioinformer._core.objects.kube_object import Event, KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer._core.selectors.predicates import ObjectPredicate
from aioinformer._core.selectors.scopes import Scope
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher
from aioinformer._runtime.reporting.health import Health

__all__ = ["FollowedNamespaces", "NamespaceInformer", "ScopedSource"]


class NamespaceInformer(Protocol):
    """The part of an informer of namespaces that is used."""

    @property
    def health(self) -> Health:
        """The state of the informer."""
        ...

    def snapshot_and_events(
        self,
    ) -> AbstractAsyncContextManager[
        tuple[Mapping[ObjectKey, KubeObject], AsyncIterator[Event[KubeObject]]]
    ]:
        """Wait for the cached namespaces, and return them and a stream of their changes."""
        ...


@dataclass(frozen=True, slots=True)
class FollowedNamespaces:
    """The namespaces to follow."""

    informer: NamespaceInformer
    predicate: ObjectPredicate
    scope: Scope
    """The selection in each of them."""


@dataclass(frozen=True, slots=True)
class ScopedSource:
    """Lists and watches of one resource in several namespaces."""

    resource: Resource
    open: Callable[[str, Scope], ListerWatcher] = field(repr=False)
    """Returns the list and watch of one namespace. Raises a ValueError for a name that is none."""
    scopes: Mapping[str, Scope] = field(default_factory=dict[str, Scope])
    """The namespaces at the beginning."""
    followed: FollowedNamespaces | None = None
    """The namespaces to follow; ``None`` if the program adds and removes namespaces."""
