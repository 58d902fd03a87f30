"""The text of an operator's health."""

from __future__ import annotations

from typing import Any

from aioinformer import OperatorHealth
from aioinformer._core.instrumentation import QueueStatistics
from aioinformer.controllers.health import ControllerHealth
from aioinformer.errors import LeadershipLost


def health(**given: Any) -> OperatorHealth:
    usual: dict[str, Any] = {
        "state": "running",
        "error": None,
        "leader": "",
        "controllers": {},
        "informers": {},
        "groups": {},
    }
    return OperatorHealth(**usual | given)


def test_the_text_of_a_replica_that_waits_names_the_leader() -> None:
    assert str(health(state="waiting", leader="b")) == "waiting; b leads"
    assert str(health(state="waiting")) == "waiting"
    assert str(health(leader="b")) == "running"


def test_the_text_of_a_failed_operator_has_its_error() -> None:
    assert str(health(state="failed", error=LeadershipLost("too late"))) == (
        "failed; LeadershipLost: too late"
    )


def test_the_text_lists_the_controllers_by_name() -> None:
    counts: dict[str, Any] = dict.fromkeys(QueueStatistics.__struct_fields__, 0)
    idle = ControllerHealth(
        state="running",
        error=None,
        waiting_for=(),
        running={},
        waiting=0,
        runs=3,
        failed_runs=0,
        failing=(),
        failing_keys=0,
        queue=QueueStatistics(**counts),
    )

    assert str(health(controllers={"foos": idle})) == f"running; controller foos: {idle}"
