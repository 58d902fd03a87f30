"""Measure the time of importing the library, beside importing aiohttp.

New interpreters import the two in turns. The library must load neither aiohttp nor
kubernetes_asyncio before a program opens a connection: a command-line tool's ``--help`` should not
wait for them.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from statistics import median

from benchmarks.load.processes import output

__all__ = ["ImportTimes"]

PROGRAM = """
import sys, time
start = time.perf_counter()
{statement}
took = time.perf_counter() - start
print(took, *sorted({{"aiohttp", "kubernetes_asyncio"}} & sys.modules.keys()))
"""


# Importing the package alone loads almost nothing; the factory loads all modules of an informer.
STATEMENTS = {
    "aioinformer": "from aioinformer import SharedInformerFactory",
    "aiohttp": "import aiohttp",
}


@dataclass(frozen=True, slots=True)
class ImportTimes:
    """Medians, in seconds."""

    aioinformer: float
    aiohttp: float
    network: bool
    """True if importing the library loaded an HTTP library."""

    @classmethod
    def measure(cls, repetitions: int) -> ImportTimes:
        """Import each of the two ``repetitions`` times."""
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
