"""The shards of a group that one informer reads, and the controllers that work on them.

Only keys of shards that this member holds are reconciled. A key names no shard: its object does, by
uid or namespace. So the gate of a controller looks at the cached object, and remembers the shard of
each deleted object until the deletion was reconciled. A key whose object is neither cached nor
remembered belongs to another member, or was removed with its shard: a reconciler would take the
missing object for a deleted one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from aioinformer._core.objects.kube_object import Deleted, Event, KubeObject, ObjectKey
from aioinformer.errors import ShardLost
from aioinformer.sharding.state.assignment import ShardAssignment
from aioinformer.sharding.state.ranges import HashRanges, shard_of


class ShardUser(Protocol):
    """A controller whose reconciles must end before a shard moves away."""

    def begin_release(self, shards: frozenset[int]) -> None: ...

    async def wait_released(self, shards: frozenset[int]) -> None: ...

    def take(self, shards: frozenset[int]) -> None: ...


class GroupShards:
    """The shards that an informer reads: those that the group has assigned to this member."""

    def __init__(self, assignment: ShardAssignment) -> None:
        self.assignment = assignment
        self.held: frozenset[int] = frozenset()
        self.assigned_once = False
        """True once the first assignment was taken, which may be of no shard."""
        self._users: list[ShardUser] = []

    def add_user(self, user: ShardUser) -> None:
        """Let a controller work on the shards, and wait for it when a shard moves away."""
        self._users.append(user)
        user.take(self.held)

    def remove_user(self, user: ShardUser) -> None:
        """Wait for a controller no longer: it has ended."""
        if user in self._users:
            self._users.remove(user)

    def take(self, shards: frozenset[int]) -> None:
        self.held |= shards
        for user in self._users:
            user.take(shards)

    async def release(self, shards: frozenset[int]) -> None:
        """Hold these shards no longer, once the work on them has ended."""
        users = tuple(self._users)
        for user in users:
            user.begin_release(shards)
        for user in users:
            await user.wait_released(shards)
        self.held -= shards

    def ranges_of(self, shards: frozenset[int]) -> HashRanges:
        return HashRanges.of(shards, self.assignment.count, self.assignment.by)

    def shard_of(self, uid: str, key: ObjectKey) -> int:
        by_uid = self.assignment.by == "uid"
        return shard_of(uid if by_uid else key.namespace, self.assignment.count)

    def shard_of_object(self, obj: KubeObject) -> int:
        return self.shard_of(obj.uid, obj.key)

    def __repr__(self) -> str:
        return f"<GroupShards of {self.assignment.name}: {len(self.held)} held>"


class ShardGate:
    """Admits the keys of one controller, and knows which shards are being worked on."""

    def __init__(
        self, shards: GroupShards, stored: Callable[[ObjectKey], KubeObject | None]
    ) -> None:
        self._shards = shards
        self._stored = stored
        self._admitted: frozenset[int] = frozenset()
        self._running: dict[ObjectKey, int] = {}
        """The shard of each key that is being reconciled."""
        self._requested: dict[ObjectKey, int] = {}
        """The shard of each requested key whose object may be absent when its run begins."""
        self._ended = asyncio.Event()
        self._forgetters: list[Callable[[ObjectKey], object]] = []

    def on_unadmitted(self, forget: Callable[[ObjectKey], object]) -> None:
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
        self._forgetters.clear()
        if not self._running:  # else a reconcile was left behind, and still works on its shard
            self._shards.remove_user(self)

    # -- keys ----------------------------------------------------------------------------------

    def is_trigger(self, event: Event[KubeObject]) -> bool:
        if isinstance(event, Deleted):
            if event.reason == "scope_removed":
                self._forget(event.key)
                return False
            # Also of an object that only leaves the filter: its deletion is then no event.
            self._requested[event.key] = self._shards.shard_of_object(event.obj)
        return True

    def note_uncached(self, key: ObjectKey, uid: str) -> None:
        if self._stored(key) is None:
            self._requested[key] = self._shards.shard_of(uid, key)

    def may_request(self, key: ObjectKey) -> bool:
        return self._stored(key) is not None or key in self._requested or key in self._running

    def begin(self, key: ObjectKey) -> bool:
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
        shard = self._running.pop(key, None)
        if shard is None:
            return
        if requested and shard in self._admitted:
            # The object may be absent then. A deletion during the run may be of a newer object.
            self._requested.setdefault(key, shard)
        self._ended.set()

    def check(self, key: ObjectKey) -> None:
        shard = self._running.get(key)
        if shard is None:
            raise ShardLost(
                f"the reconcile of {key} has ended, and this member may have given its shard of "
                f"{self._shards.assignment.name} away: nothing was written",
                shard=-1,
            )
        self._shards.assignment.check(shard)

    def __repr__(self) -> str:
        return f"<ShardGate admitted={len(self._admitted)} running={len(self._running)}>"
