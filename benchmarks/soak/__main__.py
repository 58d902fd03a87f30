"""The command of the soak test.

python -m benchmarks.soak [--minutes 60] [--rate 300] [--objects 2000] [--every 5] [--folder FOLDER]

It writes the samples, the program's log and a chart to the folder, prints a table, and fails if a
quantity grows, a cache differs from the server at the end, or a task or socket is left.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.load.processes import ROOT, MeasurementFailed
from benchmarks.soak.chart import draw
from benchmarks.soak.report import find_failures, fit_all, make_table
from benchmarks.soak.samples import read_samples

__all__ = ["Arguments", "run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The size of the test."""

    minutes: float = 60.0
    rate: float = 300.0
    """Writes a second."""
    objects: int = 2_000
    """Pods of the server."""
    every: float = 5.0
    """Seconds between two samples."""
    folder: Path = Path("soak")
    """The folder of the samples, the log and the chart."""


def run(arguments: Arguments) -> list[str]:
    """Run both processes, write the samples and the chart, and print the table.

    Returns:
        What is wrong, in sentences.

    Raises:
        MeasurementFailed: one of the processes failed.
    """
    arguments.folder.mkdir(parents=True, exist_ok=True)
    file, log = (arguments.folder.absolute() / name for name in ("samples.jsonl", "program.log"))
    with _serving(arguments) as server:
        options = {
            "server": server,
            "seconds": arguments.minutes * 60,
            "every": arguments.every,
            "file": file,
        }
        command = [sys.executable, "-m", "benchmarks.soak.program"]
        command += [f"--{name}={value}" for name, value in options.items()]
        with log.open("wb") as output:
            done = subprocess.run(command, cwd=ROOT, stderr=output, check=False)  # noqa: S603
    if done.returncode:
        raise MeasurementFailed(f"the program failed; its log is {log}")
    samples, ending = read_samples(file)
    trends = fit_all(samples)
    (arguments.folder / "soak.svg").write_text(draw(samples, trends))
    print(make_table(samples, ending, trends))
    return find_failures(ending, trends)


@contextmanager
def _serving(arguments: Arguments) -> Generator[str]:
    """Start the server, yield its URL, and end it by closing its standard input."""
    command = [sys.executable, "-m", "benchmarks.soak.server"]
    command += [f"--objects={arguments.objects}", f"--rate={arguments.rate}"]
    with subprocess.Popen(  # noqa: S603 - our own program
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            if process.stdout is None or not (line := process.stdout.readline()):
                raise MeasurementFailed("the server did not start")
            yield line.decode().strip()
        finally:
            process.kill()


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.soak",
        description="Run informers for an hour, and show that nothing grows.",
    )
    defaults = Arguments()
    for name in ("minutes", "rate", "every"):
        parser.add_argument(f"--{name}", type=float, default=getattr(defaults, name))
    parser.add_argument("--objects", type=int, default=defaults.objects)
    parser.add_argument("--folder", type=Path, default=defaults.folder)
    try:
        failures = run(Arguments(**vars(parser.parse_args())))
    except MeasurementFailed as error:
        sys.exit(str(error))
    sys.exit("\n".join(failures) or 0)


if __name__ == "__main__":
    main()
