"""The content of a group's Leases."""

from __future__ import annotations

import pytest

from aioinformer import ObjectKey
from aioinformer.leaderelection.state.lease import GROUP_LABEL, LeaseRecord
from aioinformer.shardgroup.state.records import (
    GroupAssignment,
    GroupLayout,
    MemberRecord,
    lease_identity,
    release_lease,
)
from tests.shardgroup.state.group_leases import KEY, group_lease, member_lease


def test_a_member_is_read_as_it_was_written() -> None:
    lease = member_lease("b", {0, 1, 5}, write=7, leaving=True)
    record = MemberRecord.of(lease, 8)

    assert lease["metadata"]["labels"] == {GROUP_LABEL: "shop"}
    assert lease["metadata"]["annotations"]["aioinformer/shards-held"] == "0-1,5"
    assert record.identity == "b"
    assert record.held == frozenset({0, 1, 5})
    assert (record.incarnation, record.write, record.leaving) == ("other", 7, True)
    assert record.layout == str(GroupLayout(8))


def test_a_layout_is_written_as_count_and_field() -> None:
    assert str(GroupLayout(8)) == "8/uid"
    assert str(GroupLayout(64, "namespace")) == "64/namespace"


@pytest.mark.parametrize("text", ["everything", "0-9"])
def test_claims_that_cannot_be_read_are_unknown(text: str) -> None:
    lease = member_lease("b")
    lease["metadata"]["annotations"]["aioinformer/shards-held"] = text

    assert MemberRecord.of(lease, 8).held is None


def test_a_lease_without_annotations_is_a_member_without_claims() -> None:
    record = MemberRecord.of({"spec": {"holderIdentity": "b"}}, 8)

    lease = LeaseRecord("b", 0, 0, "", "")
    assert record == MemberRecord(lease, "", frozenset(), "", 0, leaving=False)


@pytest.mark.parametrize(
    ("text", "incarnation", "write"),
    [("host/1/7", "host/1", 7), ("host/seven", "host", 0), ("7", "", 7), ("host/-7", "host", 0)],
)
def test_the_number_of_a_write_stands_behind_the_last_slash(
    text: str, incarnation: str, write: int
) -> None:
    lease = member_lease("b")
    lease["metadata"]["annotations"]["aioinformer/shard-write"] = text
    record = MemberRecord.of(lease, 8)

    assert (record.incarnation, record.write) == (incarnation, write)


def test_a_member_states_its_claims_beside_what_others_wrote() -> None:
    record = MemberRecord(
        LeaseRecord("b", 15, 0, "0", "1"), "8/uid", frozenset({0, 1, 5}), "this", 7, leaving=False
    )
    body = {
        "metadata": {"labels": {"team": "shop"}, "annotations": {"note": "x"}},
        "spec": {"a": 1},
    }

    assert record.stamp(body, "shop") == {
        "metadata": {
            "labels": {"team": "shop", "aioinformer/shard-group": "shop"},
            "annotations": {
                "note": "x",
                "aioinformer/shard-layout": "8/uid",
                "aioinformer/shards-held": "0-1,5",
                "aioinformer/shard-write": "this/7",
                "aioinformer/shard-leaving": "false",
            },
        },
        "spec": {"a": 1},
    }


@pytest.mark.parametrize("namespace", ["web", ""])
def test_a_group_without_a_lease_gets_one_of_its_name(namespace: str) -> None:
    body = GroupAssignment(3, "8/uid", ("a", "b"), "b").build(ObjectKey(namespace, "shop"), None)

    assert body == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": "shop",
            "labels": {"aioinformer/shard-group": "shop"},
            "annotations": {
                "aioinformer/shard-epoch": "3",
                "aioinformer/shard-layout": "8/uid",
                "aioinformer/shard-members": '["a","b"]',
            },
        }
        | ({"namespace": "web"} if namespace else {}),
        "spec": {"holderIdentity": "b"},
    }


@pytest.mark.parametrize(("text", "epoch"), [("9" * 18, 10**18 - 1), ("9" * 19, 0), ("x", 0)])
def test_an_epoch_that_no_group_reaches_counts_as_none(text: str, epoch: int) -> None:
    lease = group_lease("a")
    lease["metadata"]["annotations"]["aioinformer/shard-epoch"] = text

    assert GroupAssignment.of(lease).epoch == epoch


def test_members_are_sorted_whatever_wrote_them() -> None:
    lease = group_lease("a")
    lease["metadata"]["annotations"]["aioinformer/shard-members"] = '["c", "a", 7]'

    assert GroupAssignment.of(lease).members == ("7", "a", "c")


def test_a_lease_without_annotations_assigns_nothing() -> None:
    assert GroupAssignment.of({}) == GroupAssignment(0, "", (), "")


def test_a_lease_is_released_without_holder_and_claims() -> None:
    lease = member_lease("b", {1}, renewed="5")
    body = release_lease(lease, "shop")

    assert body["spec"] == lease["spec"] | {"holderIdentity": "", "leaseDurationSeconds": 1}
    assert MemberRecord.of(body, 8).held == frozenset()
    assert body["metadata"]["resourceVersion"] == "5"
    assert body["metadata"]["labels"] == {GROUP_LABEL: "shop"}
    assert MemberRecord.of(lease, 8).identity == "b", "the cached object is unchanged"


def test_a_lease_is_deleted_by_its_uid_and_version() -> None:
    assert lease_identity(member_lease("b", renewed="5")) == ("uid of b", "5")
    assert lease_identity({}) == ("", "")
    assert lease_identity({"metadata": {"uid": None}}) == ("", "")


def test_a_member_of_unknown_claims_states_none() -> None:
    record = MemberRecord(LeaseRecord("b", 15, 0, "0", "1"), "8/uid", None, "p", 1, leaving=True)
    notes = record.stamp({}, "shop")["metadata"]["annotations"]

    assert notes["aioinformer/shards-held"] == ""
    assert notes["aioinformer/shard-leaving"] == "true"


def test_a_lease_without_spec_is_released_too() -> None:
    assert release_lease({"metadata": None}, "shop") == {
        "metadata": {
            "labels": {GROUP_LABEL: "shop"},
            "annotations": {"aioinformer/shards-held": ""},
        },
        "spec": {"holderIdentity": "", "leaseDurationSeconds": 1},
    }


def test_an_assignment_is_read_as_it_was_written() -> None:
    lease = group_lease("a", "b", epoch=41, leader="b")

    assert GroupAssignment.of(lease) == GroupAssignment(41, "8/uid", ("a", "b"), "b")


@pytest.mark.parametrize(
    "text",
    ["", "[", '{"a": 1}', "7", "[" * 50_000],
    ids=["empty", "no end", "mapping", "number", "deep"],
)
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
