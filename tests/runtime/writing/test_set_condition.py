"""The time of a condition that a program sets."""

from __future__ import annotations

import datetime as dt

from aioinformer.conditions import set_condition


def test_the_time_is_that_of_the_system_clock() -> None:
    before = dt.datetime.now(dt.UTC).replace(microsecond=0)
    (entry,) = set_condition(None, "Ready", True, reason="Fine")
    found = dt.datetime.fromisoformat(entry["lastTransitionTime"])
    assert before <= found <= dt.datetime.now(dt.UTC)


def test_a_program_may_pass_a_time() -> None:
    now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    (entry,) = set_condition([], "Ready", False, reason="Waiting", message="for pods", now=now)
    assert entry == {
        "type": "Ready",
        "status": "False",
        "reason": "Waiting",
        "message": "for pods",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
