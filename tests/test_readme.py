"""The programs and facts of the README, the guides and the examples."""

from __future__ import annotations

import asyncio
import re
import shlex
import signal
import tomllib
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from kubernetes_asyncio.client import ApiClient, Configuration
from prometheus_client import CollectorRegistry

from aioinformer import (
    Client,
    Event,
    ObjectKey,
    Resource,
    SharedInformerFactory,
    WorkQueue,
    merge,
    where,
)
from aioinformer._cli.command_line import parse_arguments
from aioinformer._cli.options import DEFAULT_PORT, DemoCommandOptions
from aioinformer.adapters.prometheus import PrometheusMetrics
from aioinformer.errors import NotFound
from aioinformer.testing import ApiServer, Cluster, ClusterSource, running_operator
from aioinformer.testing.workload.pods import APPS, NODES, create_pod
from tests.adapters.sample_metrics import record_every_metric
from tests.markdown_pages import MarkdownPage, find_blocks
from tests.promises.conftest import wait_until
from tests.script_processes import running_script

ROOT = Path(__file__).parent.parent
GUIDES = ROOT / "examples" / "guides"
NAMES = ("informers", "controllers", "operations", "testing", "restarts")
PAGE = MarkdownPage(ROOT / "README.md", *(GUIDES / f"{name}.md" for name in NAMES))
README, block = PAGE.text, PAGE.block
PAGES = [
    ROOT / "README.md",
    *(
        page
        for each in ("benchmarks", "examples", "docs", "tests")
        for page in sorted((ROOT / each).rglob("*.md"))
    ),
]


def pods(cluster: Cluster) -> None:
    for i in range(3):
        body = {"metadata": {"name": f"web-{i}"}, "spec": {"nodeName": f"node-{i % 2:02}"}}
        cluster.create("pods", body, namespace="default")


async def test_the_program_of_the_readme_prints_changes_of_a_server(tmp_path: Path) -> None:
    program = block("http://127.0.0.1:8001")
    assert len([line for line in program.splitlines() if line]) <= 12
    script = tmp_path / "program.py"
    async with ApiServer() as server:
        script.write_text(program.replace(f"http://127.0.0.1:{DEFAULT_PORT}", server.url))
        body = {"metadata": {"name": "web-0"}, "status": {"phase": "Pending"}}
        server.cluster.create("pods", body, namespace="default")
        async with running_script(script, server, tmp_path) as run:
            assert await run.read_line() == b"Added default/web-0 Pending\n"
            patch = {"status": {"phase": "Running"}}
            server.cluster.merge_patch("pods", "web-0", patch, namespace="default")
            assert await run.read_line() == b"Updated default/web-0 Running\n"


@pytest.mark.clients
async def test_the_first_program_of_the_guide_runs_as_it_stands(tmp_path: Path) -> None:
    script = tmp_path / "screen.py"
    program = block("@pods.on_update\n        async")
    script.write_text(program)
    assert set(re.findall(r"node-\d+", program)) <= set(NODES), "aioinformer serve has the node"
    async with ApiServer() as server:
        pods(server.cluster)
        async with running_script(script, server, tmp_path) as run:
            assert await run.read_line() == b"cached: 3 on node-01: 1\n"
            start = sorted([await run.read_line() for _ in range(3)])
            assert start == [b"stream: added web-%d at the start\n" % i for i in range(3)]
            patch = {"spec": {"nodeName": "node-9"}}
            server.cluster.merge_patch("pods", "web-0", patch, namespace="default")
            received = sorted([await run.read_line() for _ in range(2)])
            assert re.fullmatch(rb"handler: web-0 \d+ -> \d+\n", received[0])
            assert received[1] == b"stream: updated web-0 {'nodeName': 'node-9'}\n"
            server.cluster.delete("pods", "web-1", namespace="default")
            assert await run.read_line() == b"stream: deleted web-1 deleted\n"
    assert run.stderr == "", "Ctrl-C ends it, and nothing else is to be said"


def test_the_guarantees_have_the_numbers_of_their_tests() -> None:
    modules = (ROOT / "tests" / "promises").glob("test_*.py")
    tests = "".join(module.read_text() for module in modules)
    numbers = sorted(set(re.findall(r"def test_(\d+)_", tests)), key=int)
    guide = (GUIDES / "guarantees.md").read_text()
    assert re.findall(r"^## (\d+)\. ", guide, re.MULTILINE) == numbers
    assert (
        re.findall(r"\[(\d+)\. ", MarkdownPage(ROOT / "README.md").section("Guarantees")) == numbers
    )


def test_the_readme_states_the_default_duration_of_the_demo() -> None:
    options = parse_arguments(["demo"])
    assert isinstance(options, DemoCommandOptions)
    assert f"It lasts {options.seconds:.0f} s" in README


def test_the_commands_of_the_readme_have_valid_arguments() -> None:
    text = (ROOT / "README.md").read_text()
    blocks = "".join(find_blocks(text, "sh"))
    commands = re.findall(r"^aioinformer (.*?)(?: +#.*)?$", blocks, re.MULTILINE)
    commands += [
        " ".join(each.split()) for each in re.findall(r"`aioinformer ([^`]* [^`]*)`", text)
    ]
    assert {each.split()[0] for each in commands} >= {"serve", "watch", "wait", "health"}
    for command in commands:
        assert parse_arguments(shlex.split(command)) is not None, command


async def test_a_client_of_kubernetes_asyncio_works_as_in_the_readme() -> None:
    names: dict[str, Any] = {"SharedInformerFactory": SharedInformerFactory}
    exec(block("client_of"), names)  # noqa: S102 - what it is for
    async with ApiServer() as server:
        api = ApiClient(Configuration(host=server.url))
        try:
            await names["inform"](api)
        finally:
            await api.close()


async def test_the_handlers_of_the_readme_run() -> None:
    received: list[str] = []

    async def reconcile(event: Event) -> None:
        received.append(f"reconcile {type(event).__name__} {event.obj.name}")

    def blocking_audit(event: Event) -> None:
        received.append(f"audit {event.obj.name}")

    cluster = Cluster()
    metadata = {"name": "web-0", "labels": {"app": "shop"}}
    cluster.create("pods", {"metadata": metadata, "status": {"phase": "Running"}})
    cluster.create("pods", {"metadata": {"name": "other"}})
    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        pods = informers.informer("pods")
        names = {"pods": pods, "reconcile": reconcile, "blocking_audit": blocking_audit}
        exec(block("blocking_audit"), names)  # noqa: S102 - what it is for
        for registration in pods.registrations:
            await registration.wait_synced(timeout=30)
    assert sorted(received) == ["audit other", "audit web-0", "reconcile Added web-0"]


async def test_the_code_of_the_section_using_it_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = MarkdownPage(ROOT / "README.md").block_under("Using it")
    lines = "".join(f"    {line}\n" for line in code.splitlines())
    names: dict[str, Any] = {"Event": Event, "where": where}
    exec(f"async def go(client, kube):\n{lines}", names)  # noqa: S102 - what it is for
    async with ApiServer() as server:
        pod = create_pod(APPS[0], Random(1))
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        server.cluster.create("pods", {**pod, "status": {"phase": "Running"}})
        async with (
            Client.connect(kubeconfig=server.kubeconfig(tmp_path / "config")) as client,
            SharedInformerFactory(client) as informers,
        ):
            await asyncio.wait_for(names["go"](client, informers), 30)
            assert informers.informer("pods").lister[f"{namespace}/{name}"].labels["seen"] == "yes"
    assert capsys.readouterr().out.splitlines()[0] == name


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_has_an_existing_target(page: Path) -> None:
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for file, heading in re.findall(r"\]\((?!https://)([^)#\s]*)#?([^)\s]*)\)", prose):
        target = page.parent / file if file else page
        assert target.exists(), file
        assert not heading or heading in anchors(target), heading


async def test_the_streams_of_the_readme_run() -> None:
    merged, after_snapshot = block("merge(").split("\n\n")
    merged = merged.replace("...", "seen.append(event); break")
    after_snapshot = after_snapshot.replace(
        "async for event in events:\n        ...", "seen.append(snapshot)"
    )
    code = f"{merged}\n{after_snapshot}"
    lines = "".join(f"    {line}\n" for line in code.splitlines())
    cluster = Cluster()
    cluster.create("pods", {"metadata": {"name": "web-0"}})
    cluster.create("nodes", {"metadata": {"name": "node-1"}})
    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        seen: list[Any] = []
        pods, nodes = informers.informer("pods"), informers.informer("nodes")
        names: dict[str, Any] = {"merge": merge, "pods": pods, "nodes": nodes, "seen": seen}
        exec(f"async def read():\n{lines}", names)  # noqa: S102 - what it is for
        await asyncio.wait_for(names["read"](), 30)
        event, snapshot = seen
        assert event.obj.name in ("web-0", "node-1")
        assert [key.name for key in snapshot] == ["web-0"]


async def test_the_cache_is_read_as_the_readme_reads_it() -> None:
    lines = "".join(f"    {line}\n" for line in block("label_index").splitlines())
    cluster = Cluster()
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    for name in ("web-0", "web-1", "web-2"):
        metadata = {"name": name, "labels": {"app": "shop"}}
        answer = cluster.create("pods", {"metadata": metadata, "status": ready}, namespace="web")
    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        names: dict[str, Any] = {"informers": informers, "answer": answer}
        exec(f"async def read():\n{lines}", names)  # noqa: S102 - what it is for
        await asyncio.wait_for(names["read"](), 30)


def test_the_metrics_are_those_of_the_readme() -> None:
    registry = CollectorRegistry()
    metrics = PrometheusMetrics(registry)
    record_every_metric(metrics, "pods")
    shown = {
        re.sub(r"_(bucket|count|sum|created)$", "", sample.name.removeprefix("aioinformer_"))
        for family in registry.collect()
        for sample in family.samples
        if not sample.name.endswith("_created")
    }
    table = README[README.index("| metric (") :].split("\n\n")[0]
    rows = [row.split("|")[1] for row in table.splitlines()[2:] if row.startswith("|")]
    # OpenTelemetry's translate to the same names; its tests see to that, and to these two.
    shown |= {"handler_calls_total", "handler_time_seconds_total"}
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == shown


def test_the_readme_names_every_extra_and_fastapi_includes_uvicorn() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    assert set(re.findall(r"pip\s+install\s+'aioinformer\[(\w+)\]'", README)) == set(extras)
    assert any(needed.startswith("uvicorn") for needed in extras["fastapi"])


def test_the_readme_installs_a_checkout_while_no_index_has_the_package() -> None:
    text = (ROOT / "README.md").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert find_blocks(text, "sh")[0] == "pip install .\n"
    assert f"version {project['version'].removesuffix('.0')} is not on PyPI yet" in text
    assert f"{project['name']}[fastapi]" in text


def test_the_fastapi_service_is_started_by_the_commands_of_its_readme() -> None:
    text = (ROOT / "examples" / "fastapi_app" / "README.md").read_text()
    assert {"examples.fastapi_app", "examples.fastapi_app.app"} == set(
        re.findall(r"(?:python -m|uvicorn) ([\w.]+)", text)
    )
    assert (ROOT / "examples" / "fastapi_app" / "__main__.py").is_file()
    assert "\napp = " in (ROOT / "examples" / "fastapi_app" / "app.py").read_text()


@pytest.mark.parametrize("command", ["aioinformer demo", "--group dev", ".venv/bin/pytest"])
def test_the_readme_contains_the_commands_of_the_demo_and_of_the_tests(command: str) -> None:
    assert command in README


async def test_the_controller_of_the_readme_reconciles_its_objects() -> None:
    names: dict[str, Any] = {}
    exec(block("lead_teams(client: Client, replica: str)"), names)  # noqa: S102 - what it is for
    cluster = Cluster()
    cluster.create("namespaces", {"metadata": {"name": "shop", "labels": {"team": "blue"}}})
    async with ApiServer(cluster) as server, Client(server.url) as client:
        leading = asyncio.create_task(names["lead_teams"](client, "replica-1"))
        made = await until(cluster, "blue")
        assert [owner["name"] for owner in made["metadata"]["ownerReferences"]] == ["shop"]
        cluster.delete("configmaps", "team", namespace="shop")
        await until(cluster, "blue")
        cluster.merge_patch("namespaces", "shop", {"metadata": {"labels": {"team": "red"}}})
        await until(cluster, "red")
        leading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leading
    assert not cluster.get("leases", "teams", namespace="default")["spec"]["holderIdentity"]


async def test_the_operator_of_the_guide_reconciles_its_objects() -> None:
    names: dict[str, Any] = {"__name__": "guide"}
    exec(block("def team_operator").replace("port=8080", "port=0"), names)  # noqa: S102
    cluster = Cluster()
    cluster.create("namespaces", {"metadata": {"name": "shop", "labels": {"team": "blue"}}})
    async with ApiServer(cluster) as server:
        operator = names["team_operator"](Client(server.url))
        running = asyncio.create_task(operator.run())
        made = await until(cluster, "blue")
        assert [owner["name"] for owner in made["metadata"]["ownerReferences"]] == ["shop"]
        cluster.delete("configmaps", "team", namespace="shop")
        await until(cluster, "blue")
        cluster.merge_patch("namespaces", "shop", {"metadata": {"labels": {"team": "red"}}})
        await until(cluster, "red")
        operator.stop()
        await running
    assert not cluster.get("leases", "teams", namespace="default")["spec"]["holderIdentity"]


async def test_the_finalizer_of_the_guide_cleans_up() -> None:
    names: dict[str, Any] = {}
    exec(block("def bucket_operator"), names)  # noqa: S102 - the guide's code
    buckets, cluster = names["buckets"], Cluster()
    cluster.create("configmaps", {"metadata": {"name": "a"}, "data": {"region": "north"}})
    async with ApiServer(cluster) as server:
        operator = names["bucket_operator"](Client(server.url))
        running = asyncio.create_task(operator.run())
        await wait_until(lambda: buckets == {"default/a": "north"}, timeout=10)
        cluster.delete("configmaps", "a", namespace="default")
        await wait_until(lambda: not list(cluster.objects("configmaps")), timeout=10)
        assert buckets == {}
        operator.stop()
        await running


async def test_the_guides_permanent_error_is_in_the_status_and_ends_the_runs() -> None:
    names: dict[str, Any] = {}
    exec(block("def shop_operator("), names)  # noqa: S102 - the guide's code
    shops, cluster = Resource("example.com", "v1", "shops", "Shop"), Cluster()
    cluster.add_resource(shops, status=True)
    cluster.create(shops, {"metadata": {"name": "tea"}, "spec": {"pages": []}})

    async with ApiServer(cluster) as server:
        operator = names["shop_operator"](Client(server.url))
        async with running_operator(operator):
            await cluster.settled(operator)
            (controller,) = operator.controllers
            assert (controller.health.failed_runs, controller.health.runs) == (1, 1)
            assert [each.permanent for each in controller.health.failing] == [True]
    (condition,) = cluster.get(shops, "tea", namespace="default")["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("Synced", "False")
    assert (condition["reason"], condition["message"]) == (
        "PermanentError",
        "PermanentError: spec.pages is empty",
    )


async def test_sigterm_ends_the_leader_and_the_replica_that_waits() -> None:
    names: dict[str, Any] = {}
    exec(block("lead_teams(client: Client, replica: str)"), names)  # noqa: S102 - the guide's code
    exec(block("program.cancel"), names)  # noqa: S102 - the guide's code
    cluster = Cluster()
    cluster.create("namespaces", {"metadata": {"name": "shop", "labels": {"team": "blue"}}})
    async with ApiServer(cluster) as server, Client(server.url) as client:
        leading = asyncio.create_task(names["main"](client, "replica-1"))
        await until(cluster, "blue")
        # The handler of the second program replaces that of the first, so one signal ends one.
        waiting = asyncio.create_task(names["main"](client, "replica-2"))
        await asyncio.sleep(0.1)
        try:
            signal.raise_signal(signal.SIGTERM)
            await asyncio.wait_for(waiting, 30)
            assert not leading.done()
        finally:
            asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)
            leading.cancel()
            await asyncio.wait({leading})


async def until(cluster: Cluster, team: str) -> Any:
    """Wait for the ConfigMap of a team, and return it."""
    async with asyncio.timeout(10):
        while True:
            with suppress(NotFound):
                found = cluster.get("configmaps", "team", namespace="shop")
                if found["data"] == {"team": team}:
                    return found
            await asyncio.sleep(0.01)


async def test_the_work_queue_of_the_readme_works() -> None:
    done: list[ObjectKey] = []

    async def sync(key: ObjectKey) -> None:
        done.append(key)

    key = ObjectKey("web", "a")
    names: dict[str, Any] = {"WorkQueue": WorkQueue, "ObjectKey": ObjectKey, "key": key}
    names["sync"] = sync
    body = "".join(f"    {line}\n" for line in block("queue.work()").splitlines())
    exec(f"async def work():\n{body}", names)  # noqa: S102 - what it is for
    await names["work"]()
    assert done == [key]
