"""The public state of a member of a group, for readiness probes and people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from aioinformer._runtime.reporting.error_texts import describe_error
from aioinformer.errors.texts import one_line
from aioinformer.sharding.state.shard_sets import format_shards

GroupState: TypeAlias = Literal["idle", "joining", "member", "lost", "leaving", "left", "failed"]
"""``joining``: the member's Lease isn't acquired yet. ``lost``: the Lease wasn't renewed in time,
and work on the shards hasn't ended yet. ``failed``: an internal task ended with an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHealth:
    """The state of a ``ShardGroup`` at one moment: ``group.health``. Times are in seconds.

    What other members do is described as far as this member has seen it in their Leases.

    Example::

        from aioinformer.shardgroup import GroupHealth

        def ready(health: GroupHealth) -> bool:
            return health.state == "member" and health.held == health.assigned
    """

    state: GroupState
    held: frozenset[int]
    stopping: frozenset[int]
    """The shards that this member gives away, or has lost, and on which work hasn't ended."""
    assigned: frozenset[int]
    """The shards that the assignment gives to this member."""
    unclaimed: frozenset[int]
    """The shards on which no live member works."""
    members: tuple[str, ...]
    epoch: int
    """The number of the assignment; 0 before the first."""
    leader: str
    """The member that assigns; empty for none."""
    users: Mapping[str, int]
    """The number of shards on which each informer or controller works, by its name."""
    error: Exception | None
    """The last error of a request; ``None`` once a request has succeeded again."""
    renewed: float | None
    """Seconds since the last successful renewal was sent; ``None`` before the first."""
    expires_in: float | None
    """Seconds for which the member still works without a renewal; ``None`` if it isn't a member."""

    def __str__(self) -> str:
        parts = [
            f"{self.state}, {len(self.held)} of {len(self.assigned)} assigned shards held",
            f"{len(self.members)} members in epoch {self.epoch}",
            f"leader: {one_line(self.leader) or 'none'}",
        ]
        if self.stopping:
            parts.append(f"stopping: {format_shards(self.stopping)}")
        if self.unclaimed:
            parts.append(f"unclaimed: {format_shards(self.unclaimed)}")
        if self.error is not None:
            parts.append(f"last error: {describe_error(self.error)}")
        return ", ".join(parts)
