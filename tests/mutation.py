"""Mutation tests of modules of the core: ``python -m tests.mutation codec.line_splitter ...``.

mutmut changes one expression at a time and runs the tests of the module's package. A change that no
test notices survives: a test is missing, or the change is equivalent. Equivalent changes stand in
``EQUIVALENT`` with the reason. The command prints the percentage of each module and the surviving
changes, and fails below ``MIN_KILLED`` per cent. It works on a copy of the sources.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

__all__ = ["main"]

ROOT = Path(__file__).parent.parent

MIN_KILLED = 90
"""Per cent of the changes that tests must notice, equivalent changes left out."""

SAMPLE = ("codec.line_splitter", "codec.status_decoder")
"""Modules of a run without arguments; small, so that it ends in minutes."""

EQUIVALENT: Mapping[tuple[str, str], str] = {
    (
        "codec.line_splitter",
        "- return [chunk] if newline > 1 or chunk not in _EMPTY_LINES else []"
        " + return [chunk] if newline > 2 or chunk not in _EMPTY_LINES else []",
    ): "the comparison only saves the second one for lines that are not empty",
    (
        "listwatch.backoff",
        "- bare = policy.initial * policy.factor ** min(self.failures - 1, 64)"
        " + bare = policy.initial * policy.factor ** min(self.failures - 1, 65)",
    ): "the maximum is reached long before",
    (
        "listwatch.backoff",
        "- before = 0 if self.is_first(now) else self.failures"
        " + before = 1 if self.is_first(now) else self.failures",
    ): "the greater of this number and 1 is used",
    (
        "listwatch.backoff",
        "- self._skipped = self._answered = self._woken = False"
        " + self._skipped = self._answered = self._woken = None",
    ): "both are false",
    (
        "listwatch.availability",
        "- self._last_answer_at = 0.0 + self._last_answer_at = None",
    ): "the number is read after an answer only",
    (
        "listwatch.availability",
        "- self._last_answer_at = 0.0 + self._last_answer_at = 1.0",
    ): "the number is read after an answer only",
    (
        "listwatch.availability",
        "- if found != requested and found.version != requested.version:"
        " + if found != requested or found.version != requested.version:",
    ): "the two differ in the version only, since discovery is read for this resource",
} | {
    ("controllers.delay_queue", change): reason
    for reason, changes in {
        "the list is empty in both cases": (
            "- self._old_heap: _Heap[K] = [] + self._old_heap: _Heap[K] = None",
        ),
        "the count decides only when a new heap is begun, which changes no result": (
            "- self._stale = 0 + self._stale = 1",
            "- self._stale += 1 + self._stale += 2",
            "- self._stale -= 1 + self._stale = 1",
            "- self._stale -= 1 + self._stale += 1",
            "- self._old_heap, self._heap, self._stale = [], [], 0"
            " + self._old_heap, self._heap, self._stale = [], [], 1",
            "- elif self._stale > MIN_STALE and self._stale > len(self._by_key):"
            " + elif self._stale > MIN_STALE or self._stale > len(self._by_key):",
            "- elif self._stale > MIN_STALE and self._stale > len(self._by_key):"
            " + elif self._stale >= MIN_STALE and self._stale > len(self._by_key):",
            "- elif self._stale > MIN_STALE and self._stale > len(self._by_key):"
            " + elif self._stale > MIN_STALE and self._stale >= len(self._by_key):",
        ),
        "the numbers only have to grow": (
            "- self._number = 0 + self._number = 1",
            "- self._number += 1 + self._number += 2",
        ),
        "an equal priority is assigned again": (
            "- if priority > present.priority: + if priority >= present.priority:",
        ),
        "two entries are never equal, since their numbers differ": (
            "- return old if old and (not heap or old[0] < heap[0]) else heap"
            " + return old if old and (not heap or old[0] <= heap[0]) else heap",
        ),
    }.items()
    for change in changes
}
"""Changes that no test can notice, as ``(module, changed line)``, with the reason."""

SETTINGS = """
[tool.mutmut]
source_paths = ["aioinformer"]
only_mutate = {paths}
pytest_add_cli_args_test_selection = {tests}
pytest_add_cli_args = ["-n0", "-p", "no:cacheprovider"]
also_copy = ["tests", "README.md"]
"""

RESULT = re.compile(r"^\s*aioinformer\._core\.(?P<module>[\w.]+)\.(?P<name>[^.]+): (?P<result>.+)$")
"""A line of ``mutmut results``."""

CAST = re.compile(r'cast\((?:None|"[^"]*"), ')
"""The type of a ``cast``, which nothing reads at run time: changes of it are equivalent."""

KILLED = frozenset({"killed", "timeout", "suspicious", "segfault"})


def main(modules: Sequence[str]) -> int:
    """Change the modules, run their tests, and print the results.

    Returns:
        0 if the tests notice at least ``MIN_KILLED`` per cent of the changes of each module.
    """
    modules = modules or SAMPLE
    for module in modules:
        if not _path(module).is_file():
            sys.stderr.write(f"there is no module {_path(module).relative_to(ROOT)}\n")
            return 2
    with TemporaryDirectory() as folder:
        results = [_run(module, Path(folder) / module) for module in modules]
        return 0 if all(results) else 1


def _path(module: str) -> Path:
    return ROOT.joinpath("aioinformer", "_core", *module.split(".")).with_suffix(".py")


def _run(module: str, folder: Path) -> bool:
    """Test one module in a copy of the sources. Return True if enough of its changes are killed."""
    began = time.monotonic()
    _copy_sources(module, folder)
    command = [sys.executable, "-m", "mutmut"]
    run = subprocess.run([*command, "run"], cwd=folder, capture_output=True, text=True, check=False)
    listing = subprocess.run(
        [*command, "results", "--all", "true"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    found = [match for line in listing.splitlines() if (match := RESULT.match(line))]
    results = Counter(match["result"] for match in found)
    if not found or results["not checked"]:
        sys.stderr.write(f"{module}: mutmut failed\n{run.stdout[-3000:]}\n{run.stderr[-3000:]}\n")
        return False
    survivors = list[str]()
    for match in found:
        if match["result"] not in KILLED:
            change = _read_change(match[0].strip().split(": ")[0], folder)
            if not _is_equivalent(module, change):
                survivors.append(f"  {match['result']}: {match['name']}: {change}")
    killed = sum(results[each] for each in KILLED)
    counted = killed + len(survivors)
    percent = 100 * killed / counted
    equivalent = len(found) - counted
    lines = [
        f"{module}: {percent:.1f} % of {counted} changes are noticed,"
        f" {equivalent} equivalent, {time.monotonic() - began:.0f} s",
        *survivors,
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
    return percent >= MIN_KILLED


def _is_equivalent(module: str, change: str) -> bool:
    """Return True if a change is a known one that alters nothing, or changes the type of a cast."""
    removed, _, added = CAST.sub("cast(", change).removeprefix("- ").partition(" + ")
    return removed == added or (module, change) in EQUIVALENT


def _copy_sources(module: str, folder: Path) -> None:
    """Copy the package and the tests of the core, with the settings of mutmut for one module."""
    ignored = shutil.ignore_patterns("__pycache__", ".hypothesis")
    for name in ("aioinformer", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.copy(ROOT / "README.md", folder)
    package, _, name = module.partition(".")
    settings = SETTINGS.format(
        paths=[f"aioinformer/_core/{package}/{name}.py"], tests=[f"tests/core/{package}"]
    )
    text = (ROOT / "pyproject.toml").read_text()
    (folder / "pyproject.toml").write_text(text + settings.replace("'", '"'))


def _read_change(mutant: str, folder: Path) -> str:
    """Return the lines that a mutant removes and adds."""
    shown = subprocess.run(
        [sys.executable, "-m", "mutmut", "show", mutant],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    lines = [line for line in shown.splitlines() if re.match(r"[+-](?![+-])", line)]
    return " ".join(f"{line[0]} {line[1:].strip()}" for line in lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
