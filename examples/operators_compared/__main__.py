"""``python -m examples.operators_compared [PROGRAM ...]``: each program through the life of a Site.

Needs kopf for ``kopf``, Go for ``controller-runtime`` and Rust for ``kube-rs``.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from examples.operators_compared.life import live
from examples.operators_compared.programs import PROGRAMS, BuildFailed, command_of

EXTRA_SITES = 100
"""Sites for the second measurement of memory."""


async def main(names: list[str]) -> None:
    """Build and run the programs one after the other, and print the results of each."""
    for name in names:
        with tempfile.TemporaryDirectory(prefix="sites-") as folder:
            try:
                command = await command_of(name, Path(folder))
            except BuildFailed as error:
                print(f"{name}: {error}")
                continue
            report = await live(command, Path(folder), extra_sites=EXTRA_SITES)
        print(name)
        for step, seconds in report.seconds.items():
            print(f"  {seconds:6.2f} s  {step}")
        for number, size in report.memory.items():
            print(f"  {size / 1e6:6.0f} MB with {number} Site{'s' * (number != 1)}")
        print(f"  {report.processor:6.1f} s of CPU")
        print(f"  exit code {report.exit_code}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:] or [*PROGRAMS]))
