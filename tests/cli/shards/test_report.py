"""The state of a group, from its Leases."""

from __future__ import annotations

import datetime as dt
from typing import Any

from aioinformer._cli.shards.report import read_group
from aioinformer.shardgroup.state.rendezvous import shard_owners
from tests.shardgroup.state.group_leases import group_lease, member_lease

NOW = dt.datetime(2026, 1, 1, 12, 0, 10, tzinfo=dt.UTC)
FRESH = "2026-01-01T12:00:09.000000Z"
OLD = "2026-01-01T11:00:00.000000Z"


def owned(identity: str, *members: str) -> set[int]:
    return {shard for shard, owner in enumerate(shard_owners(members, 8)) if owner == identity}


def leases_of(*members: str) -> list[dict[str, Any]]:
    shares = [member_lease(each, owned(each, *members), renewed=FRESH) for each in members]
    return [group_lease(*members, epoch=4), *shares]


def test_a_group_whose_shards_all_have_an_owner_is_ok() -> None:
    report = read_group("shop", "web", leases_of("a", "b"), NOW)

    assert report is not None
    assert report.ok
    assert (report.count, report.by, report.epoch, report.leader) == (8, "uid", 4, "a")
    assert [(each.identity, each.state, each.renewed) for each in report.members] == [
        ("a", "member", 1.0),
        ("b", "member", 1.0),
    ]
    assert sum(each.held for each in report.members) == 8
    assert all(each.held == each.assigned for each in report.members)


def test_the_shards_of_an_expired_member_are_unclaimed() -> None:
    leases = leases_of("a", "b")
    leases[2]["spec"]["renewTime"] = OLD
    report = read_group("shop", "web", leases, NOW)

    assert report is not None
    assert not report.ok
    assert report.unclaimed == report.members[1].shards
    assert report.members[1].state == "expired"


def test_a_shard_that_two_members_name_is_contested() -> None:
    leases = leases_of("a", "b")
    leases.append(member_lease("c", {0, 1}, renewed=FRESH, leaving=True))
    report = read_group("shop", "web", leases, NOW)

    assert report is not None
    assert (report.ok, report.contested) == (False, "0-1")
    assert report.members[2].state == "leaving"


def test_an_assigned_member_without_a_lease_is_absent() -> None:
    leases = leases_of("a", "b")[:2]
    report = read_group("shop", "web", leases, NOW)

    assert report is not None
    assert [(each.identity, each.state) for each in report.members] == [
        ("a", "member"),
        ("b", "absent"),
    ]


def test_a_released_lease_is_ignored_and_a_malformed_time_gives_no_age() -> None:
    leases = [*leases_of("a"), member_lease("b", renewed=FRESH, released=True)]
    leases[1]["spec"]["renewTime"] = "yesterday"
    report = read_group("shop", "web", leases, NOW)

    assert report is not None
    assert [(each.identity, each.renewed) for each in report.members] == [("a", None)]


def test_a_group_without_its_lease_does_not_exist() -> None:
    assert read_group("shop", "web", [], NOW) is None
