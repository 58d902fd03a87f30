"""The command that measures all contestants.

    python -m benchmarks [--quick | --scale | --readme] [--json FILE]

A full run prints a table and writes ``benchmarks/RESULTS.md`` with its plots; ``--scale`` measures
large caches and many informers, and adds a section to that file. ``--readme`` measures nothing: it
writes the published numbers into the README. A quick run writes nothing.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import msgspec

from benchmarks.load.processes import MeasurementFailed
from benchmarks.measures.scale import FULL_SCALE, TINY_SCALE, Scale, scale, scale_rows
from benchmarks.report.page import Published, readme, write
from benchmarks.report.table import table
from benchmarks.run import FULL, QUICK, Results, run

README = Path(__file__).parent.parent / "README.md"

__all__ = ["main"]


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Compare the library with its peers on the same bytes.",
    )
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--quick", action="store_true", help="small sizes, about a minute")
    kind.add_argument("--scale", action="store_true", help="large caches, many informers")
    kind.add_argument("--readme", action="store_true", help="write the numbers into the README")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers to FILE too")
    arguments = parser.parse_args()
    start = time.monotonic()
    try:
        if arguments.readme:
            _readme()
            return
        found = _scale() if arguments.scale else _run(quick=arguments.quick)
    except (MeasurementFailed, LookupError) as error:
        sys.exit(str(error))
    print(f"took {time.monotonic() - start:.0f} s")
    if arguments.json is not None:
        arguments.json.write_bytes(msgspec.json.format(msgspec.json.encode(found)) + b"\n")


def _run(*, quick: bool) -> Results:
    """Measure, print the table, and publish the results of a full run."""
    found = run(QUICK if quick else FULL, _progress)
    tiny = scale(TINY_SCALE, _progress) if quick else None
    _progress("")
    print(table(found))
    if tiny is not None:
        print("\n".join(scale_rows(tiny)))
    else:
        before = Published.load()
        write(Published(found, before.scale if before else None))
    return found


def _scale() -> Scale:
    """Measure, print the section, and add it to the published results."""
    before = _published()
    found = scale(FULL_SCALE, _progress)
    _progress("")
    print("\n".join(scale_rows(found)))
    write(Published(before.run, found))
    return found


def _readme() -> None:
    README.write_text(readme(README.read_text(), _published().run))


def _published() -> Published:
    published = Published.load()
    if published is None:
        raise LookupError("there are no published results: run python -m benchmarks first")
    return published


def _progress(text: str) -> None:
    """Overwrite the line of progress on a terminal; print nothing to a file."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
