"""The command that measures all contestants and prints one table.

python -m benchmarks [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import msgspec

from benchmarks.processes import MeasurementFailed
from benchmarks.run import FULL, QUICK, run
from benchmarks.table import table

__all__ = ["main"]


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Compare the library with its peers on the same bytes.",
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, less than a minute")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers to FILE too")
    arguments = parser.parse_args()
    start = time.monotonic()
    try:
        results = run(QUICK if arguments.quick else FULL, _progress)
    except MeasurementFailed as error:
        sys.exit(str(error))
    _progress("")
    print(table(results))
    print(f"took {time.monotonic() - start:.0f} s")
    if arguments.json is not None:
        arguments.json.write_bytes(msgspec.json.format(msgspec.json.encode(results)) + b"\n")


def _progress(text: str) -> None:
    """Overwrite the line of progress on a terminal; print nothing to a file."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
