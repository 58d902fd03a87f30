"""``aioinformer wait``: the states that end it, and the reason for the one line at the end."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from aioinformer.testing import ApiServerThread
from tests.cli.commands import CommandLine, Ended
from tests.cli.conftest import Enter
from tests.client.servers import tcp_server

ROLLED_OUT: dict[str, Any] = {
    "observedGeneration": 1,
    "replicas": 2,
    "updatedReplicas": 2,
    "availableReplicas": 2,
}
LISTED = "1 object listed"


def conditions(**given: str) -> dict[str, Any]:
    return {"conditions": [{"type": name, "status": status} for name, status in given.items()]}


def create(server: ApiServerThread, resource: str, generation: int = 1, **body: Any) -> None:
    """Create an object called ``a`` in the namespace ``default``."""
    metadata = {"name": "a"} | body.pop("metadata", {})
    server.cluster.create(resource, {"metadata": metadata, **body}, namespace="default")
    for number in range(1, generation):
        patch = {"spec": {"minReadySeconds": number}}
        server.cluster.merge_patch(resource, "a", patch, namespace="default")


def roll_out(server: ApiServerThread) -> None:
    server.cluster.merge_patch("deployments", "a", {"status": ROLLED_OUT}, namespace="default")


def failed(shown: str, reason: str) -> Ended:
    return 1, "", f"aioinformer: {shown} in the namespace default: {reason}\n"


DEPLOYMENT: dict[str, Any] = {"spec": {"replicas": 2}}


# -- until it ends -----------------------------------------------------------------------------


def test_a_rollout_ends_the_wait(server: ApiServerThread, cli: CommandLine) -> None:
    create(server, "deployments", **DEPLOYMENT)
    with cli.started("wait", "deploy/a", "--for", "rollout", "--timeout", "2m") as run:
        assert not run.out.pending(0.2)  # the command waits
        roll_out(server)
        assert run.wait() == (
            0,
            "deployment.apps/a in the namespace default: rollout complete\n",
            "",
        )


@pytest.mark.usefixtures("_fast")
def test_a_wait_survives_an_outage_of_the_server(server: ApiServerThread, cli: CommandLine) -> None:
    create(server, "deployments", **DEPLOYMENT)
    with cli.started("-v", "wait", "deploy/a", "--for=rollout", "--timeout", "1h30m") as run:
        run.err.read_until(LISTED)
        server.stop()
        run.err.read_until(" trying again for at most 5400 s\n")
        server.restart()
        roll_out(server)
        assert run.wait()[0] == 0


def test_a_server_that_answers_nothing_does_not_prolong_the_timeout(
    cli: CommandLine, enter: Enter
) -> None:
    async def keep_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    address = enter(tcp_server(keep_silent))
    argv = ("wait", "pod/web", "--for=create", "--timeout=250ms", "-s", f"http://{address}")
    said = f"aioinformer: pod/web: not after 0.25 s: no answer from http://{address}\n"
    assert cli.run(*argv) == (1, "", said)


def test_a_list_that_fails_until_the_timeout_is_the_reason(
    server: ApiServerThread, cli: CommandLine
) -> None:
    server.faults.forbid(resource="pods")
    code, _, err = cli.run("wait", "pod/a", "--for=create", "--timeout=0.3s")
    assert code == 1
    assert "not after 0.3 s: " in err.splitlines()[-1]
    assert "403 Forbidden" in err.splitlines()[-1]


def test_a_list_without_an_answer_until_the_timeout_is_the_reason(
    server: ApiServerThread, cli: CommandLine
) -> None:
    server.faults.stall(resource="pods")
    code, _, err = cli.run("wait", "pod/a", "--for=create", "--timeout=300ms")
    assert code == 1
    assert "not after 0.3 s: no answer from the server (listing for 0." in err


# -- states ------------------------------------------------------------------------------------

READY = {"type": "Ready", "status": "False"}
FAILED = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}


@pytest.mark.parametrize(
    ("goal", "status", "line"),
    [
        ("create", "", "exists"),
        ("condition=Ready", "True", "condition Ready is True"),
        ("condition=Ready=False", "False", "condition Ready is False"),
        ("condition=ready=false", "False", "condition ready is false"),
        ("condition=Ready=Unknown", "Unknown", "condition Ready is Unknown"),
        ("condition=Ready=True", "True", "condition Ready is True"),
    ],
)
def test_a_state_that_is_reached_ends_the_wait_at_once(
    goal: str, status: str, line: str, server: ApiServerThread, cli: CommandLine
) -> None:
    create(server, "pods", status=conditions(Ready=status) if status else {})
    found = cli.run("wait", "po/a", "--for", goal)
    assert found == (0, f"pod/a in the namespace default: {line}\n", "")


UNREADY = "the object has no condition Ready"


@pytest.mark.usefixtures("_fast")
@pytest.mark.parametrize(
    ("goal", "body", "reason"),
    [
        ("create", None, "the object does not exist"),
        ("condition=Ready", None, "the object does not exist"),
        *(
            ("condition=Ready", {"status": status}, UNREADY)
            for status in (None, {}, {"conditions": None}, {"conditions": "Ready"})
        ),
        ("condition=Ready", {"status": {"conditions": [3]}}, UNREADY),
        ("condition=Ready=False", {"status": conditions(Ready="True")}, "condition Ready is True"),
        (
            "condition=ready",
            {"status": {"conditions": [{**READY, "reason": "Starting", "message": "a\x1b[2J"}]}},
            "condition ready is False (Starting, a [2J)",
        ),
        (
            "condition=Ready",
            {
                "generation": 2,
                "spec": {"replicas": 1},
                "status": {"conditions": [{**READY, "status": "True", "observedGeneration": 1}]},
            },
            "condition Ready is True (of an older generation)",
        ),
        ("delete", {}, "no deletion was requested"),
    ],
)
def test_the_state_of_the_object_is_the_reason_of_a_timeout(
    goal: str,
    body: dict[str, Any] | None,
    reason: str,
    server: ApiServerThread,
    cli: CommandLine,
) -> None:
    if body is not None:
        create(server, "pods", **body)
    found = cli.run("wait", "po", "a", "--for", goal, "--timeout", "1500ms")
    assert found == failed("pod/a", f"not after 1.5 s: {reason}")


@pytest.mark.usefixtures("_fast")
@pytest.mark.parametrize(
    ("resource", "body", "reason"),
    [
        ("deployments", {}, "0 of 1 pod updated, 0 available"),
        (
            "statefulsets",
            {"spec": {"replicas": 3}, "status": {**ROLLED_OUT, "availableReplicas": 1}},
            "2 of 3 pods updated, 1 available",
        ),
        (
            "daemonsets",
            {"status": {"desiredNumberScheduled": 1, "updatedNumberScheduled": 1}},
            "1 of 1 pod updated, 0 available",
        ),
        (
            "deployments",
            {"generation": 2, "spec": {"replicas": 1}, "status": {"observedGeneration": 1}},
            "0 of 1 pod updated, 0 available, and the newest change is not observed yet",
        ),
        (
            "deployments",
            {
                "status": {
                    "observedGeneration": 2,
                    "conditions": [{"type": "Progressing", "reason": "ProgressDeadlineExceeded"}],
                }
            },
            "0 of 1 pod updated, 0 available, and the progress deadline is exceeded",
        ),
    ],
)
def test_the_pods_of_a_rollout_are_the_reason_of_a_timeout(
    resource: str, body: dict[str, Any], reason: str, server: ApiServerThread, cli: CommandLine
) -> None:
    create(server, resource, **body)
    found = cli.run("wait", resource, "a", "--for", "rollout", "--timeout", "1500ms")
    assert found == failed(f"{resource[:-1]}.apps/a", f"not after 1.5 s: {reason}")


@pytest.mark.usefixtures("_fast")
def test_the_finalizers_of_a_deletion_are_the_reason_of_a_timeout(
    server: ApiServerThread, cli: CommandLine
) -> None:
    create(server, "pods", metadata={"finalizers": ["x/a", "x/b"]})
    server.cluster.delete("pods", "a", namespace="default")
    reason = "not after 1.5 s: the deletion waits for the finalizers x/a, x/b"
    assert cli.run("wait", "po/a", "--for=delete", "--timeout=1.5") == failed("pod/a", reason)


def test_an_absent_object_counts_as_deleted(server: ApiServerThread, cli: CommandLine) -> None:
    found = cli.run("wait", "ns/preview", "--for", "delete")
    assert found == (0, "namespace/preview: deleted\n", "")


def test_a_name_that_an_argument_contains_controls_no_terminal(
    server: ApiServerThread, cli: CommandLine
) -> None:
    name = "a\nforged\x1b[31m\u2028\u202e"
    code, out, _ = cli.run("wait", "clusterroles", name, "--for", "delete")
    assert code == 0
    assert out.removesuffix("\n").isprintable()


@pytest.mark.usefixtures("_fast")
def test_a_deletion_names_the_namespace_that_the_command_looked_in(
    server: ApiServerThread, cli: CommandLine
) -> None:
    server.cluster.create("pods", {"metadata": {"name": "a"}}, namespace="shop")
    found = cli.run("wait", "po/a", "--for", "delete")
    assert found == (0, "pod/a in the namespace default: deleted\n", "")
    code, _, err = cli.run("wait", "po/a", "-n", "shop", "--for=delete", "--timeout=1500ms")
    assert code == 1
    assert err.startswith("aioinformer: pod/a in the namespace shop: not after 1.5 s: ")


@pytest.mark.usefixtures("_fast")
@pytest.mark.parametrize("outage", [False, True], ids=["at once", "in a relist"])
def test_an_object_that_is_created_again_counts_as_deleted(
    outage: bool, server: ApiServerThread, cli: CommandLine
) -> None:
    create(server, "pods")
    with cli.started("-v", "wait", "po/a", "--for=delete", "--timeout=60") as run:
        run.err.read_until(LISTED)
        if outage:
            server.stop()
        server.cluster.delete("pods", "a", namespace="default")
        create(server, "pods")
        if outage:
            server.cluster.compact()
            server.restart()
        code, out, _ = run.wait()
    assert (code, out) == (0, "pod/a in the namespace default: deleted\n")


@pytest.mark.usefixtures("_fast")
def test_an_object_that_is_deleted_during_a_wait_is_named_as_the_reason(
    server: ApiServerThread, cli: CommandLine
) -> None:
    create(server, "pods")
    with cli.started("-v", "wait", "po/a", "--for=condition=Ready", "--timeout=4") as run:
        run.err.read_until(LISTED)
        server.cluster.delete("pods", "a", namespace="default")
        code, _, err = run.wait()
    assert code == 1
    assert "not after 4 s: the object was deleted meanwhile\n" in err


def test_a_failed_job_ends_the_wait_before_the_timeout(
    server: ApiServerThread, cli: CommandLine
) -> None:
    create(server, "jobs", status={"conditions": [FAILED]})
    began = time.monotonic()
    found = cli.run("wait", "job/a", "--for", "job-complete", "--timeout=5m")
    assert time.monotonic() - began < 60
    assert found == failed("job.batch/a", "condition Failed is True (BackoffLimitExceeded)")


def test_a_wait_for_a_completed_job_ends_at_once(server: ApiServerThread, cli: CommandLine) -> None:
    create(server, "jobs", status=conditions(Complete="True"))
    found = cli.run("wait", "job/a", "--for", "job-complete")
    assert found == (0, "job.batch/a in the namespace default: job complete\n", "")


@pytest.mark.usefixtures("_fast")
def test_a_suspended_job_is_not_complete(server: ApiServerThread, cli: CommandLine) -> None:
    create(server, "jobs", status=conditions(Suspended="True"))
    found = cli.run("wait", "job/a", "--for", "job-complete", "--timeout=1500ms")
    reason = (
        "not after 1.5 s: the object has no condition Complete; the object has no condition Failed"
    )
    assert found == failed("job.batch/a", reason)


@pytest.mark.parametrize(
    ("goal", "known"),
    [
        ("rollout", "deployments.apps, statefulsets.apps, daemonsets.apps"),
        ("job-complete", "jobs.batch"),
    ],
)
def test_a_state_that_the_resource_cant_have_is_a_mistake(
    goal: str, known: str, server: ApiServerThread, cli: CommandLine
) -> None:
    said = f"aioinformer: --for {goal}: only {known}, not pods\n"
    assert cli.run("wait", "pod/a", "--for", goal) == (2, "", said)
