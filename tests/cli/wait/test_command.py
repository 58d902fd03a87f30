"""``aioinformer wait`` as a process, against servers on loopback."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from aioinformer.testing import ApiServer
from tests.cli.processes import environment, started_cli
from tests.client.servers import tcp_server

ROLLED_OUT: dict[str, Any] = {
    "observedGeneration": 1,
    "replicas": 2,
    "updatedReplicas": 2,
    "availableReplicas": 2,
}


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer() as server:
        yield server


async def wait_for(server: ApiServer, tmp_path: Path, *argv: str) -> tuple[int, str, str]:
    argv = ("wait", *argv, "--server", server.url)
    async with started_cli(*argv, env=environment(tmp_path)) as run:
        return await run.wait()


def create_deployment(server: ApiServer) -> None:
    body = {"metadata": {"name": "web", "generation": 1}, "spec": {"replicas": 2}}
    server.cluster.create("deployments", body, namespace="default")


async def test_a_rollout_ends_the_wait(server: ApiServer, tmp_path: Path) -> None:
    create_deployment(server)
    argv = ("wait", "deploy/web", "--for", "rollout", "--timeout", "2m", "-s", server.url)
    async with started_cli(*argv, env=environment(tmp_path)) as run:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):  # the command waits
                await run.process.wait()
        patch = {"status": ROLLED_OUT}
        server.cluster.merge_patch("deployments", "web", patch, namespace="default")
        assert await run.wait() == (
            0,
            "deployment.apps/web in the namespace default: rollout complete\n",
            "",
        )


@pytest.mark.clients
async def test_a_wait_survives_an_outage_of_the_server(server: ApiServer, tmp_path: Path) -> None:
    create_deployment(server)
    argv = ("-v", "wait", "deploy/web", "--for", "rollout", "--timeout", "2m", "-s", server.url)
    async with started_cli(*argv, env=environment(tmp_path)) as run:
        while "1 object listed" not in (line := await run.read_stderr_line()):
            assert line
        await server.stop()
        while "trying again" not in (line := await run.read_stderr_line()):
            assert line
        assert line.endswith(" trying again for at most 120 s\n")
        await server.start()
        patch = {"status": ROLLED_OUT}
        server.cluster.merge_patch("deployments", "web", patch, namespace="default")
        code, out, _ = await run.wait()
    assert (code, out) == (0, "deployment.apps/web in the namespace default: rollout complete\n")


@pytest.mark.clients
async def test_a_timeout_is_one_line_with_the_reason(server: ApiServer, tmp_path: Path) -> None:
    create_deployment(server)
    assert await wait_for(
        server, tmp_path, "deploy", "web", "--for=rollout", "--timeout=3000ms"
    ) == (
        1,
        "",
        "aioinformer: deployment.apps/web in the namespace default: not after 3 s: "
        "0 of 2 pods updated, 0 available, and the newest change is not observed yet\n",
    )


async def test_a_server_that_answers_nothing_does_not_prolong_the_timeout(tmp_path: Path) -> None:
    async def keep_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with tcp_server(keep_silent) as address:
        argv = ("wait", "pod/web", "--for=create", "--timeout=1", "-s", f"http://{address}")
        async with started_cli(*argv, env=environment(tmp_path)) as run:
            assert await run.wait() == (
                1,
                "",
                f"aioinformer: pod/web: not after 1 s: no answer from http://{address}\n",
            )


@pytest.mark.clients
@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("create", "the object does not exist"),
        ("condition=Ready", "the object does not exist"),
    ],
)
async def test_an_absent_object_is_named_as_the_reason(
    server: ApiServer, tmp_path: Path, state: str, reason: str
) -> None:
    code, out, err = await wait_for(server, tmp_path, "po/a", "--for", state, "--timeout", "3")
    expected = f"aioinformer: pod/a in the namespace default: not after 3 s: {reason}\n"
    assert (code, out, err) == (1, "", expected)


@pytest.mark.clients
async def test_the_timeout_message_contains_the_reason_of_the_condition(
    server: ApiServer, tmp_path: Path
) -> None:
    entry = {"type": "Ready", "status": "False", "reason": "ContainersNotReady"}
    body = {"metadata": {"name": "a"}, "status": {"conditions": [entry]}}
    server.cluster.create("pods", body, namespace="default")
    code, _, err = await wait_for(
        server, tmp_path, "po/a", "--for", "condition=ready", "--timeout", "3"
    )
    assert code == 1
    assert err.endswith("condition ready is False (ContainersNotReady)\n")


@pytest.mark.clients
@pytest.mark.parametrize(
    ("state", "line"),
    [("create", "exists"), ("condition=Ready", "condition Ready is True")],
)
async def test_a_state_that_is_reached_ends_the_wait_at_once(
    server: ApiServer, tmp_path: Path, state: str, line: str
) -> None:
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    body = {"metadata": {"name": "a"}, "status": status}
    server.cluster.create("pods", body, namespace="default")
    found = await wait_for(server, tmp_path, "po/a", "--for", state)
    assert found == (0, f"pod/a in the namespace default: {line}\n", "")


@pytest.mark.clients
async def test_an_absent_object_counts_as_deleted(server: ApiServer, tmp_path: Path) -> None:
    found = await wait_for(server, tmp_path, "ns/preview", "--for", "delete")
    assert found == (0, "namespace/preview: deleted\n", "")


@pytest.mark.clients
async def test_a_name_that_an_argument_contains_controls_no_terminal(
    server: ApiServer, tmp_path: Path
) -> None:
    name = "a\nforged\x1b[31m\u2028\u202e"
    code, out, _ = await wait_for(server, tmp_path, "clusterroles", name, "--for", "delete")
    assert code == 0
    assert out.removesuffix("\n").isprintable()


@pytest.mark.clients
async def test_a_deletion_names_the_namespace_that_the_command_looked_in(
    server: ApiServer, tmp_path: Path
) -> None:
    server.cluster.create("pods", {"metadata": {"name": "a"}}, namespace="shop")
    found = await wait_for(server, tmp_path, "po/a", "--for", "delete")
    assert found == (0, "pod/a in the namespace default: deleted\n", "")
    code, _, err = await wait_for(
        server, tmp_path, "po/a", "-n", "shop", "--for=delete", "--timeout=1"
    )
    assert code == 1
    assert err.startswith("aioinformer: pod/a in the namespace shop: not after 1 s: ")


@pytest.mark.clients
@pytest.mark.parametrize("outage", [False, True], ids=["at once", "in a relist"])
async def test_an_object_that_is_created_again_counts_as_deleted(
    server: ApiServer, tmp_path: Path, outage: bool
) -> None:
    pods, body = server.cluster, {"metadata": {"name": "a"}}
    pods.create("pods", body, namespace="default")
    argv = ("-v", "wait", "po/a", "--for=delete", "--timeout=60", "-s", server.url)
    async with started_cli(*argv, env=environment(tmp_path)) as run:
        while "1 object listed" not in (line := await run.read_stderr_line()):
            assert line
        if outage:
            await server.stop()
        pods.delete("pods", "a", namespace="default")
        pods.create("pods", body, namespace="default")
        if outage:
            pods.compact()
            await server.start()
        code, out, _ = await run.wait()
    assert (code, out) == (0, "pod/a in the namespace default: deleted\n")


@pytest.mark.clients
async def test_an_object_that_is_deleted_during_a_wait_is_named_as_the_reason(
    server: ApiServer, tmp_path: Path
) -> None:
    server.cluster.create("pods", {"metadata": {"name": "a"}}, namespace="default")
    argv = ("-v", "wait", "po/a", "--for=condition=Ready", "--timeout=4", "-s", server.url)
    async with started_cli(*argv, env=environment(tmp_path)) as run:
        while "1 object listed" not in (line := await run.read_stderr_line()):
            assert line
        server.cluster.delete("pods", "a", namespace="default")
        code, _, err = await run.wait()
    assert code == 1
    assert "not after 4 s: the object was deleted meanwhile\n" in err


@pytest.mark.clients
async def test_a_failed_job_ends_the_wait_before_the_timeout(
    server: ApiServer, tmp_path: Path
) -> None:
    entry = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}
    body = {"metadata": {"name": "migrate"}, "status": {"conditions": [entry]}}
    server.cluster.create("jobs", body, namespace="default")
    began = time.monotonic()
    found = await wait_for(server, tmp_path, "job/migrate", "--for", "job-complete", "--timeout=5m")
    assert time.monotonic() - began < 60
    reason = "condition Failed is True (BackoffLimitExceeded)"
    assert found == (1, "", f"aioinformer: job.batch/migrate in the namespace default: {reason}\n")


@pytest.mark.clients
async def test_a_wait_for_a_completed_job_ends_at_once(server: ApiServer, tmp_path: Path) -> None:
    entry = {"type": "Complete", "status": "True"}
    body = {"metadata": {"name": "migrate"}, "status": {"conditions": [entry]}}
    server.cluster.create("jobs", body, namespace="default")
    found = await wait_for(server, tmp_path, "job/migrate", "--for", "job-complete")
    assert found == (0, "job.batch/migrate in the namespace default: job complete\n", "")


@pytest.mark.clients
async def test_a_state_that_the_resource_cant_have_is_a_mistake(
    server: ApiServer, tmp_path: Path
) -> None:
    code, _, err = await wait_for(server, tmp_path, "pod/a", "--for", "rollout")
    assert code == 2
    known = "deployments.apps, statefulsets.apps, daemonsets.apps"
    assert err == f"aioinformer: --for rollout: only {known}, not pods\n"
