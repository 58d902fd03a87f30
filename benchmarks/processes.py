"""Processes for the load server and for the contestants.

The output of a process is its result. If a process fails, the error contains its output.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

__all__ = ["MeasurementFailed", "output", "serving"]

ROOT = Path(__file__).parent.parent
LIMIT = 300
"""Maximum seconds of one process. The slowest takes about 30, the build of client-go up to 120."""
NOTHING: Mapping[str, str] = MappingProxyType({})


class MeasurementFailed(Exception):
    """A process failed, or did not receive all events. The message names it."""


def output(
    command: Sequence[str],
    name: str,
    *,
    environment: Mapping[str, str] = NOTHING,
    folder: Path = ROOT,
) -> bytes:
    """Run a command and return its output.

    Args:
        command: a program and its arguments.
        name: the name of the command in an error.
        environment: variables to add.
        folder: the working directory.

    Raises:
        MeasurementFailed: the command ended with another status than 0.
    """
    done = subprocess.run(  # noqa: S603 - the callers' own commands
        command,
        cwd=folder,
        capture_output=True,
        timeout=LIMIT,
        env={**os.environ, **environment},
        check=False,
    )
    if done.returncode != 0:
        raise MeasurementFailed(f"{name} failed:\n{done.stderr.decode(errors='replace')}")
    return done.stdout


@contextmanager
def serving(folder: Path, *options: str, program: str = "benchmarks.load") -> Generator[str]:
    """Run a load server within the context, and yield its URL."""
    command = [sys.executable, "-m", program, str(folder), *options]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:  # noqa: S603
        try:
            if process.stdout is None or not (line := process.stdout.readline()):
                raise MeasurementFailed("the load server did not start")
            yield f"http://127.0.0.1:{int(line)}"
        finally:
            process.kill()
