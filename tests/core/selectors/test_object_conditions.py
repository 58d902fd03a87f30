"""Conditions: kubectl's rules, absent objects, and combinations."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import KubeObject, ObjectPredicate, Resource, where
from aioinformer._core.objects.resources import find_built_in
from aioinformer.conditions import (
    Condition,
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
from tests.core.builders import make_object

DEPLOYMENTS = find_built_in("deployments.apps")
STATEFUL_SETS = find_built_in("statefulsets.apps")
DAEMON_SETS = find_built_in("daemonsets.apps")


def with_status(
    *, generation: int = 2, spec: dict[str, Any] | None = None, **status: Any
) -> KubeObject:
    """Create an object with this status."""
    return workload(DEPLOYMENTS, generation=generation, spec=spec, **status)


def workload(
    resource: Resource, *, generation: int = 2, spec: dict[str, Any] | None = None, **status: Any
) -> KubeObject:
    """Create an object of that resource with this status."""
    metadata = {"name": "a", "namespace": "web", "uid": "u", "generation": generation}
    return make_object(
        {"metadata": metadata, "spec": spec or {}, "status": status}, resource=resource
    )


def ready(**more: Any) -> dict[str, Any]:
    """Return an entry of ``status.conditions``."""
    return {"type": "Ready", "status": "True", **more}


# -- one object --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "fulfilled"),
    [
        ({"conditions": [ready()]}, True),
        ({"conditions": [ready(status="False")]}, False),
        ({"conditions": [ready(status="Unknown")]}, False),
        ({"conditions": [{"type": "Other", "status": "True"}, ready()]}, True),
        ({"conditions": [ready(type="ready")]}, True),
        ({"conditions": [ready(observedGeneration=2)]}, True),
        ({"conditions": [ready(observedGeneration=1)]}, False),
        ({"conditions": [ready()], "observedGeneration": 1}, False),
        ({"conditions": [ready(observedGeneration=2)], "observedGeneration": 1}, True),
        ({"conditions": []}, False),
        ({"conditions": "Ready"}, False),
        ({"conditions": ["Ready", None]}, False),
        ({}, False),
    ],
)
def test_a_condition_of_the_status_is_decided_as_by_kubectl_wait(
    status: dict[str, Any], fulfilled: bool
) -> None:
    assert condition_true("Ready")(with_status(**status)) is fulfilled


def test_jobs_and_custom_resource_definitions_have_conditions_of_their_own() -> None:
    done = with_status(conditions=[{"type": "Complete", "status": "True"}])
    failed = with_status(conditions=[{"type": "Failed", "status": "True"}])
    served = with_status(conditions=[{"type": "Established", "status": "True"}])

    assert job_complete(done)
    assert not job_complete(failed)
    assert any_of(job_complete, condition_true("Failed"))(failed)
    assert crd_established(served)
    assert not crd_established(done)


COMPLETE: dict[str, Any] = {
    "observedGeneration": 2,
    "replicas": 3,
    "updatedReplicas": 3,
    "availableReplicas": 3,
    "readyReplicas": 3,
}
TIMED_OUT = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}


@pytest.mark.parametrize(
    ("status", "fulfilled"),
    [
        ({}, True),
        ({"observedGeneration": 1}, False),
        ({"updatedReplicas": 2}, False),
        ({"replicas": 4}, False),  # old replicas are still being terminated
        ({"availableReplicas": 2}, False),
        ({"conditions": [TIMED_OUT]}, False),
    ],
)
def test_a_deployment_is_rolled_out_when_all_replicas_are_new_and_available(
    status: dict[str, Any], fulfilled: bool
) -> None:
    deployment = workload(DEPLOYMENTS, spec={"replicas": 3}, **COMPLETE | status)
    assert rollout_complete(deployment) is fulfilled


def test_a_deployment_of_no_replicas_is_rolled_out() -> None:
    assert rollout_complete(workload(DEPLOYMENTS, spec={"replicas": 0}, observedGeneration=2))
    assert not rollout_complete(workload(DEPLOYMENTS, observedGeneration=2)), "the default is one"


@pytest.mark.parametrize(
    ("strategy", "status", "fulfilled"),
    [
        ({}, {"currentRevision": "b", "updateRevision": "b"}, True),
        ({}, {"currentRevision": "a", "updateRevision": "b"}, False),
        ({}, {"readyReplicas": 2}, False),
        ({}, {"observedGeneration": 0}, False),
        ({"type": "OnDelete"}, {}, False),
        ({"rollingUpdate": {"partition": 1}}, {"updatedReplicas": 2, "updateRevision": "b"}, True),
        ({"rollingUpdate": {"partition": 1}}, {"updatedReplicas": 1, "updateRevision": "b"}, False),
    ],
)
def test_a_stateful_set_is_rolled_out_up_to_its_partition(
    strategy: dict[str, Any], status: dict[str, Any], fulfilled: bool
) -> None:
    spec = {"replicas": 3, "updateStrategy": strategy}
    assert rollout_complete(workload(STATEFUL_SETS, spec=spec, **COMPLETE | status)) is fulfilled


@pytest.mark.parametrize(
    ("strategy", "updated", "available", "fulfilled"),
    [({}, 4, 4, True), ({}, 3, 4, False), ({}, 4, 3, False), ({"type": "OnDelete"}, 4, 4, False)],
)
def test_a_daemon_set_is_rolled_out_when_each_node_has_a_new_available_pod(
    strategy: dict[str, Any], updated: int, available: int, fulfilled: bool
) -> None:
    daemon_set = workload(
        DAEMON_SETS,
        spec={"updateStrategy": strategy},
        observedGeneration=2,
        desiredNumberScheduled=4,
        updatedNumberScheduled=updated,
        numberAvailable=available,
    )
    assert rollout_complete(daemon_set) is fulfilled


def test_an_object_without_rollouts_is_never_rolled_out() -> None:
    assert not rollout_complete(workload(find_built_in("pods"), **COMPLETE))


# -- absent objects, combinations --------------------------------------------------------------


@pytest.mark.parametrize(
    "condition",
    [condition_true("Ready"), job_complete, crd_established, rollout_complete, exists],
    ids=repr,
)
def test_an_absent_object_fulfils_no_condition_on_its_content(condition: Condition) -> None:
    assert not condition(None)


def test_conditions_on_absence_are_fulfilled_by_an_absent_object() -> None:
    assert deleted(None)
    assert negate(exists)(None)
    assert not deleted(with_status())
    assert not negate(deleted)(None)


def test_an_absent_object_does_not_fulfil_a_negated_condition_on_its_content() -> None:
    assert not negate(condition_true("Ready"))(None)
    assert not negate(where("spec.nodeName", "node-1"))(None)
    assert negate(condition_true("Ready"))(with_status())


def test_conditions_and_predicates_combine() -> None:
    is_new = ObjectPredicate(lambda obj: obj.name == "a")
    settled = any_of(deleted, all_of(condition_true("Ready"), is_new))

    assert settled(None)
    assert settled(with_status(conditions=[ready()]))
    assert not settled(with_status())
    assert repr(any_of(deleted, negate(exists))) == "any_of(deleted, negate(exists))"


def test_an_invalid_combination_is_an_error_at_once() -> None:
    with pytest.raises(ValueError, match=r"all_of\(\) has no condition"):
        all_of()
    with pytest.raises(TypeError, match=r"wrap a function as ObjectPredicate\(f\)"):
        negate(cast("Condition", print))
    with pytest.raises(TypeError, match="needs the type of a condition, not None"):
        condition_true(cast("str", None))


RESULTS = st.sampled_from([True, False, None])


def fixed(result: bool | None) -> Condition:
    """Create a condition with this result."""
    return Condition(lambda _obj: result, str(result))


@given(st.lists(RESULTS, min_size=1, max_size=4))
def test_combinations_follow_three_valued_logic(results: list[bool | None]) -> None:
    """The model: false < undecided < true; all_of is the minimum, any_of the maximum."""
    rank = {False: 0, None: 1, True: 2}
    conditions = [fixed(each) for each in results]

    assert rank[all_of(*conditions).test(None)] == min(rank[each] for each in results)
    assert rank[any_of(*conditions).test(None)] == max(rank[each] for each in results)
    opposite = all_of(*(negate(each) for each in conditions)).test(None)
    assert rank[negate(any_of(*conditions)).test(None)] == rank[opposite]


def test_the_error_of_a_combination_names_the_combination() -> None:
    with pytest.raises(TypeError, match=r"^any_of combines conditions and predicates of objects"):
        any_of(exists, cast("Condition", print))
    with pytest.raises(ValueError, match=r"^any_of\(\) has no condition$"):
        any_of()
    with pytest.raises(TypeError, match=r"^condition_true needs the type of a condition, not ''$"):
        condition_true("")


@pytest.mark.parametrize(
    ("condition", "text", "needs_bytes"),
    [
        (condition_true("Ready"), "condition_true('Ready')", True),
        (exists, "exists", False),
        (deleted, "deleted", False),
        (all_of(exists, deleted), "all_of(exists, deleted)", True),
        (negate(exists), "negate(exists)", True),
        (job_complete, "job_complete", True),
        (crd_established, "crd_established", True),
        (rollout_complete, "rollout_complete", True),
    ],
    ids=str,
)
def test_a_condition_shows_its_text_and_whether_it_reads_the_content(
    condition: Condition, text: str, *, needs_bytes: bool
) -> None:
    assert (repr(condition), condition.needs_bytes) == (text, needs_bytes)


def test_a_rollout_is_complete_only_for_the_newest_generation() -> None:
    complete: dict[str, Any] = {**COMPLETE, "observedGeneration": 3}
    assert rollout_complete(workload(DEPLOYMENTS, generation=3, spec={"replicas": 3}, **complete))
    assert not rollout_complete(
        workload(DEPLOYMENTS, generation=4, spec={"replicas": 3}, **complete)
    )


def test_a_condition_of_another_reason_does_not_stop_a_rollout() -> None:
    for other in (TIMED_OUT | {"reason": "NewReplicaSetAvailable"}, TIMED_OUT | {"type": "Other"}):
        status: dict[str, Any] = {**COMPLETE, "conditions": [other]}
        assert rollout_complete(workload(DEPLOYMENTS, spec={"replicas": 3}, **status))


def test_the_default_of_replicas_is_one_and_of_a_partition_zero() -> None:
    status: dict[str, Any] = {
        **COMPLETE,
        "readyReplicas": 1,
        "updateRevision": "b",
        "currentRevision": "b",
    }
    assert rollout_complete(workload(STATEFUL_SETS, **status))
    none_ready: dict[str, Any] = {**status, "readyReplicas": 0}
    another_revision: dict[str, Any] = {**status, "updateRevision": "c"}
    assert not rollout_complete(workload(STATEFUL_SETS, **none_ready))
    for partition in (0, "1", None):
        spec = {"updateStrategy": {"rollingUpdate": {"partition": partition}}}
        assert rollout_complete(workload(STATEFUL_SETS, spec=spec, **status))
        assert not rollout_complete(workload(STATEFUL_SETS, spec=spec, **another_revision))


def test_content_of_another_shape_is_not_fulfilled() -> None:
    for spec, status in (("x", {}), ({"updateStrategy": "x", "replicas": "3"}, {"replicas": "x"})):
        for resource in (DEPLOYMENTS, STATEFUL_SETS):
            body = {"metadata": {"name": "a", "namespace": "b"}, "spec": spec, "status": status}
            assert not rollout_complete(make_object(body, resource=resource))


def test_the_deletion_of_an_object_that_is_too_deep_to_be_decoded_is_explained() -> None:
    metadata = {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}
    obj = make_object({"metadata": metadata})
    raw = obj.raw[:-1] + b',"x":%b}' % (b"[" * 50_000 + b"]" * 50_000)
    deep = KubeObject(obj.key, "u", "1", raw, obj.resource)
    assert deleted.explain(deep) == "the deletion waits for the finalizers a/b"
