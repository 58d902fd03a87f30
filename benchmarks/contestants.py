"""The contestants, and one measurement of a contestant with a new load server and a new process.

Each contestant prints a ``Sample``. This module compares its events with the dataset, because an
informer that loses events must not take part.
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
    """A program that reads the bytes of the dataset."""

    name: str
    command: tuple[str, ...]
    """The command line, without ``--server`` and ``--events``."""
    takes_pods: bool = True
    """True if the command also accepts ``--pods``."""
    checked: bool = True
    """True if the program reports the last version of each object."""
    slow: bool = False
    """True if the program is slow and gets a smaller dataset."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])

    def measure(self, dataset: Dataset) -> Sample:
        """Run the contestant once.

        Raises:
            MeasurementFailed: the contestant failed, or did not receive all events.
        """
        command = [*self.command, f"--events={dataset.events}"]
        if self.takes_pods:
            command.append(f"--pods={dataset.pods}")
        with serving(dataset.folder) as server:
            command.append(f"--server={server}")
            printed = output(command, self.name, environment=self.environment)
        sample = msgspec.json.decode(printed, type=Sample)
        if sample.delivered != dataset.events:
            said = f"{self.name}: {sample.delivered} of {dataset.events} events were delivered"
            raise MeasurementFailed(said)
        if self.checked and sample.digest != dataset.digest:
            raise MeasurementFailed(f"{self.name}: the last version of some pod was not delivered")
        return sample


def ours(name: str, *options: str) -> Contestant:
    """Return the library as a contestant, with a variant of the handler."""
    return Contestant(name, (sys.executable, "-m", "benchmarks.ours", *options))


def python_peers() -> list[Contestant]:
    """Return the contestants that need no other language than Python."""
    floor = (sys.executable, "-m", "benchmarks.floor")
    watch_loop = (sys.executable, "-m", "benchmarks.peers.kubernetes_asyncio")
    return [
        Contestant("floor", floor, takes_pods=False, checked=False),
        Contestant("json.loads", (*floor, "--decode"), takes_pods=False, checked=False),
        Contestant("kubernetes_asyncio", watch_loop, takes_pods=False, slow=True),
    ]


def go_peers(binary: Path) -> list[Contestant]:
    """Return client-go as contestants: in both encodings, and with LIST instead of WatchList."""
    by_list = {"KUBE_FEATURE_WatchListClient": "false"}
    json, protobuf = (str(binary),), (str(binary), "--protobuf")
    return [
        Contestant("client-go JSON", json),
        Contestant("client-go protobuf", protobuf),
        Contestant("client-go JSON, LIST", json, environment=by_list),
        Contestant("client-go protobuf, LIST", protobuf, environment=by_list),
    ]
