"""Build the peers that are written in compiled languages.

A binary is stored in the user's cache folder, under the digest of its sources, and built again when
the sources change. Where the compiler is missing, the peer is missing, and the table says so.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from benchmarks.load.processes import MeasurementFailed, output

__all__ = ["CompiledPeer", "PeerMissing"]

PEERS = Path(__file__).parents[1] / "peers"
LIMIT = 1_200
"""Seconds for a build; kube-rs takes about two minutes on two free cores."""


class PeerMissing(Exception):
    """Raised if the peer can't be built on this machine; the message contains the reason."""


@dataclass(frozen=True, slots=True)
class CompiledPeer:
    """A peer whose sources are in a folder beside this file."""

    folder: str
    compiler: str
    """The command that compiles the peer."""
    language: str
    files: tuple[str, ...]
    """Patterns of the files that the binary depends on."""
    command: Callable[[Path], tuple[list[str], Path]]
    """Returns the compiler's arguments, and the path in a given folder of what they make."""

    @property
    def source(self) -> Path:
        """The folder of the sources."""
        return PEERS / self.folder

    @property
    def binary(self) -> Path:
        """The path of the binary, built or not."""
        return _cache_folder() / f"{self.folder}-{self._source_digest()}"

    def build(self) -> Path:
        """Return the path of the binary, building it if need be.

        Raises:
            PeerMissing: the compiler is not installed, or the build failed.
        """
        binary = self.binary
        if binary.exists():
            return binary
        compiler = shutil.which(self.compiler) or shutil.which(self.compiler, path=_cargo_folder())
        if compiler is None:
            raise PeerMissing(
                f"building it requires {self.language}, and no {self.compiler} command is on PATH"
            )
        binary.parent.mkdir(parents=True, exist_ok=True)
        # Another run may build the same binary, so each builds in its own folder, and the last
        # wins.
        with tempfile.TemporaryDirectory(dir=binary.parent, prefix="build-") as folder:
            options, built = self.command(Path(folder))
            try:
                output(
                    [compiler, *options],
                    f"{self.compiler} build",
                    folder=self.source,
                    limit=LIMIT,
                )
            except MeasurementFailed as error:
                raise PeerMissing(str(error)) from error
            built.replace(binary)
        return binary

    def _source_digest(self) -> str:
        digest = sha256()
        for file in [each for name in self.files for each in sorted(self.source.glob(name))]:
            digest.update(f"{file.name} {file.stat().st_size}\n".encode())
            digest.update(file.read_bytes())
        return digest.hexdigest()


def _cache_folder() -> Path:
    if chosen := os.environ.get("AIOINFORMER_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "aioinformer"


def _cargo_folder() -> str:
    """Return the folder where rustup puts cargo, which many shells lack in PATH."""
    return os.environ.get("CARGO_HOME", str(Path.home() / ".cargo")) + "/bin"
