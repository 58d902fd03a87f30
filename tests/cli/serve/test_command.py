"""``aioinformer serve`` as a process, and everything that the guides run against it."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest

from aioinformer import Client, Deleted, Event, SharedInformerFactory
from aioinformer._cli.serve.command import make_features
from aioinformer.errors import UsageError
from aioinformer.testing import ApiServer, Features
from tests.cli.processes import ROOT, CliProcess, environment, started_cli
from tests.processes import send_signal, start_process

EXAMPLES = ROOT / "examples"
SERVING = re.compile(r"serving at (http://127\.0\.0\.1:\d+) \((.*)\)\n")


class Served:
    """A running ``aioinformer serve``."""

    def __init__(self, run: CliProcess, first_line: str, export: str) -> None:
        found = SERVING.fullmatch(first_line)
        assert found, first_line
        self.run = run
        self.url, self.contents = found.groups()
        self.kubeconfig = Path(export.strip().removeprefix("export KUBECONFIG="))


@asynccontextmanager
async def served(*argv: str, env: Mapping[str, str]) -> AsyncGenerator[Served]:
    async with started_cli("serve", "--port", "0", *argv, env=env) as run:
        first, _, _, export = [await run.read_line() for _ in range(4)]
        yield Served(run, first, export)


@asynccontextmanager
async def program(
    *argv: str, server: Served, env: Mapping[str, str]
) -> AsyncGenerator[asyncio.StreamReader]:
    """Run a Python program with the server's kubeconfig, and end it with Ctrl-C."""
    process = await start_process(
        sys.executable,
        *argv,
        cwd=ROOT,
        env={**env, "KUBECONFIG": str(server.kubeconfig), "PYTHONUNBUFFERED": "1"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(30):
            yield process.stdout
        # A program that has ended by itself must have ended well.
        assert process.returncode in (None, 0)
    finally:
        send_signal(process, signal.SIGINT)
        await process.communicate()


async def prints(server: Served, env: Mapping[str, str], line: str, *argv: str) -> None:
    """Check that a program prints a line that matches a pattern."""
    pattern, seen = re.compile(line), ""
    async with program(*argv, server=server, env=env) as output:
        while text := (await output.readline()).decode():
            seen += text
            if pattern.search(text):
                return
        raise AssertionError(f"{argv} ended without {line!r}:\n{seen}")


async def run_pairs(*checks: Coroutine[None, None, None]) -> None:
    """Run the checks, two at a time: each starts a process, and a machine may have two cores."""
    turns = asyncio.Semaphore(2)

    async def take_turn(check: Coroutine[None, None, None]) -> None:
        async with turns:
            await check

    async with asyncio.TaskGroup() as group:
        for check in checks:
            group.create_task(take_turn(check))


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


async def serves(server: Served, env: Mapping[str, str], path: str, *argv: str) -> None:
    """Check that a program that listens on a port becomes ready, and responds at a path."""
    port = free_port()
    async with (
        program(*argv, str(port), server=server, env=env),
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as http,
    ):
        while True:
            with suppress(aiohttp.ClientConnectionError):
                async with http.get(path) as response:
                    if response.status == 200:
                        return
            await asyncio.sleep(0.05)


# -- what runs against it ------------------------------------------------------------------------


@pytest.mark.clients
async def test_the_commands_and_an_example_run_against_the_served_cluster(tmp_path: Path) -> None:
    env = environment(tmp_path)
    async with served("--objects", "30", "--rate", "50", env=env) as it:
        assert it.contents == "Kubernetes 1.36; about 30 pods, 50 changes a second"
        cli, server = ("-m", "aioinformer"), ("--server", it.url)
        await run_pairs(
            prints(it, {**env, "KUBECONFIG": ""}, "Running", *cli, "watch", "po", "-A", *server),
            prints(it, env, r"^pods\s+all\s+yes\s+yes", *cli, "health", "-A", "pods", "nodes"),
            prints(it, env, "^[=+~-] shop/", str(EXAMPLES / "01_print_pods.py"), "shop"),
        )
        it.run.send_signal(signal.SIGTERM)
        code, _, complaints = await it.run.wait()
    assert (code, complaints) == (128 + signal.SIGTERM, "")
    assert not it.kubeconfig.exists(), "a temporary file"


@pytest.mark.clients
async def test_every_other_example_runs_against_the_served_cluster(tmp_path: Path) -> None:
    env = environment(tmp_path)
    sample = EXAMPLES / "sample_controller"
    load = ("--load", str(sample / "crds.yaml"), "--load", str(sample / "foo.yaml"))
    async with served("--objects", "20", *load, env=env) as it:
        assert it.contents.startswith("Kubernetes 1.36; 3 objects from manifests; about 20 pods")
        hosts = EXAMPLES / "hosts"
        await run_pairs(
            prints(it, env, r"node-\d+: \d+ of \d+ pods", str(EXAMPLES / "02_index_by_node.py")),
            prints(it, env, r"node-\d+: registry.*v1", str(EXAMPLES / "03_typed_model.py")),
            prints(it, env, r"[1-9]\d* pods are part of", str(EXAMPLES / "04_label_index.py")),
            prints(it, env, "deleted: True", str(EXAMPLES / "05_wait_for_own_write.py")),
            prints(it, env, r"\d+ pods: .* Running", str(hosts / "plain_script.py"), "shop"),
            serves(it, env, "/readyz", str(hosts / "aiohttp_web.py")),
            serves(it, env, "/readyz", str(hosts / "litestar_app.py")),
            serves(it, env, "/default", str(hosts / "sync_program.py")),
            serves(it, env, "/readyz", "-m", "examples.fastapi_app", "--port"),
            prints(it, env, "leads default.sample-controller", "-m", "examples.sample_controller"),
        )
        it.run.send_signal(signal.SIGINT)
        code, _, complaints = await it.run.wait()
    assert (code, complaints) == (128 + signal.SIGINT, "")


@pytest.mark.clients
async def test_a_kubeconfig_at_a_given_path_stays_after_the_end(tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    process = await start_process(
        *(sys.executable, "-m", "aioinformer", "serve", "--port", "0", "--objects", "0"),
        *("--kubeconfig", str(config)),
        cwd=ROOT,
        env=environment(tmp_path),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    async with asyncio.timeout(20):
        first = (await process.stdout.readline()).decode()
        found = SERVING.fullmatch(first)
        assert found, first
        assert found[1] in config.read_text()
        assert config.stat().st_mode & 0o777 == 0o600
        send_signal(process, signal.SIGINT)
        await process.communicate()
    assert process.returncode == 128 + signal.SIGINT
    assert config.exists(), "the user's own file"


@pytest.mark.clients
async def test_a_token_is_required_with_the_option_and_only_the_kubeconfig_shows_it(
    tmp_path: Path,
) -> None:
    env = environment(tmp_path)
    async with (
        served("--objects", "3", "--rate", "0", "--token", env=env) as it,
        aiohttp.ClientSession(it.url) as http,
    ):
        token = json.loads(it.kubeconfig.read_text())["users"][0]["user"]["token"]
        assert len(token) > 40
        for headers, status in (({}, 401), ({"Authorization": f"Bearer {token}"}, 200)):
            for path in ("/api/v1/pods", "/version"):
                async with http.get(path, headers=headers) as response:
                    assert response.status == status
        await prints(it, env, "shop/", str(EXAMPLES / "01_print_pods.py"), "shop")
        it.run.send_signal(signal.SIGTERM)
        _, rest, complaints = await it.run.wait()
    assert "kubectl gets 401 from this server" in rest
    assert token not in rest + complaints


@pytest.mark.clients
async def test_hosts_of_the_option_and_no_others_are_answered(tmp_path: Path) -> None:
    async with (
        served(
            "--objects", "0", "--accept-hosts", "api.test, 10.0.0.9", env=environment(tmp_path)
        ) as it,
        aiohttp.ClientSession(it.url) as http,
    ):
        for name, status in (("api.test:80", 200), ("10.0.0.9", 200), ("rebound.example", 403)):
            async with http.get("/version", headers={"Host": name}) as response:
                assert response.status == status


# -- mistakes ------------------------------------------------------------------------------------


async def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    async with ApiServer() as other:
        port = other.url.rpartition(":")[2]
        argv = ("serve", "--port", port, "--objects", "0")
        async with started_cli(*argv, env=environment(tmp_path)) as run:
            code, out, complaints = await run.wait()
    assert (code, out) == (2, "")
    assert complaints == (
        f"aioinformer: --port {port}: the port is in use; stop its server, or let --port 0 find a "
        "free one\n"
    )


@pytest.mark.clients
async def test_an_informer_reads_the_cluster_of_a_command_that_was_started_again(
    tmp_path: Path,
) -> None:
    env = environment(tmp_path)
    argv = ("serve", "--rate", "0", "--objects", "5", "--port", str(port := free_port()))
    deleted: asyncio.Queue[str] = asyncio.Queue()

    async def on_event(event: Event) -> None:
        if isinstance(event, Deleted):
            await deleted.put(event.obj.uid)

    async with Client(f"http://127.0.0.1:{port}") as client, started_cli(*argv, env=env) as run:
        await run.read_line()
        async with SharedInformerFactory(client) as informers:
            pods = informers.informer("pods")
            pods.add_handler(on_event)
            await pods.wait_synced(timeout=30)
            before = {pod.uid for pod in pods.lister.list()}
            run.send_signal(signal.SIGTERM)
            await run.wait()
            async with started_cli(*argv, env=env) as again, asyncio.timeout(30):
                await again.read_line()
                assert {await deleted.get() for _ in before} == before
                assert len(pods.lister.list()) == len(before) == 5


@pytest.mark.clients
async def test_a_kubeconfig_path_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    argv = ("serve", "--port", "0", "--kubeconfig", "/no/folder/k")
    async with started_cli(*argv, env=environment(tmp_path)) as run:
        code, out, complaints = await run.wait()
    complaint = "aioinformer: --kubeconfig /no/folder/k: No such file or directory\n"
    assert (code, out, complaints) == (2, "", complaint)


async def test_an_accepted_host_that_is_none_is_named(tmp_path: Path) -> None:
    argv = ("serve", "--port", "0", "--objects", "0", "--accept-hosts", "api.test,*")
    async with started_cli(*argv, env=environment(tmp_path)) as run:
        code, out, complaints = await run.wait()
    assert (code, out) == (2, "")
    assert complaints == (
        "aioinformer: --accept-hosts: '*' is not a host; give a name or an address, such as "
        "'api.test' or '[fd00::1]'\n"
    )


def test_features_are_given_by_name() -> None:
    given = (("minor", 37), ("watch_list", False))
    assert make_features(given) == Features(minor=37, watch_list=False)
    with pytest.raises(UsageError, match="unknown feature 'minro'; known: minor, watch_list"):
        make_features((("minro", 37),))
    with pytest.raises(UsageError, match="minor must be a number, not true"):
        make_features((("minor", True),))


@pytest.mark.clients
async def test_a_rollout_of_a_served_deployment_is_complete_after_a_while(
    tmp_path: Path,
) -> None:
    env = environment(tmp_path)
    async with served("--rate", "0", env=env) as server, aiohttp.ClientSession() as http:
        goal = ("deploy/web", "-n", "shop", "--for", "rollout", "--timeout", "30s")
        url = f"{server.url}/apis/apps/v1/namespaces/shop/deployments/web"
        headers = {"Content-Type": "application/merge-patch+json"}
        patch = '{"spec": {"template": {"metadata": {"annotations": {"restarted": "now"}}}}}'
        async with http.patch(url, data=patch, headers=headers) as response:
            assert (await response.json())["metadata"]["generation"] == 2
        async with started_cli("wait", *goal, "--server", server.url, env=env) as wait:
            line = "deployment.apps/web in the namespace shop: rollout complete\n"
            assert await wait.wait() == (0, line, "")
