"""The shards of a group that one informer reads, and the controllers that work on them."""

from __future__ import annotations

from typing import Protocol

from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
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

    def check(self, shard: int) -> None:
        """Raise ``ShardLost`` unless this member may act on a shard at this moment."""
        self.assignment.check(shard)

    def __repr__(self) -> str:
        return f"<GroupShards of {self.assignment.name}: {len(self.held)} held>"
