"""Conditions of a status, by apimachinery's rules."""

from __future__ import annotations

import datetime as dt
from copy import deepcopy
from pathlib import PurePath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer._core.objects.readonly import freeze
from aioinformer._core.writing.status_conditions import (
    MAX_MESSAGE,
    MAX_REASON,
    ConditionStatus,
    format_time,
    merge_condition,
)

START = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)


def merge(
    conditions: Any,
    status: bool | ConditionStatus = True,
    *,
    name: str = "Ready",
    reason: str = "Fine",
    message: str = "",
    generation: int | None = None,
    seconds: int = 0,
) -> list[dict[str, Any]]:
    return merge_condition(
        conditions,
        name,
        status,
        reason=reason,
        message=message,
        observed_generation=generation,
        now=START + dt.timedelta(seconds=seconds),
    )


def test_a_first_entry_has_all_fields_that_a_server_requires() -> None:
    assert merge(None, generation=3) == [
        {
            "type": "Ready",
            "status": "True",
            "reason": "Fine",
            "message": "",
            "observedGeneration": 3,
            "lastTransitionTime": "2026-01-02T03:04:05Z",
        }
    ]


def test_the_time_changes_with_the_status_only() -> None:
    first = merge([], message="one")
    second = merge(first, message="two", reason="Other", generation=4, seconds=10)
    (entry,) = second
    assert (entry["message"], entry["reason"]) == ("two", "Other")
    assert entry["lastTransitionTime"] == "2026-01-02T03:04:05Z"
    (entry,) = merge(second, False, seconds=20)
    assert (entry["status"], entry["lastTransitionTime"]) == ("False", "2026-01-02T03:04:25Z")
    (entry,) = merge([entry], "Unknown", seconds=30)
    assert (entry["status"], entry["lastTransitionTime"]) == ("Unknown", "2026-01-02T03:04:35Z")


def test_an_entry_without_a_time_gets_one() -> None:
    (entry,) = merge([{"type": "Ready", "status": "True"}], seconds=5)
    assert entry["lastTransitionTime"] == "2026-01-02T03:04:10Z"


def test_an_equal_call_has_an_equal_result() -> None:
    first = merge([], generation=2)
    assert merge(first, generation=2, seconds=99) == first


def test_a_generation_of_an_earlier_call_does_not_stay() -> None:
    (entry,) = merge(merge([], generation=2))
    assert "observedGeneration" not in entry


def test_other_entries_and_their_order_stay() -> None:
    others = [
        {"type": "A", "status": "True", "extra": {"deep": [1]}},
        {"type": "Ready", "status": "False", "lastTransitionTime": "2020-01-01T00:00:00Z"},
        {"type": "B", "status": "Unknown"},
    ]
    before = deepcopy(others)
    result = merge(freeze(others))
    assert [each["type"] for each in result] == ["A", "Ready", "B"]
    assert (result[0], result[2]) == (before[0], before[2])
    assert type(result[0]["extra"]["deep"]) is list  # a copy that a program may change
    assert others == before


def test_a_long_message_is_cut_to_the_servers_limit() -> None:
    (entry,) = merge([], message="x" * (MAX_MESSAGE + 1))
    assert len(entry["message"]) == MAX_MESSAGE


@pytest.mark.parametrize("reason", ["", "two words", "1st", "trailing:", "x" * 1025, "a-b"])
def test_a_reason_that_a_server_rejects_is_an_error_here(reason: str) -> None:
    with pytest.raises(ValueError, match="the reason of Ready must be one word in CamelCase"):
        merge([], reason=reason)


def test_a_reason_may_have_as_many_characters_as_a_server_accepts() -> None:
    (entry,) = merge([], reason="x" * MAX_REASON)
    assert entry["reason"] == "x" * MAX_REASON


@pytest.mark.parametrize("status", ["true", "yes", None, 1, PurePath("True")])
def test_another_status_is_an_error(status: Any) -> None:
    with pytest.raises(ValueError, match="the status of Ready must be True, False or 'Unknown'"):
        merge([], status)


@pytest.mark.parametrize("conditions", ["Ready", {"type": "Ready"}, ["Ready"], 3])
def test_something_else_than_a_list_of_conditions_is_an_error(conditions: Any) -> None:
    kind = type(conditions).__name__
    with pytest.raises(
        TypeError,
        match=rf"^conditions must be the list at status\.conditions, or None, not {kind}$",
    ):
        merge(conditions)


@pytest.mark.parametrize("generation", [0, 1])
def test_any_generation_from_zero_on_is_observed(generation: int) -> None:
    (entry,) = merge([], generation=generation)
    assert entry["observedGeneration"] == generation


def test_a_generation_below_zero_or_of_another_type_is_an_error() -> None:
    for wrong in (-1, True, "3"):
        found: Any = wrong
        with pytest.raises(ValueError, match="observed_generation of Ready"):
            merge([], generation=found)


def test_types_and_messages_are_checked() -> None:
    for each in (None, "", 5):
        name: Any = each
        with pytest.raises(TypeError, match=f"the type of a condition, not {name!r}$"):
            merge([], name=name)
    wrong: Any = None
    with pytest.raises(TypeError, match="the message of Ready must be a string"):
        merge([], message=wrong)


def test_a_time_without_a_zone_is_an_error() -> None:
    with pytest.raises(ValueError, match="a time with a zone"):
        format_time(dt.datetime(2026, 1, 1))


def test_times_of_other_zones_are_written_in_utc() -> None:
    zone = dt.timezone(dt.timedelta(hours=2))
    assert format_time(dt.datetime(2026, 1, 1, 1, tzinfo=zone)) == "2025-12-31T23:00:00Z"


@pytest.mark.usefixtures("zone_before_utc")
def test_times_are_written_in_utc_whatever_the_zone_of_the_machine_is() -> None:
    assert format_time(START) == "2026-01-02T03:04:05Z"


calls = st.lists(
    st.tuples(
        st.sampled_from(["Ready", "Available", "Progressing"]),
        st.sampled_from([True, False, "Unknown"]),
        st.sampled_from(["A", "B"]),
        st.sampled_from([None, 1, 2]),
    )
)


@given(calls)
def test_any_calls_agree_with_a_table_of_conditions(
    steps: list[tuple[str, bool | ConditionStatus, str, int | None]],
) -> None:
    """The model is a table by type, which notes a status and the time of its last change."""
    conditions: list[dict[str, Any]] = []
    model: dict[str, tuple[str, str, int | None, str]] = {}
    for second, (name, status, reason, generation) in enumerate(steps):
        conditions = merge(
            conditions, status, name=name, reason=reason, generation=generation, seconds=second
        )
        old = model.get(name)
        changed = old is None or old[0] != str(status)
        time = (
            format_time(START + dt.timedelta(seconds=second)) if changed or old is None else old[3]
        )
        model[name] = (str(status), reason, generation, time)
    shown = {
        each["type"]: (
            each["status"],
            each["reason"],
            each.get("observedGeneration"),
            each["lastTransitionTime"],
        )
        for each in conditions
    }
    assert shown == model
    assert [each["type"] for each in conditions] == list(model)
