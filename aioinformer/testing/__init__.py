"""An API server for tests: in-process without sockets, and over HTTP.

    Cluster          the model: objects, resource versions, pages, watches; no I/O, no clock
    ClusterSource    a Cluster in the place of a client, for informers without sockets
    ApiServer        a Cluster behind HTTP on a loopback port, for everything that speaks HTTP

``ApiServer`` is loaded when it is first named, so that tests without sockets need no aiohttp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.testing.cluster import Cluster as Cluster
from aioinformer.testing.list_watcher import ClusterSource as ClusterSource

if TYPE_CHECKING:
    from aioinformer.testing.server import ApiServer as ApiServer

__all__ = ["ApiServer", "Cluster", "ClusterSource"]


def __getattr__(name: str) -> object:
    if name == "ApiServer":
        from aioinformer.testing.server import ApiServer

        return ApiServer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
