"""Conditions of objects: to wait for, and to set in a status.

``informer.wait_until`` waits for one object, ``informer.wait_until_all`` for all objects, and
``lister.list(where=...)`` returns the objects that fulfil a condition now. A predicate, such as
``where("status.phase", "Running")``, can be passed in the same places, and can be combined with
conditions. A controller sets conditions with ``set_condition``.

Example::

    from aioinformer.conditions import (
        Condition, ConditionLike, ConditionStatus, PresentCondition, all_of, any_of, condition_true,
        crd_established, exists, job_complete, negate, set_condition,
    )

    ready: ConditionLike = condition_true("Ready")
    running: Condition = all_of(where("status.phase", "Running"), ready)
    assert len(pods.lister.list(where=running)) == 2
    assert pods.lister.list(where=negate(running)) == []

    jobs = informers.informer("jobs")
    ended: PresentCondition = any_of(job_complete, condition_true("Failed"))
    print((await jobs.wait_until("migrate", ended, timeout=30))["status"])

    definitions = informers.informer("customresourcedefinitions")
    served = definitions.wait_until("widgets.example.com", crd_established, timeout=0.1)
    try:
        await served
    except errors.CacheWaitTimeout:
        pass  # no such definition was created
    assert await jobs.wait_until("migrate", exists, timeout=30) is not None

    unknown: ConditionStatus = "Unknown"
    entries = set_condition(None, "Ready", unknown, reason="Checking")
    assert entries[0]["status"] == "Unknown"
"""

from aioinformer._core.selectors.object_conditions import (
    Condition,
    ConditionLike,
    PresentCondition,
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
from aioinformer._runtime.writing.set_condition import set_condition

__all__ = [
    "Condition",
    "ConditionLike",
    "ConditionStatus",
    "PresentCondition",
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
