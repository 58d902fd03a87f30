"""Build the peer in ``peers/clientgo``, and let it write the protobuf form of a dataset.

The binary is stored in the user's cache folder, under the digest of its sources, and built again
when the sources change. Without Go this peer is missing, and the table says so.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from hashlib import sha256
from pathlib import Path

from benchmarks.pods import Dataset
from benchmarks.processes import MeasurementFailed, output

__all__ = ["PeerMissing", "build", "encode"]

SOURCE = Path(__file__).parent / "peers" / "clientgo"


class PeerMissing(Exception):
    """Raised if the peer can't be built on this machine; the message contains the reason."""


def build() -> Path:
    """Return the path of the binary, building it if need be.

    Raises:
        PeerMissing: Go is not installed, or the build failed.
    """
    binary = _cache_folder() / f"clientgo-{_source_digest()}"
    if binary.exists():
        return binary
    go = shutil.which("go")
    if go is None:
        raise PeerMissing("building it requires Go, and no go command is on PATH")
    binary.parent.mkdir(parents=True, exist_ok=True)
    # Another run may build the same binary, so each builds in its own folder, and the last wins.
    with tempfile.TemporaryDirectory(dir=binary.parent, prefix="build-") as folder:
        built = Path(folder) / "clientgo"
        options = ["-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", str(built)]
        try:
            output([go, "build", *options, "."], "go build", folder=SOURCE)
        except MeasurementFailed as error:
            raise PeerMissing(str(error)) from error
        built.replace(binary)
    return binary


def encode(binary: Path, dataset: Dataset) -> None:
    """Write the protobuf files of ``dataset`` beside its JSON files."""
    output([str(binary), "encode", str(dataset.folder)], "encoding as protobuf")


def _cache_folder() -> Path:
    if chosen := os.environ.get("AIOINFORMER_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "aioinformer"


def _source_digest() -> str:
    digest = sha256()
    for file in (SOURCE / "go.mod", SOURCE / "go.sum", *sorted(SOURCE.glob("*.go"))):
        digest.update(f"{file.name} {file.stat().st_size}\n".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()
