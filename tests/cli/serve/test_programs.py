"""Everything that the guides run against ``aioinformer serve``, as processes."""

from __future__ import annotations

import asyncio
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
