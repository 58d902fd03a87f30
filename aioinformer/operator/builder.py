"""``ControllerBuilder``: the declaration of one controller of an operator.

A controller runs once, so an operator builds a new one from its declaration for each term of
leadership. Names that only the server knows are resolved when the operator starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, cast

from typing_extensions import Unpack

from aioinformer._core.arguments import check_names
from aioinformer._core.objects.resources import Resource, versioned_name
from aioinformer._core.selectors.event_filter import Filter, check_filter
from aioinformer._informers.factory import SharedInformerFactory
from aioinformer._informers.informer import SharedInformer
from aioinformer._runtime.writing.resource_writer import WriterSource
from aioinformer.controllers.controller import Controller, ReconcileKeywords
from aioinformer.controllers.finalizer import FinalizerUse
from aioinformer.controllers.key_gate import ReplicaGroup, check_group, find_division
from aioinformer.controllers.options import ControllerOptions
from aioinformer.controllers.reconcile_runs import BlockingReconcile, Reconcile, compile_functions
from aioinformer.controllers.triggers import ToKeys, check_to_keys
from aioinformer.errors import NotRunning, UnknownResource, UsageError
from aioinformer.eventrecorder.event_recorder import EventRecorder
from aioinformer.operator.options import OperatorOptions

if TYPE_CHECKING:  # for operators with groups alone
    from aioinformer.shardgroup.group import ShardGroup

WatchedResource: TypeAlias = str | Resource | SharedInformer[Any]
"""A resource by its name (``deployments``, ``foos.example.com``), a ``Resource``, or an informer of
``Operator.informers``."""


AddTrigger: TypeAlias = Callable[[Controller, SharedInformer[Any]], object]
"""Repeats a call of ``owns`` or ``watches`` on a controller."""


class Discovers(Protocol):
    """Finds resources by name: a ``Client``."""

    async def resource(self, name: str) -> Resource:
        """Return the resource that the server serves under a name."""
        ...


class _Reference:
    """A resource as the program has written it, and its informer as soon as that is known."""

    def __init__(
        self,
        given: WatchedResource,
        informers: SharedInformerFactory,
        shards: ShardGroup | None = None,
    ) -> None:
        self._given = str(given)
        self._informers = informers
        self._shards = shards
        self.known = self._find_informer(given)
        """The informer; ``None`` while only the server knows the resource."""

    @property
    def name(self) -> str:
        """The name as the program has written it; the resource's own as soon as that is known."""
        return self._given if self.known is None else versioned_name(self.known.resource)

    def _find_informer(self, given: WatchedResource) -> SharedInformer[Any] | None:
        """Return the informer, unless only the server knows the name."""
        if isinstance(given, SharedInformer):
            return given
        if not isinstance(cast("object", given), str | Resource):
            raise TypeError(
                "a controller of an operator takes the name of a resource, a Resource, or an "
                f"informer of operator.informers, not {given!r}"
            )
        try:
            return self._make_informer(given)
        except UnknownResource:
            return None

    def _make_informer(self, resource: str | Resource) -> SharedInformer[Any]:
        if self._shards is None:
            return self._informers.informer(resource)
        return self._informers.informer(resource, shard=self._shards)

    async def resolve(self, client: Discovers) -> None:
        """Ask the server for a name that isn't built in."""
        if self.known is None:
            self.known = self._make_informer(await client.resource(self._given))

    @property
    def informer(self) -> SharedInformer[Any]:
        """The informer; raises ``NotRunning`` before a custom resource's name is resolved."""
        if self.known is None:
            raise NotRunning(
                f"the resource {self.name!r} is not built in, and the operator asks the server for "
                "it when the operator starts; pass a Resource to use its informer before"
            )
        return self.known


class ControllerBuilder:
    """A controller of an operator, declared before the operator runs.

    operator.controller("deployments", reconcile).owns("replicasets")
    """

    def __init__(
        self,
        informers: SharedInformerFactory,
        resource: WatchedResource,
        reconcile: Reconcile | BlockingReconcile,
        *,
        shards: ShardGroup | None = None,
        filter: Filter[Any] | None = None,
        **keywords: Unpack[ReconcileKeywords],
    ) -> None:
        """Declare a controller. ``Operator.controller`` documents the arguments."""
        self._informers = informers
        check_names(keywords, ReconcileKeywords.__annotations__, "shards", "filter")
        self.shards = _find_group(resource, shards)
        self._reference = _Reference(resource, informers, self.shards)
        self._reconcile = reconcile
        self._filter = filter
        self._keywords = keywords
        # The checks of a Controller, at the place of the mistake: a Controller is built later.
        named: ReconcileKeywords = {**keywords, "name": self.name}
        compile_functions(reconcile, ControllerOptions(**named))
        check_filter(filter)
        self._triggers: list[tuple[_Reference, AddTrigger]] = []
        self._started = False

    @property
    def name(self) -> str:
        """The name in logs, health and metrics: ``name=``, or the resource's without selectors. A
        custom resource has its own name, however the program has written it, when the operator has
        started.
        """
        return self._keywords.get("name") or self._reference.name

    @property
    def informer(self) -> SharedInformer[Any]:
        """The informer of the objects that are reconciled.

        Raises:
            NotRunning: only the server knows the resource, and the operator hasn't started yet.
        """
        return self._reference.informer

    def check_finalizer(self, others: Iterable[ControllerBuilder]) -> None:
        """Raise ``UsageError`` if one of the others has the same finalizer for the same objects."""
        for use in self._finalizer_uses:
            use.check(used for each in others for used in each._finalizer_uses)

    @property
    def _finalizer_uses(self) -> list[FinalizerUse]:
        """Empty without a finalizer, and while only the server knows the resource."""
        finalizer, informer = self._keywords.get("finalizer"), self._reference.known
        return [FinalizerUse(self.name, finalizer, informer)] if finalizer and informer else []

    def owns(self, resource: WatchedResource, *, filter: Filter[Any] | None = None) -> Self:
        """Reconcile an object when an object that it controls changes, as ``Controller.owns``.

        With ``shards=`` of a group that is divided by namespace, only the children in the shards of
        this replica are read. By uid, children may be in any shard, and each replica reads all.

        Raises:
            UsageError: the operator has started.
            TypeError: ``resource`` or ``filter`` has the wrong type.
        """
        check_filter(filter)
        together = self.shards is not None and self.shards.by == "namespace"
        group = self.shards if together else None
        return self._add(resource, lambda owner, it: owner.owns(it, filter=filter), group)

    def watches(
        self, resource: WatchedResource, to_keys: ToKeys[Any], *, filter: Filter[Any] | None = None
    ) -> Self:
        """Reconcile keys when objects of another resource change, as ``Controller.watches``.

        Raises:
            UsageError: the operator has started.
            TypeError: an argument has the wrong type.
        """
        check_to_keys(to_keys)
        check_filter(filter)
        return self._add(resource, lambda owner, it: owner.watches(it, to_keys, filter=filter))

    def _add(
        self, resource: WatchedResource, add: AddTrigger, shards: ShardGroup | None = None
    ) -> Self:
        if self._started:
            raise UsageError(f"the controller {self.name} has started; add triggers before")
        self._triggers.append((_Reference(resource, self._informers, shards), add))
        return self

    async def resolve(self, client: Discovers) -> None:
        """Find the resources that only the server knows, or raise its error."""
        self._started = True
        for reference in (self._reference, *(each for each, _ in self._triggers)):
            await reference.resolve(client)

    def build(
        self, client: WriterSource, events: EventRecorder, options: OperatorOptions
    ) -> Controller:
        """Return a controller for one term. ``resolve`` has returned before."""
        # The operator's name is stable. A default that is made of the resource would be shared by
        # all programs that reconcile this resource, and each apply removes what the last one set.
        field_manager = self._keywords.get("field_manager") or options.name
        named: ReconcileKeywords = {"name": self.name, "field_manager": field_manager}
        controller = Controller(
            self.informer,
            self._reconcile,
            filter=self._filter,
            **(self._keywords | named),
            client=client,
            events=events,
            metrics=options.metrics,
            tracing=options.tracing,
            on_error=options.on_error,
            shutdown_timeout=options.shutdown_timeout,
        )
        for reference, add in self._triggers:
            add(controller, reference.informer)
        return controller

    def __repr__(self) -> str:
        return f"<ControllerBuilder {self.name} triggers={len(self._triggers) + 1}>"


def _find_group(given: WatchedResource, shards: ShardGroup | None) -> ShardGroup | None:
    """Return the group of ``shards=``, or that whose shards a given informer reads."""
    if shards is not None:
        check_group(given, shards)
        return shards
    chosen = find_division(given) if isinstance(given, SharedInformer) else None
    if chosen is None or not isinstance(chosen.assignment, ReplicaGroup):
        return None
    return cast("ShardGroup", chosen.assignment)
