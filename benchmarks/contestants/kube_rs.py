"""Build the peer in ``peers/kube_rs``."""

from __future__ import annotations

import tomllib
from pathlib import Path

from benchmarks.contestants.compiled import CompiledPeer

__all__ = ["KUBE_RS", "version"]


def _command(folder: Path) -> tuple[list[str], Path]:
    options = ["build", "--release", "--locked", "--target-dir", str(folder)]
    return options, folder / "release" / "kube_rs"


KUBE_RS = CompiledPeer(
    "kube_rs", "cargo", "Rust", ("Cargo.toml", "Cargo.lock", "src/*.rs"), _command
)


def version() -> str:
    """Return the version of the crate kube."""
    locked = tomllib.loads((KUBE_RS.source / "Cargo.lock").read_text())
    (found,) = [each["version"] for each in locked["package"] if each["name"] == "kube"]
    return str(found)
