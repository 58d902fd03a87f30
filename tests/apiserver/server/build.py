"""Builds of the API server, and of other programs with the same modules.

The binary is too large for the repository and takes too long to build for each test run. So it is
stored in the user's cache under the digest of its sources, and built again when they change.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

SOURCE = Path(__file__).parent / "golang"

KUBERNETES = Path(__file__).parents[1] / "kubernetes_code"
"""The module of the programs that run code of Kubernetes itself."""


class BuildUnavailable(Exception):
    """Go is not installed. The message can be shown as the reason for skipping tests."""


class BuildFailed(Exception):
    """Go could not build the server. The message contains its output."""


def build() -> Path:
    """Build the server on the first use of these sources, and return the path of its binary."""
    return build_cached(SOURCE, "apiserver")


def build_program(source: str, folder: Path) -> Path:
    """Build a program of one file, which may import the server's modules; return its path."""
    for modules in ("go.mod", "go.sum"):
        shutil.copy(SOURCE / modules, folder)
    (folder / "main.go").write_text(source)
    return build_cached(folder, "program")


def build_cached(source: Path, name: str) -> Path:
    """Build the Go program in a folder unless these sources are built; return its path."""
    go = shutil.which("go")
    binary = _cache_folder() / f"{name}-{_source_digest(source)}"
    if binary.exists():
        return binary
    if go is None:
        raise BuildUnavailable(f"Go is needed to build the {name}, and it is not on PATH")
    binary.parent.mkdir(parents=True, exist_ok=True)
    # Another run may build the same sources. Each run has its own directory, and the last one to
    # finish replaces the binary with one of equal content.
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
    module = source if (source / "go.mod").exists() else source.parent
    for file in (module / "go.mod", module / "go.sum", *sorted(source.glob("*.go"))):
        digest.update(f"{file.name} {file.stat().st_size}\n".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _go_build(go: str, source: Path, output: Path) -> None:
    # Without symbol tables the binary is a third smaller.
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
