"""An API server for tests: in-process without sockets, and over HTTP.

    Cluster          the model: objects, resource versions, pages, watches; no I/O, no clock
    ClusterSource    a Cluster in the place of a client, for informers and writers without sockets
    ApiServer        a Cluster behind HTTP on a loopback port, for everything that speaks HTTP
    ApiServerThread  the same in a thread of its own, for tests that are not async
    load_manifests   the objects of YAML files, for a Cluster
    Faults           what goes wrong with either: switches
    ManualClock      time that passes when a test says so
    Access           the users of an ApiServer: User, and PolicyRule for each right
    Features         the version that a Cluster imitates, and what it can't do
    Snapshot         the state of a Cluster, to go back to
    running_operator runs an Operator while a block runs
    MutationDetector fails a test whose program changes cached models in place

``aioinformer.testing.simulation`` runs a program through seeded histories of faults in virtual
time, ``aioinformer.testing.plugin`` has fixtures for pytest, and ``aioinformer.testing.workload``
changes pods all the time. Each name is loaded when it is first used: tests without sockets need no
aiohttp.

Example::

    from aioinformer.testing import ApiServer, Cluster, ClusterSource, Fault, Faults

    cluster = Cluster()
    cluster.create("pods", {"metadata": {"name": "web-0"}})
    source = ClusterSource(cluster)
    faults: Faults = source.faults
    fault: Fault = faults.status(503, verb="watch_list")  # an informer's first request
    async with SharedInformerFactory(source) as informers:
        pods = informers.informer("pods")
        await asyncio.sleep(0.01)
        fault.end()
        assert fault.hits > 0
        await pods.wait_synced(timeout=30)
        assert [pod.name for pod in pods.lister] == ["web-0"]

Example::

    from aioinformer.testing import Access, ApiServer, ApiServerThread, PolicyRule, User

    async with ApiServer(authorization="RBAC") as server:
        access: Access = server.access
        rule = PolicyRule(verbs=["list", "watch"], resources=["pods"], namespaces=["web"])
        ada: User = access.add_user("ada", token="ada-token", rules=[rule])
        async with Client(server.url, token="ada-token") as client:
            assert len(await client.api("pods", namespace="web").list()) == 0

    with ApiServerThread() as server:  # for tests that are not async
        server.cluster.create("pods", {"metadata": {"name": "web-0"}})

Example::

    import pytest
    from aioinformer.testing import ApiServer, UnusedFault

    with pytest.warns(UnusedFault, match='ErrorStatus 503 for verb="list" has concerned no'):
        async with ApiServer() as server:
            server.faults.status(503, verb="list")

Example::

    from aioinformer.testing import (
        CacheMutated, Clock, Cluster, ClusterSource, Features, LoopClock, ManualClock,
        MutationDetector, Snapshot, load_manifests,
    )

    cluster = Cluster(features=Features(minor=30, watch_list=False))
    (folder / "pod.yaml").write_text("{apiVersion: v1, kind: Pod, metadata: {name: web-0}}")
    assert load_manifests(cluster, folder) == 1
    backup: Snapshot = cluster.snapshot()
    cluster.delete("pods", "web-0")
    cluster.restore(backup)

    clock: Clock = ManualClock()  # time passes when the test calls clock.advance(60)
    real: Clock = LoopClock()
    async with SharedInformerFactory(ClusterSource(cluster, clock=real)) as informers:
        pods = informers.informer("pods", convert=KubeObject.to_dict)
        await pods.wait_synced(timeout=30)
        try:
            with MutationDetector(pods):
                pods.lister.get("default/web-0")["spec"] = {}
        except CacheMutated as error:
            print(error)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aioinformer.testing.access.access import Access as Access
    from aioinformer.testing.access.users import PolicyRule as PolicyRule
    from aioinformer.testing.access.users import User as User
    from aioinformer.testing.cluster.cluster import Cluster as Cluster
    from aioinformer.testing.cluster.server_features import Features as Features
    from aioinformer.testing.cluster.storage import Snapshot as Snapshot
    from aioinformer.testing.faults.faults import Fault as Fault
    from aioinformer.testing.faults.faults import Faults as Faults
    from aioinformer.testing.faults.faults import UnusedFault as UnusedFault
    from aioinformer.testing.manifests import load_manifests as load_manifests
    from aioinformer.testing.mutations import CacheMutated as CacheMutated
    from aioinformer.testing.mutations import MutationDetector as MutationDetector
    from aioinformer.testing.operators import running_operator as running_operator
    from aioinformer.testing.server.clock import Clock as Clock
    from aioinformer.testing.server.clock import LoopClock as LoopClock
    from aioinformer.testing.server.clock import ManualClock as ManualClock
    from aioinformer.testing.server.server import ApiServer as ApiServer
    from aioinformer.testing.server.server_thread import ApiServerThread as ApiServerThread
    from aioinformer.testing.server.source import ClusterSource as ClusterSource

__all__ = [
    "Access",
    "ApiServer",
    "ApiServerThread",
    "CacheMutated",
    "Clock",
    "Cluster",
    "ClusterSource",
    "Fault",
    "Faults",
    "Features",
    "LoopClock",
    "ManualClock",
    "MutationDetector",
    "PolicyRule",
    "Snapshot",
    "UnusedFault",
    "User",
    "load_manifests",
    "running_operator",
]

_MODULES = {
    "Access": "access.access",
    "ApiServer": "server.server",
    "ApiServerThread": "server.server_thread",
    "CacheMutated": "mutations",
    "Clock": "server.clock",
    "Cluster": "cluster.cluster",
    "ClusterSource": "server.source",
    "Fault": "faults.faults",
    "Faults": "faults.faults",
    "Features": "cluster.server_features",
    "LoopClock": "server.clock",
    "ManualClock": "server.clock",
    "MutationDetector": "mutations",
    "PolicyRule": "access.users",
    "Snapshot": "cluster.storage",
    "UnusedFault": "faults.faults",
    "User": "access.users",
    "load_manifests": "manifests",
    "running_operator": "operators",
}
"""The module of each name, below this package."""


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = found  # the next use needs no call
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
