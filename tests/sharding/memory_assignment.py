"""The shards of members in memory: a group without Leases, for tests of what consumes shards."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from typing import Literal, TypeAlias

from aioinformer.errors import ShardLost

ShardKey: TypeAlias = Literal["uid", "namespace"]


class MemorySubscription:
    """One user of the shards of a member."""

    def __init__(self, assignment: MemoryAssignment, user: str) -> None:
        self.user = user
        self.working: frozenset[int] = frozenset()
        self.closed = False
        self._assignment = assignment

    @property
    def assigned(self) -> frozenset[int]:
        return self._assignment.assigned

    async def wait_changed(self, known: frozenset[int]) -> frozenset[int]:
        while self.assigned == known:
            await self._assignment.changed.wait()
        return self.assigned

    def acknowledge(self, working: Collection[int]) -> None:
        self.working = frozenset(working)
        self._assignment.settle()

    def close(self) -> None:
        self.closed, self.working = True, frozenset()
        self._assignment.settle()


class MemoryAssignment:
    """The shards of one member. ``assign`` plays the group."""

    def __init__(
        self, count: int = 8, by: ShardKey = "uid", assigned: Iterable[int] = (), name: str = "g"
    ) -> None:
        self.name, self.count = name, count
        self.by: ShardKey = by
        self.assigned = frozenset(assigned)
        self.subscriptions: list[MemorySubscription] = []
        self.changed = asyncio.Event()
        self.lost: frozenset[int] = frozenset()
        """Shards that may not be acted on any more, whatever users say: the Lease has expired."""

    def subscribe(self, user: str) -> MemorySubscription:
        self.subscriptions.append(MemorySubscription(self, user))
        return self.subscriptions[-1]

    def assign(self, shards: Iterable[int]) -> None:
        """Change what is assigned."""
        self.assigned = frozenset(shards)
        self.settle()

    def settle(self) -> None:
        """Wake everything that waits for a change of the assignment or of what is worked on."""
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()

    @property
    def working(self) -> set[int]:
        """The shards that any user works on."""
        return set[int]().union(*(each.working for each in self.subscriptions))

    def check(self, shard: int) -> None:
        if shard not in self.assigned | self.working or shard in self.lost:
            raise ShardLost(f"shard {shard} of {self.name} is not held", shard=shard)
