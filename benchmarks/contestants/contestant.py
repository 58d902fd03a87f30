"""The contestants, and one measurement of one of them: a new load server and a new process.

Each contestant prints a ``Sample``. The sample is checked against the dataset: a measurement
counts only if every event was delivered.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from benchmarks.contestants import clientgo, kube_rs
from benchmarks.contestants.clientgo import CLIENT_GO
from benchmarks.contestants.compiled import PeerMissing
from benchmarks.contestants.kube_rs import KUBE_RS
from benchmarks.load.meter import Sample
from benchmarks.load.pods import Dataset
from benchmarks.load.processes import MeasurementFailed, MemorySamples, output, serving

__all__ = [
    "PYTHON_PEERS",
    "Contestant",
    "Peers",
    "PythonPeer",
    "floors",
    "go_peers",
    "ours",
    "rust_peers",
]


@dataclass(frozen=True, slots=True)
class Contestant:
    """A program that reads the bytes of a dataset."""

    name: str
    command: tuple[str, ...]
    """The command, which accepts ``--server`` and ``--events``."""
    takes_pods: bool = True
    """True if the command accepts ``--pods`` too."""
    checked: bool = True
    """True if the sample contains the digest of the last delivered version of each object."""
    slow: bool = False
    """True if the contestant is so slow that it reads the smaller dataset."""
    variant: bool = False
    """True if the contestant differs little from another one, so that fewer runs suffice."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])

    def measure(self, dataset: Dataset, samples: MemorySamples | None = None) -> Sample:
        """Run the command once.

        Args:
            dataset: the bytes to read.
            samples: records the memory of the process while it runs.

        Raises:
            MeasurementFailed: the command failed, or not every event was delivered.
        """
        command = [*self.command, f"--events={dataset.events}"]
        if self.takes_pods:
            command.append(f"--pods={dataset.pods}")
        with serving(dataset.folder) as server:
            command.append(f"--server={server}")
            printed = output(command, self.name, environment=self.environment, samples=samples)
        sample = msgspec.json.decode(printed, type=Sample)
        if sample.delivered != dataset.events:
            raise MeasurementFailed(
                f"{self.name}: {sample.delivered} of {dataset.events} events were delivered"
            )
        if self.checked and sample.digest != dataset.digest:
            raise MeasurementFailed(f"{self.name}: the last version of some pod was not delivered")
        return sample


def ours(name: str, *options: str) -> Contestant:
    """Return the library as a contestant, with the ``options`` of one variant."""
    return Contestant(name, (sys.executable, "-m", "benchmarks.contestants.ours", *options))


def floors() -> list[Contestant]:
    """Return the programs that only read lines, or decode them too."""
    floor = (sys.executable, "-m", "benchmarks.contestants.floor")
    return [
        Contestant("floor", floor, takes_pods=False, checked=False),
        Contestant(
            "json.loads", (*floor, "--decode"), takes_pods=False, checked=False, variant=True
        ),
    ]


@dataclass(frozen=True, slots=True)
class PythonPeer:
    """A client in Python that may be installed."""

    name: str
    package: str
    """The distribution that contains the client."""
    module: str
    """The module in ``benchmarks.peers``."""
    requires: str
    """The module that the client needs to be there."""
    slow: bool = True

    @property
    def version(self) -> str:
        """The installed version; empty if the client isn't installed."""
        try:
            found = importlib.util.find_spec(self.requires)
            return importlib.metadata.version(self.package) if found else ""
        except (ModuleNotFoundError, importlib.metadata.PackageNotFoundError):
            return ""

    @property
    def contestant(self) -> Contestant:
        """The client as a contestant."""
        command = (sys.executable, "-m", f"benchmarks.peers.{self.module}")
        return Contestant(self.name, command, slow=self.slow, variant=self.slow)


PYTHON_PEERS = (
    PythonPeer("lightkube", "lightkube", "lightkube", "lightkube.core.async_client", slow=False),
    PythonPeer("kubernetes.informer", "kubernetes", "kubernetes", "kubernetes.informer"),
    PythonPeer(
        "kubernetes_asyncio", "kubernetes_asyncio", "kubernetes_asyncio", "kubernetes_asyncio.watch"
    ),
    PythonPeer("kr8s", "kr8s", "kr8s", "kr8s.asyncio"),
)


def go_peers(binary: Path) -> list[Contestant]:
    """Return client-go with its two encodings, each by WatchList and by LIST, the older default."""
    by_list = {"KUBE_FEATURE_WatchListClient": "false"}
    json, protobuf = (str(binary),), (str(binary), "--protobuf")
    return [
        Contestant("client-go JSON", json),
        Contestant("client-go protobuf", protobuf),
        Contestant("client-go JSON, LIST", json, environment=by_list, variant=True),
        Contestant("client-go protobuf, LIST", protobuf, environment=by_list, variant=True),
    ]


def rust_peers(binary: Path) -> list[Contestant]:
    """Return kube-rs with typed and untyped objects; it lists in pages unless it streams."""
    program = str(binary)
    forms = {
        "kube-rs typed": ("--form=typed",),
        "kube-rs typed, no managedFields": ("--form=cleared",),
        "kube-rs typed, WatchList": ("--form=typed", "--streaming"),
        "kube-rs DynamicObject": ("--form=dynamic",),
    }
    return [
        Contestant(name, (program, *options), variant=name != "kube-rs typed")
        for name, options in forms.items()
    ]


@dataclass(frozen=True, slots=True)
class Peers:
    """The contestants that this machine can run, and the ones that are missing."""

    present: list[Contestant]
    versions: dict[str, str]
    """The version of each project that takes part."""
    absent: dict[str, str]
    """The reason, by project."""
    go: Path | None
    """The binary of client-go."""

    def leave_out(self, contestant: Contestant, error: MeasurementFailed) -> None:
        """Record that a peer failed, so that a long run goes on without this peer.

        Raises:
            MeasurementFailed: the contestant is the library or a floor, without which the other
                numbers are worth nothing.
        """
        if contestant not in self.present or contestant.name == "floor":
            raise error
        self.present.remove(contestant)
        self.absent[contestant.name] = f"failed: {str(error).strip().splitlines()[-1]}"

    @classmethod
    def find(cls, report: Callable[[str], None], *, complete: bool) -> Peers:
        """Look for installed clients, and build those in compiled languages.

        Args:
            report: called with the name of each step before it starts.
            complete: False to leave out kube-rs, whose build takes minutes, and LIST of client-go.
        """
        present, versions, absent = floors(), dict[str, str](), dict[str, str]()
        binaries: dict[str, Path] = {}
        builds = {"client-go": (CLIENT_GO, clientgo.version), "kube-rs": (KUBE_RS, kube_rs.version)}
        for name, (peer, version) in builds.items():
            if name == "kube-rs" and not complete:
                absent[name] = "left out of a quick run, since its build takes minutes"
                continue
            report(f"building {name}")
            try:
                binaries[name] = peer.build()
                versions[name] = version()
            except PeerMissing as error:
                absent[name] = f"not installed: {error}"
        for client in PYTHON_PEERS:
            if client.version:
                versions[client.name] = client.version
                present.append(client.contestant)
            else:
                absent[client.name] = f"not installed (pip install {client.package})"
        go, rust = binaries.get("client-go"), binaries.get("kube-rs")
        if go is not None:
            present += go_peers(go)[: None if complete else 2]
        if rust is not None:
            present += rust_peers(rust)
        return cls(present, versions, absent, go)
