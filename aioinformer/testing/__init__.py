"""An API server for tests: in-process without sockets, and over HTTP.

    Cluster          the model: objects, resource versions, pages, watches; no I/O, no clock
    ClusterSource    a Cluster in the place of a client, for informers and writers without sockets
    ApiServer        a Cluster behind HTTP on a loopback port, for everything that speaks HTTP
    Faults           what goes wrong with either: switches
    ManualClock      time that passes when a test says so
    Access           the users of an ApiServer: User, and PolicyRule for each right
    Features         the version that a Cluster imitates, and what it can't do
    Snapshot         the state of a Cluster, to go back to

``aioinformer.testing.simulation`` runs a program, such as a controller, through seeded histories of
faults in virtual time.

It takes merge, JSON, strategic merge (for built-in kinds, as the real one) and apply patches.

``ApiServer`` is loaded when it is first named, so that tests without sockets need no aiohttp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.testing.access.access import Access as Access
from aioinformer.testing.access.users import PolicyRule as PolicyRule
from aioinformer.testing.access.users import User as User
from aioinformer.testing.cluster.cluster import Cluster as Cluster
from aioinformer.testing.cluster.features import Features as Features
from aioinformer.testing.cluster.storage import Snapshot as Snapshot
from aioinformer.testing.faults.faults import Fault as Fault
from aioinformer.testing.faults.faults import Faults as Faults
from aioinformer.testing.server.clock import Clock as Clock
from aioinformer.testing.server.clock import LoopClock as LoopClock
from aioinformer.testing.server.clock import ManualClock as ManualClock
from aioinformer.testing.server.source import ClusterSource as ClusterSource

if TYPE_CHECKING:
    from aioinformer.testing.server.server import ApiServer as ApiServer

__all__ = [
    "Access",
    "ApiServer",
    "Clock",
    "Cluster",
    "ClusterSource",
    "Fault",
    "Faults",
    "Features",
    "LoopClock",
    "ManualClock",
    "PolicyRule",
    "Snapshot",
    "User",
]


def __getattr__(name: str) -> object:
    if name == "ApiServer":
        from aioinformer.testing.server.server import ApiServer

        return ApiServer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
