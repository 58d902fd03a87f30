"""Delete features, and run everything else: ``python -m tests.deletion [FEATURE ...]``.

In a copy of the project, the folder of a feature is deleted with its tests, and with what the tree
declares to stand on it. Every other module must be imported, and pass its tests. The heart imports
no feature (an import contract), so it is tested once, without all of them; then each feature is
deleted alone, and the tests of all others run.

A test module outside of a feature's folder is a test of that feature if it names something of it:
a module, a public name, or a keyword.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

import aioinformer

ROOT = Path(__file__).parent.parent

STANDS_ON = {
    "cachefile": (),
    "controllers": (),
    "eventrecorder": (),
    "leaderelection": (),
    "namespaces": (),
    "operator": ("controllers", "eventrecorder", "leaderelection"),
    "shardgroup": ("leaderelection", "sharding"),
    "sharding": (),
    "verification": (),
}
"""The features, and for each one the features without which it can't be."""

PARTS = {
    "aioinformer/_cli/shards": ("shardgroup",),
    "aioinformer/testing/operators.py": ("operator",),
}
"""Modules of other packages that stand on a feature."""

KEYWORDS = {
    "cachefile": r"\bcache=|\bdurable=|CacheFile",
    "namespaces": r"\bnamespaces=|\badd_namespace\b|\bScope\(",
    "operator": r"\brun_operator\b|\brunning_operator\b",
    "sharding": r"\bshard=",
    "shardgroup": r"\bshards=",
    "verification": r"\.verify\(|\bverify_informer\b",
}
"""What a test module writes that uses a feature without a name of it."""

WHOLE = (
    "benchmarks",
    "conformance",
    "examples",
    "mutation",
    "simulation",
    "typing",
    "apiserver",
    "browser",
    "clients",
    "fuzzing",
)
"""Folders of tests of the whole project, of its pages, or with a mark of their own."""


def closure(features: Collection[str]) -> list[str]:
    """Return features, and those that stand on them."""
    found = set(features)
    while more := {each for each, base in STANDS_ON.items() if found & set(base)} - found:
        found |= more
    return sorted(found)


def copy_project(target: Path) -> None:
    """Copy the files of the project, as they are now."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.splitlines():
        if (source := ROOT / name).is_file() and name.startswith(("aioinformer/", "tests/", "pyp")):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target / name)


def delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imported_names(path: Path) -> Iterator[str]:
    """Yield the modules that a test module names, those behind public names included."""
    for node in ast.walk(tree_of(path)):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield module
                yield from (f"{module}.{each.name}" for each in names)
                if module == "aioinformer":
                    yield from (module_of(each.name) for each in names)
            case ast.Attribute(value=ast.Name(id="aioinformer"), attr=name):
                yield module_of(name)
            case _:
                pass


def module_of(name: str) -> str:
    found: dict[str, str] = vars(aioinformer)["_MODULE_OF"]
    return found.get(name, "aioinformer")


def module_exists(root: Path, name: str) -> bool:
    """Return True if a name of the copy is a module, or may be one of a module's own names."""
    parts = name.split(".")
    if parts[0] not in ("aioinformer", "tests"):
        return True
    for end in range(1, len(parts) + 1):
        path = root.joinpath(*parts[:end])
        if not path.is_dir():
            return path.with_suffix(".py").is_file() or (
                (path.parent / "__init__.py").is_file() and end == len(parts)
            )
    return True


def delete_tests(root: Path, gone: Collection[str]) -> int:
    """Delete the test modules that use what is gone, and those that import them; count them."""
    words = [re.compile(KEYWORDS[each]) for each in gone if each in KEYWORDS]
    left = sorted((root / "tests").rglob("*.py"))
    count = 0
    while found := [path for path in left if uses_deleted(root, path, words)]:
        for path in found:
            path.unlink()
        left = [path for path in left if path not in found]
        count += len(found)
    return count


def uses_deleted(root: Path, path: Path, words: Collection[re.Pattern[str]]) -> bool:
    if any(word.search(path.read_text()) for word in words):
        return True
    return not all(module_exists(root, name) for name in imported_names(path))


IMPORT_ALL = """
import pkgutil, importlib, aioinformer
for each in pkgutil.walk_packages(aioinformer.__path__, "aioinformer."):
    importlib.import_module(each.name)
"""


def run(features: Collection[str], folders: Collection[str]) -> None:
    """Delete features in a copy, import the rest, and run the tests of these folders."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        copy_project(root)
        for each in features:
            delete(root / "aioinformer" / each)
            delete(root / "tests" / each)
        for part, base in PARTS.items():
            if set(base) & set(features):
                delete(root / part)
        count = delete_tests(root, features)
        environment = os.environ | {"PYTHONPATH": str(root)}
        python = [sys.executable, "-P"]
        subprocess.run([*python, "-c", IMPORT_ALL], cwd=root, env=environment, check=True)
        paths = [
            f"tests/{each}" for each in folders if any((root / "tests" / each).rglob("test_*.py"))
        ]
        done = subprocess.run(
            [*python, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *paths],
            cwd=root,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        report = done.stdout.strip().splitlines()
        if done.returncode:
            print("\n".join(report[-60:]), done.stderr)
            raise SystemExit(f"without {', '.join(features)}: tests fail")
        seconds = time.monotonic() - began
        gone = ", ".join(features)
        print(
            f"without {gone}: {report[-1]}; {count} other test modules; {seconds:.0f} s", flush=True
        )


def main(chosen: Collection[str]) -> None:
    """Delete all features at once, and then each one; or those of ``chosen`` alone."""
    folders = sorted(
        each.name for each in (ROOT / "tests").iterdir() if (each / "__init__.py").exists()
    )
    if not chosen:
        run(sorted(STANDS_ON), [each for each in folders if each not in (*STANDS_ON, *WHOLE)])
    for feature in chosen or STANDS_ON:
        gone = closure([feature])
        run(gone, [*(each for each in STANDS_ON if each not in gone), "informers"])


if __name__ == "__main__":
    main(sys.argv[1:])
