"""The elected member's decision to write a new assignment."""

from __future__ import annotations

from aioinformer.leaderelection.state.lease import GROUP_LABEL
from aioinformer.shardgroup.state.group_view import GroupView
from aioinformer.shardgroup.state.planner import AssignmentPlanner
from aioinformer.shardgroup.state.records import GroupAssignment, GroupLayout, MemberRecord
from tests.shardgroup.state.group_leases import KEY, LAYOUT, group_lease, member_lease


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
    assert stale.release["metadata"]["labels"] == {GROUP_LABEL: "shop"}
    assert stale.release["metadata"]["resourceVersion"] == "1"
    assert planner.find_stale(view, 16.9, 15.0) is None  # the cache doesn't show the write yet
    assert planner.find_stale(view, 17.0, 15.0) == stale


def test_a_lease_is_deleted_some_time_after_its_release() -> None:
    planner, view = make("b")
    view.observe_assignment(group_lease("a", leader="a"))
    view.observe_member("shop.b", member_lease("b", renewed="2", released=True), 0.0)

    assert planner.find_stale(view, 60.0, 15.0) is None
    stale = planner.find_stale(view, 60.1, 15.0)
    assert stale is not None
    assert (stale.name, stale.uid, stale.version) == ("shop.b", "uid of b", "2")
    assert stale.release is None


def test_a_member_that_does_not_assign_has_nothing_to_wait_for() -> None:
    planner, view = make("b", identity="c")
    planner.plan(view, 0.0, leaving=False)

    assert planner.next_at == float("inf")
    view.observe_assignment(group_lease("b", "c", leader="c"))
    assert planner.plan(view, 0.0, leaving=False) is None, "the assignment is right"
    assert planner.next_at == float("inf")


def test_a_joining_member_waits_for_others_from_when_it_was_seen() -> None:
    planner, view = make("b")
    view.observe_assignment(group_lease("a", leader="a"))
    planner.plan(view, 0.0, leaving=False)
    assert planner.plan(view, 0.9, leaving=False) is None
    assert planner.next_at == 1.0
    view.observe_assignment(group_lease("a", "b", leader="a", epoch=2))
    planner.plan(view, 5.0, leaving=False)
    view.observe_member("shop.c", member_lease("c"), 9.0)
    assert planner.plan(view, 9.0, leaving=False) is None, "another join waits anew"
    assert planner.next_at == 10.0


def test_a_leaving_leader_takes_itself_out() -> None:
    planner, view = make("b")
    view.observe_assignment(group_lease("a", "b", leader="a"))
    write = planner.plan(view, 0.0, leaving=True)

    assert write is not None
    assert not write.creates
    assert GroupAssignment.of(write.body).members == ("b",)


def test_a_group_lease_that_was_deleted_is_created_again_with_a_greater_epoch() -> None:
    planner, view = make()
    view.observe_assignment(group_lease("a", epoch=7))
    assert planner.plan(view, 0.0, leaving=False) is None
    view.observe_assignment(None)
    write = planner.plan(view, 1.0, leaving=False)

    assert write is not None
    assert write.creates
    assert GroupAssignment.of(write.body).epoch == 8
    assert repr(planner) == "<AssignmentPlanner of web/shop by a epoch=7>"


def test_the_epoch_of_a_group_lease_that_was_replaced_does_not_go_back() -> None:
    planner, view = make("b")
    view.observe_assignment(group_lease("a", "b", leader="a", epoch=7))
    assert planner.plan(view, 0.0, leaving=False) is None
    view.observe_assignment(group_lease("a", leader="a", epoch=1))
    planner.plan(view, 1.0, leaving=False)
    write = planner.plan(view, 10.0, leaving=False)

    assert write is not None
    assert GroupAssignment.of(write.body).epoch == 8


def test_a_write_on_another_version_of_the_lease_needs_no_wait() -> None:
    planner, view = make("b")
    view.observe_assignment(group_lease("a", "c", leader="a", epoch=1))
    assert planner.plan(view, 0.0, leaving=False) is not None
    view.observe_assignment(group_lease("a", "d", leader="a", epoch=2))
    assert planner.plan(view, 0.1, leaving=False) is not None


def test_an_assignment_of_another_layout_is_replaced() -> None:
    planner, view = make()
    view.observe_assignment(group_lease("a", leader="a", layout=GroupLayout(16)))
    write = planner.plan(view, 0.0, leaving=False)

    assert write is not None
    assert GroupAssignment.of(write.body) == GroupAssignment(2, "8/uid", ("a",), "a")


def test_the_leases_of_two_dead_members_are_released_one_after_the_other() -> None:
    planner, view = make("b", "c")
    view.observe_assignment(group_lease("a", leader="a"))
    view.advance(15.0)
    first = planner.find_stale(view, 15.0, 15.0)
    assert first is not None
    second = planner.find_stale(view, 15.0, 15.0)
    assert second is not None
    assert {first.name, second.name} == {"shop.b", "shop.c"}


def test_the_lease_of_a_live_member_and_a_deleted_lease_are_left_alone() -> None:
    planner, view = make("b", "c")
    view.observe_assignment(group_lease("a", leader="a"))
    view.observe_member("shop.c", None, 1.0)
    assert planner.find_stale(view, 14.0, 15.0) is None
    view.advance(15.0)
    stale = planner.find_stale(view, 15.0, 15.0)
    assert stale is not None
    assert stale.name == "shop.b"


def test_only_the_member_that_assigns_removes_leases() -> None:
    planner, view = make("b", "d", identity="c")
    view.observe_assignment(group_lease("b", "c", "d", leader="b"))
    view.observe_member("shop.d", member_lease("d", renewed="2", released=True), 0.0)
    assert planner.find_stale(view, 100.0, 15.0) is None


def test_a_live_member_of_the_assigned_layout_assigns_after_its_leader_has_died() -> None:
    planner, view = make()
    other = GroupLayout(16)
    view.observe_member("shop.z", member_lease("z", layout=other), 0.0)
    view.observe_assignment(group_lease("y", "z", leader="y", layout=other))

    assert not planner.is_leader(view)
    assert planner.plan(view, 0.0, leaving=False) is None
