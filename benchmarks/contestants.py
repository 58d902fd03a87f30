"""The contestants, and one measurement of one of them: a new load server and a new process.

Each contestant prints a ``Sample``. The sample is checked against the dataset: a measurement
counts only if every event was delivered.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from benchmarks.meter import Sample
from benchmarks.pods import Dataset
from benchmarks.processes import MeasurementFailed, output, serving

__all__ = ["Contestant", "go_peers", "ours", "python_peers"]


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
    environment: Mapping[str, str] = field(default_factory=dict[str, str])

    def measure(self, dataset: Dataset) -> Sample:
        """Run the command once.

        Raises:
            MeasurementFailed: the command failed, or not every event was delivered.
        """
        command = [*self.command, f"--events={dataset.events}"]
        if self.takes_pods:
            command.append(f"--pods={dataset.pods}")
        with serving(dataset.folder) as server:
            command.append(f"--server={server}")
            printed = output(command, self.name, environment=self.environment)
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
    return Contestant(name, (sys.executable, "-m", "benchmarks.ours", *options))


def python_peers() -> list[Contestant]:
    """Return the contestants in Python."""
    floor = (sys.executable, "-m", "benchmarks.floor")
    watch_loop = (sys.executable, "-m", "benchmarks.peers.kubernetes_asyncio")
    return [
        Contestant("floor", floor, takes_pods=False, checked=False),
        Contestant("json.loads", (*floor, "--decode"), takes_pods=False, checked=False),
        Contestant("kubernetes_asyncio", watch_loop, takes_pods=False, slow=True),
    ]


def go_peers(binary: Path) -> list[Contestant]:
    """Return client-go with its two encodings, each by WatchList and by LIST, the older default."""
    by_list = {"KUBE_FEATURE_WatchListClient": "false"}
    json, protobuf = (str(binary),), (str(binary), "--protobuf")
    return [
        Contestant("client-go JSON", json),
        Contestant("client-go protobuf", protobuf),
        Contestant("client-go JSON, LIST", json, environment=by_list),
        Contestant("client-go protobuf, LIST", protobuf, environment=by_list),
    ]
