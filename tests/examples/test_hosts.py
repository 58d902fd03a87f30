"""The programs in ``examples/hosts``, each in a process of its own, until Ctrl-C."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx
import pytest

from aioinformer.testing import ApiServer
from tests.examples.notebooks import Notebook
from tests.examples.sample_controller import eventually
from tests.script_processes import RUN_SECONDS, RunningScript, run_to_completion, running_script

ROOT = Path(__file__).parent.parent.parent
HOSTS = ROOT / "examples" / "hosts"
SCRIPTS = sorted(script for script in HOSTS.glob("*.py") if script.stem != "__init__")


@pytest.fixture(name="server")
async def a_server_with_two_pods() -> AsyncGenerator[ApiServer]:
    async with ApiServer() as server:
        for name, phase in (("web-0", "Running"), ("web-1", "Pending")):
            body = {"metadata": {"name": name}, "spec": {"nodeName": "node-1"}}
            status = {"status": {"phase": phase}}
            server.cluster.create("pods", body | status, namespace="default")
        yield server


def free_port() -> int:
    """Return a port on which nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@asynccontextmanager
async def service(
    script: str, server: ApiServer, folder: Path, *, seconds: float = RUN_SECONDS
) -> AsyncGenerator[tuple[RunningScript, httpx.AsyncClient]]:
    """Run a program that serves on a port until Ctrl-C, with a client."""
    port = free_port()
    async with (
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=10) as http,
        running_script(HOSTS / script, server, folder, str(port), seconds=seconds) as run,
    ):
        yield run, http


async def probe(http: httpx.AsyncClient) -> httpx.Response | None:
    """Return the response of the readiness probe, ``None`` before the server listens."""
    try:
        return await http.get("/readyz")
    except httpx.ConnectError:
        return None


async def ready(http: httpx.AsyncClient) -> bool:
    """Return True if the program's cache can be read."""
    answer = await probe(http)
    return answer is not None and answer.status_code == 200


# -- with an event loop --------------------------------------------------------------------------


@pytest.mark.clients
async def test_a_plain_script_prints_changes_until_sigterm_ends_it(
    server: ApiServer, tmp_path: Path
) -> None:
    script = HOSTS / "plain_script.py"
    async with running_script(script, server, tmp_path, "default", end=signal.SIGTERM) as run:
        assert await run.read_line() == b"2 pods: 1 Pending, 1 Running\n"
        patch = {"status": {"phase": "Running"}}
        server.cluster.merge_patch("pods", "web-1", patch, namespace="default")
        assert await run.read_line() == b"2 pods: 2 Running\n"
        server.cluster.delete("pods", "web-0", namespace="default")
        assert await run.read_line() == b"1 pods: 1 Running\n"
    assert (run.stderr, run.status) == ("", 0)


@pytest.mark.clients
async def test_a_plain_script_without_a_cluster_prints_the_reason_in_one_line(
    tmp_path: Path,
) -> None:
    run = await run_to_completion(HOSTS / "plain_script.py", tmp_path / "none")
    assert run.status == 1
    assert re.fullmatch(r"no cluster is configured: .*\n", run.stderr)


@pytest.mark.clients
async def test_a_service_on_aiohttp_serves_and_ends_with_streams_open(
    server: ApiServer, tmp_path: Path
) -> None:
    async with service("aiohttp_web.py", server, tmp_path) as (run, http):
        await _serves_until_interrupted(server, run, http)
    assert (run.stderr, run.status) == ("", 0)


@pytest.mark.clients
async def test_a_service_on_litestar_reports_unsynced_caches_serves_and_ends_with_open_streams(
    server: ApiServer, tmp_path: Path
) -> None:
    server.faults.stall(resource="pods")
    async with service("litestar_app.py", server, tmp_path) as (run, http):
        await eventually(lambda: probe(http))
        early = await http.get("/pods/default/web-0")
        assert (early.status_code, early.headers["retry-after"]) == (503, "1")
        assert "wait_synced" in early.text
        server.faults.clear()
        await eventually(lambda: ready(http))
        assert (await http.get("/pods/default/web-0")).json()["spec"] == {"nodeName": "node-1"}
        missing = await http.get("/pods/default/web-9")
        assert (missing.status_code, "web-9" in missing.text) == (404, True)
        await _serves_until_interrupted(server, run, http)
    assert run.status == 0
    assert "Traceback" not in run.stderr


async def _serves_until_interrupted(
    server: ApiServer, run: RunningScript, http: httpx.AsyncClient
) -> None:
    """Check reads, probes and events, and that a listening client does not delay the end."""
    await eventually(lambda: ready(http))
    assert (await http.get("/pods/default")).json() == ["web-0", "web-1"]
    async with http.stream("GET", "/events") as events:
        lines = events.aiter_lines()
        while "web-1" not in await anext(lines):
            pass
        server.cluster.create("pods", {"metadata": {"name": "web-2"}}, namespace="default")
        while "web-2" not in await anext(lines):
            pass
        run.send_signal()
        await asyncio.wait_for(_drained(lines), 30)


async def _drained(lines: AsyncIterator[str]) -> None:
    async for _ in lines:
        pass


async def test_the_notebook_runs_from_its_first_cell_to_its_last(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig(tmp_path / "config")))
    notebook = Notebook(HOSTS / "jupyter.ipynb")

    cached, counts, _, _, received, healths, _ = await notebook.run()

    assert (cached, counts) == (2, {"node-1": 2})
    assert re.fullmatch(r"\['Added default/(notebook-\w+)', 'Deleted default/\1'\]", repr(received))
    assert str(healths).count("watching") == 2


# -- without one ---------------------------------------------------------------------------------


@pytest.mark.clients
async def test_a_synchronous_program_reads_and_writes_from_its_threads(
    server: ApiServer, tmp_path: Path
) -> None:
    async with service("sync_program.py", server, tmp_path) as (run, http):
        assert (await run.read_line()).startswith(b"http://127.0.0.1:")
        assert (await http.get("/default")).text == ""
        visits = [(await http.post("/default/visits")).text for _ in range(3)]
        assert visits == ["1", "2", "3"]
        await asyncio.gather(*[http.post(f"/default/other-{i}") for i in range(8)])
        answers = await asyncio.gather(*[http.post("/default/at-once") for _ in range(6)])
        assert sorted(int(answer.text) for answer in answers) == [*range(1, 7)], "none is lost"
        shown = (await http.get("/default")).text.split()
        assert shown == ["at-once", *(f"other-{i}" for i in range(8)), "visits"]
        (listed,) = [
            item
            for item in json.loads(server.cluster.list("configmaps"))["items"]
            if item["metadata"]["name"] == "visits"
        ]
        assert listed["data"] == {"visits": "3"}
    others = [line for line in run.stderr.splitlines() if '"GET /' not in line]
    assert [line for line in others if '"POST /' not in line] == [], "its own log of requests"
    assert run.status == 0


@pytest.mark.clients
@pytest.mark.timeout(240)
async def test_each_worker_of_uvicorn_has_a_watch_of_its_own(
    server: ApiServer, tmp_path: Path
) -> None:
    async with service("uvicorn_workers.py", server, tmp_path, seconds=200) as (run, http):
        await _watch_in_each_worker(server, http)
    assert run.status == 0


@pytest.mark.clients
@pytest.mark.timeout(240)
async def test_gunicorn_workers_watch_and_end_at_sigterm(server: ApiServer, tmp_path: Path) -> None:
    pytest.importorskip("uvicorn_worker")
    port = free_port()
    arguments = [
        "examples.hosts.uvicorn_workers:app",
        f"--chdir={ROOT}",
        f"--bind=127.0.0.1:{port}",
        "--worker-class=uvicorn_worker.UvicornWorker",
        "--workers=4",
        "--timeout=120",  # a worker that starts on a busy machine is not killed
    ]
    program = Path(sys.executable).with_name("gunicorn")
    async with (
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=10) as http,
        running_script(
            program, server, tmp_path, *arguments, end=signal.SIGTERM, seconds=200
        ) as run,
    ):
        await _watch_in_each_worker(server, http)
    assert run.status == 0


async def _watch_in_each_worker(server: ApiServer, http: httpx.AsyncClient) -> None:
    """Wait for four workers, and check that all of them follow a change."""
    for _ in range(5):  # five processes that import FastAPI take long on a busy machine
        with suppress(TimeoutError):
            await eventually(lambda: all_workers(http))
            break
    server.cluster.create("pods", {"metadata": {"name": "web-2"}}, namespace="default")
    await eventually(lambda: same_caches(http, server))
    assert {each["state"] for each in await answers(http, "/worker")} == {"watching"}


async def answers(http: httpx.AsyncClient, path: str) -> list[dict[str, str]]:
    """Return the answers of many connections. Any worker may accept each of them."""
    found: list[dict[str, str]] = []
    for _ in range(40):
        with suppress(httpx.TransportError):
            found.append((await http.get(path, headers={"connection": "close"})).json())
    return found


async def all_workers(http: httpx.AsyncClient) -> bool:
    """Return True once each of the four workers has answered."""
    return len({each["pid"] for each in await answers(http, "/worker")}) == 4


async def same_caches(http: httpx.AsyncClient, server: ApiServer) -> bool:
    """Return True once all workers show the state of the server."""
    stored = [each["metadata"] for each in server.cluster.objects("pods")]
    wanted = {f"{each['namespace']}/{each['name']}": each["resourceVersion"] for each in stored}
    return all(each == wanted for each in await answers(http, "/pods"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_each_host_script_names_the_command_that_runs_it(script: Path) -> None:
    text = script.read_text()
    commands = (
        f"\npython examples/hosts/{script.name}",
        f"\nuvicorn examples.hosts.{script.stem}:",
    )
    assert any(command in text for command in commands)
    assert len(text.splitlines()) <= 120


def test_every_host_and_guide_is_linked() -> None:
    hosts = (HOSTS / "README.md").read_text()
    for host in [*SCRIPTS, HOSTS / "jupyter.ipynb"]:
        assert f"]({host.name})" in hosts
    readme = (ROOT / "README.md").read_text()
    assert "](examples/hosts)" in readme
    for guide in (ROOT / "examples" / "guides").glob("*.md"):
        assert f"](examples/guides/{guide.name})" in readme
