"""The two servers that other clients talk to, and the binary of the Go clients."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from aioinformer import Resource
from aioinformer.testing import ApiServerThread, Cluster, Features
from tests.apiserver.server.admin import install_crd
from tests.apiserver.server.build import BuildFailed, BuildUnavailable, build, build_cached
from tests.apiserver.server.built_in_crds import install_events, install_leases
from tests.apiserver.server.server_process import ApiServerProcess

GO_SOURCE = Path(__file__).parent / "golang"

GADGET_CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {
            "kind": "Gadget",
            "plural": "gadgets",
            "singular": "gadget",
            "shortNames": ["gd"],
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
                            "status": {
                                "type": "object",
                                "x-kubernetes-preserve-unknown-fields": True,
                            },
                        },
                    }
                },
            }
        ],
    },
}


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build before the first test, because a build may exceed the time of a test."""
    wanted = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    if session.config.getoption("collectonly"):
        return
    # The fixtures raise the same errors again, in the tests that use them.
    with contextlib.suppress(BuildUnavailable, BuildFailed):
        if wanted & {"server_kubeconfig", "go_binary"}:
            build_cached(GO_SOURCE, "clients")
        if "server_kubeconfig" in wanted:
            build()


@pytest.fixture(scope="session")
def go_binary() -> Path:
    """Return kubectl and the exercises of client-go in one binary."""
    try:
        return build_cached(GO_SOURCE, "clients")
    except BuildUnavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def embedded_kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Run the embedded server."""
    # The version of the real server: its WatchLists are compressed, in members.
    cluster = Cluster(features=Features(minor=37), clock=lambda: datetime.now(UTC))
    with ApiServerThread(cluster) as server:
        gadgets = Resource("example.com", "v1", "gadgets", "Gadget", short_names=("gd",))
        server.cluster.add_resource(gadgets, status=True)
        yield server.kubeconfig(tmp_path_factory.mktemp("embedded") / "kubeconfig")


@pytest.fixture(scope="session")
def real_kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Run the real API server."""
    try:
        binary = build()
    except BuildUnavailable as reason:
        pytest.skip(str(reason))
    server = ApiServerProcess(binary, tmp_path_factory.mktemp("real"))
    with start_blocking_portal() as portal:
        portal.call(server.start)
        try:
            _install(portal, server)
            yield server.kubeconfig
        finally:
            portal.call(server.kill)


def _install(portal: BlockingPortal, server: ApiServerProcess) -> None:
    portal.call(install_crd, server, GADGET_CRD)
    portal.call(install_leases, server)
    portal.call(install_events, server)


@pytest.fixture
def server_kubeconfig(request: pytest.FixtureRequest) -> Path:
    """Return the kubeconfig of the server that the test names."""
    path: Path = request.getfixturevalue(f"{request.param}_kubeconfig")
    return path
