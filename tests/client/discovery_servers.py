"""Servers that consist of discovery documents."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec

from aioinformer._client.discovery.fetcher import AGGREGATED_ACCEPT
from aioinformer.errors import FetchError, Status, server_error
from tests.client.recordings import read_recording

CORE = read_recording("01-core-v1-resources").body
GROUPS = read_recording("02-aggregated-discovery").body
APPS = read_recording("03-group-version-resources").body
EMPTY = b'{"kind":"APIGroupDiscoveryList","items":[]}'
VERSIONS = b'{"kind":"APIVersions","versions":["v1"]}'
PLAIN_404 = Status(404, "", read_recording("53-cr-list-after-crd-is-deleted").body.decode().strip())
INGRESS_404 = Status(404, "", "default backend - 404")
"""The response of an ingress to an unknown path."""

STATUS_404 = Status(404, "NotFound", "the server could not find the requested resource")


class DocumentServer:
    """A server with a body or an error per path. Any other path gets a plain 404."""

    def __init__(self, served: Mapping[str, bytes | int | FetchError]) -> None:
        self.served = dict(served)
        self.requested_paths: list[str] = []

    async def __call__(self, path: str, accept: str) -> bytes:
        assert (accept == AGGREGATED_ACCEPT) is (path in ("/api", "/apis"))
        self.requested_paths.append(path)
        await asyncio.sleep(0)
        document = self.served.get(path)
        if document is None:
            document = server_error(PLAIN_404, phase="discovery", target=f"GET {path}")
        if isinstance(document, int):
            document = server_error(Status(document), phase="discovery", target=f"GET {path}")
        if isinstance(document, FetchError):
            raise document
        return document


def group_document(name: str, *versions: str) -> bytes:
    """Return the document of a group, its preferred version first."""
    return b'{"kind":"APIGroup",' + msgspec.json.encode(_group(name, *versions))[1:]


def group_list_document(*names: tuple[str, ...]) -> bytes:
    """Return the legacy list of groups."""
    listed = [_group(*each) for each in names]
    return msgspec.json.encode({"kind": "APIGroupList", "groups": listed})


def _group(name: str, *versions: str) -> dict[str, object]:
    return {"name": name, "versions": [{"groupVersion": f"{name}/{each}"} for each in versions]}


def resource_list_document(*plurals: str) -> bytes:
    """Return the document of a group version with resources of these names."""
    listed = [
        {
            "name": each,
            "singularName": each[:-1],
            "kind": each[:-1].title(),
            "namespaced": True,
            "shortNames": [each[:2]],
            "verbs": ["list", "watch"],
        }
        for each in plurals
    ]
    return msgspec.json.encode({"kind": "APIResourceList", "resources": listed})


def aggregated_document(group: str, **versions: tuple[str, ...]) -> bytes:
    """Return the aggregated document of one group; a version without resources is stale."""
    described = [
        {
            "version": version,
            "freshness": "Current" if plurals else "Stale",
            "resources": [
                {"resource": each, "responseKind": {"kind": each[:-1].title()}} for each in plurals
            ],
        }
        for version, plurals in versions.items()
    ]
    item = {"metadata": {"name": group}, "versions": described}
    return msgspec.json.encode({"kind": "APIGroupDiscoveryList", "items": [item]})


def modern_server() -> DocumentServer:
    """Return a current server, which has two documents."""
    return DocumentServer({"/api": EMPTY, "/apis": GROUPS})


def legacy_server(**more: bytes | int) -> DocumentServer:
    """Return a server without aggregated discovery."""
    served: dict[str, bytes | int] = {
        "/api": VERSIONS,
        "/api/v1": CORE,
        "/apis": group_list_document(("metrics.io", "v1"), ("apps", "v1")),
        "/apis/apps": group_document("apps", "v1"),
        "/apis/apps/v1": APPS,
        "/apis/metrics.io": group_document("metrics.io", "v1"),
        "/apis/metrics.io/v1": resource_list_document(),
    }
    return DocumentServer({**served, **more})


def standalone_server() -> DocumentServer:
    """Return a standalone apiextensions-apiserver, which does not list its groups."""
    return DocumentServer(
        {
            "/apis/example.com": group_document("example.com", "v1"),
            "/apis/example.com/v1": resource_list_document("widgets"),
        }
    )
