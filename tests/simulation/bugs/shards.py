"""The planted bugs of shard groups: each of the rules is seen to be needed."""

from __future__ import annotations

from typing import Any

from aioinformer.leaderelection.state.election import Election
from aioinformer.shardgroup.state.group_view import GroupView
from aioinformer.shardgroup.state.member import GroupMember, ShardMove
from aioinformer.shardgroup.state.planner import AssignmentPlanner
from tests.simulation.bugs.planted_bug import Original, planted_bug, planted_bugs


@planted_bug(GroupMember, "_claim_assigned")
def a_member_claims_what_another_works_on(claim: Original, member: Any) -> Any:
    """Claim and begin at once, whatever others claim."""
    seen, member._claimed_elsewhere = member._claimed_elsewhere, frozenset()
    try:
        return claim(member)
    finally:
        member._claimed_elsewhere = seen & member.view.claimed() - member.targets


@planted_bug(GroupMember, "_begin_confirmed")
def a_member_begins_before_its_claim_is_stored(begin: Original, member: Any, now: float) -> Any:
    """Begin when the claim is made, and not when the cache contains it."""
    moves = begin(member, now)
    for shard in sorted(member._in_state("claimed") - member._claimed_elsewhere):
        member._claims[shard].state = "held"
        moves.append(ShardMove("acquired", shard))
    return moves


@planted_bug(GroupMember, "_drop_ended")
def a_claim_is_removed_while_work_runs(drop: Original, member: Any, working: Any) -> Any:
    """Remove the claim when the shard is to be given away, and not when its work has ended."""
    return drop(member, ())


@planted_bug(GroupMember, "_stop_unassigned")
def a_shard_that_moves_is_forgotten(stop: Original, member: Any) -> Any:
    """Remove the claim without a word to those who work."""
    for shard in member.claims - member.targets:
        del member._claims[shard]
    return []


@planted_bug(GroupMember, "_stop_unassigned")
def a_shard_that_moves_is_kept(stop: Original, member: Any) -> Any:
    """Keep what the assignment gives to another."""
    return []


@planted_bug(GroupMember, "may_act")
def the_fence_reads_no_clock(may_act: Original, member: Any, shard: int, now: float) -> Any:
    """Let a member act that doesn't know yet that its lease has expired."""
    claim = member._claims.get(shard)
    return claim is not None and claim.state in ("held", "stopping")


@planted_bug(GroupMember, "_lose_all")
def a_member_works_on_without_a_lease(lose: Original, member: Any) -> Any:
    """Stop nothing when the lease isn't renewed."""
    return []


@planted_bug(GroupMember, "_lose_all")
def a_lost_shard_is_forgotten_before_its_work_has_ended(lose: Original, member: Any) -> Any:
    """Return to the group without waiting for the work to end."""
    moves = lose(member)
    member._claims.clear()
    return moves


@planted_bug(GroupMember, "wake_at")
def no_timer_ends_the_work_at_the_deadline(wake_at: Original, member: Any) -> Any:
    """Notice the end of the lease at the next answer."""
    return member.planner.next_at


@planted_bug(GroupMember, "stamp")
def a_shard_that_is_given_away_is_not_stated(
    stamp: Original, member: Any, body: Any, now: float
) -> Any:
    """State only the shards that are kept."""
    claims = member._claims
    member._claims = {shard: claim for shard, claim in claims.items() if claim.state != "stopping"}
    try:
        return stamp(member, body, now)
    finally:
        member._claims = claims


@planted_bug(GroupView, "expires_at")
def a_member_is_dead_after_the_renew_deadline(expires: Original, view: Any, seen: Any) -> Any:
    """Leave no time for pauses."""
    return expires(view, seen) - 5.0


@planted_bug(GroupView, "expires_at")
def a_member_never_dies(expires: Original, view: Any, seen: Any) -> Any:
    """Wait for ever."""
    return float("inf")


@planted_bug(GroupView, "observe_member")
def a_renewal_is_not_noticed(
    observe: Original, view: Any, name: str, lease: Any, now: float
) -> Any:
    """Count from the last change of the claims."""
    seen = view.others.get(name)
    since = None if seen is None or not seen.live else seen.since
    changed = observe(view, name, lease, now)
    if since is not None and not changed and name in view.others:
        view.others[name].since = since
    return changed


@planted_bug(GroupView, "claimed")
def the_claims_of_a_leaving_member_are_ignored(claimed: Original, view: Any) -> Any:
    """Take the shards of a member that has begun to leave."""
    for seen in view.others.values():
        seen.live = seen.live and not seen.record.leaving
    return claimed(view)


@planted_bug(GroupView, "observe_assignment")
def the_first_assignment_is_kept(observe: Original, view: Any, lease: Any) -> Any:
    """Ignore later ones."""
    return observe(view, lease) if view.assignment is None else False


@planted_bug(AssignmentPlanner, "_next_members")
def a_dead_member_stays_assigned(plan: Original, planner: Any, view: Any, *, leaving: bool) -> Any:
    """Only add members."""
    before = () if view.assignment is None else view.assignment.members
    return tuple(sorted({*plan(planner, view, leaving=leaving), *before}))


@planted_bug(AssignmentPlanner, "_next_members")
def a_joining_member_is_not_assigned(
    plan: Original, planner: Any, view: Any, *, leaving: bool
) -> Any:
    """Only remove members."""
    members = plan(planner, view, leaving=leaving)
    before = members if view.assignment is None else view.assignment.members
    return tuple(name for name in members if name in before)


@planted_bug(AssignmentPlanner, "is_leader")
def a_dead_leader_is_not_replaced(is_leader: Original, planner: Any, view: Any) -> Any:
    """Elect a leader once."""
    current = view.assignment
    return is_leader(planner, view) if current is None else current.leader == planner._identity


@planted_bug(AssignmentPlanner, "plan")
def a_lost_write_of_an_assignment_is_not_repeated(
    plan: Original, planner: Any, view: Any, now: float, *, leaving: bool
) -> Any:
    """Wait for the cache to show what never arrived."""
    if planner._retry_at > 0:
        planner._retry_at = float("inf")
    return plan(planner, view, now, leaving=leaving)


@planted_bug(Election, "hasten")
def a_claim_waits_for_the_next_renewal(hasten: Original, election: Any, now: float) -> Any:
    """Write claims only when the lease is renewed anyway."""


@planted_bug(GroupMember, "_update_targets")
def shards_are_assigned_by_the_rank_of_the_member(update: Original, member: Any) -> Any:
    """Assign by the remainder, so that nearly every shard moves when a member joins."""
    update(member)
    members = member._targets_of
    if members and member.identity in members:
        rank = members.index(member.identity)
        member._targets = frozenset(range(rank, member.layout.count, len(members)))


BUGS = planted_bugs(globals())
