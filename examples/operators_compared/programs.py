"""The commands that build and run the operators for Sites, and one running program.

Go has a cache of what it builds; what Rust builds is kept in the user's cache too, so that only a
first build takes minutes. Both download the modules and crates that they lack.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PROGRAMS", "BuildFailed", "RunningProgram", "command_of", "running"]

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
PROGRAMS = ("aioinformer", "kopf", "controller-runtime", "kube-rs")
"""The programs that run as processes of their own."""

ENVIRONMENT: Mapping[str, str] = {"METRICS_ADDRESS": "0", "PROBE_ADDRESS": "0"}
"""No ports for the program in Go, so that several of them can run at once."""


class BuildFailed(Exception):
    """A tool is missing, or could not build a program. The message has its output."""


async def command_of(program: str, folder: Path) -> list[str]:
    """Build a program if it needs that, and return the command that runs it.

    Args:
        program: one of ``PROGRAMS``.
        folder: where the binary of Go and the copy of the kopf program are put.

    Raises:
        BuildFailed: the program could not be built.
    """
    match program:
        case "aioinformer":
            return [sys.executable, "-m", "examples.operator_app"]
        case "kopf":
            return [sys.executable, "-m", "kopf", "run", "-A", str(_kopf_program(folder))]
        case "controller-runtime":
            binary = folder / "sites-go"
            options = ["-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", str(binary)]
            await _build("go", ["build", *options, "."], FOLDER / "controller_runtime")
            return [str(binary)]
        case _:
            base = os.environ.get("XDG_CACHE_HOME")
            target = (Path(base) if base else Path.home() / ".cache") / "aioinformer" / "kube-rs"
            arguments = ["build", "--release", "--locked", "--target-dir", str(target)]
            await _build("cargo", arguments, FOLDER / "kube_rs")
            return [str(target / "release" / "sites")]


def _kopf_program(folder: Path) -> Path:
    """Copy the program with a free port for its metrics, since another program may have 8080."""
    text = (FOLDER / "with_kopf.py").read_text()
    program = folder / "with_kopf.py"
    program.write_text(text.replace("start_http_server(8080)", "start_http_server(0)"))
    shutil.copy(FOLDER / "delivery_network.py", folder)
    return program


async def _build(tool: str, arguments: list[str], folder: Path) -> None:
    found = shutil.which(tool)
    if found is None:
        raise BuildFailed(f"{tool} is not on PATH")
    process = await asyncio.create_subprocess_exec(
        *(found, *arguments),
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    if process.returncode:
        raise BuildFailed(f"{tool} {arguments[0]} failed:\n{output.decode(errors='replace')}")


@dataclass(frozen=True, slots=True)
class RunningProgram:
    """A program that runs, and what it has printed."""

    process: asyncio.subprocess.Process
    output: Path

    @property
    def text(self) -> str:
        """The output so far."""
        return self.output.read_text(errors="replace")

    @property
    def memory(self) -> int:
        """The resident memory of the process in bytes (Linux)."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (line,) = [each for each in status.splitlines() if each.startswith("VmRSS:")]
        return int(line.split()[1]) * 1024

    @property
    def processor(self) -> float:
        """The seconds of CPU of the process so far (Linux)."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    async def stop(self) -> int:
        """Send SIGTERM; return the exit code."""
        self.process.terminate()
        return await self.process.wait()


@asynccontextmanager
async def running(
    command: list[str], kubeconfig: Path, folder: Path
) -> AsyncGenerator[RunningProgram]:
    """Run a command until the end of the block."""
    output = folder / "output"
    environment = os.environ | ENVIRONMENT | {"KUBECONFIG": str(kubeconfig), "RUST_LOG": "warn"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(folder)])
    with output.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *command, env=environment, stdout=log, stderr=asyncio.subprocess.STDOUT
        )
    try:
        yield RunningProgram(process, output)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
