"""The members that are live, as far as one member can know."""

from __future__ import annotations

from aioinformer._core.shardgroup.records import GroupLayout
from aioinformer._core.shardgroup.view import GroupView
from tests.core.shardgroup.group_leases import LAYOUT, member_lease


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
