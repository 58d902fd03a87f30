"""Objects that are divided among replicas, as far as a controller has to know.

A controller asks a ``KeyGate`` before it reconciles a key, and before it writes. Without a division
it has no gate, and reconciles every key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast, runtime_checkable

from aioinformer._core.objects.kube_object import Event, KubeObject, ObjectKey
from aioinformer._core.objects.resources import Resource
from aioinformer._informers.informer import SharedInformer
from aioinformer.errors import UsageError


class KeyGate(Protocol):
    """Admits the keys of one controller whose objects belong to this replica."""

    def on_unadmitted(self, forget: Callable[[ObjectKey], object]) -> None:
        """Call ``forget`` with each key that another replica takes over, or that isn't admitted."""

    def is_trigger(self, event: Event[KubeObject]) -> bool:
        """Return False if an event only says that the object belongs to another replica now."""
        ...

    def note_uncached(self, key: ObjectKey, uid: str) -> None:
        """Admit a key whose object is not cached, since its only version was rejected."""

    def may_request(self, key: ObjectKey) -> bool:
        """Return True if an event of another object may request this key: its object is cached, or
        its deletion is not reconciled to the end.
        """
        ...

    def begin(self, key: ObjectKey) -> bool:
        """Return True, and count the key as being reconciled, if it is admitted."""
        ...

    def end(self, key: ObjectKey, *, requested: bool) -> None:
        """Record that the reconcile of a key has ended; ``requested`` if another one follows."""

    def check(self, key: ObjectKey) -> None:
        """Raise unless the reconcile of this key may write at this moment."""

    def close(self) -> None:
        """Admit no more keys."""


@runtime_checkable
class DividesKeys(Protocol):
    """A feature that divides the objects of one informer among replicas."""

    @property
    def name(self) -> str: ...

    @property
    def assignment(self) -> object:
        """The group that assigns the objects, which an operator enters."""
        ...

    def make_gate(self, stored: Callable[[ObjectKey], KubeObject | None]) -> KeyGate:
        """Return the gate of a controller; ``stored`` returns the cached object of a key."""
        ...


@runtime_checkable
class ReplicaGroup(Protocol):
    """A group of replicas that divide objects among themselves: a ``ShardGroup``."""

    @property
    def name(self) -> str: ...

    def informer(self, resource: str | Resource, /) -> SharedInformer[Any]:
        """Return an informer of the objects that belong to this replica."""
        ...


def find_division(informer: SharedInformer[Any]) -> DividesKeys | None:
    return informer.find_feature(DividesKeys)


def check_group(
    given: SharedInformer[Any] | str | Resource, shards: ReplicaGroup
) -> str | Resource:
    """Return the resource whose objects are to be divided among the members of a group.

    Raises:
        TypeError: ``shards`` is no group.
        UsageError: both an informer and a group are given.
    """
    if not isinstance(cast("object", shards), ReplicaGroup):
        raise TypeError(
            f"shards takes a ShardGroup, not {shards!r}; for a shard that never moves, pass the "
            "informer of the shard instead: informers.informer(..., shard=Shard(0, 4))"
        )
    if isinstance(given, SharedInformer):
        chosen = find_division(given)
        reads = f"reads the shards of {chosen.name}" if chosen else "is not divided into shards"
        raise UsageError(
            f"shards= makes the informer of a resource, and the given informer of {given.name} "
            f"{reads}: pass the resource {str(given.resource)!r} with shards=group, or "
            "group.informer(...) without shards="
        )
    return given
