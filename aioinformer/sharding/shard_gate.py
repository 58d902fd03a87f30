"""The gate of a controller on a group: only keys of shards that this member holds are reconciled.

A key names no shard: its object does, by uid or namespace. So the gate looks at the cached object,
and remembers the shard of each deleted object until the deletion was reconciled. A key whose object
is neither cached nor remembered belongs to another member, or was removed with its shard: a
reconciler would take the missing object for a deleted one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aioinformer._core.objects.kube_object import Deleted, Event, KubeObject, ObjectKey
from aioinformer.errors import ShardLost
from aioinformer.sharding.group_shards import GroupShards


class ShardGate:
    """Admits the keys of one controller, and knows which shards are being worked on."""

    def __init__(
        self, shards: GroupShards, stored: Callable[[ObjectKey], KubeObject | None]
    ) -> None:
        """Admit the keys of held shards; ``stored`` returns the cached object of a key."""
        self._shards = shards
        self._stored = stored
        self._admitted: frozenset[int] = frozenset()
        self._running: dict[ObjectKey, int] = {}
        """The shard of each key that is being reconciled."""
        self._requested: dict[ObjectKey, int] = {}
        """The shard of each requested key whose object may be absent when its run begins."""
        self._ended = asyncio.Event()
        self._forgetters: list[Callable[[ObjectKey], object]] = []
        shards.add_user(self)

    def on_unadmitted(self, forget: Callable[[ObjectKey], object]) -> None:
        """Call ``forget`` with each key that moves away with its shard, or isn't admitted."""
        self._forgetters.append(forget)

    # -- shards --------------------------------------------------------------------------------

    def take(self, shards: frozenset[int]) -> None:
        self._admitted |= shards

    def begin_release(self, shards: frozenset[int]) -> None:
        self._admitted -= shards
        for key in [key for key, shard in self._requested.items() if shard in shards]:
            del self._requested[key]

    async def wait_released(self, shards: frozenset[int]) -> None:
        while not shards.isdisjoint(self._running.values()):
            self._ended.clear()
            await self._ended.wait()

    def close(self) -> None:
        """Work on no shard any more, unless a reconcile was left behind."""
        self._forgetters.clear()
        if not self._running:
            self._shards.remove_user(self)

    # -- keys ----------------------------------------------------------------------------------

    def is_trigger(self, event: Event[KubeObject]) -> bool:
        """Return False if an event only says that a shard has moved away."""
        if isinstance(event, Deleted):
            if event.reason == "scope_removed":
                self._forget(event.key)
                return False
            # Also of an object that only leaves the filter: its deletion is then no event.
            self._requested[event.key] = self._shards.shard_of_object(event.obj)
        return True

    def note_uncached(self, key: ObjectKey, uid: str) -> None:
        """Admit a key whose object is not cached, since its only version was rejected."""
        if self._stored(key) is None:
            self._requested[key] = self._shards.shard_of(uid, key)

    def may_request(self, key: ObjectKey) -> bool:
        """Return True if an event of another object may request this key: its object is cached, or
        its
        deletion is not reconciled to the end.
        """
        return self._stored(key) is not None or key in self._requested or key in self._running

    def begin(self, key: ObjectKey) -> bool:
        """Return True, and count the key as being reconciled, if its shard is held."""
        # A deletion that is noted from now on, during the run, belongs to the next run.
        shard, obj = self._requested.pop(key, None), self._stored(key)
        if obj is not None:
            shard = self._shards.shard_of_object(obj)
        if shard is None or shard not in self._admitted:
            self._forget(key)
            return False
        self._running[key] = shard
        return True

    def _forget(self, key: ObjectKey) -> None:
        # If the object that moves away is newer than a deletion of that name, its new owner
        # reconciles the present state.
        self._requested.pop(key, None)
        for forget in self._forgetters:
            forget(key)

    def end(self, key: ObjectKey, *, requested: bool) -> None:
        """Record that the reconcile of a key has ended; ``requested`` if another one follows."""
        shard = self._running.pop(key, None)
        if shard is None:
            return
        if requested and shard in self._admitted:
            # The object may be absent then. A deletion during the run may be of a newer object.
            self._requested.setdefault(key, shard)
        self._ended.set()

    def check(self, key: ObjectKey) -> None:
        """Raise ``ShardLost`` unless the reconcile of this key may write at this moment."""
        shard = self._running.get(key)
        if shard is None:
            raise ShardLost(
                f"the reconcile of {key} has ended, and this member may have given its shard of "
                f"{self._shards.assignment.name} away: nothing was written",
                shard=-1,
            )
        self._shards.check(shard)

    def __repr__(self) -> str:
        return f"<ShardGate admitted={len(self._admitted)} running={len(self._running)}>"
