"""Change modules of the core, run their tests, and print the changes that no test notices.

A module is one below ``_core``, such as ``codec.shape``, or one of the state of a feature, such as
``sharding.state.ranges``. The command prints the percentage of each module and the surviving
changes, and fails below ``MIN_KILLED`` per cent. It works on a copy of the sources.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

__all__ = ["main"]

ROOT = Path(__file__).parents[2]

MIN_KILLED = 80
"""Per cent of the changes that tests must notice. Some changes alter nothing."""

SAMPLE = ("codec.line_splitter", "codec.status_decoder", "listwatch.confirmation")
"""Modules of a run without arguments; small, so that it ends in minutes."""

FINAL_DIGITS = {1: "0123456789", 2: "13579", 5: "16", 10: "1"}
"""The final digits of the numbers of the changes that are made, by the interval. mutmut numbers the
changes of each function from 1, so that every interval includes the first change of a function."""

SETTINGS = """
[tool.mutmut]
source_paths = ["aioinformer"]
only_mutate = {paths}
pytest_add_cli_args_test_selection = {tests}
pytest_add_cli_args = ["-n0", "-p", "no:cacheprovider"]
also_copy = ["tests", "benchmarks", "README.md"]
timeout_multiplier = 5.0
timeout_constant = 2.0
"""

RESULT = re.compile(
    r"^\s*aioinformer\.(?:_core\.)?(?P<module>[\w.]+)\.(?P<name>[^.]+): (?P<result>.+)$"
)
"""A line of ``mutmut results``."""

KILLED = frozenset({"killed", "timeout", "suspicious", "segfault"})
NOT_MADE = "not checked"


def main(arguments: Sequence[str]) -> int:
    """Change the modules, run their tests, and print the results.

    Returns:
        0 if the tests notice at least ``MIN_KILLED`` per cent of the changes of each module.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("modules", nargs="*", default=SAMPLE, metavar="PACKAGE.MODULE")
    parser.add_argument(
        "--every",
        type=int,
        choices=FINAL_DIGITS,
        default=1,
        help="make every second, fifth or tenth change of each function only",
    )
    parser.add_argument(
        "--package",
        action="store_true",
        help="run all tests of the module's package, instead of the module's own",
    )
    options = parser.parse_args(arguments)
    for module in options.modules:
        if not _path(module).is_file():
            parser.error(f"there is no module {_path(module).relative_to(ROOT)}")
    with TemporaryDirectory() as folder:
        results = [
            _run(module, Path(folder) / module, _find_tests(module, options.package), options.every)
            for module in options.modules
        ]
        return 0 if all(results) else 1


def _path(module: str) -> Path:
    core = () if ".state." in module else ("_core",)
    return ROOT.joinpath("aioinformer", *core, *module.split(".")).with_suffix(".py")


def _find_tests(module: str, whole_package: bool) -> list[str]:
    """Return the test files of a module; the folder of its package if it has none of its own."""
    package, _, name = module.rpartition(".")
    core = () if ".state." in module else ("core",)
    folder = ROOT.joinpath("tests", *core, *package.split("."))
    own = [*folder.glob(f"test_{name}.py"), *folder.glob(f"test_{name}_*.py")]
    found = [folder] if whole_package or not own else sorted(own)
    return [str(each.relative_to(ROOT)) for each in found]


def _run(module: str, folder: Path, tests: Sequence[str], every: int) -> bool:
    """Test one module in a copy of the sources. Return True if enough of its changes are killed."""
    began = time.monotonic()
    _copy_sources(module, folder, tests)
    names = [] if every == 1 else [f"*__mutmut_*[{FINAL_DIGITS[every]}]"]
    run = _mutmut(folder, "run", *names)
    listing = _mutmut(folder, "results", "--all", "true").stdout
    matches = [match for line in listing.splitlines() if (match := RESULT.match(line))]
    found = [match for match in matches if match["result"] != NOT_MADE]
    if not found or (every == 1 and len(found) < len(matches)):
        sys.stderr.write(f"{module}: mutmut failed\n{run.stdout[-3000:]}\n{run.stderr[-3000:]}\n")
        return False
    results = Counter(match["result"] for match in found)
    percent = 100 * sum(results[each] for each in KILLED) / len(found)
    sample = "" if every == 1 else f" (a sample of {len(matches)})"
    lines = [
        f"{module}: {percent:.1f} % of {len(found)} changes{sample} are noticed,"
        f" {results['timeout']} of them by a timeout, {time.monotonic() - began:.0f} s",
        *_describe_survivors(found, folder),
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
    return percent >= MIN_KILLED


def _mutmut(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mutmut", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def _describe_survivors(found: Iterable[re.Match[str]], folder: Path) -> Iterable[str]:
    """Yield the changes that no test noticed."""
    for match in found:
        if match["result"] not in KILLED:
            change = _read_change(match[0].strip().split(": ")[0], folder)
            yield f"  {match['result']}: {match['name']}: {change}"


def _copy_sources(module: str, folder: Path, tests: Sequence[str]) -> None:
    """Copy the package, the tests and the workloads that they use, with the settings of mutmut."""
    ignored = shutil.ignore_patterns("__pycache__", ".hypothesis")
    for name in ("aioinformer", "tests", "benchmarks"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.copy(ROOT / "README.md", folder)
    path = str(_path(module).relative_to(ROOT))
    settings = SETTINGS.format(paths=[path], tests=list(tests)).replace("'", '"')
    (folder / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text() + settings)


def _read_change(mutant: str, folder: Path) -> str:
    """Return the lines that a mutant removes and adds."""
    shown = _mutmut(folder, "show", mutant).stdout
    lines = [line for line in shown.splitlines() if re.match(r"[+-](?![+-])", line)]
    return " ".join(f"{line[0]} {line[1:].strip()}" for line in lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
