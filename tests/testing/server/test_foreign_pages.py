"""Web pages of other sites: which requests that a browser can send the server refuses."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from aioinformer.testing import ApiServer, ApiServerThread

PODS = "/api/v1/namespaces/default/pods"
POD = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "planted"}}
OPTIONS = "accept_hosts= of ApiServer, or --accept-hosts of aioinformer serve"


async def send(
    server: ApiServer, method: str, *headers: str, body: Any = None, version: str = "1.1"
) -> tuple[int, str]:
    """Send the exact head of a request; return the status and the answer's body."""
    content = json.dumps(body).encode() if body is not None else b""
    lines = [f"{method} {PODS} HTTP/{version}", *headers, f"Content-Length: {len(content)}"]
    head = "\r\n".join([*lines, "Connection: close", "", ""]).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))
    writer.write(head + content)
    answer = await reader.read()
    writer.close()
    top, _, rest = answer.partition(b"\r\n\r\n")
    return int(top.split()[1]), rest.decode()


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.0.0.1:8001", "127.9.9.9:1", "localhost", "localhost:8001"),
        *("LocalHost:8001", "localhost.", "localhost.:8001", "[::1]", "[::1]:8001"),
        *(
            "[0:0:0:0:0:0:0:1]:80",
            "[::FFFF:7f00:1]:80",
            "API.test:8001",
            "api.test.",
            "10.9.8.7:80",
            "[FD00::1]:80",
        ),
    ],
)
async def test_loopback_names_and_given_names_are_answered(host: str) -> None:
    async with ApiServer(accept_hosts=["api.TEST.", "10.9.8.7", "[fd00::1]"]) as server:
        assert (await send(server, "GET", f"Host: {host}"))[0] == 200
        assert (await send(server, "GET", f"Host: {host}", f"Origin: http://{host}"))[0] == 200


async def test_a_request_without_a_host_is_answered() -> None:
    async with ApiServer() as server:
        assert (await send(server, "GET", version="1.0"))[0] == 200
        assert (await send(server, "GET", "Host:"))[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        *("rebound.example", "rebound.example:8001", "127.0.0.1.rebound.example", "127.0.0.1x"),
        *("localhost.rebound.example", "x.localhost.evil", "localhost@evil", "localhost:80:80"),
        *("0.0.0.0:8001", "[::]:8001", "10.0.0.1", "[fd00::1]:8001", "2130706433"),
        *("127.1", "localhost..", ".localhost", "[::1]evil", "[::1", "::1", "xn--localhost", "*"),
        "a" * 5000,
    ],
)
async def test_other_hosts_are_refused_for_reads_and_writes(host: str) -> None:
    """A page whose name resolves to this machine (DNS rebinding) sends its name."""
    async with ApiServer(accept_hosts=["api.test"]) as server:
        for method, body in (("GET", None), ("POST", POD), ("DELETE", None)):
            status, answer = await send(server, method, f"Host: {host}", body=body)
            assert status == 403, host
            refused = json.loads(answer)
            assert (refused["kind"], refused["reason"]) == ("Status", "Forbidden")
            assert refused["message"] == (
                f"the embedded server answers no request for the host {host[:100]!r}: accept its "
                f"host with {OPTIONS}"
            )
        assert list(server.cluster.objects("pods")) == []


ORIGINS = [
    *("http://evil.example", "https://evil.example:8001", "http://127.0.0.1.evil.example"),
    *("null", "", "file://", "http://", "http://0.0.0.0:8001", "http://localhost/evil"),
    *("http://localhost http://evil.example", "chrome-extension://abcdefgh", "localhost"),
    *("http://localhost@evil.example", "http://api.test.evil.example", "HTTP://EVIL.EXAMPLE"),
]


@pytest.mark.parametrize("origin", ORIGINS)
async def test_requests_of_pages_of_other_sites_are_refused(origin: str) -> None:
    """A page may send such a POST without asking: it has no content type that needs a preflight."""
    async with ApiServer(accept_hosts=["api.test"]) as server:
        head = (f"Host: {server.url.rpartition('/')[2]}", f"Origin: {origin}")
        for method, body in (("POST", POD), ("GET", None), ("OPTIONS", None)):
            status, answer = await send(server, method, *head, body=body)
            assert status == 403
            assert json.loads(answer)["message"] == (
                f"the embedded server answers no request of a web page of {origin!r}: accept its "
                f"host with {OPTIONS}"
            )
        assert list(server.cluster.objects("pods")) == []


@pytest.mark.parametrize(
    "origin", ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:5173", "http://api.test"]
)
async def test_pages_of_this_machine_and_of_given_hosts_may_write(origin: str) -> None:
    async with ApiServer(accept_hosts=["api.test"]) as server:
        head = ("Host: 127.0.0.1", f"Origin: {origin}")
        assert (await send(server, "POST", *head, body=POD))[0] == 201


async def test_a_refused_request_shows_no_control_character_of_its_host() -> None:
    async with ApiServer() as server:
        for header in (
            "Host: a\tb",
            "Host: a\x85b",
            "Host: \u202eb",
            "Origin: http://\x85.example",
        ):
            head = (header,) if header.startswith("Host") else ("Host: localhost", header)
            status, answer = await send(server, "GET", *head)
            assert status == 403
            assert json.loads(answer)["message"].isprintable()


async def test_a_refused_request_needs_no_credentials_and_counts_for_no_fault() -> None:
    async with ApiServer(token="secret") as server:
        fault = server.faults.status(503, times=1)
        assert (await send(server, "GET", "Host: rebound.example"))[0] == 403
        assert fault.hits == 0
        assert (await send(server, "GET", "Host: localhost"))[0] == 503
        assert (await send(server, "GET", "Host: localhost"))[0] == 401


@pytest.mark.parametrize("server", [ApiServer, ApiServerThread])
def test_accepted_hosts_that_name_no_host_are_errors(
    server: type[ApiServer] | type[ApiServerThread],
) -> None:
    for text in ("", "*", "http://api.test", "*.test", "a b", "[::1", "a:b"):
        with pytest.raises(ValueError, match=r"accept_hosts: .* is not a host; give a name"):
            server(accept_hosts=[text])
    with pytest.raises(TypeError, match=r"collection of names, such as \['api.test'\], not a text"):
        server(accept_hosts="api.test")
