"""Subprocesses, for the load server and for everything that is measured.

The result of a process is its output. If a process fails, the error contains its stderr.
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
"""Seconds for one process. The slowest takes about 30, and building client-go a minute or two."""
NOTHING: Mapping[str, str] = MappingProxyType({})


class MeasurementFailed(Exception):
    """Raised if a contestant failed or did not receive every event; the message names it."""


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
        environment: variables to add to this process's own.
        folder: the working directory.

    Raises:
        MeasurementFailed: the exit status isn't 0.
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
    """Start a load server, yield its URL, and kill the server at the end of the context."""
    command = [sys.executable, "-m", program, str(folder), *options]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:  # noqa: S603
        try:
            if process.stdout is None or not (line := process.stdout.readline()):
                raise MeasurementFailed("the load server did not start")
            yield f"http://127.0.0.1:{int(line)}"
        finally:
            process.kill()
