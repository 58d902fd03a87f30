"""The source of an informer of several namespaces."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol, Self

from msgspec import Struct

from aioinformer._core.objects.kube_object import Event, KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer._runtime.reflector.lister_watcher import ListerWatcher, Source

if TYPE_CHECKING:  # for types alone
    from aioinformer._core.selectors.predicates import ObjectPredicate
    from aioinformer._runtime.reporting.health import Health
    from aioinformer.namespaces.state.scopes import NamespaceSelection, Scope


class NamespaceInformer(Protocol):
    @property
    def health(self) -> Health: ...

    def snapshot_and_events(
        self,
    ) -> AbstractAsyncContextManager[
        tuple[Mapping[ObjectKey, KubeObject], AsyncIterator[Event[KubeObject]]]
    ]:
        """Wait for the cached namespaces, and return them and a stream of their changes."""
        ...


class FollowedNamespaces(Struct, frozen=True):
    informer: NamespaceInformer
    predicate: ObjectPredicate
    scope: Scope


class ScopedSource(Struct, frozen=True):
    resource: Resource
    open: Callable[[str, Scope], ListerWatcher]
    """Returns the list and watch of one namespace. Raises a ValueError for a name that is none."""
    scopes: Mapping[str, Scope] = {}
    followed: FollowedNamespaces | None = None
    """The namespaces to follow; ``None`` if the program adds and removes namespaces."""
    default: Scope | None = None
    """The selectors of namespaces that are added without any."""

    @property
    def selectors(self) -> str:
        """The selectors of a namespace that has none of its own, as text."""
        default = self.default
        return "" if default is None else f"{default.label_selector};{default.field_selector}"

    @property
    def scope_selectors(self) -> tuple[tuple[str, str], ...]:
        """The label selector and the field selector of each scope."""
        scopes = [*self.scopes.values(), *([] if self.default is None else [self.default])]
        return tuple((each.label_selector, each.field_selector) for each in scopes)

    @classmethod
    def of(
        cls,
        source: Source,
        resource: Resource,
        selection: NamespaceSelection,
        informer: NamespaceInformer | None,
    ) -> Self:
        """Return the source of an informer.

        ``informer`` caches the namespaces; ``None`` if there are none to follow.
        """

        def open_namespace(namespace: str, scope: Scope) -> ListerWatcher:
            scope = scope.with_defaults(selection.default)
            return source.lister_watcher(
                resource,
                namespace=namespace,
                labels=scope.label_selector,
                fields=scope.field_selector,
            )

        followed = None
        if informer is not None and selection.predicate is not None:
            followed = FollowedNamespaces(informer, selection.predicate, selection.default)
        return cls(resource, open_namespace, dict(selection.scopes), followed, selection.default)
