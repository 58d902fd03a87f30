"""The states of ``wait --for``: what reaches them, and the reason for the one line at the end."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer._cli.wait.goals import parse_goal
from aioinformer._core.objects.resources import find_built_in
from aioinformer.errors import UsageError
from tests.core.builders import make_object


def explain(goal: str, **body: Any) -> str:
    """Return why an object doesn't reach a goal."""
    metadata = {"name": "a", "namespace": "web"} | body.pop("metadata", {})
    return parse_goal(goal).end.explain(make_object({"metadata": metadata, **body}))


def conditions(**given: str) -> dict[str, Any]:
    return {"conditions": [{"type": name, "status": status} for name, status in given.items()]}


def test_a_condition_is_explained_by_its_status_reason_and_message() -> None:
    found = {"type": "Ready", "status": "False", "reason": "Starting", "message": "in a minute"}

    assert explain("condition=ready", status={"conditions": [found]}) == (
        "condition ready is False (Starting, in a minute)"
    )
    assert explain("condition=Ready", status=conditions(Ready="Unknown")) == (
        "condition Ready is Unknown"
    )
    assert parse_goal("condition=Ready").text == "condition Ready is True"


@pytest.mark.parametrize(
    ("goal", "status", "reached"),
    [
        ("condition=Ready=False", "False", True),
        ("condition=ready=false", "False", True),
        ("condition=Ready=False", "True", False),
        ("condition=Ready=Unknown", "Unknown", True),
        ("condition=Ready=True", "True", True),
    ],
)
def test_a_condition_may_have_another_status_as_for_kubectl(
    goal: str, status: str, reached: bool
) -> None:
    obj = make_object({"metadata": {"name": "a"}, "status": conditions(Ready=status)})
    assert parse_goal(goal).reached(obj) is reached
    assert not parse_goal(goal).reached(None)


def test_a_condition_of_an_older_generation_is_explained_by_it() -> None:
    found = {"type": "Ready", "status": "True", "observedGeneration": 1}
    metadata = {"generation": 2}

    assert explain("condition=Ready", metadata=metadata, status={"conditions": [found]}) == (
        "condition Ready is True (of an older generation)"
    )


def test_an_object_of_another_uid_counts_as_deleted_as_for_kubectl() -> None:
    goal = parse_goal("delete")
    first, second = (make_object({"metadata": {"name": "a", "uid": each}}) for each in "12")

    assert [goal.end(each) for each in (first, first, second, None)] == [False, False, True, True]
    assert not parse_goal("delete").end(second)  # the first that this command sees


@pytest.mark.parametrize(
    "status", [None, {}, {"conditions": None}, {"conditions": "Ready"}, {"conditions": [3]}]
)
def test_a_missing_or_unreadable_condition_is_no_error(status: object) -> None:
    assert explain("condition=Ready", status=status) == "the object has no condition Ready"


def test_the_text_of_another_program_can_not_control_the_terminal() -> None:
    found = {"type": "Ready", "status": "False", "message": "\x1b[2J"}

    assert "\x1b" not in explain("condition=Ready", status={"conditions": [found]})


def test_a_deletion_is_explained_by_what_holds_it_up() -> None:
    deleting = {"deletionTimestamp": "2026-01-01T00:00:00Z"}

    assert explain("delete") == "no deletion was requested"
    assert explain("delete", metadata=deleting) == "being deleted"
    assert explain("delete", metadata={**deleting, "finalizers": "damaged"}) == "being deleted"
    assert explain("delete", metadata={**deleting, "finalizers": ["x/a", "x/b"]}) == (
        "the deletion waits for the finalizers x/a, x/b"
    )


def test_a_rollout_is_explained_by_its_pods() -> None:
    status = {"updatedReplicas": 2, "availableReplicas": 1}
    daemon = {"desiredNumberScheduled": 1, "updatedNumberScheduled": 1}

    assert explain("rollout", spec={"replicas": 3}, status=status) == (
        "2 of 3 pods updated, 1 available"
    )
    assert explain("rollout") == "0 of 1 pod updated, 0 available"
    assert explain("rollout", status=daemon) == "1 of 1 pod updated, 0 available"


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ({"observedGeneration": 1}, "and the newest change is not observed yet"),
        (
            {
                "observedGeneration": 2,
                "conditions": [{"type": "Progressing", "reason": "ProgressDeadlineExceeded"}],
            },
            "and the progress deadline is exceeded",
        ),
    ],
)
def test_a_rollout_is_explained_by_what_its_controller_reports(
    status: dict[str, Any], text: str
) -> None:
    assert explain("rollout", metadata={"generation": 2}, status=status) == (
        f"0 of 1 pod updated, 0 available, {text}"
    )


def test_a_job_that_failed_ends_the_wait_and_is_explained_by_its_failure() -> None:
    goal = parse_goal("job-complete")
    failed = make_object({"metadata": {"name": "a"}, "status": conditions(Failed="True")})
    runs = make_object({"metadata": {"name": "a"}, "status": conditions(Suspended="True")})

    assert (bool(goal.end(failed)), bool(goal.reached(failed))) == (True, False)
    assert goal.failed is not None
    assert goal.failed.explain(failed) == "condition Failed is True"
    assert not goal.end(runs)
    assert goal.reached.explain(runs) == "the object has no condition Complete"


def test_a_goal_that_can_not_fail_ends_when_it_is_reached() -> None:
    for name in ("create", "delete", "rollout", "condition=Ready"):
        goal = parse_goal(name)
        assert goal.end is goal.reached
        assert goal.option == name


def test_a_goal_of_some_resources_rejects_all_others() -> None:
    parse_goal("rollout").check_resource(find_built_in("daemonsets"))
    parse_goal("condition=Ready").check_resource(find_built_in("pods"))
    with pytest.raises(UsageError, match=r"--for job-complete: only jobs.batch, not pods"):
        parse_goal("job-complete").check_resource(find_built_in("pods"))
