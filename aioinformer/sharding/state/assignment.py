"""The interface between a group of replicas and the informers and controllers on the group.

The informers and controllers read the assigned shards, and acknowledge when they have ended their
work on a lost shard. Only then may the group give the shard to another member, so that no two
members work on one object.

    group                          informer or controller
    ─────                          ──────────────────────
    assigned = {1, 2}   ────────▶  reads shards 1 and 2
    assigned = {1}      ────────▶  ends what runs for shard 2, removes its objects
                        ◀────────  acknowledge({1})
    shard 2 leaves the member's Lease

The group implements both protocols. All methods are called in the group's event loop.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol, runtime_checkable

from aioinformer.sharding.state.ranges import ShardKey


class ShardSubscription(Protocol):
    """One user of the shards of a member: an informer or a controller."""

    @property
    def assigned(self) -> frozenset[int]:
        """The shards to work on. A shard leaves them when the group decides to give it away, or
        when the member's Lease wasn't renewed in time.
        """
        ...

    async def wait_changed(self, known: frozenset[int]) -> frozenset[int]:
        """Wait until ``assigned`` differs from ``known``, and return ``assigned``.

        Returns at once if the two differ already, so that no change is missed between two calls.
        Several changes may be returned as one. May be cancelled at any time.
        """
        ...

    def acknowledge(self, working: Collection[int]) -> None:
        """Record that this user works on no other shards than ``working`` from now on.

        A user calls this method after each change of ``assigned``. Gained shards are added before
        the work on them begins. Lost shards are left out after the last reconcile of their keys has
        ended. The group keeps a shard in the member's Lease as long as any user works on it. Until
        its first call, a user counts as working on no shard.
        """

    def close(self) -> None:
        """End the subscription; the user works on nothing. May be called more than once."""


@runtime_checkable
class ShardAssignment(Protocol):
    """The shards that one member of a group holds: what ``ShardGroup`` is for its users."""

    @property
    def name(self) -> str: ...

    @property
    def count(self) -> int:
        """The number of virtual shards of the group, the same on every member."""
        ...

    @property
    def by(self) -> ShardKey:
        """The hashed field, the same on every member. Shard ``i`` of ``count`` has the hashes from
        ``shard_start(i, count)`` on, before ``shard_start(i + 1, count)``.
        """
        ...

    def subscribe(self, user: str) -> ShardSubscription:
        """Return a subscription of an informer or controller of that name, which health shows."""
        ...

    def check(self, shard: int) -> None:
        """Raise unless this member may act on a shard at this moment: the fence of writes.

        The check reads the clock, so that the result is right after a pause of the process. The
        check doesn't raise for a shard that is to be given away while a user still works on it, so
        that a reconcile under way may finish: the shard is in the member's Lease until then.

        Raises:
            ShardLost: this member doesn't hold the shard, or its Lease wasn't renewed in time.
        """
