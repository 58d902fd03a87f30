"""Handing out informers: one for each (resource, scope, selectors, shape), to whoever asks.

An informer that is asked for while its factory runs starts at once; one that is only used goes with
its last user. When all of them start and end is ``factory``'s.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol, TypeVar, overload

from aioinformer._core.habits import Habits
from aioinformer._core.objects import KubeObject
from aioinformer._core.resources import Resource
from aioinformer._core.selectors import LabelMapping
from aioinformer._core.shapes import Shape
from aioinformer._core.store import Indexers
from aioinformer._core.transforming import Transform
from aioinformer._runtime.holdings import Holding
from aioinformer._runtime.identity import Identity
from aioinformer._runtime.informer import SharedInformer
from aioinformer._runtime.sources import ListerWatcher
from aioinformer._runtime.supervisor import Supervisor
from aioinformer.errors import ShutdownIncomplete

__all__ = ["ALL_NAMESPACES", "Hosting", "Source"]

log = logging.getLogger("aioinformer.factory")

M = TypeVar("M")

ALL_NAMESPACES = ""
"""As ``namespace``: every namespace, also where the factory has one of its own."""


class Source(Protocol):
    """Where informers list and watch: a ``Client``, or a cluster in memory."""

    def lister_watcher(
        self, resource: Resource, *, namespace: str | None, labels: str, fields: str
    ) -> ListerWatcher:
        """The list and the watch of one resource in one scope."""
        ...


class Hosting:
    """The half of a factory that programs ask for informers."""

    def __init__(
        self,
        source: Source,
        make: Callable[..., SharedInformer[Any]],
        *,
        namespace: str | None,
        shutdown_timeout: float,
    ) -> None:
        """No informers yet.

        Args:
            source: where they list and watch.
            make: makes one.
            namespace: their scope unless they name another; ``None`` for all.
            shutdown_timeout: seconds that one may take to stop.
        """
        self._source = source
        self._informer = make
        self._namespace = namespace or None
        self._habits: dict[Resource, Habits] = {}
        self._shutdown_timeout = shutdown_timeout
        self._holdings: dict[Identity, Holding] = {}
        self._supervisor = Supervisor("informer factory")

    @overload
    def informer(
        self,
        resource: str | Resource,
        *,
        namespace: str | None = None,
        labels: str | LabelMapping = "",
        fields: str | Mapping[str, str] = "",
        indexers: Indexers | None = None,
        managed_fields: bool = False,
        transform: Transform | None = None,
    ) -> SharedInformer: ...
    @overload
    def informer(
        self,
        resource: str | Resource,
        *,
        namespace: str | None = None,
        labels: str | LabelMapping = "",
        fields: str | Mapping[str, str] = "",
        indexers: Indexers[M] | None = None,
        managed_fields: bool = False,
        model: type[M],
        transform: Transform | None = None,
    ) -> SharedInformer[M]: ...
    @overload
    def informer(
        self,
        resource: str | Resource,
        *,
        namespace: str | None = None,
        labels: str | LabelMapping = "",
        fields: str | Mapping[str, str] = "",
        indexers: Indexers[M] | None = None,
        managed_fields: bool = False,
        convert: Callable[[KubeObject], M],
        transform: Transform | None = None,
    ) -> SharedInformer[M]: ...
    def informer(
        self,
        resource: str | Resource,
        *,
        namespace: str | None = None,
        labels: str | LabelMapping = "",
        fields: str | Mapping[str, str] = "",
        indexers: Indexers[Any] | None = None,
        managed_fields: bool = False,
        model: type[Any] | None = None,
        convert: Callable[[KubeObject], Any] | None = None,
        transform: Transform | None = None,
    ) -> SharedInformer[Any]:
        """The informer of a resource: the one that there is, or a new one. No network is used.

        Args:
            resource: the name of a built-in resource in any of its forms, or a ``Resource``.
            namespace: its scope; ``None`` for the factory's, ``ALL_NAMESPACES`` for all.
            labels: a label selector, applied by the server.
            fields: a field selector, applied by the server.
            indexers: index functions by index name, added to those that it has.
            managed_fields: whether objects keep ``metadata.managedFields``.
            model: what to build of each object as it is read, instead of keeping its JSON; see
                ``Shape.of``. Another model is another informer.
            convert: what makes of an object what programs see, when they look; see ``Shape.of``.
            transform: replaces or drops objects before anything else sees them; see ``Transform``.

        Raises:
            UnknownResource: no built-in resource has that name.
            InvalidSelector: a selector doesn't parse.
            NotRunning: the factory has ended.
            UsageError: ``model`` and ``convert`` are both given, ``model`` can't be one, or an
                index function reads JSON that isn't kept.
        """
        shape = Shape.asked(model, convert, transform)
        identity = self._identity(resource, namespace, labels, fields, managed_fields, shape)
        holding = self._holding(identity, indexers)
        holding.kept = True
        return holding.informer

    @overload
    def use(
        self,
        resource: str | Resource,
        *,
        namespace: str | None = None,
        labels: str | LabelMapping = "",
        fields: str | Mapping[str, str] = "",
        indexers: Indexers | None = None,
        managed_fields: bool = False,
        transform: Transform | None = None,
    ) -> AbstractAsyncContextManager[SharedInformer]: ...
    @overload
    def use(
        self,
        resource: str | Resource,
        *,
        namespace: str | None = None,
        labels: str | LabelMapping = "",
        fields: str | Mapping[str, str] = "",
        indexers: Indexers[M] | None = None,
        managed_fields: bool = False,
        model: type[M],
        transform: Transform | None = None,
    ) -> AbstractAsyncContextManager[SharedInformer[M]]: ...
    @overload
    def use(
        self,
        resource: str | Resource,
        *,
        namespace: str | None = None,
        labels: str | LabelMapping = "",
        fields: str | Mapping[str, str] = "",
        indexers: Indexers[M] | None = None,
        managed_fields: bool = False,
        convert: Callable[[KubeObject], M],
        transform: Transform | None = None,
    ) -> AbstractAsyncContextManager[SharedInformer[M]]: ...
    def use(
        self,
        resource: str | Resource,
        *,
        namespace: str | None = None,
        labels: str | LabelMapping = "",
        fields: str | Mapping[str, str] = "",
        indexers: Indexers[Any] | None = None,
        managed_fields: bool = False,
        model: type[Any] | None = None,
        convert: Callable[[KubeObject], Any] | None = None,
        transform: Transform | None = None,
    ) -> AbstractAsyncContextManager[SharedInformer[Any]]:
        """An informer for as long as it is needed: the last one out stops it.

        One that was asked for with ``informer()`` stays. Arguments and errors are the same, but
        that indexes are built where there are objects already; one that can't be is
        ``IndexFailed``. All of them are raised on entering.
        """
        return self._use(
            lambda: self._identity(
                *(resource, namespace, labels, fields, managed_fields),
                Shape.asked(model, convert, transform),
            ),
            indexers or {},
        )

    @asynccontextmanager
    async def _use(
        self, identity: Callable[[], Identity], indexers: Indexers[Any]
    ) -> AsyncGenerator[SharedInformer[Any]]:
        holding = self._holding(identity(), {})
        holding.users += 1
        try:
            for name, function in indexers.items():
                await holding.informer.add_index(name, function)
            yield holding.informer
        except BaseException:
            await self._release(holding, failed=True)
            raise
        else:
            await self._release(holding, failed=False)

    def _identity(
        self,
        resource: str | Resource,
        namespace: str | None,
        labels: str | LabelMapping,
        fields: str | Mapping[str, str],
        managed_fields: bool,
        shape: Shape[Any],
    ) -> Identity:
        self._supervisor.check_usable()
        return Identity.of(
            resource,
            namespace=self._namespace if namespace is None else namespace,
            labels=labels,
            fields=fields,
            managed_fields=managed_fields,
            shape=shape,
        )

    def _holding(self, identity: Identity, indexers: Indexers[Any] | None) -> Holding:
        holding = self._holdings.get(identity)
        if holding is None:
            holding = self._holdings[identity] = Holding(self._make(identity, indexers))
            holding.start(self._supervisor)
        else:
            holding.informer.add_indexers(indexers or {})
        return holding

    def _make(self, identity: Identity, indexers: Indexers[Any] | None) -> SharedInformer[Any]:
        source = self._source.lister_watcher(
            identity.resource,
            namespace=identity.namespace,
            labels=identity.labels,
            fields=identity.fields,
        )
        return self._informer(
            source,
            name=str(identity),
            label=identity.label,
            namespace=identity.namespace,
            shape=identity.shape,
            indexers=indexers,
            habits=self._habits.setdefault(identity.resource, Habits()),
            managed_fields=identity.managed_fields,
        )

    async def _release(self, holding: Holding, *, failed: bool) -> None:
        """One user less; without any, the informer is stopped."""
        holding.users -= 1
        if holding.needed:
            return
        self._holdings = {key: each for key, each in self._holdings.items() if each is not holding}
        if left := await holding.stop(self._shutdown_timeout):
            incomplete = ShutdownIncomplete(left, waited=self._shutdown_timeout)
            if not failed:
                raise incomplete
            log.error("%s", incomplete)

    def __iter__(self) -> Iterator[SharedInformer]:
        return iter([holding.informer for holding in self._holdings.values()])
