"""The record in a Lease: read from the object, and written into a body."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest

from aioinformer import Fencing, ObjectKey
from aioinformer.leaderelection.state.lease import (
    LeaseRecord,
    build_lease,
    format_micro_time,
    resource_version,
    update_lease,
)

RECORD = LeaseRecord("a", 15, 3, "2026-01-01T00:00:00.000001Z", "2026-01-01T00:00:02.000000Z")


def test_a_record_is_read_as_it_was_written() -> None:
    lease = build_lease(ObjectKey("web", "controller"), RECORD)
    assert LeaseRecord.of(lease) == RECORD
    assert lease["metadata"] == {"name": "controller", "namespace": "web"}
    assert (lease["apiVersion"], lease["kind"]) == ("coordination.k8s.io/v1", "Lease")


def test_a_writer_with_a_namespace_of_its_own_needs_none_in_the_lease() -> None:
    assert build_lease(ObjectKey("", "controller"), RECORD)["metadata"] == {"name": "controller"}


@pytest.mark.parametrize(
    "lease",
    [
        {},
        {"spec": None},
        {"spec": {}},
        {"spec": {"holderIdentity": None, "leaseDurationSeconds": None, "renewTime": None}},
        {"spec": {"leaseTransitions": "seven", "leaseDurationSeconds": {}}},
        {"spec": ["no"]},
    ],
)
def test_missing_fields_of_a_lease_are_empty(lease: dict[str, Any]) -> None:
    assert LeaseRecord.of(lease) == LeaseRecord("", 0, 0, "", "")
    assert resource_version(lease) == ""


def test_numbers_out_of_range_are_replaced_by_the_limits() -> None:
    huge = 10**400
    spec = {"leaseDurationSeconds": huge, "leaseTransitions": -huge}
    record = LeaseRecord.of({"spec": spec})
    assert (record.duration, record.transitions) == (2**31 - 1, -(2**31) + 1)


def test_an_update_keeps_all_other_fields() -> None:
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "metadata": {"name": "x", "resourceVersion": "7", "labels": {"a": "b"}},
        "spec": {"strategy": "OldestEmulationVersion", "holderIdentity": "old"},
        "future": {"x": 1},
    }
    body = update_lease(lease, RECORD)
    assert LeaseRecord.of(body) == RECORD
    assert body["metadata"] == lease["metadata"]
    assert body["future"] == {"x": 1}
    assert body["spec"]["strategy"] == "OldestEmulationVersion"
    assert resource_version(body) == "7"
    assert lease["spec"] == {"strategy": "OldestEmulationVersion", "holderIdentity": "old"}


def test_a_lease_without_a_spec_gets_one() -> None:
    assert update_lease({"metadata": {}}, RECORD) == {
        "metadata": {},
        "spec": {
            "holderIdentity": "a",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-01-01T00:00:00.000001Z",
            "renewTime": "2026-01-01T00:00:02.000000Z",
            "leaseTransitions": 3,
        },
    }


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ({"duration": 60}, True),
        ({"acquired": "later"}, True),
        ({"renewed": "later"}, False),
        ({"transitions": 4}, False),
        ({"holder": "b"}, False),
    ],
    ids=lambda value: "" if isinstance(value, bool) else next(iter(value)),
)
def test_a_write_is_known_by_its_holder_its_term_and_its_time(
    changed: dict[str, Any], same: bool
) -> None:
    assert RECORD.is_same_write(replace(RECORD, **changed)) is same


def test_the_reason_of_a_loss_names_the_holder() -> None:
    assert RECORD.other_holder("b") == "a holds it"
    assert RECORD.other_holder("a") == "another program writes to it as a"
    assert replace(RECORD, holder="").other_holder("a") == "another program released it"
    assert "\n" not in replace(RECORD, holder="x\ny").other_holder("a")


def test_times_are_written_as_micro_times_in_utc() -> None:
    berlin = dt.timezone(dt.timedelta(hours=2))
    assert format_micro_time(dt.datetime(2006, 1, 2, 15, 4, 5, tzinfo=dt.UTC)) == (
        "2006-01-02T15:04:05.000000Z"
    )
    assert (
        format_micro_time(dt.datetime(2006, 1, 2, 17, 4, 5, 42, berlin))
        == "2006-01-02T15:04:05.000042Z"
    )


def test_a_later_term_is_greater() -> None:
    assert Fencing(9, "z") < Fencing(10, "a")
    assert str(Fencing(10, "a")) == "10/a"
