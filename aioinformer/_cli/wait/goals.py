"""The states of ``aioinformer wait --for``: a condition each, and why an object fails it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from aioinformer import KubeObject, Resource
from aioinformer._cli.terminal.style import printable
from aioinformer._core.quantities import quantity
from aioinformer.conditions import (
    Condition,
    any_of,
    condition_true,
    deleted,
    exists,
    job_complete,
    rollout_complete,
)
from aioinformer.errors import UsageError

CONDITION_PREFIX = "condition="
ROLLOUT_KINDS = (("apps", "deployments"), ("apps", "statefulsets"), ("apps", "daemonsets"))
"""The resources for which ``kubectl rollout status`` has rules."""
JOB_KINDS = (("batch", "jobs"),)
JOB_FAILED = condition_true("Failed")
"""The end of a Job that never completes: no reason to wait until the timeout."""


@dataclass(frozen=True, slots=True)
class Goal:
    option: str
    """The value of ``--for``."""
    reached: Condition
    text: str
    """The line for an object in that state: ``rollout complete``."""
    explain: Callable[[KubeObject], str]
    """The reason for which an existing object is not in that state."""
    failed: Condition | None = None
    """Fulfilled by an object that never reaches the state."""
    resources: tuple[tuple[str, str], ...] = ()
    """The group and the plural of each resource that can have the state; empty for all."""

    @property
    def end(self) -> Condition:
        return self.reached if self.failed is None else any_of(self.reached, self.failed)

    def check_resource(self, resource: Resource) -> None:
        """Raise ``UsageError`` for a resource that can't reach the state."""
        if self.resources and (resource.group, resource.plural) not in self.resources:
            known = ", ".join(f"{plural}.{group}" for group, plural in self.resources)
            raise UsageError(f"--for {self.option}: only {known}, not {resource.plural}")


def parse_goal(text: str) -> Goal:
    if text.startswith(CONDITION_PREFIX):
        condition_type = text.removeprefix(CONDITION_PREFIX)
        return Goal(
            text,
            condition_true(condition_type),
            f"condition {condition_type} is True",
            lambda obj: _explain_condition(obj, condition_type),
        )
    return _GOALS[text]


_GOALS: Mapping[str, Goal] = {
    goal.option: goal
    for goal in (
        Goal("create", exists, "exists", lambda _: "the object exists"),
        Goal("delete", deleted, "deleted", lambda obj: _explain_deletion(obj)),
        Goal(
            "rollout",
            rollout_complete,
            "rollout complete",
            lambda obj: _explain_rollout(obj),
            resources=ROLLOUT_KINDS,
        ),
        Goal(
            "job-complete",
            job_complete,
            "job complete",
            lambda obj: _explain_condition(obj, "Failed" if JOB_FAILED(obj) else "Complete"),
            failed=JOB_FAILED,
            resources=JOB_KINDS,
        ),
    )
}


def _explain_condition(obj: KubeObject, condition_type: str) -> str:
    for each in map(_mapping, _sequence(_mapping(obj.get("status")).get("conditions"))):
        if str(each.get("type", "")).lower() == condition_type.lower():
            details = ", ".join(str(each[name]) for name in ("reason", "message") if each.get(name))
            status = f"condition {condition_type} is {each.get('status')}"
            return printable(f"{status} ({details})" if details else status)
    return f"the object has no condition {condition_type}"


def _explain_deletion(obj: KubeObject) -> str:
    metadata = _mapping(obj.get("metadata"))
    if not metadata.get("deletionTimestamp"):
        return "no deletion was requested"
    finalizers = ", ".join(str(each) for each in _sequence(metadata.get("finalizers")))
    return printable(
        f"the deletion waits for the finalizers {finalizers}" if finalizers else "being deleted"
    )


def _explain_rollout(obj: KubeObject) -> str:
    status = _mapping(obj.get("status"))
    if "desiredNumberScheduled" in status:  # a DaemonSet
        wanted = status["desiredNumberScheduled"]
        updated, available = status.get("updatedNumberScheduled"), status.get("numberAvailable")
    else:
        wanted = _mapping(obj.get("spec")).get("replicas", 1)
        updated, available = status.get("updatedReplicas"), status.get("availableReplicas")
    pods = quantity(wanted, "pod")
    return f"{updated or 0} of {pods} updated, {available or 0} available"


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _sequence(value: object) -> Sequence[object]:
    return cast("Sequence[object]", value) if _is_sequence(value) else ()


def _is_sequence(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
