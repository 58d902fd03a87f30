"""The members that are live, as far as one member can know."""

from __future__ import annotations

from aioinformer.shardgroup.state.group_view import GroupView
from aioinformer.shardgroup.state.records import GroupLayout
from tests.shardgroup.state.group_leases import LAYOUT, group_lease, member_lease


def make_view() -> GroupView:
    return GroupView(LAYOUT, "shop.a", lease_duration=15)


def test_a_member_is_dead_when_its_record_has_not_changed_for_its_duration() -> None:
    view = make_view()
    view.observe_member("shop.b", member_lease("b", {1}), 0.0)

    assert view.advance(14.9) == []
    assert view.claimed() == {1}
    assert [dead.record.identity for dead in view.advance(15.0)] == ["b"]
    assert view.claimed() == frozenset()


def test_a_late_cache_makes_no_member_dead() -> None:
    view = make_view()
    view.observe_member("shop.b", member_lease("b", {1}), 0.0)
    view.advance(2.0)

    # The clock shows 100 s by now, but the cache contains nothing that is newer than 2 s.
    view.observe_member("shop.b", member_lease("b", {1}, renewed="2"), 100.0)
    view.advance(101.0)

    assert view.claimed() == {1}


def test_a_renewal_keeps_a_member_live_and_changes_no_claim() -> None:
    view = make_view()
    view.observe_member("shop.b", member_lease("b", {1}), 0.0)

    assert not view.observe_member("shop.b", member_lease("b", {1}, renewed="2"), 10.0)
    assert view.advance(20.0) == []


def test_a_label_is_no_renewal() -> None:
    view = make_view()
    view.observe_member("shop.b", member_lease("b", {1}), 0.0)
    touched = member_lease("b", {1})
    touched["metadata"]["labels"]["team"] = "shop"
    touched["metadata"]["resourceVersion"] = "9"
    view.observe_member("shop.b", touched, 14.0)

    assert len(view.advance(15.0)) == 1


def test_a_released_lease_claims_nothing() -> None:
    view = make_view()
    view.observe_member("shop.b", member_lease("b", {1}), 0.0)
    view.observe_member("shop.b", member_lease("b", renewed="2", released=True), 1.0)

    assert list(view.live_members()) == []


def test_a_lease_that_was_deleted_without_a_release_counts_until_it_expires() -> None:
    view = make_view()
    view.observe_member("shop.b", member_lease("b", {1}), 0.0)
    view.observe_member("shop.b", None, 1.0)

    assert view.claimed() == {1}
    view.advance(15.0)
    assert view.claimed() == frozenset()
    assert view.others == {}


def test_a_member_that_died_returns_with_its_next_renewal() -> None:
    view = make_view()
    view.observe_member("shop.b", member_lease("b", {1}), 0.0)
    view.advance(20.0)

    assert view.observe_member("shop.b", member_lease("b", renewed="9"), 21.0)
    assert [record.identity for record in view.live_members()] == ["b"]


def test_a_claim_of_another_layout_is_a_claim_of_all_shards() -> None:
    view = make_view()
    view.observe_member("shop.b", member_lease("b", layout=GroupLayout(16)), 0.0)
    assert view.claimed() == frozenset()

    view.observe_member("shop.b", member_lease("b", {1}, layout=GroupLayout(16)), 1.0)
    assert view.claimed() == frozenset(range(8))


def test_a_record_without_a_duration_lasts_as_long_as_ours() -> None:
    view = make_view()
    lease = member_lease("b", {1})
    lease["spec"]["leaseDurationSeconds"] = None
    view.observe_member("shop.b", lease, 2.0)

    assert view.advance(16.9) == []
    assert len(view.advance(17.0)) == 1
    lease["spec"]["leaseDurationSeconds"] = 1
    view.observe_member("shop.c", lease, 20.0)
    assert len(view.advance(21.0)) == 1


def test_the_freshness_of_the_cache_never_goes_back() -> None:
    view = make_view()
    view.advance(20.0)
    view.observe_member("shop.b", member_lease("b", {1}), 4.0)

    assert view.advance(19.5) == []
    assert view.fresh_at == 20.0
    assert view.claimed() == {1}, "the cache is no fresher than it was"
    assert len(view.advance(20.1)) == 1


def test_the_own_lease_is_no_other_member() -> None:
    view = make_view()
    assert view.observe_member("shop.a", member_lease("a", {1}), 0.0)

    assert view.own is not None
    assert view.own.identity == "a"
    assert (view.others, view.claimed()) == ({}, frozenset())
    view.observe_member("shop.a", None, 1.0)
    assert view.own is None


def test_a_new_member_a_changed_claim_and_a_return_are_changes() -> None:
    view = make_view()
    assert view.observe_member("shop.b", member_lease("b", {1}), 0.0)
    assert view.observe_member("shop.b", member_lease("b", {1, 2}, renewed="2"), 1.0)
    assert view.observe_member("shop.b", member_lease("b", {1, 2}, leaving=True), 2.0)
    assert not view.observe_member("shop.b", member_lease("b", {1, 2}, leaving=True), 3.0)
    assert not view.observe_member("shop.b", None, 4.0), "the claim counts until it expires"
    assert not view.observe_member("shop.unknown", None, 4.0)


def test_a_deleted_lease_that_is_seen_again_exists() -> None:
    view = make_view()
    view.observe_member("shop.b", member_lease("b", {1}), 0.0)
    view.observe_member("shop.b", None, 1.0)
    deleted = view.others["shop.b"]
    view.observe_member("shop.b", member_lease("b", {1}), 2.0)
    again = view.others["shop.b"]
    assert (deleted.exists, again.exists, again.since) == (False, True, 2.0)


def test_a_released_lease_that_was_deleted_is_forgotten_at_once() -> None:
    view = make_view()
    view.observe_member("shop.b", member_lease("b", released=True), 0.0)
    assert list(view.others) == ["shop.b"]
    view.observe_member("shop.b", None, 1.0)
    assert view.others == {}


def test_a_dead_member_stays_known_while_its_lease_exists() -> None:
    view = make_view()
    view.observe_member("shop.b", member_lease("b", {1}), 0.0)
    view.advance(15.0)
    assert list(view.others) == ["shop.b"]
    assert not view.others["shop.b"].live
    assert view.advance(40.0) == [], "it died once"


def test_claims_that_cannot_be_read_are_all_shards() -> None:
    view = make_view()
    lease = member_lease("b", {1})
    lease["metadata"]["annotations"]["aioinformer/shards-held"] = "?"
    view.observe_member("shop.b", lease, 0.0)
    assert view.claimed() == frozenset(range(8))


def test_an_assignment_changes_when_its_lease_does() -> None:
    view = make_view()
    assert not view.observe_assignment(None)
    assert view.observe_assignment(group_lease("a"))
    assert not view.observe_assignment(group_lease("a"))
    assert repr(view) == f"<GroupView of 0 others, {view.assignment!r}>"
    assert view.observe_assignment(None)
    assert (view.assignment, view.assignment_lease) == (None, None)
