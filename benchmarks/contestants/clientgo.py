"""Build the peer in ``peers/clientgo``, and let it write the protobuf form of a dataset."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.contestants.compiled import CompiledPeer
from benchmarks.load.pods import Dataset
from benchmarks.load.processes import output

__all__ = ["CLIENT_GO", "encode", "version"]


def _command(folder: Path) -> tuple[list[str], Path]:
    built = folder / "clientgo"
    options = ["build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", str(built), "."]
    return options, built


CLIENT_GO = CompiledPeer("clientgo", "go", "Go", ("go.mod", "go.sum", "*.go"), _command)


def version() -> str:
    """Return the version of client-go."""
    (found,) = re.findall(r"k8s.io/client-go v(\S+)", (CLIENT_GO.source / "go.mod").read_text())
    return str(found)


def encode(binary: Path, dataset: Dataset) -> None:
    """Write the protobuf files of ``dataset`` beside its JSON files."""
    output([str(binary), "encode", str(dataset.folder)], "encoding as protobuf")
