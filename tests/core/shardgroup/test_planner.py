"""The elected member's decision to write a new assignment."""

from __future__ import annotations

from aioinformer._core.shardgroup.planner import AssignmentPlanner
from aioinformer._core.shardgroup.records import GroupAssignment, GroupLayout, MemberRecord
from aioinformer._core.shardgroup.view import GroupView
from tests.core.shardgroup.group_leases import KEY, LAYOUT, group_lease, member_lease


def make(*others: str, identity: str = "a") -> tuple[AssignmentPlanner, GroupView]:
    planner = AssignmentPlanner(KEY, identity, LAYOUT, retry_period=2.0)
    view = GroupView(LAYOUT, f"shop.{identity}", lease_duration=15)
    for other in others:
        view.observe_member(f"shop.{other}", member_lease(other), 0.0)
    return planner, view


def test_the_least_live_member_writes_the_first_assignment() -> None:
    planner, view = make("b", "c")
    write = planner.plan(view, 0.0, leaving=False)

    assert write is not None
    assert write.creates
    assert GroupAssignment.of(write.body) == GroupAssignment(1, "8/uid", ("a", "b", "c"), "a")


def test_another_member_writes_nothing() -> None:
    planner, view = make("b", identity="c")

    assert planner.plan(view, 0.0, leaving=False) is None


def test_the_leader_stays_until_it_is_dead() -> None:
    planner, view = make("b")
    view.observe_assignment(group_lease("b", epoch=3, leader="b"))
    assert planner.plan(view, 0.0, leaving=False) is None

    view.advance(15.0)
    write = planner.plan(view, 15.0, leaving=False)

    assert write is not None
    assert GroupAssignment.of(write.body) == GroupAssignment(4, "8/uid", ("a",), "a")


def test_members_that_join_together_are_assigned_together() -> None:
    planner, view = make("b")
    view.observe_assignment(group_lease("a", leader="a"))

    assert planner.plan(view, 0.0, leaving=False) is None
    assert planner.next_at == 1.0
    view.observe_member("shop.c", member_lease("c"), 0.5)
    write = planner.plan(view, 1.0, leaving=False)

    assert write is not None
    assert GroupAssignment.of(write.body).members == ("a", "b", "c")


def test_a_member_that_leaves_is_taken_out_at_once() -> None:
    planner, view = make("b")
    view.observe_assignment(group_lease("a", "b", leader="a"))
    view.observe_member("shop.b", member_lease("b", {1}, renewed="2", leaving=True), 1.0)
    write = planner.plan(view, 1.0, leaving=False)

    assert write is not None
    assert GroupAssignment.of(write.body).members == ("a",)


def test_a_write_that_is_not_seen_is_repeated_after_the_retry_period() -> None:
    planner, view = make()

    assert planner.plan(view, 0.0, leaving=False) is not None
    assert planner.plan(view, 1.9, leaving=False) is None
    assert planner.next_at == 2.0
    assert planner.plan(view, 2.0, leaving=False) is not None


def test_members_of_another_layout_are_not_assigned_and_assign_while_they_live() -> None:
    planner, view = make()
    other = GroupLayout(16)
    view.observe_member("shop.z", member_lease("z", layout=other), 0.0)
    view.observe_assignment(group_lease("z", layout=other))

    assert planner.plan(view, 0.0, leaving=False) is None
    view.advance(15.0)
    write = planner.plan(view, 15.0, leaving=False)

    assert write is not None
    assert GroupAssignment.of(write.body) == GroupAssignment(2, "8/uid", ("a",), "a")


def test_the_lease_of_a_member_that_died_is_released_for_members_that_join_later() -> None:
    planner, view = make("b")
    view.observe_member("shop.b", member_lease("b", {1}), 0.0)
    view.observe_assignment(group_lease("a", leader="a"))
    view.advance(14.0)
    assert planner.find_stale(view, 14.0, 15.0) is None

    view.advance(15.0)
    stale = planner.find_stale(view, 15.0, 15.0)

    assert stale is not None
    assert stale.release is not None
    record = MemberRecord.of(stale.release, 8)
    assert (record.identity, record.held) == ("", frozenset())
    assert stale.release["metadata"]["resourceVersion"] == "1"
    assert planner.find_stale(view, 16.9, 15.0) is None  # the cache doesn't show the write yet
    assert planner.find_stale(view, 17.0, 15.0) == stale


def test_a_lease_that_was_released_long_ago_is_deleted() -> None:
    planner, view = make("b")
    view.observe_assignment(group_lease("a", leader="a"))
    view.observe_member("shop.b", member_lease("b", renewed="2", released=True), 0.0)

    assert planner.find_stale(view, 60.0, 15.0) is None
    stale = planner.find_stale(view, 60.1, 15.0)
    assert stale is not None
    assert (stale.name, stale.uid, stale.version) == ("shop.b", "uid of b", "2")
    assert stale.release is None
