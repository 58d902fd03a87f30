"""The README and the examples do what they say."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from aioinformer.testing import ApiServer, Cluster

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def block(containing: str) -> str:
    """The Python block of the README with this text in it."""
    blocks: list[str] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (found,) = [block for block in blocks if containing in block]
    return found


@asynccontextmanager
async def running(
    script: Path, server: ApiServer, tmp_path: Path, *arguments: str
) -> AsyncGenerator[asyncio.StreamReader]:
    """The output of a script that runs against the server until the block ends, by Ctrl-C."""
    environment = os.environ | {
        "KUBECONFIG": str(server.kubeconfig(tmp_path / "config")),
        "PYTHONUNBUFFERED": "1",
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(script),
        *arguments,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(20):
            yield process.stdout
    finally:
        process.send_signal(signal.SIGINT)
        await process.communicate()


def pods(cluster: Cluster) -> None:
    for i in range(3):
        body = {"metadata": {"name": f"web-{i}"}, "spec": {"nodeName": f"node-{i % 2}"}}
        cluster.create("pods", body, namespace="default")


async def test_the_first_screen_of_the_readme_runs_as_it_stands(tmp_path: Path) -> None:
    script = tmp_path / "screen.py"
    script.write_text(block("asyncio.run(main())"))
    async with ApiServer() as server:
        pods(server.cluster)
        async with running(script, server, tmp_path) as output:
            assert await output.readline() == b"cached: 3 on node-1: 1\n"
            start = sorted([await output.readline() for _ in range(3)])
            assert start == [b"stream: added web-%d at the start\n" % i for i in range(3)]
            patch = {"spec": {"nodeName": "node-9"}}
            server.cluster.merge_patch("pods", "web-0", patch, namespace="default")
            told = sorted([await output.readline() for _ in range(2)])
            assert re.fullmatch(rb"handler: web-0 \d+ -> \d+\n", told[0])
            assert told[1] == b"stream: updated web-0 {'nodeName': 'node-9'}\n"
            server.cluster.delete("pods", "web-1", namespace="default")
            assert await output.readline() == b"stream: deleted web-1 deleted\n"


async def test_print_pods_prints_pods(tmp_path: Path) -> None:
    async with ApiServer() as server:
        pods(server.cluster)
        script = ROOT / "examples" / "print_pods.py"
        async with running(script, server, tmp_path, "default") as output:
            start = sorted([await output.readline() for _ in range(3)])
            assert start == [b"= default/web-%d\n" % i for i in range(3)]
            server.cluster.delete("pods", "web-1", namespace="default")
            assert await output.readline() == b"- default/web-1 deleted\n"


@pytest.mark.parametrize("command", ["aioinformer demo", "--group dev", ".venv/bin/pytest"])
def test_the_readme_has_the_two_commands(command: str) -> None:
    assert command in README
