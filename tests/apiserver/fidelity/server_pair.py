"""Comparison of the embedded server with the real one: both get the same requests.

Values that differ between any two servers are not compared: uids, times, resourceVersions, the
content of continue tokens, and managedFields, which the embedded server maintains for applied
objects only (tests of managedFields compare them).
"""

import asyncio
import base64
import gzip
import re
import ssl
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import aiohttp
import msgspec

from aioinformer import Resource
from aioinformer.testing import Access, ApiServer, Cluster, Features
from aioinformer.testing.access.access import AuthorizationMode
from tests.apiserver.server.server_process import ApiServerProcess, Json

WIDGETS = "/apis/example.com/v1/widgets"
IN_DEFAULT = "/apis/example.com/v1/namespaces/default/widgets"
GIZMOS = "/apis/example.com/v1/namespaces/default/gizmos"
JSON = "application/json"
MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}

COMPARED_HEADERS = (
    "Content-Type",
    "Content-Encoding",
    "Retry-After",
    "Vary",
    "X-Content-Type-Options",
    "Cache-Control",
)

_NONDETERMINISTIC = {
    r'"resourceVersion": ?"[0-9]+"': '"resourceVersion":"N"',
    r'"uid": ?"[-0-9a-f]{36}"': '"uid":"U"',
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z": "T",
    r"current: [0-9]+": "current: N",
    r"in record \([-0-9a-f]{36}\)": "in record (U)",
    r"in record \([0-9]+\)": "in record (N)",
    r"in object meta: [-0-9a-f]{36}": "in object meta: U",
    r"StorageError: .*AdditionalErrorMsg: ": "",  # its path in etcd
    r"resource version: [0-9]+ \([0-9]+\)": "resource version: N (N)",
    r'"cells":\["(.*?)","[0-9smh]+"\]': r'"cells":["\1","AGE"]',
}


@dataclass(frozen=True, slots=True)
class NormalizedResponse:
    """A response without random values, for the comparison."""

    status: int
    headers: Mapping[str, str | None]
    lines: tuple[str, ...]

    @property
    def events(self) -> tuple[str, ...]:
        """Return the lines of a watch, without repeated bookmarks.

        The number of repetitions depends on fractions of the server's seconds.
        """
        kept: list[str] = []
        for line in self.lines:
            if not (kept and line == kept[-1] and line.startswith('{"type":"BOOKMARK"')):
                kept.append(line)
        return tuple(kept)


@dataclass(slots=True)
class ComparedServer:
    """One of the two servers."""

    http: aiohttp.ClientSession
    variables: dict[str, str] = field(default_factory=dict[str, str])
    """The values for ``{name}`` in a path: versions and tokens differ between the servers."""

    async def write(self, method: str, path: str, body: Json | None = None) -> None:
        """Send a write, which must succeed."""
        seen = await self.request(method, path, body)
        assert seen.status < 300, seen

    async def newest_version(self) -> str:
        """Return the newest resourceVersion."""
        async with self.http.get(WIDGETS) as response:
            version: str = (await response.json())["metadata"]["resourceVersion"]
            return version

    async def get(self, path: str, headers: Mapping[str, str]) -> NormalizedResponse:
        """Send a GET and return the response. The token of the next page becomes ``{token}``."""
        path = path.format(**self.variables)
        async with self.http.get(path, headers=headers) as response:
            body = await response.read()
            if "watch=" not in path:  # a watch is chunked, whatever its length
                _check_framing(response, len(body))
            if response.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
        if found := re.search(rb'"continue": ?"([^"]+)"', body):
            self.variables["token"] = found[1].decode()
        return _normalize_response(response, body)

    async def request(self, method: str, path: str, body: Json | None) -> NormalizedResponse:
        """Send a write and return the response, also if it is an error."""
        headers = MERGE_PATCH if method == "PATCH" else {}
        async with self.http.request(method, path, json=body, headers=headers) as response:
            return _normalize_response(response, await response.read())

    async def send_raw(
        self, method: str, path: str, body: str, kind: str, *, managers: bool = False
    ) -> NormalizedResponse:
        """Send a write with this body and return the response.

        The resourceVersion of an object in the response replaces ``{version}`` in the next body.

        Args:
            method: the HTTP method.
            path: the path.
            body: the body.
            kind: the content type of the body.
            managers: True if managedFields are compared as well.
        """
        data = body.replace("{version}", self.variables.get("version", "")).encode()
        headers = {"Content-Type": kind} if data else {}
        request = self.http.request(method, path, data=data or None, headers=headers)
        async with request as response:
            answer = await response.read()
            if found := re.search(rb'"resourceVersion":"([0-9]+)"', answer):
                self.variables["version"] = found[1].decode()
            return _normalize_response(response, answer, managers=managers)


def _check_framing(response: aiohttp.ClientResponse, size: int) -> None:
    """Check that bodies up to 2048 bytes have a length, and longer ones are chunked."""
    chunked = response.headers.get("Transfer-Encoding") == "chunked"
    assert chunked is (size > 2048), (size, response.headers)


def _normalize_response(
    response: aiohttp.ClientResponse, body: bytes, *, managers: bool = False
) -> NormalizedResponse:
    headers = {name: response.headers.get(name) for name in COMPARED_HEADERS}
    text = body.decode()
    if text.startswith("{\n"):
        return NormalizedResponse(
            response.status, headers, tuple(_normalize_indented(text).splitlines())
        )
    lines = (normalize_line(line, managers=managers) for line in text.splitlines(keepends=True))
    return NormalizedResponse(response.status, headers, tuple(lines))


def _normalize_indented(text: str) -> str:
    """Check the indentation of a JSON text and return the text in a comparable form."""
    assert text == msgspec.json.format(text, indent=2)
    return msgspec.json.format(normalize_line(text), indent=2)


def normalize_line(line: str, *, managers: bool = False) -> str:
    end = "\n" if line.endswith("\n") else ""
    try:
        value = msgspec.json.decode(line)
        value = _sort_managers(value) if managers else _without_managers(value)
        line = msgspec.json.encode(value).decode() + end
    except msgspec.DecodeError:
        return line  # not JSON
    line = re.sub(r'"continue":"([^"]+)"', _decode_token, line)
    for pattern, replacement in _NONDETERMINISTIC.items():
        line = re.sub(pattern, replacement, line)
    return line


def _decode_token(found: re.Match[str]) -> str:
    token = found[1]
    inside = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
    return f'"continue":<{re.sub("rv.:[0-9]+", "rv:N", inside)}>'


def _sort_managers(value: Any) -> Any:
    """Sort field managers and the causes of a conflict.

    The servers sort managers by their times, which depend on when a second ends, and the causes
    of a conflict have no order.
    """
    managers: list[Json] = value["metadata"].get("managedFields", [])
    managers.sort(key=lambda each: (each["manager"], each.get("subresource", "")))
    causes: list[Json] = value.get("details", {}).get("causes", [])
    causes.sort(key=lambda cause: cause["message"])
    return value


def _without_managers(value: Any) -> Any:
    if isinstance(value, dict):
        body = cast("dict[str, Any]", value)
        return {name: _without_managers(body[name]) for name in body if name != "managedFields"}
    if isinstance(value, list):
        return [_without_managers(one) for one in cast("Iterable[Any]", value)]
    return value


@dataclass(slots=True)
class ServerPair:
    """The two servers."""

    real: ComparedServer
    embedded: ComparedServer
    cluster: Cluster
    access: Access
    """The users of the embedded server."""

    @property
    def both(self) -> tuple[ComparedServer, ComparedServer]:
        """The two servers, the real one first."""
        return self.real, self.embedded

    async def write(self, method: str, path: str, body: Json | None = None) -> None:
        """Send the same write to both servers."""
        for twin in self.both:
            await twin.write(method, path, body)

    async def save_version(self, name: str) -> None:
        """Save the newest version of each server as ``{name}``."""
        for twin in self.both:
            twin.variables[name] = await twin.newest_version()

    async def get(
        self, path: str, headers: Mapping[str, str]
    ) -> tuple[NormalizedResponse, NormalizedResponse]:
        """Return the responses of both servers."""
        real, ours = await asyncio.gather(*(twin.get(path, headers) for twin in self.both))
        return real, ours


@asynccontextmanager
async def server_pair(
    server: ApiServerProcess,
    features: Features,
    *,
    authorization: AuthorizationMode = "AlwaysAllow",
) -> AsyncGenerator[ServerPair]:
    """Run an embedded server with the same definition as the real server of a test."""
    cluster = Cluster(features=features)
    cluster.add_resource(Resource("example.com", "v1", "widgets", "Widget", short_names=("wd",)))
    trusting = ssl.create_default_context(cafile=server.ca_file)
    async with AsyncExitStack() as stack:
        embedded = await stack.enter_async_context(ApiServer(cluster, authorization=authorization))
        sessions = [
            await stack.enter_async_context(
                aiohttp.ClientSession(
                    url,
                    connector=aiohttp.TCPConnector(ssl=tls, force_close=True),
                    skip_auto_headers=("Accept-Encoding", "User-Agent"),
                    auto_decompress=False,
                )
            )
            for url, tls in ((server.url, trusting), (embedded.url, True))
        ]
        real, ours = map(ComparedServer, sessions)
        yield ServerPair(real, ours, cluster, embedded.access)


def widget(name: str, *, labels: dict[str, str] | None = None, **spec: object) -> Json:
    """Return a widget to write."""
    metadata: Json = {"name": name, **({"labels": labels} if labels else {})}
    head = {"apiVersion": "example.com/v1", "kind": "Widget"}
    return {**head, "metadata": metadata, "spec": spec}
