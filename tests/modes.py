"""Run tests of the guarantees in each mode of Python and asyncio.

``python -m tests.modes uvloop dev`` runs two modes, and without arguments all.

Each mode is a run of pytest. ``uvloop`` and ``eager`` choose the event loop, ``debug`` is asyncio's
debug mode in every loop, ``dev`` is Python's development mode with warnings as errors, and
``free-threaded`` is Python without the global interpreter lock. A mode that this Python doesn't
have is named, and is no failure.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["main"]

ROOT = Path(__file__).parent.parent

TESTS = (
    "tests/promises/test_promises.py",
    "tests/promises/test_delivery.py",
    "tests/promises/test_outages.py",
    "tests/promises/test_consistency.py",
    "tests/promises/test_bytes_and_sockets.py",
    "tests/informers/test_informer_thread_reads.py",
    "tests/runtime/informer/test_pump.py",
    "tests/runtime/delivery",
    "tests/controllers/test_lifecycle.py",
    "tests/client/http/test_transport.py",
)
"""Tests of the guarantees, threads that read while the cache changes, delivery, sockets."""

FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


@dataclass(frozen=True, slots=True)
class Mode:
    """A way to run the tests."""

    arguments: Sequence[str] = ()
    """Arguments of pytest."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    missing: str = ""
    """The reason for which this Python can't run the mode; empty if it can."""


MODES = {
    "uvloop": Mode(("-p", "tests.event_loops", "--event-loop", "uvloop")),
    "eager": Mode(
        ("-p", "tests.event_loops", "--event-loop", "eager"),
        missing="" if sys.version_info >= (3, 12) else "tasks are never eager before Python 3.12",
    ),
    "debug": Mode(environment={"PYTHONASYNCIODEBUG": "1"}),
    # Variables, since the processes of pytest-xdist don't take over options of the interpreter.
    "dev": Mode(environment={"PYTHONDEVMODE": "1", "PYTHONWARNINGS": "error"}),
    "free-threaded": Mode(
        environment={"PYTHON_GIL": "0"},
        missing="" if FREE_THREADED else "this Python has a global interpreter lock",
    ),
}


def main(names: Sequence[str]) -> int:
    """Run the tests in the modes of these names, or in all. Return the number of failed modes."""
    if unknown := set(names) - MODES.keys():
        sys.stderr.write(f"unknown modes: {', '.join(sorted(unknown))}; known: {[*MODES]}\n")
        return 2
    return sum(not _run(name) for name in names or MODES)


def _run(name: str) -> bool:
    """Run the tests in one mode, and print the duration. Return True if none failed."""
    mode = MODES[name]
    if mode.missing:
        _print(f"{name}: not run, since {mode.missing}")
        return True
    began = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(os.cpu_count()), *mode.arguments]
    command += ["--timeout", "240"]  # the development mode makes each allocation slow
    done = subprocess.run(
        [*command, *TESTS], cwd=ROOT, env=os.environ | mode.environment, check=False
    )
    result = "passed" if done.returncode == 0 else "failed"
    _print(f"{name}: {result} in {time.monotonic() - began:.0f} s")
    return done.returncode == 0


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
