"""The shards of this member for their users: informers, controllers, or the program itself.

The member states a shard in its Lease as long as any user works on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection


class GroupSubscriptions:
    """All users of the shards of one member."""

    def __init__(
        self, read_assigned: Callable[[], frozenset[int]], on_acknowledge: Callable[[], None]
    ) -> None:
        """Know of no user. ``on_acknowledge`` is called when a user has begun or ended work."""
        self.read_assigned = read_assigned
        self.on_acknowledge = on_acknowledge
        self.changed = asyncio.Event()
        """Set once, at the next change of the shards; then there is another one."""
        self.users: list[GroupSubscription] = []

    def notify(self) -> None:
        """Wake all users, since the shards may have changed."""
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()

    def subscribe(self, user: str) -> GroupSubscription:
        """Return a subscription of a user of that name."""
        subscription = GroupSubscription(self, user)
        self.users.append(subscription)
        return subscription

    @property
    def working(self) -> frozenset[int]:
        """The shards on which any user works."""
        return frozenset[int]().union(*(user.working for user in self.users))

    def __repr__(self) -> str:
        return f"<GroupSubscriptions of {[user.name for user in self.users]}>"


class GroupSubscription:
    """A ``ShardSubscription``: one user of the shards of this member."""

    def __init__(self, subscriptions: GroupSubscriptions, name: str) -> None:
        """Work on nothing. ``GroupSubscriptions.subscribe`` makes a subscription."""
        self.name = name
        self.working: frozenset[int] = frozenset()
        self._subscriptions = subscriptions

    @property
    def assigned(self) -> frozenset[int]:
        """See ``ShardSubscription``."""
        return self._subscriptions.read_assigned()

    async def wait_changed(self, known: frozenset[int]) -> frozenset[int]:
        """See ``ShardSubscription``."""
        while True:
            # Read after the wait, with no await in between: the shards may change until then.
            assigned = self.assigned
            if assigned != known:
                return assigned
            await self._subscriptions.changed.wait()

    def acknowledge(self, working: Collection[int]) -> None:
        """See ``ShardSubscription``."""
        self.working = frozenset(working)
        self._subscriptions.on_acknowledge()

    def close(self) -> None:
        """See ``ShardSubscription``."""
        if self in self._subscriptions.users:
            self._subscriptions.users.remove(self)
            self.acknowledge(())

    def __repr__(self) -> str:
        return f"<GroupSubscription of {self.name}, working on {len(self.working)} shards>"
