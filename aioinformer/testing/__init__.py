"""An API server for tests: in-process without sockets, and over HTTP.

    Cluster          the model: objects, resource versions, pages, watches; no I/O, no clock
    ClusterSource    a Cluster in the place of a client, for informers and writers without sockets
    ApiServer        a Cluster behind HTTP on a loopback port, for everything that speaks HTTP
    Faults           what goes wrong with either: switches
    ManualClock      time that passes when a test says so
    Features         the version that a Cluster imitates, and what it can't do
    Snapshot         the state of a Cluster, to go back to

It takes merge, JSON, strategic merge (for built-in kinds, as the real one) and apply patches.

``ApiServer`` is loaded when it is first named, so that tests without sockets need no aiohttp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.testing.clock import Clock as Clock
from aioinformer.testing.clock import LoopClock as LoopClock
from aioinformer.testing.clock import ManualClock as ManualClock
from aioinformer.testing.cluster import Cluster as Cluster
from aioinformer.testing.faults import Fault as Fault
from aioinformer.testing.faults import Faults as Faults
from aioinformer.testing.features import Features as Features
from aioinformer.testing.list_watcher import ClusterSource as ClusterSource
from aioinformer.testing.storage import Snapshot as Snapshot

if TYPE_CHECKING:
    from aioinformer.testing.server import ApiServer as ApiServer

__all__ = [
    "ApiServer",
    "Clock",
    "Cluster",
    "ClusterSource",
    "Fault",
    "Faults",
    "Features",
    "LoopClock",
    "ManualClock",
    "Snapshot",
]


def __getattr__(name: str) -> object:
    if name == "ApiServer":
        from aioinformer.testing.server import ApiServer

        return ApiServer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
