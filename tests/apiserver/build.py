"""Builds the API server of this folder, once per state of its sources, and other
programs with the same modules.

It exists because a binary of this size belongs neither into the repository nor
into every test run: it is kept in the user's cache, under the digest of the
sources, and built again when they change.  Starting it is `process.py`'s part.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

SOURCE = Path(__file__).parent


class BuildUnavailable(Exception):
    """There is no Go here; the message is fit to be shown as a reason to skip."""


class BuildFailed(Exception):
    """Go could not build the server; the message is its output."""


def build() -> Path:
    """Path of the server's binary, built on first use of these sources."""
    return _build_cached(SOURCE, "apiserver")


def build_program(source: str, folder: Path) -> Path:
    """Path of the binary of a program in one file, which may import what the server does."""
    for modules in ("go.mod", "go.sum"):
        shutil.copy(SOURCE / modules, folder)
    (folder / "main.go").write_text(source)
    return _build_cached(folder, "program")


def _build_cached(source: Path, name: str) -> Path:
    go = shutil.which("go")
    binary = _cache_folder() / f"{name}-{_source_digest(source)}"
    if binary.exists():
        return binary
    if go is None:
        raise BuildUnavailable(f"Go is needed to build the {name}, and it is not on PATH")
    binary.parent.mkdir(parents=True, exist_ok=True)
    # Another run may build the same: each has a folder of its own and the
    # last one to finish wins, with equal content.
    with tempfile.TemporaryDirectory(dir=binary.parent, prefix="build-") as folder:
        built = Path(folder) / name
        _go_build(go, source, built)
        built.replace(binary)
    return binary


def _cache_folder() -> Path:
    if chosen := os.environ.get("AIOINFORMER_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "aioinformer"


def _source_digest(source: Path) -> str:
    digest = hashlib.sha256()
    for file in (source / "go.mod", source / "go.sum", *sorted(source.glob("*.go"))):
        digest.update(f"{file.name} {file.stat().st_size}\n".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _go_build(go: str, source: Path, output: Path) -> None:
    # No symbol tables: a third less to link and to keep in the cache.
    options = ["-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", str(output)]
    done = subprocess.run(
        [go, "build", *options, "."],
        cwd=source,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode != 0:
        raise BuildFailed(f"go build failed:\n{done.stdout.decode(errors='replace')}")
