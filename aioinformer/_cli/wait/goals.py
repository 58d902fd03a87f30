"""The states of ``aioinformer wait --for``: a condition each, and why an object fails it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from aioinformer import KubeObject, Resource
from aioinformer._core.selectors.object_conditions import condition_status
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
        condition_type, _, status = text.removeprefix(CONDITION_PREFIX).partition("=")
        status = status or "True"
        reached = condition_status(condition_type, status, text)
        return Goal(text, reached, f"condition {condition_type} is {status}")
    return _GOALS[text]()


def _deletion() -> Goal:
    """Return the goal of one command: an object of another uid is another one, as for kubectl."""
    uids: list[str] = []

    def test(obj: KubeObject | None) -> bool:
        if obj is not None and not uids:
            uids.append(obj.uid)
        return obj is None or obj.uid != uids[0]

    return Goal("delete", replace(deleted, test=test), "deleted")


_GOALS: Mapping[str, Callable[[], Goal]] = {
    "create": lambda: Goal("create", exists, "exists"),
    "delete": _deletion,
    "rollout": lambda: Goal(
        "rollout", rollout_complete, "rollout complete", resources=ROLLOUT_KINDS
    ),
    "job-complete": lambda: Goal(
        "job-complete", job_complete, "job complete", failed=JOB_FAILED, resources=JOB_KINDS
    ),
}
