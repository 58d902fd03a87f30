"""The numbered examples do what they say, on the embedded API server."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest

from aioinformer.testing import ApiServer, PolicyRule
from tests.script_processes import run_to_completion, running_script

EXAMPLES = Path(__file__).parent.parent / "examples"
NUMBERED = sorted(EXAMPLES.glob("[0-9][0-9]_*.py"))
WEB_LABELS = {"app.kubernetes.io/name": "web", "app.kubernetes.io/part-of": "shop"}
SCREEN = 60
"""Lines that fit on one."""


@pytest.fixture(name="server")
async def a_server_with_pods() -> AsyncGenerator[ApiServer]:
    """Two pods of a shop and one of nothing, in two namespaces; one of them is on no node yet."""
    async with ApiServer() as server:
        for name, namespace, labels, node in (
            ("web-0", "default", WEB_LABELS, "node-1"),
            ("web-1", "default", WEB_LABELS, "node-2"),
            ("tool", "other", {}, ""),
        ):
            body = {"metadata": {"name": name, "labels": labels}, "spec": {"nodeName": node}}
            if not node:
                del body["spec"]
            server.cluster.create("pods", body, namespace=namespace)
        yield server


async def test_01_prints_changes_until_it_is_interrupted(server: ApiServer, tmp_path: Path) -> None:
    async with running_script(EXAMPLES / "01_print_pods.py", server, tmp_path, "default") as run:
        start = sorted([await run.read_line() for _ in range(2)])
        assert start == [b"= default/web-0\n", b"= default/web-1\n"]
        patch = {"spec": {"nodeName": "node-9"}}
        server.cluster.merge_patch("pods", "web-0", patch, namespace="default")
        assert re.fullmatch(rb"~ default/web-0 \d+ -> \d+\n", await run.read_line())
        server.cluster.create("pods", {"metadata": {"name": "web-2"}}, namespace="default")
        assert await run.read_line() == b"+ default/web-2\n"
        server.cluster.delete("pods", "web-1", namespace="default")
        assert await run.read_line() == b"- default/web-1 deleted\n"
    assert run.stderr == "", "Ctrl-C ends it, and nothing else is to be said"


def test_each_numbered_example_is_in_the_table_of_the_page() -> None:
    page = (EXAMPLES / "README.md").read_text()
    linked = re.findall(r"^\| \[`(\d\d_\w+\.py)`\]\(\1\)", page, re.MULTILINE)
    assert linked == [path.name for path in NUMBERED]


@pytest.mark.clients
async def test_02_shows_the_pods_of_each_node(server: ApiServer, tmp_path: Path) -> None:
    script, kubeconfig = EXAMPLES / "02_index_by_node.py", server.kubeconfig(tmp_path / "config")

    every, one = await asyncio.gather(
        run_to_completion(script, kubeconfig), run_to_completion(script, kubeconfig, "node-2")
    )

    assert every.output.splitlines() == [
        "node-1: 1 of 3 pods: default/web-0",
        "node-2: 1 of 3 pods: default/web-1",
        "on no node yet: 1 of 3 pods",
    ]
    assert one.output.splitlines() == every.output.splitlines()[1:]
    assert (every.status, every.stderr, one.status, one.stderr) == (0, "", 0, "")


@pytest.mark.clients
async def test_03_shows_the_objects_that_its_model_accepts(
    server: ApiServer, tmp_path: Path
) -> None:
    script, kubeconfig = EXAMPLES / "03_typed_model.py", server.kubeconfig(tmp_path / "config")
    spec = {"nodeName": "node-1", "containers": [{"image": "web:2"}, {"image": "web:1"}]}
    server.cluster.create("pods", {"metadata": {"name": "web-2"}, "spec": spec})

    run = await run_to_completion(script, kubeconfig)

    assert run.output.splitlines() == [
        "node-1: web:1, web:2",
        "node-2: nothing",
        "other/tool does not fit the model",
    ]
    assert run.status == 0
    assert "it doesn't fit the model Pod: ValidationError: Object missing required field" in (
        run.stderr
    )


@pytest.mark.clients
async def test_04_finds_pods_by_labels(server: ApiServer, tmp_path: Path) -> None:
    script, kubeconfig = EXAMPLES / "04_label_index.py", server.kubeconfig(tmp_path / "config")

    run = await run_to_completion(script, kubeconfig, "!app.kubernetes.io/name")

    assert run.output.splitlines() == [
        "app.kubernetes.io/name=web: 2 of 3 pods",
        "app.kubernetes.io/part-of=shop: 2 of 3 pods",
        "!app.kubernetes.io/name selects other/tool",
        "2 pods are part of the shop",
    ]
    assert (run.status, run.stderr) == (0, "")


@pytest.mark.clients
async def test_05_reads_its_own_writes(server: ApiServer, tmp_path: Path) -> None:
    script, kubeconfig = EXAMPLES / "05_wait_for_own_write.py", server.kubeconfig(tmp_path / "c")

    run = await run_to_completion(script, kubeconfig)

    assert run.output.splitlines() == ["created: 1 visit", "changed: 2 visits", "deleted: True"]
    assert (run.status, run.stderr) == (0, "")
    assert json.loads(server.cluster.list("configmaps"))["items"] == []


@pytest.mark.clients
async def test_06_shows_the_namespaces_that_a_role_permits(tmp_path: Path) -> None:
    async with ApiServer() as server:
        rule = PolicyRule(verbs=["list", "watch"], resources=["pods"], namespaces=["a", "b"])
        server.access.add_user("ada", token="ada-token", rules=[rule])
        for namespace in "abc":
            server.cluster.create("pods", {"metadata": {"name": "web"}}, namespace=namespace)
        script = EXAMPLES / "06_namespaced_roles.py"
        async with running_script(script, server, tmp_path, "a", "b", "c", user="ada") as run:
            assert [await run.read_line() for _ in range(2)] == [b"a: 1 pods\n", b"b: 1 pods\n"]
            assert b'403 Forbidden: pods is forbidden: User "ada"' in await run.read_line()
            initial = sorted([await run.read_line() for _ in range(2)])
            assert initial == [b"= a/web\n", b"= b/web\n"]
            server.cluster.delete("pods", "web", namespace="b")
            assert await run.read_line() == b"- b/web deleted\n"


@pytest.mark.clients
async def test_07_reports_the_configmaps_that_no_pod_mentions(
    server: ApiServer, tmp_path: Path
) -> None:
    script, kubeconfig = EXAMPLES / "07_unused_configmaps.py", server.kubeconfig(tmp_path / "c")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "web-0", "uid": "1"}
    for name in ("mounted", "projected", "environment", "variable", "owned", "left-over"):
        metadata = {"name": name, "ownerReferences": [owner] if name == "owned" else []}
        server.cluster.create("configmaps", {"metadata": metadata, "data": {"size": "x" * 1000}})
    container = {
        "name": "app",
        "envFrom": [{"configMapRef": {"name": "environment"}}, {"secretRef": {"name": "s"}}],
        "env": [
            {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "variable", "key": "a"}}},
            {"name": "B", "value": "b"},
        ],
    }
    projected = {"sources": [{"configMap": {"name": "projected"}}, {"secret": {"name": "s"}}]}
    volumes: list[dict[str, Any]] = [
        {"name": "a", "configMap": {"name": "mounted"}},
        {"name": "b", "projected": projected},
        {"name": "c", "emptyDir": {}},
    ]
    spec: dict[str, Any] = {"containers": [container], "volumes": volumes}
    server.cluster.create("pods", {"metadata": {"name": "uses"}, "spec": spec})

    run = await run_to_completion(script, kubeconfig)

    report, total = run.output.splitlines()
    assert report.startswith("default/left-over, created 20")
    assert total == "1 of 6 ConfigMaps are mentioned by no pod"
    assert (run.status, run.stderr) == (0, "")


@pytest.mark.clients
async def test_08_waits_until_a_deployment_is_rolled_out(server: ApiServer, tmp_path: Path) -> None:
    """The test is the deployment's controller."""
    cluster, resource = server.cluster, "deployments"
    complete = {"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}
    spec = {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "shop"}},
        "template": {
            "metadata": {"labels": {"app": "shop"}},
            "spec": {"containers": [{"name": "shop", "image": "shop:1"}]},
        },
    }
    body = {
        "metadata": {"name": "shop"},
        "spec": spec,
        "status": complete | {"observedGeneration": 1},
    }
    cluster.create(resource, body)

    script = EXAMPLES / "08_wait_for_rollout.py"
    async with running_script(script, server, tmp_path, "shop", "shop:2") as run:
        assert await run.read_line() == b"changed: shop to shop:2\n"
        for status in (complete | {"updatedReplicas": 1}, complete):
            patch = {"status": status | {"observedGeneration": 2}}
            cluster.merge_patch(resource, "shop", patch)
        assert await run.read_line() == b"rolled out: 2 replicas of shop:2\n"
        assert await run.read_line() == b"", "the program ends by itself"
    assert run.stderr == ""


@pytest.mark.clients
async def test_08_names_a_deployment_that_does_not_exist(server: ApiServer, tmp_path: Path) -> None:
    kubeconfig = server.kubeconfig(tmp_path / "config")
    run = await run_to_completion(EXAMPLES / "08_wait_for_rollout.py", kubeconfig)

    assert (run.status, run.output) == (1, "")
    assert run.stderr.startswith("not changed: PATCH http://")
    assert run.stderr.endswith('404 NotFound: deployments.apps "web" not found\n')
    assert run.stderr.count("\n") == 1


async def poll(condition: Callable[[], bool]) -> None:
    """Wait for what other processes do."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - the condition is about other processes
            await asyncio.sleep(0.05)


def reconciled_by(server: ApiServer) -> dict[str, list[str]]:
    """Return the annotation of each config map: the replica, and the version that it has seen."""
    bodies = server.cluster.objects("configmaps", namespace="default")
    return {
        each["metadata"]["name"]: each["metadata"]
        .get("annotations", {})
        .get("example.com/reconciled", "")
        .split()
        for each in bodies
    }


@pytest.mark.clients
async def test_09_shares_the_reconciles_of_three_processes(
    server: ApiServer, tmp_path: Path
) -> None:
    for number in range(30):
        body = {"metadata": {"name": f"c{number}", "labels": {"version": "1"}}}
        server.cluster.create("configmaps", body, namespace="default")

    def all_by(version: str, *replicas: str) -> bool:
        found = list(reconciled_by(server).values())
        owners = {each[0] for each in found if each}
        return owners == set(replicas) and all(each[1:] == [version] for each in found)

    script = EXAMPLES / "09_sharded_controller.py"
    async with (
        running_script(script, server, tmp_path, "a") as first,
        running_script(script, server, tmp_path, "b") as second,
    ):
        async with running_script(script, server, tmp_path, "c") as third:
            await poll(lambda: all_by("1", "a", "b", "c"))
            for name in reconciled_by(server):
                patch = {"metadata": {"labels": {"version": "2"}}}
                server.cluster.merge_patch("configmaps", name, patch, namespace="default")
            await poll(lambda: all_by("2", "a", "b", "c"))
        # The third one was interrupted: it has given its shards away, and released its Lease.
        await poll(lambda: all_by("2", "a", "b"))
    for each in (first, second, third):
        # A busy machine may interrupt a replica in the run that follows its own last write.
        assert all("1 run cancelled" in line for line in each.stderr.splitlines()), each.stderr


RUN_EACH = """\
import os, runpy, sys, traceback
os.chdir(os.path.dirname(__file__))  # some write files into the current directory
for script in sys.argv[1:]:
    sys.argv = [script]
    try:
        runpy.run_path(script, run_name="__main__")
    except Exception:
        traceback.print_exc()
    print("end of", script, file=sys.stderr)
"""
"""A program that runs scripts in turn, since the imports of a process take longer than they do."""


@pytest.mark.clients
async def test_each_example_without_a_cluster_ends_with_an_instruction(tmp_path: Path) -> None:
    (program := tmp_path / "run_each.py").write_text(RUN_EACH)

    run = await run_to_completion(program, tmp_path / "none", *map(str, NUMBERED))

    *reports, rest = run.stderr.split("end of ")
    assert len(reports) == len(NUMBERED)
    for report in reports:
        last = report.splitlines()[-1]
        assert "ConfigurationError: no cluster is configured" in last
        assert "put your cluster's kubeconfig into ~/.kube/config" in last
    assert rest == f"{NUMBERED[-1]}\n"
    assert (run.status, run.output) == (0, "")


@pytest.mark.parametrize("script", NUMBERED, ids=lambda script: script.stem)
def test_each_example_fits_on_one_screen_and_names_the_command_that_runs_it(script: Path) -> None:
    text = script.read_text()

    assert len(text.splitlines()) <= SCREEN
    assert f"\npython examples/{script.name}" in text
