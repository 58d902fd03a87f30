"""Conditions of objects: to wait for, and to set in a status.

A wait takes a condition: ``await deployments.wait_until("web", rollout_complete)``.

``informer.wait_until`` waits for one object, ``informer.wait_until_all`` for all objects, and
``lister.list(where=...)`` returns the objects that fulfil a condition now::

    from aioinformer.conditions import any_of, condition_true, deleted, job_complete, negate

    await pods.wait_until("web-0", condition_true("Ready"), timeout=60)
    await jobs.wait_until("migrate", any_of(job_complete, condition_true("Failed")), timeout=600)
    pods.lister.list(where=negate(condition_true("Ready")))

A predicate, such as ``where("status.phase", "Running")``, can be passed in the same places, and can
be combined with conditions.

A controller sets conditions: ``set_condition`` returns ``status.conditions`` with one entry set,
whose ``lastTransitionTime`` changes with its status only.
"""

from aioinformer._core.selectors.conditions import (
    Condition,
    ConditionLike,
    all_of,
    any_of,
    condition_true,
    crd_established,
    deleted,
    exists,
    job_complete,
    negate,
    rollout_complete,
)
from aioinformer._core.writing.status_conditions import ConditionStatus
from aioinformer._runtime.writing.status_conditions import set_condition

__all__ = [
    "Condition",
    "ConditionLike",
    "ConditionStatus",
    "all_of",
    "any_of",
    "condition_true",
    "crd_established",
    "deleted",
    "exists",
    "job_complete",
    "negate",
    "rollout_complete",
    "set_condition",
]
