"""Servers that consist of discovery documents."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TypeAlias

import msgspec
from aiohttp import web

from aioinformer import Client, Timeouts
from aioinformer.errors import Status
from tests.client.recordings import read_recording
from tests.client.servers import http_server

Answer: TypeAlias = bytes | int | Status | None
"""A document, the code of an error, or a Status, whose text is a page if it has no reason; ``None``
breaks the connection."""

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
    """A server with an answer per path. Any other path gets a plain 404."""

    def __init__(self, served: Mapping[str, Answer]) -> None:
        self.served = dict(served)
        self.requested_paths: list[str] = []

    async def answer(self, request: web.Request) -> web.Response:
        path = request.path
        assert ("g=apidiscovery" in request.headers["Accept"]) is (path in ("/api", "/apis"))
        self.requested_paths.append(path)
        document = self.served.get(path, PLAIN_404)
        if isinstance(document, bytes):
            return web.Response(body=document)
        if document is None:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        status = Status(document, str(document)) if isinstance(document, int) else document
        if not status.reason:
            return web.Response(status=status.code, text=status.message)
        body = {"kind": "Status", "code": status.code, "reason": status.reason}
        return web.json_response(body | {"message": status.message}, status=status.code)


@asynccontextmanager
async def client_of(documents: DocumentServer) -> AsyncGenerator[Client]:
    """Run a server of documents and a client, whose time may be accelerated."""
    timeouts = Timeouts(connect=1e6, read=1e6, whole=1e6)
    async with http_server(documents.answer) as server, Client(server, timeouts=timeouts) as client:
        yield client


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


def legacy_server(**more: Answer) -> DocumentServer:
    """Return a server without aggregated discovery."""
    served: dict[str, Answer] = {
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
