"""A second client for the tests, and the definition of the objects that it writes.

The client consists of a few lines over aiohttp. It must not use the library under test, because a
fault of the library could then hide itself. It neither retries nor caches; a test that needs this
does it in its own code.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self

import aiohttp

Json = dict[str, Any]

INSTALL_SECONDS = 30.0
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class ApiError(Exception):
    """The server answered with an error; `body` is its Status object, if it sent one."""

    def __init__(self, status: int, body: Json) -> None:
        super().__init__(f"{status}: {body.get('message', body)}")
        self.status = status
        self.body = body


class Resource(NamedTuple):
    group: str
    version: str
    plural: str

    def path(self, namespace: str | None, name: str = "") -> str:
        """Return the path of the collection or of one object; `None` means all namespaces."""
        scope = "" if namespace is None else f"/namespaces/{namespace}"
        return f"/apis/{self.group}/{self.version}{scope}/{self.plural}" + (name and f"/{name}")


WIDGETS = Resource("example.com", "v1", "widgets")


class Server(Protocol):
    """The address and credentials of a server."""

    @property
    def url(self) -> str: ...

    @property
    def ca_file(self) -> Path: ...


class AdminClient:
    """A client for objects of one namespaced resource. Use it as a context manager."""

    def __init__(self, server: Server, resource: Resource = WIDGETS) -> None:
        self._resource = resource
        # A new connection for each request: a connection to a killed server would make the first
        # request after a restart fail.
        connector = aiohttp.TCPConnector(
            ssl=ssl.create_default_context(cafile=server.ca_file), force_close=True
        )
        self._session = aiohttp.ClientSession(server.url, connector=connector)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._session.close()

    async def create(self, obj: Json, namespace: str = "default") -> Json:
        return await self.request("POST", self._resource.path(namespace), body=obj)

    async def update(self, obj: Json) -> Json:
        """Send a PUT. A `resourceVersion` in the object makes the update conditional."""
        metadata = obj["metadata"]
        path = self._resource.path(metadata.get("namespace", "default"), metadata["name"])
        return await self.request("PUT", path, body=obj)

    async def merge_patch(self, name: str, patch: Json, namespace: str = "default") -> Json:
        path = self._resource.path(namespace, name)
        return await self.request("PATCH", path, body=patch, kind="application/merge-patch+json")

    async def delete(self, name: str, namespace: str = "default") -> Json:
        return await self.request("DELETE", self._resource.path(namespace, name))

    async def get(self, name: str, namespace: str = "default") -> Json:
        return await self.request("GET", self._resource.path(namespace, name))

    async def list(self, namespace: str | None = None, **query: str) -> Json:
        return await self.request("GET", self._resource.path(namespace), query=query)

    async def watch(self, namespace: str | None = None, **query: str) -> AsyncGenerator[Json, None]:
        """Yield events until the server ends the watch. Close the iterator with `aclosing`."""
        path = self._resource.path(namespace)
        timeout = aiohttp.ClientTimeout(total=None)
        watching = {"watch": "true", **query}
        async with self._session.get(path, params=watching, timeout=timeout) as response:
            if response.status >= 400:
                raise ApiError(response.status, _decoded(await response.text()))
            async for line in response.content:
                yield json.loads(line)

    async def succeeds(self, path: str) -> bool:
        """Return True if a GET of the path succeeds. It fails if the server is down."""
        try:
            await self.request("GET", path)
        except (ApiError, aiohttp.ClientError):
            return False
        return True

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Json | None = None,
        kind: str = "application/json",
        accept: str = "application/json",
        query: dict[str, str] | None = None,
    ) -> Json:
        headers = {"Accept": accept}
        if body is not None:
            headers["Content-Type"] = kind
        data = None if body is None else json.dumps(body)
        request = self._session.request(method, path, data=data, headers=headers, params=query)
        async with request as response:
            answer = _decoded(await response.text())
            if response.status >= 400:
                raise ApiError(response.status, answer)
            return answer


def _decoded(text: str) -> Json:
    # Errors from below the API machinery, such as an unknown path, are text.
    try:
        answer: Json = json.loads(text)
    except ValueError:
        return {"message": text}
    return answer


async def wait_until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Poll until the condition is true. The caller sets the time limit."""
    while not await condition():  # noqa: ASYNC110  the condition is about another process
        await asyncio.sleep(0.05)


async def install_crd(server: Server, crd: Json) -> None:
    """Create a definition, and wait until its objects can be listed and discovered."""
    resource = _crd_resource(crd)
    async with AdminClient(server, resource) as admin, asyncio.timeout(INSTALL_SECONDS):
        await admin.request("POST", CRDS, body=crd)
        await wait_until(lambda: admin.succeeds(resource.path(None)))
        await wait_until(lambda: _is_discovered(admin, resource))


async def all_lists_succeed(server: Server) -> bool:
    """Return True if the definitions, and the objects of each, can be listed.

    The list request makes a restarted server load the objects of a definition; meanwhile the server
    answers with 429 "storage is (re)initializing".
    """
    async with AdminClient(server) as admin:
        try:
            definitions = (await admin.request("GET", CRDS))["items"]
        except (ApiError, aiohttp.ClientError):
            return False
        paths = [_crd_resource(crd).path(None) for crd in definitions if _is_established(crd)]
        return all([await admin.succeeds(path) for path in paths])


def _crd_resource(crd: Json) -> Resource:
    spec = crd["spec"]
    served = next(version["name"] for version in spec["versions"] if version["served"])
    return Resource(spec["group"], served, spec["names"]["plural"])


def _is_established(crd: Json) -> bool:
    conditions = crd.get("status", {}).get("conditions") or ()
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


async def _is_discovered(admin: AdminClient, resource: Resource) -> bool:
    groups = await admin.request("GET", "/apis", accept=AGGREGATED)
    return any(
        resource == (group["metadata"]["name"], version["version"], found["resource"])
        for group in groups["items"]
        for version in group["versions"]
        for found in version.get("resources", ())
    )


# Unknown fields are preserved, at the top and in spec, so that a widget may have any payload. The
# two declared fields are for selectors and validation.
WIDGET_CRD: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {
            "kind": "Widget",
            "plural": "widgets",
            "singular": "widget",
            "shortNames": ["wd"],
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "selectableFields": [{"jsonPath": ".spec.colour"}],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                        "properties": {
                            "spec": {
                                "type": "object",
                                "x-kubernetes-preserve-unknown-fields": True,
                                "properties": {
                                    "size": {"type": "integer"},
                                    "colour": {"type": "string"},
                                },
                            }
                        },
                    }
                },
            }
        ],
    },
}
