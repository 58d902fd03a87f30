"""A conversion webhook of a custom resource that begins to convert differently.

The objects are stored in v1 and watched in v2. The API server calls the webhook for each object
that it serves. Nothing is written when the webhook changes, so the versions of the objects stay.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import trustme
from aiohttp import web

from aioinformer import Client, Event, Resource, SharedInformer, Updated
from tests.apiserver.server.server_process import AdminClient, ApiServerProcess, Json
from tests.apiserver.server.server_process import wait_until as wait_for_server
from tests.client.servers import http_server
from tests.runtime.informers import running_in_background

pytestmark = pytest.mark.apiserver

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ROUNDS_V1 = Resource("example.com", "v1", "rounds", "Round")
ROUNDS_V2 = Resource("example.com", "v2", "rounds", "Round")


@dataclass
class Conversion:
    """A webhook that converts rounds from v1 to v2 and back."""

    url: str
    bundle: str
    color: str = "red"
    """The field that objects of v2 have, and those of v1 lack."""


async def convert(conversion: Conversion, request: web.Request) -> web.Response:
    """Answer a ConversionReview."""
    review = (await request.json())["request"]
    version: str = review["desiredAPIVersion"]
    objects: list[Json] = []
    for obj in review["objects"]:
        spec = {**obj.get("spec", {})}
        spec.pop("color", None)
        if version.endswith("/v2"):
            spec["color"] = conversion.color
        objects.append({**obj, "apiVersion": version, "spec": spec})
    answer = {"uid": review["uid"], "convertedObjects": objects, "result": {"status": "Success"}}
    return web.json_response(
        {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": answer}
    )


@pytest.fixture
async def conversion() -> AsyncIterator[Conversion]:
    """Run the webhook over TLS, which API servers demand."""
    authority = trustme.CA()
    found = Conversion("", base64.b64encode(authority.cert_pem.bytes()).decode())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    leaf = authority.issue_cert("127.0.0.1")
    with leaf.private_key_and_cert_chain_pem.tempfile() as path:
        context.load_cert_chain(path)

    async def respond(request: web.Request) -> web.Response:
        return await convert(found, request)

    async with http_server(respond, tls=context) as url:
        found.url = url
        yield found


def definition(conversion: Conversion, path: str) -> Json:
    """Return the definition of rounds, stored in v1, with the webhook at that path."""
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    webhook = {
        "clientConfig": {"url": f"{conversion.url}{path}", "caBundle": conversion.bundle},
        "conversionReviewVersions": ["v1"],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "rounds.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Round", "plural": "rounds", "singular": "round"},
            "scope": "Namespaced",
            "versions": [
                {"name": name, "served": True, "storage": name == "v1", "schema": schema}
                for name in ("v1", "v2")
            ],
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        },
    }


async def test_another_conversion_reaches_the_cache_and_the_handlers(
    api_server: ApiServerProcess, admin: AdminClient, conversion: Conversion
) -> None:
    await admin.request("POST", CRDS, body=definition(conversion, "/first"))

    async def is_served() -> bool:
        return await admin.succeeds(ROUNDS_V2.path())

    await wait_for_server(is_served)
    for name in ("a", "b"):
        metadata: dict[str, Any] = {"name": name}
        body = {"apiVersion": "example.com/v1", "kind": "Round", "metadata": metadata}
        await admin.request("POST", ROUNDS_V1.path("web"), body={**body, "spec": {"size": 1}})
    events: list[Event] = []
    async with Client.connect(kubeconfig=api_server.kubeconfig) as client:
        rounds = SharedInformer(client.lister_watcher(ROUNDS_V2, namespace="web"))
        rounds.add_handler(events.append)
        async with running_in_background(rounds.run()):
            await rounds.wait_synced(30)
            versions = {obj.name: obj.resource_version for obj in rounds.lister.list()}
            assert {obj["spec"]["color"] for obj in rounds.lister.list()} == {"red"}

            conversion.color = "blue"
            # The server ends the watches of a resource whose definition changes, as an operator's
            # upgrade changes it.
            current = await admin.request("GET", f"{CRDS}/rounds.example.com")
            current["spec"]["conversion"] = definition(conversion, "/second")["spec"]["conversion"]
            await admin.request("PUT", f"{CRDS}/rounds.example.com", body=current)

            async def shown() -> bool:
                return {obj["spec"]["color"] for obj in rounds.lister.list()} == {"blue"}

            await wait_for_server(shown)
            assert {obj.name: obj.resource_version for obj in rounds.lister.list()} == versions
            assert await rounds.verify(timeout=20)
    updates = [event for event in events if isinstance(event, Updated)]
    assert {update.new["spec"]["color"] for update in updates} == {"blue"}
    assert {update.new.name for update in updates} == {"a", "b"}
