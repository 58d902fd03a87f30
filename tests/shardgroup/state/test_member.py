"""The rules of one member: claims, work, loss, and return."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import ObjectKey
from aioinformer.leaderelection.state.election import ElectionTimes
from aioinformer.shardgroup.state.member import GroupMember, ShardMove
from aioinformer.shardgroup.state.records import GroupAssignment, GroupLayout, MemberRecord
from aioinformer.shardgroup.state.rendezvous import shard_owners
from tests.shardgroup.state.group_leases import LAYOUT, StoredMember, group_lease, member_lease

ALL = frozenset(range(8))


def kinds(moves: list[ShardMove]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for move in moves:
        found.setdefault(move.kind, set()).add(move.shard)
    return found


def alone(now: float = 0.0) -> StoredMember:
    """Return the only member of a group, which works on all shards."""
    stored = StoredMember()
    stored.join(now)
    stored.member.observe("shop", group_lease("a"), now)
    stored.member.decide(now, ())
    stored.renew(now)
    assert kinds(stored.member.decide(now, ())) == {"acquired": ALL}
    return stored


def test_a_shard_is_claimed_then_seen_then_worked_on() -> None:
    stored = StoredMember()
    member = stored.member
    stored.join(0.0)
    member.observe("shop", group_lease("a"), 0.0)

    assert member.decide(0.0, ()) == []
    assert (member.claims, member.held(0.0)) == (ALL, frozenset())
    stored.renew(0.0, seen=False)
    assert member.decide(0.0, ()) == []  # the claim is stored, but the cache doesn't show it
    stored.see(0.1)
    assert kinds(member.decide(0.1, ())) == {"acquired": ALL}
    assert member.held(0.1) == ALL
    assert stored.lease is not None
    assert MemberRecord.of(stored.lease, 8).held == ALL


def test_a_shard_that_another_live_member_claims_is_not_claimed_until_it_is_free() -> None:
    stored = StoredMember()
    member = stored.member
    stored.join(0.0)
    member.observe("shop.b", member_lease("b", {0, 1}), 0.0)
    member.observe("shop", group_lease("a"), 0.0)
    member.decide(0.0, ())

    assert member.claims == ALL - {0, 1}
    member.observe("shop.b", member_lease("b", renewed="2"), 1.0)
    member.decide(1.0, ())
    assert member.claims == ALL


def test_a_member_does_not_start_a_shard_while_it_sees_the_claim_of_another_one() -> None:
    stored = StoredMember()
    member = stored.member
    stored.join(0.0)
    member.observe("shop", group_lease("a"), 0.0)
    member.decide(0.0, ())
    stored.renew(0.0)
    member.observe("shop.b", member_lease("b", {3}), 0.0)

    assert kinds(member.decide(0.0, ())) == {"acquired": ALL - {3}}
    member.observe("shop.b", member_lease("b", renewed="2"), 0.5)
    assert kinds(member.decide(0.5, ())) == {"acquired": {3}}


def test_a_claim_that_was_given_up_is_confirmed_by_a_new_write_only() -> None:
    """Meanwhile another member may have claimed the shards, which a late cache doesn't show."""
    stored = alone()
    member = stored.member
    member.observe("shop", group_lease("a", "b", epoch=2, leader="a"), 1.0)
    moved = kinds(member.decide(1.0, ()))["released"]
    stored.renew(1.0, seen=False)
    member.observe("shop", group_lease("a", epoch=3), 1.5)

    assert member.decide(1.5, ()) == []
    stored.renew(1.5, seen=False)
    assert member.decide(1.6, ()) == []  # the cache shows the claims that were given up
    member.observe("shop.b", member_lease("b", {min(moved)}), 1.7)
    stored.see(1.7)
    assert kinds(member.decide(1.7, ())) == {"acquired": moved - {min(moved)}}


def test_a_shard_that_moves_is_stated_until_the_last_work_on_it_has_ended() -> None:
    stored = alone()
    member = stored.member
    moved = {shard for shard, owner in enumerate(shard_owners(["a", "b"], 8)) if owner == "b"}
    assert moved
    member.observe("shop", group_lease("a", "b", epoch=2, leader="a"), 1.0)

    assert kinds(member.decide(1.0, ALL)) == {"stopping": moved}
    assert member.held(1.0) == ALL - moved
    assert all(member.may_act(shard, 1.0) for shard in moved)  # work under way may finish
    stored.renew(2.0)
    assert stored.lease is not None
    assert MemberRecord.of(stored.lease, 8).held == ALL

    assert kinds(member.decide(2.5, ALL - moved)) == {"released": moved}
    assert not any(member.may_act(shard, 2.5) for shard in moved)
    stored.renew(2.5)  # at once, and not only with the next renewal
    assert MemberRecord.of(stored.lease, 8).held == ALL - moved


def test_a_member_acts_on_nothing_when_its_renewal_is_older_than_the_renew_deadline() -> None:
    stored = alone()
    member = stored.member

    assert member.wake_at == 10.0
    assert member.held(9.9) == ALL
    assert member.held(10.0) == frozenset()
    assert not member.may_act(0, 10.0)
    assert kinds(member.decide(10.0, ALL)) == {"lost": ALL}


def test_a_member_that_lost_its_shards_returns_without_claims_when_its_work_has_ended() -> None:
    stored = alone()
    member = stored.member
    member.decide(10.0, ALL)

    assert member.claims == ALL  # the work hasn't ended
    assert member.decide(11.0, ()) == []
    assert member.claims == frozenset()
    member.election.seek(11.0)
    stored.renew(11.0)
    assert stored.lease is not None
    assert MemberRecord.of(stored.lease, 8).held == frozenset()
    member.decide(11.0, ())
    stored.renew(11.0)
    assert kinds(member.decide(11.0, ())) == {"acquired": ALL}


def test_a_member_with_a_late_cache_starts_no_shard_that_a_live_member_claims() -> None:
    stored = StoredMember()
    member = stored.member
    stored.join(0.0)
    member.observe("shop.b", member_lease("b", {3}), 0.0)
    member.observe("shop", group_lease("a"), 0.0)
    for now in range(0, 60, 2):  # renewals are stored, but the cache is silent
        stored.renew(float(now), seen=False)
        assert member.decide(float(now), ()) == []
    # Now the cache shows what happened meanwhile: the other member renewed its Lease.
    member.observe("shop.b", member_lease("b", {3}, renewed="60"), 60.0)
    stored.see(60.0)

    assert kinds(member.decide(60.0, ())) == {"acquired": ALL - {3}}


def test_the_time_without_an_owner_counts_from_the_last_renewal_of_a_dead_member() -> None:
    stored = StoredMember()
    member = stored.member
    stored.join(0.0)
    member.observe("shop.b", member_lease("b", {3}), 1.0)
    member.observe("shop", group_lease("a"), 1.0)
    moves: list[ShardMove] = []
    for now in range(2, 30, 2):
        moves += member.decide(float(now), member.held(float(now)))
        stored.renew(float(now))

    found = [move for move in moves if move.shard == 3]
    assert found == [ShardMove("acquired", 3, unowned_seconds=found[0].unowned_seconds)]
    assert found[0].unowned_seconds is not None
    assert 15.0 < found[0].unowned_seconds <= 19.0


def test_a_member_renews_when_the_lease_of_another_one_expires() -> None:
    stored = StoredMember()
    member = stored.member
    stored.join(0.0)
    member.observe("shop.b", member_lease("b", {3}), 0.5)
    member.observe("shop", group_lease("a"), 0.5)
    for now in (0.5, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0):
        member.decide(now, member.held(now))
        stored.renew(now)
    member.decide(14.1, member.held(14.1))
    stored.renew(14.1)

    assert member.claims == ALL - {3}
    assert member.wake_at == 15.5
    assert member.decide(15.5, member.held(15.5)) == []
    assert member.wake_at > 15.5, "the member waits for its renewal, and for no other time"
    stored.renew(15.5)  # due half a second before its regular time
    member.decide(15.5, member.held(15.5))
    assert 3 in member.claims


def test_an_expiry_that_a_late_cache_can_not_prove_leads_to_one_renewal() -> None:
    stored = StoredMember()
    member = stored.member
    stored.join(0.0)
    member.observe("shop.b", member_lease("b", {3}), 0.0)
    member.decide(0.0, ())
    stored.renew(0.0)
    written = stored.version
    for number in range(1, 301):  # woken ten times a second, while the cache is silent
        member.decide(number / 10, ())
        stored.renew(number / 10, seen=False)

    assert stored.version - written == 15  # after 2, 4, ..., 14, 15, 17, ..., 29 s


def test_a_leaving_member_gives_everything_away_and_states_it() -> None:
    stored = alone()
    member = stored.member
    member.leaving = True

    assert kinds(member.decide(1.0, ALL)) == {"stopping": ALL}
    stored.renew(1.0)
    assert stored.lease is not None
    assert MemberRecord.of(stored.lease, 8).leaving
    member.decide(2.0, ())
    member.election.release(2.0)
    stored.renew(2.0)
    assert MemberRecord.of(stored.lease, 8).identity == ""
    assert MemberRecord.of(stored.lease, 8).held == frozenset()


def test_a_member_shows_its_targets_and_the_shards_that_no_member_claims() -> None:
    stored = StoredMember()
    member = stored.member
    stored.join(0.0)
    member.observe("shop.b", member_lease("b", {0, 1}), 0.0)
    member.decide(0.0, ())
    assert (member.targets, member.unclaimed) == (frozenset(), ALL - {0, 1})
    member.observe("shop", group_lease("a"), 0.0)
    member.decide(0.0, ())
    assert (member.targets, member.unclaimed) == (ALL, frozenset())
    assert (member.identity, member.is_member(0.0), member.is_member(10.0)) == ("a", True, False)
    assert repr(member) == "<GroupMember web/shop.a leading 6 claims>"


def test_a_group_whose_lease_was_deleted_goes_on_with_the_last_assignment() -> None:
    stored = alone()
    stored.member.observe("shop", None, 1.0)

    assert stored.member.decide(1.0, ALL) == []
    assert stored.member.held(1.0) == ALL


def test_an_assignment_of_another_layout_gives_this_member_nothing() -> None:
    stored = alone()
    member = stored.member
    member.observe("shop", group_lease("a", epoch=2, layout=GroupLayout(16)), 1.0)
    assert kinds(member.decide(1.0, ALL)) == {"stopping": ALL}
    assert member.stopping == ALL

    member.observe("shop", group_lease("a", epoch=3), 2.0)
    assert kinds(member.decide(2.0, ())) == {"released": ALL}, "what ends is not taken back"
    member.decide(2.0, ())
    stored.renew(2.0)
    assert kinds(member.decide(2.0, ())) == {"acquired": ALL}


def test_a_claim_without_work_is_given_up_without_an_event() -> None:
    stored = StoredMember()
    member = stored.member
    stored.join(0.0)
    member.observe("shop", group_lease("a"), 0.0)
    member.decide(0.0, ())
    member.observe("shop", group_lease("b", epoch=2), 0.0)

    assert member.decide(0.0, ()) == []
    assert member.claims == frozenset()


def test_a_member_that_loses_its_lease_gives_up_what_it_has_not_begun() -> None:
    stored = StoredMember()
    member = stored.member
    stored.join(0.0)
    member.observe("shop", group_lease("a"), 0.0)
    member.decide(0.0, ())

    assert member.decide(10.0, ()) == []
    assert member.claims == frozenset()


def test_a_shard_that_was_free_was_without_an_owner_since_its_release() -> None:
    stored = StoredMember()
    member = stored.member
    stored.join(0.0)
    member.observe("shop.b", member_lease("b", {3}), 0.0)
    member.observe("shop", group_lease("a"), 0.0)
    member.decide(0.0, ())
    stored.renew(0.0)
    moves = member.decide(0.0, ())
    assert {move.unowned_seconds for move in moves} == {None}, "no other claim was seen"
    member.observe("shop.b", member_lease("b", renewed="2"), 1.0)
    member.decide(1.0, ())
    stored.renew(1.5)

    assert member.decide(1.5, ()) == [ShardMove("acquired", 3, unowned_seconds=0.5)]


def test_an_assignment_is_planned_by_a_member_whose_lease_the_cache_shows() -> None:
    stored = StoredMember()
    member = stored.member
    assert member.plan(0.0) is None
    assert member.find_stale(0.0) is None
    member.election.seek(0.0)
    stored.renew(0.0, seen=False)
    assert member.plan(0.0) is None
    assert member.wake_at == 10.0
    stored.see(0.1)
    write = member.plan(0.1)
    assert write is not None
    assert GroupAssignment.of(write.body).members == ("a",)
    assert member.wake_at == 2.1, "the write is repeated unless the cache shows it"
    assert member.plan(10.0) is None
    assert member.wake_at == 10.0


def test_an_earlier_process_of_the_same_name_has_confirmed_nothing() -> None:
    stored = StoredMember()
    member = stored.member
    stored.join(0.0)
    member.observe("shop", group_lease("a"), 0.0)
    member.decide(0.0, ())
    stored.renew(0.0, seen=False)
    member.observe("shop.a", member_lease("a", set(ALL), write=99), 0.0)

    assert member.decide(0.0, ()) == []
    assert member.plan(0.0) is None


def test_the_lease_of_a_dead_member_is_released_by_the_one_that_assigns() -> None:
    stored = alone()
    member = stored.member
    member.observe("shop.b", member_lease("b", {3}), 0.0)
    for now in range(2, 20, 2):
        stored.renew(float(now))
        member.decide(float(now), ALL)
    stale = member.find_stale(18.0)
    assert stale is not None
    assert stale.name == "shop.b"


def test_each_write_of_a_process_has_a_greater_number() -> None:
    stored = StoredMember()
    numbers: list[int] = []
    stored.join(0.0)
    for now in (2.0, 4.0, 6.0):
        stored.renew(now)
        assert stored.lease is not None
        numbers.append(MemberRecord.of(stored.lease, 8).write)
    assert numbers == [2, 3, 4]


def test_another_member_without_a_duration_expires_after_the_duration_of_this_one() -> None:
    stored = StoredMember()
    member = stored.member
    stored.join(0.0)
    lease = member_lease("b", {3})
    lease["spec"]["leaseDurationSeconds"] = None
    member.observe("shop.b", lease, 1.0)
    for now in range(2, 20, 2):
        stored.renew(float(now))
        member.decide(float(now), ())
        assert member.view.claimed() == ({3} if now < 16 else frozenset())


def test_a_name_that_is_rejected_is_quoted_with_its_rule() -> None:
    names = [("A", "c", "the name of a group", "without dots, at most 63 characters, not 'A'")]
    names.append(("a", "C", "identity", "and dots, at most 189 characters, not 'C'"))
    for group, identity, option, rule in names:
        with pytest.raises(ValueError, match="becomes part of the name of a Lease") as caught:
            GroupMember(
                ObjectKey("web", group),
                identity=identity,
                incarnation="x",
                layout=LAYOUT,
                times=ElectionTimes(),
            )
        assert str(caught.value) == (
            f"{option} becomes part of the name of a Lease: it must be lower-case letters, digits "
            f"and hyphens, {rule}"
        )


@pytest.mark.parametrize(
    ("group", "identity"), [("a.b", "c"), ("A", "c"), ("", "c"), ("a", ""), ("a", "C"), ("a", "-")]
)
def test_a_name_that_no_lease_can_have_is_rejected(group: str, identity: str) -> None:
    with pytest.raises(ValueError, match=r"becomes part of the name of a Lease|identity is empty"):
        GroupMember(
            ObjectKey("web", group),
            identity=identity,
            incarnation="x",
            layout=LAYOUT,
            times=ElectionTimes(),
        )


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["renew", "blind", "b", "assign", "wait", "end"]),
            st.frozensets(st.integers(0, 7)),
        ),
        max_size=40,
    )
)
def test_a_member_works_only_on_shards_of_its_stored_lease_after_any_steps(
    steps: list[tuple[str, frozenset[int]]],
) -> None:
    """A model of the promise to others: work implies a stored claim, or no time left."""
    stored, now, working = StoredMember(), 0.0, set[int]()
    member = stored.member
    stored.join(now)
    for number, (kind, shards) in enumerate(steps):
        now += 1.0
        if kind in ("renew", "blind"):
            stored.renew(now, seen=kind == "renew")
        elif kind == "b":
            lease = member_lease("b", set(shards), renewed=str(number))
            member.observe("shop.b", lease, now)
        elif kind == "assign":
            names = ("a", *(f"m{shard}" for shard in sorted(shards)))
            member.observe("shop", group_lease(*names, epoch=number + 1), now)
        elif kind == "wait":
            now += 4.0
        else:
            working -= shards
        began = {move.shard for move in member.decide(now, working) if move.kind == "acquired"}
        working = (working | began) & member.claims
        if member.election.phase == "lost" and not member.claims:
            member.election.seek(now)
        assert stored.lease is not None
        stated = MemberRecord.of(stored.lease, GroupLayout(8).count).held
        assert stated is not None
        assert {shard for shard in range(8) if member.may_act(shard, now)} <= stated
        assert member.held(now) <= member.claims
        assert not began & member.view.claimed()
