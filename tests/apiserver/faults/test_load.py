"""Fifty informers under load, on a real API server: nothing is lost, and memory is bounded.

The short form runs with the mark ``apiserver``. The long form is 20,000 objects and 1,000 writes a
second for five minutes, as far as the machine can do so; the test prints the rate, and the CPU time
of each process for a write, which bounds the rate:

    AIOINFORMER_LOAD_SECONDS=300 pytest -s -m apiserver -k under_load tests/apiserver
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.programs.load_process import digest
from tests.apiserver.server.server_process import AdminClient, ApiServerProcess
from tests.processes import send_signal, start_process

SECONDS = int(os.environ.get("AIOINFORMER_LOAD_SECONDS", "0"))

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(240 + 4 * SECONDS)]

SCOPES = 49
"""Namespaces, each with an informer. One more informer reads all of them."""
MAX_GROWTH = 100_000_000
"""Bytes by which the peak under load may exceed the memory after the initial lists."""


@dataclass(frozen=True)
class Load:
    """The size of a test."""

    objects: int
    rate: int
    """Writes a second that are wanted."""
    seconds: int


LOAD = Load(20_000, 1_000, SECONDS) if SECONDS else Load(980, 200, 8)


@pytest.fixture(autouse=True)
def _rare_collections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the API server collect garbage seldom, which takes it a seventh less of CPU time."""
    monkeypatch.setenv("GOGC", "400")


@asynccontextmanager
async def running(module: str, *arguments: str) -> AsyncGenerator[Process]:
    """Run a module, and kill its process at the end."""
    process = await start_process(
        *(sys.executable, "-m", module, *arguments), stdin=PIPE, stdout=PIPE
    )
    try:
        yield process
    finally:
        send_signal(process, signal.SIGKILL)
        await process.communicate()


async def read(process: Process) -> Any:
    """Return the next line of a process, decoded."""
    assert process.stdout is not None
    line = await process.stdout.readline()
    assert line, "the process has ended"
    return json.loads(line)


async def ask(process: Process) -> Any:
    """Send an empty line, and return the answer."""
    assert process.stdin is not None
    process.stdin.write(b"\n")
    return await read(process)


async def list_digest(server: ApiServerProcess) -> str:
    """Return the digest of all widgets of the server, read in pages."""
    states: list[tuple[str, str, str]] = []
    token = ""
    async with AdminClient(server) as admin:
        while True:
            page = await admin.list(limit="500", **({"continue": token} if token else {}))
            for meta in (item["metadata"] for item in page["items"]):
                key = f"{meta['namespace']}/{meta['name']}"
                states.append((key, meta["uid"], meta["resourceVersion"]))
            token = page["metadata"].get("continue", "")
            if not token:
                return digest(states)


def cpu_seconds(pid: int) -> float:
    """Return the seconds of CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def test_fifty_informers_lose_nothing_under_load(api_server: ApiServerProcess) -> None:
    async with running(
        "tests.apiserver.programs.load_writer",
        *(api_server.url, str(api_server.ca_file), f"--scopes={SCOPES}"),
        *(f"--objects={LOAD.objects}", f"--rate={LOAD.rate}", f"--seconds={LOAD.seconds}"),
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdin is not None
        assert await writer.stdout.readline() == b"created\n"
        options = (str(api_server.kubeconfig), f"--scopes={SCOPES}")
        async with running("tests.apiserver.programs.load_process", *options) as informers:
            before = await read(informers)
            assert before["objects"] == 2 * LOAD.objects
            server_cpu = -cpu_seconds(api_server.pid)
            writer.stdin.write(b"\n")
            result = await read(writer)
            server_cpu += cpu_seconds(api_server.pid)
            truth = await list_digest(api_server)
            began, state = time.monotonic(), await ask(informers)
            async with asyncio.timeout(60):
                while state["digests"] != [truth] * 4:
                    await asyncio.sleep(0.2)
                    state = await ask(informers)
            behind = time.monotonic() - began
            assert informers.stdin is not None
            informers.stdin.close()
            left = await read(informers)
    growth = state["peak"] - before["memory"]
    informers_cpu = state["cpu"] - before["cpu"]
    used = {"server": server_cpu, "writer": result["cpu"], "informers": informers_cpu}
    each = ", ".join(f"{name} {1e3 * cpu / result['writes']:.2f}" for name, cpu in used.items())
    print(  # noqa: T201 - the result of the long form
        f"\n{result['writes']:,} writes in {result['seconds']:.0f} s:"
        f" {result['writes'] / result['seconds']:.0f}/s of {LOAD.rate};"
        f" {state['events'] - before['events']:,} events delivered;"
        f" {before['memory'] / 1e6:.0f} MB after the lists, {growth / 1e6:+.0f} MB at the peak;"
        f" fresh {behind:.1f} s after the last write; problems {state['causes']}; left {left};"
        f" ms of CPU time a write: {each}"
    )
    assert (state["wrong"], state["causes"]) == (0, {})
    assert state["objects"] == 2 * LOAD.objects
    assert growth < MAX_GROWTH
    assert left == {"tasks": 0, "sockets": 0}
