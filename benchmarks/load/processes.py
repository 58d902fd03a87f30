"""Subprocesses, for the load server and for everything that is measured.

The result of a process is its output. If a process fails, the error contains its stderr.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType

__all__ = [
    "LOAD",
    "PACED",
    "MeasurementFailed",
    "MemorySamples",
    "machine_name",
    "output",
    "serving",
]

ROOT = Path(__file__).parents[2]
LOAD = "benchmarks.load.server"
"""The module that sends events as fast as the kernel copies them."""
PACED = "benchmarks.load.paced_server"
"""The module that sends a number of events a second."""
LIMIT = 300
"""Seconds for one process, unless the caller chooses another limit. The slowest takes about 30."""
SAMPLED_EVERY = 0.02
"""Seconds between two readings of a process's memory."""
PAGE = os.sysconf("SC_PAGE_SIZE")
NOTHING: Mapping[str, str] = MappingProxyType({})


class MeasurementFailed(Exception):
    """Raised if a contestant failed or did not receive every event; the message names it."""


class MemorySamples:
    """The resident memory of a process over time."""

    def __init__(self) -> None:
        """Start empty."""
        self.points: list[tuple[float, int]] = []
        """Seconds since the start of the process, and resident bytes."""

    def record(self, process: int, ended: threading.Event) -> None:
        """Read the memory of the process, again and again until it has ended."""
        start = time.monotonic()
        statm = Path(f"/proc/{process}/statm")
        with suppress(OSError):
            while not ended.wait(SAMPLED_EVERY):
                pages = int(statm.read_text().split()[1])
                self.points.append((time.monotonic() - start, pages * PAGE))


def machine_name() -> str:
    """Return the number of cores, the system and the Python version."""
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores, {platform.system()}, Python {platform.python_version()}"


def output(
    command: Sequence[str],
    name: str,
    *,
    environment: Mapping[str, str] = NOTHING,
    folder: Path = ROOT,
    limit: float = LIMIT,
    samples: MemorySamples | None = None,
) -> bytes:
    """Run a command and return its output.

    Args:
        command: a program and its arguments.
        name: the name of the command in an error.
        environment: variables to add to this process's own.
        folder: the working directory.
        limit: seconds after which the process is killed.
        samples: records the memory of the process while it runs.

    Raises:
        MeasurementFailed: the exit status isn't 0, or the limit has passed.
    """
    with subprocess.Popen(  # noqa: S603 - the callers' own commands
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_environment(environment),
    ) as process:
        ended = threading.Event()
        if samples is not None:
            threading.Thread(target=samples.record, args=(process.pid, ended)).start()
        try:
            printed, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired as error:
            raise MeasurementFailed(f"{name} has not ended after {limit:.0f} s") from error
        finally:
            ended.set()
            process.kill()
    if process.returncode != 0:
        raise MeasurementFailed(f"{name} failed:\n{errors.decode(errors='replace')}")
    return printed


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a process, which may store its bytecode.

    Otherwise each of the many processes would compile all modules again.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **more}


@contextmanager
def serving(folder: Path, *options: str, program: str = LOAD) -> Generator[str]:
    """Start a load server, yield its URL, and kill the server at the end of the context."""
    command = [sys.executable, "-m", program, str(folder), *options]
    with subprocess.Popen(  # noqa: S603 - this project's own programs
        command, cwd=ROOT, stdout=subprocess.PIPE, env=_environment(NOTHING)
    ) as process:
        try:
            if process.stdout is None or not (line := process.stdout.readline()):
                raise MeasurementFailed("the load server did not start")
            yield f"http://127.0.0.1:{int(line)}"
        finally:
            process.kill()
