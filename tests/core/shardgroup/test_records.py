"""The content of a group's Leases."""

from __future__ import annotations

import pytest

from aioinformer._core.shardgroup.records import GROUP_LABEL, GroupAssignment, MemberRecord
from tests.core.shardgroup.group_leases import KEY, group_lease, member_lease


def test_a_member_is_read_as_it_was_written() -> None:
    lease = member_lease("b", {0, 1, 5}, write=7, leaving=True)
    record = MemberRecord.of(lease, 8)

    assert lease["metadata"]["labels"] == {GROUP_LABEL: "shop"}
    assert lease["metadata"]["annotations"]["aioinformer/shards-held"] == "0-1,5"
    assert record.identity == "b"
    assert record.held == frozenset({0, 1, 5})
    assert (record.incarnation, record.write, record.leaving) == ("other", 7, True)


@pytest.mark.parametrize("text", ["everything", "0-9"])
def test_claims_that_cannot_be_read_are_unknown(text: str) -> None:
    lease = member_lease("b")
    lease["metadata"]["annotations"]["aioinformer/shards-held"] = text

    assert MemberRecord.of(lease, 8).held is None


def test_a_lease_without_annotations_is_a_member_without_claims() -> None:
    record = MemberRecord.of({"spec": {"holderIdentity": "b"}}, 8)

    assert (record.identity, record.held, record.write) == ("b", frozenset(), 0)


def test_an_assignment_is_read_as_it_was_written() -> None:
    lease = group_lease("a", "b", epoch=41, leader="b")

    assert GroupAssignment.of(lease) == GroupAssignment(41, "8/uid", ("a", "b"), "b")


@pytest.mark.parametrize("text", ["", "[", '{"a": 1}', "7"])
def test_members_that_cannot_be_read_are_none(text: str) -> None:
    lease = group_lease("a")
    lease["metadata"]["annotations"]["aioinformer/shard-members"] = text
    lease["metadata"]["annotations"]["aioinformer/shard-epoch"] = "-1"

    assert GroupAssignment.of(lease) == GroupAssignment(0, "8/uid", (), "a")


def test_a_new_assignment_keeps_what_others_wrote_and_the_version_that_was_seen() -> None:
    lease = group_lease("a", epoch=1)
    lease["metadata"]["labels"]["team"] = "shop"
    lease["spec"]["strategy"] = "OldestEmulationVersion"
    body = GroupAssignment(2, "8/uid", ("a", "b"), "a").build(KEY, lease)

    assert body["metadata"]["labels"] == {GROUP_LABEL: "shop", "team": "shop"}
    assert body["metadata"]["resourceVersion"] == "group-1"
    assert body["spec"]["strategy"] == "OldestEmulationVersion"
    assert GroupAssignment.of(body).members == ("a", "b")
