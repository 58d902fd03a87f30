"""The time to import the library, compared with the time to import aiohttp.

The measurements alternate in new interpreters. The library must import neither aiohttp nor
kubernetes_asyncio before a connection is opened, because the ``--help`` of a command-line tool
should not wait for them.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from statistics import median

from benchmarks.processes import output

__all__ = ["ImportTimes"]

PROGRAM = """
import sys, time
start = time.perf_counter()
{statement}
took = time.perf_counter() - start
print(took, *sorted({{"aiohttp", "kubernetes_asyncio"}} & sys.modules.keys()))
"""


# Importing the package alone loads almost nothing; the factory loads everything of an informer.
STATEMENTS = {
    "aioinformer": "from aioinformer import SharedInformerFactory",
    "aiohttp": "import aiohttp",
}


@dataclass(frozen=True, slots=True)
class ImportTimes:
    """The medians in seconds."""

    aioinformer: float
    aiohttp: float
    network: bool
    """True if the import of the library loaded an HTTP library."""

    @classmethod
    def measure(cls, repetitions: int) -> ImportTimes:
        """Import each module ``repetitions`` times."""
        times: dict[str, list[float]] = {name: [] for name in STATEMENTS}
        loaded: set[str] = set()
        for _ in range(repetitions):
            for name, results in times.items():
                took, *others = _imported(name)
                results.append(float(took))
                if name == "aioinformer":
                    loaded.update(others)
        return cls(median(times["aioinformer"]), median(times["aiohttp"]), bool(loaded))


def _imported(name: str) -> list[str]:
    statement = STATEMENTS[name]
    command = [sys.executable, "-c", PROGRAM.format(statement=statement)]
    return output(command, statement).decode().split()
