"""The state machine of one member of a group: its claims on shards, and the writes of its Lease.

The Leases of the group as a cache shows them go in; shards to begin with, shards to give away and
Leases to write come out. The member's own Lease is held by an ``Election``. The rules:

- The *claims* of a member are the shards in its Lease. A member works on claimed shards only.
- A member claims a shard that the assignment gives it when no other live member claims it.
- A member begins to work when its cache contains the write with the claim and no other live member
  claims the shard. The server orders the writes, so of two members that claim the same shard at
  least one sees the other's claim, and doesn't begin.
- A member gives a shard away that the assignment gives to another: the member stops new work, and
  removes the claim when the last user of the shard has ended its work.
- A member renews its own Lease when another live member's Lease expires, since only a renewal that
  was sent after the expiry, and that its cache contains, proves that the other member is dead.
- A member acts on no shard when its own renewal is older than ``renew_deadline``. The member then
  removes all claims: when all work has ended, it acquires its Lease again, without claims.

Time is an argument: seconds of a monotonic clock that includes suspension.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from aioinformer._core.objects.kube_object import ObjectKey
from aioinformer._core.quantities import quantity
from aioinformer.leaderelection.state.election import Election, ElectionTimes
from aioinformer.leaderelection.state.lease import LeaseRecord
from aioinformer.shardgroup.state.group_view import GroupView
from aioinformer.shardgroup.state.planner import AssignmentPlanner, AssignmentWrite, StaleLease
from aioinformer.shardgroup.state.records import GroupLayout, MemberRecord
from aioinformer.shardgroup.state.rendezvous import shard_owners

NEVER = float("inf")

MAX_SENT_WRITES = 64
"""Own writes whose time of sending is remembered: the cache is rarely more than one behind."""

_GROUP_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_IDENTITY = re.compile(r"[a-z0-9]([-a-z0-9.]{0,187}[a-z0-9])?")

MoveKind: TypeAlias = Literal["acquired", "stopping", "released", "lost"]
"""``acquired``: the member begins to work on the shard. ``stopping``: the shard is to be given
away, and no new work may begin. ``released``: the last user ended its work, and the claim is
removed. ``lost``: the member's Lease wasn't renewed in time."""

_ClaimState: TypeAlias = Literal["claimed", "held", "stopping", "lost"]


@dataclass(frozen=True, slots=True)
class ShardMove:
    """A change of one shard on this member."""

    kind: MoveKind
    shard: int
    unowned_seconds: float | None = None
    """Of an acquired shard: seconds without a live claim, as far as this member saw; or ``None``.
    """


@dataclass(slots=True)
class _Claim:
    state: _ClaimState
    first_write: int | None = None
    """The number of the first write that contains the claim; ``None`` before it is sent."""


class GroupMember:
    """The state of one member."""

    def __init__(
        self,
        group: ObjectKey,
        *,
        identity: str,
        incarnation: str,
        layout: GroupLayout,
        times: ElectionTimes,
    ) -> None:
        """Make a member, which does nothing before ``election.seek``.

        Args:
            group: the key of the group's Lease.
            identity: the member's name, which no other member has.
            incarnation: a text that another process of the same identity doesn't have.
            layout: the shards of the group.
            times: the times of the member's Lease.

        Raises:
            ValueError: the group's name or the identity can't be part of the name of a Lease.
        """
        _check_name(group.name, "the name of a group", _GROUP_NAME, "without dots, at most 63")
        _check_name(identity, "identity", _IDENTITY, "and dots, at most 189")
        self.layout = layout
        self.key = ObjectKey(group.namespace, f"{group.name}.{identity}")
        """The key of the member's own Lease. A group's name has no dot, so that no two groups share
        one."""
        self.election = Election(self.key, identity=identity, times=times)
        self.view = GroupView(layout, self.key.name, lease_duration=times.lease_duration)
        self.planner = AssignmentPlanner(group, identity, layout, retry_period=times.retry_period)
        self.leaving = False
        self.group = group
        self._incarnation = incarnation
        self._claims: dict[int, _Claim] = {}
        self._writes = 0
        self._sent: deque[tuple[int, float]] = deque(maxlen=MAX_SENT_WRITES)
        self._stated: frozenset[int] | None = None
        """The claims of the write that was sent last."""
        self._stated_leaving = False
        self._targets: frozenset[int] = frozenset()
        self._targets_of: tuple[str, ...] | None = None
        self._claims_changed = False
        self._claimed_elsewhere: frozenset[int] = frozenset()
        self._unclaimed_since: dict[int, float] = {}
        self._expiry_at = NEVER
        """The time at which another member's Lease expires if it isn't renewed until then."""

    # -- state ---------------------------------------------------------------------------------

    @property
    def identity(self) -> str:
        """The member's name."""
        return self.election.identity

    def is_member(self, now: float) -> bool:
        """Return True if the member's Lease is renewed in time."""
        return self.election.leads(now)

    def held(self, now: float) -> frozenset[int]:
        """Return the shards on which work may begin at this moment."""
        return self._in_state("held") if self.election.leads(now) else frozenset()

    def may_act(self, shard: int, now: float) -> bool:
        """Return True if work on a shard may act at this moment: also while it is given away."""
        claim = self._claims.get(shard)
        return (
            claim is not None and claim.state in ("held", "stopping") and self.election.leads(now)
        )

    @property
    def claims(self) -> frozenset[int]:
        """The shards that the member claims, or still works on."""
        return frozenset(self._claims)

    @property
    def targets(self) -> frozenset[int]:
        """The shards that the assignment gives this member."""
        return self._targets

    @property
    def stopping(self) -> frozenset[int]:
        """The shards that the member gives away or has lost, while work on them hasn't ended."""
        return self._in_state("stopping", "lost")

    @property
    def unclaimed(self) -> frozenset[int]:
        """The shards that no live member claims, as far as this member sees."""
        return frozenset(range(self.layout.count)) - self._claimed_elsewhere - self.claims

    def _in_state(self, *states: _ClaimState) -> frozenset[int]:
        return frozenset(shard for shard, claim in self._claims.items() if claim.state in states)

    # -- observations --------------------------------------------------------------------------

    def observe(self, name: str, lease: Mapping[str, Any] | None, now: float) -> None:
        """Take a Lease of the group as the cache has it, or ``None``. All Leases that have changed
        in the cache are taken before ``decide``: together they must be a state that the server had.
        """
        if name == self.group.name:
            self.view.observe_assignment(lease)
        elif self.view.observe_member(name, lease, now):
            self._claims_changed = True

    def _seen_write(self) -> int:
        """Return the number of the newest own write in the cache; 0 for none."""
        own = self.view.own
        return own.write if own is not None and own.incarnation == self._incarnation else 0

    # -- decisions -----------------------------------------------------------------------------

    def decide(self, now: float, working: Collection[int]) -> list[ShardMove]:
        """Return the changes of shards that are due. Users still work on those in ``working``."""
        self._advance_view(now)
        self.election.check_deadline(now)
        moves: list[ShardMove] = []
        if self.election.leads(now):
            self._update_targets()
            moves += self._stop_unassigned()
            self._claim_assigned()
            moves += self._begin_confirmed(now)
        else:
            moves += self._lose_all()
        moves += self._drop_ended(working)
        if self.claims != self._stated or self.leaving != self._stated_leaving:
            self.election.hasten(now)
        self._notice_expiry(now)
        return moves

    def _notice_expiry(self, now: float) -> None:
        """Renew the own Lease when another one expires: the next regular renewal, which proves that
        the other member is dead, may be a whole period later.
        """
        expiry = self.view.next_expiry
        self._expiry_at = expiry if expiry > now else NEVER
        if expiry <= now and (not self._sent or self._sent[-1][1] < expiry):
            self.election.hasten(now)

    def _advance_view(self, now: float) -> None:
        seen = self._seen_write()
        fresh_at = max((at for number, at in self._sent if number <= seen), default=-NEVER)
        died = self.view.advance(fresh_at)
        if not died and not self._claims_changed:
            return
        self._claims_changed = False
        # A member that died worked on its shards until its last renewal at least.
        since = {shard: dead.since for dead in died for shard in self.view.held_by(dead.record)}
        claimed = self.view.claimed()
        for shard in self._claimed_elsewhere - claimed:
            self._unclaimed_since[shard] = since.get(shard, now)
        for shard in claimed - self._claimed_elsewhere:
            self._unclaimed_since.pop(shard, None)
        self._claimed_elsewhere = claimed

    def _update_targets(self) -> None:
        assignment = self.view.assignment
        if self.leaving:
            self._targets, self._targets_of = frozenset(), None
        elif assignment is None:
            pass  # the Lease was deleted; the leader creates it again
        elif assignment.layout != str(self.layout):
            self._targets, self._targets_of = frozenset(), None
        elif assignment.members != self._targets_of:
            owners = shard_owners(assignment.members, self.layout.count)
            mine = (shard for shard, owner in enumerate(owners) if owner == self.identity)
            self._targets, self._targets_of = frozenset(mine), assignment.members

    def _stop_unassigned(self) -> list[ShardMove]:
        moves: list[ShardMove] = []
        for shard in sorted(self.claims - self._targets):
            claim = self._claims[shard]
            if claim.state == "claimed":
                del self._claims[shard]  # no work has begun
            elif claim.state == "held":
                claim.state = "stopping"
                moves.append(ShardMove("stopping", shard))
        return moves

    def _claim_assigned(self) -> None:
        for shard in self._targets - self.claims - self._claimed_elsewhere:
            self._claims[shard] = _Claim("claimed")

    def _begin_confirmed(self, now: float) -> list[ShardMove]:
        own, seen, moves = self.view.own, self._seen_write(), list[ShardMove]()
        if own is None or own.held is None or not seen:
            return moves
        for shard in sorted(self._in_state("claimed") & own.held - self._claimed_elsewhere):
            first = self._claims[shard].first_write
            if first is not None and first <= seen:
                self._claims[shard].state = "held"
                since = self._unclaimed_since.pop(shard, None)
                moves.append(ShardMove("acquired", shard, None if since is None else now - since))
        return moves

    def _lose_all(self) -> list[ShardMove]:
        moves: list[ShardMove] = []
        for shard, claim in sorted(self._claims.items()):
            if claim.state == "claimed":
                del self._claims[shard]
            elif claim.state != "lost":
                claim.state = "lost"
                moves.append(ShardMove("lost", shard))
        return moves

    def _drop_ended(self, working: Collection[int]) -> list[ShardMove]:
        ended = sorted(self._in_state("stopping", "lost") - frozenset(working))
        states = [(shard, self._claims.pop(shard).state) for shard in ended]
        return [ShardMove("released", shard) for shard, state in states if state == "stopping"]

    @property
    def wake_at(self) -> float:
        """The time at which ``decide`` or ``plan`` may return something without a new Lease."""
        deadline = self.election.leads_until if self.election.phase == "leading" else NEVER
        return min(deadline, self.planner.next_at, self._expiry_at)

    # -- writes --------------------------------------------------------------------------------

    def stamp(self, body: Mapping[str, Any], now: float) -> dict[str, Any]:
        """Return the body of the member's own Lease with its claims. Send it at once."""
        self._writes += 1
        self._sent.append((self._writes, now))
        # A Lease that is acquired or released states no claims.
        claims = self.claims if self.election.phase == "leading" else frozenset[int]()
        self._stated, self._stated_leaving = claims, self.leaving
        for shard in claims:
            if self._claims[shard].first_write is None:
                self._claims[shard].first_write = self._writes
        record = MemberRecord(
            LeaseRecord.of(body),
            str(self.layout),
            claims,
            self._incarnation,
            self._writes,
            self.leaving,
        )
        return record.stamp(body, self.group.name)

    def plan(self, now: float) -> AssignmentWrite | None:
        """Return the write of a new assignment if this member assigns and one is due."""
        if not self.election.leads(now) or not self._seen_write():
            self.planner.next_at = NEVER
            return None
        return self.planner.plan(self.view, now, leaving=self.leaving)

    def find_stale(self, now: float) -> StaleLease | None:
        """Return the Lease of a member that died, or that left long ago, if this member assigns."""
        if not self.election.leads(now):
            return None
        return self.planner.find_stale(self.view, now, self.election.times.lease_duration)

    def __repr__(self) -> str:
        return (
            f"<GroupMember {self.key} {self.election.phase} {quantity(len(self._claims), 'claim')}>"
        )


def _check_name(name: str, option: str, pattern: re.Pattern[str], rule: str) -> None:
    if not pattern.fullmatch(name):
        raise ValueError(
            f"{option} becomes part of the name of a Lease: it must be lower-case letters, digits "
            f"and hyphens, {rule} characters, not {name!r}"
        )
