"""The ``Status`` of a server's error."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.errors import Status

CONFLICT = {"reason": "FieldManagerConflict", "message": 'conflict with "b"', "field": ".data.x"}


def status_with(causes: Any) -> Status:
    return Status(409, "Conflict", "the apply failed", details={"causes": causes})


def test_the_causes_are_those_entries_of_the_details_that_are_objects() -> None:
    assert status_with([CONFLICT, "text", None, {}]).causes == [CONFLICT, {}]


@pytest.mark.parametrize("sent", [None, "text", {"0": CONFLICT}, 5])
def test_anything_but_a_list_in_their_place_is_no_cause(sent: Any) -> None:
    status = status_with(sent)
    assert status.causes == []
    assert not status.is_apply_conflict


def test_an_apply_conflicts_if_one_cause_names_a_field_of_another_manager() -> None:
    assert status_with([{"reason": "FieldValueInvalid"}, CONFLICT]).is_apply_conflict
    assert not status_with([{"reason": "FieldValueInvalid"}]).is_apply_conflict
    assert not Status(409, "Conflict").is_apply_conflict
