"""Who is measured, and how one measurement is run: a fresh load server, a fresh process.

Each contestant prints a ``Sample``. That it heard of everything is checked here, against what
the dataset says was sent: a fast informer that loses events has not taken part.
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
    """One way to read the bytes."""

    name: str
    command: tuple[str, ...]
    """Takes ``--server`` and ``--events``."""
    takes_pods: bool = True
    """And ``--pods``."""
    checked: bool = True
    """Whether it says which version of each object it heard of last."""
    slow: bool = False
    """So slow that it gets a smaller dataset."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])

    def measure(self, dataset: Dataset) -> Sample:
        """Run it once.

        Raises:
            MeasurementFailed: it broke or did not hear of everything.
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
    """The library, with a variant of the handler."""
    return Contestant(name, (sys.executable, "-m", "benchmarks.ours", *options))


def python_peers() -> list[Contestant]:
    """What needs no other language."""
    floor = (sys.executable, "-m", "benchmarks.floor")
    watch_loop = (sys.executable, "-m", "benchmarks.peers.kubernetes_asyncio")
    return [
        Contestant("floor", floor, takes_pods=False, checked=False),
        Contestant("json.loads", (*floor, "--decode"), takes_pods=False, checked=False),
        Contestant("kubernetes_asyncio", watch_loop, takes_pods=False, slow=True),
    ]


def go_peers(binary: Path) -> list[Contestant]:
    """client-go by its two encodings, and by the list that it made before WatchList."""
    by_list = {"KUBE_FEATURE_WatchListClient": "false"}
    json, protobuf = (str(binary),), (str(binary), "--protobuf")
    return [
        Contestant("client-go JSON", json),
        Contestant("client-go protobuf", protobuf),
        Contestant("client-go JSON, LIST", json, environment=by_list),
        Contestant("client-go protobuf, LIST", protobuf, environment=by_list),
    ]
