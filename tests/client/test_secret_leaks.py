"""A server or proxy that sends back what it was sent: no secret and no control character of it
is shown, wherever in an answer it stands.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from aioinformer import Client, Timeouts
from aioinformer.errors import FetchError, InformerError, ServerError
from aioinformer.errors.texts import MAX_TEXT_LENGTH
from tests.client.accelerated_time import in_accelerated_time
from tests.client.servers import ConnectionHandler, tcp_server
from tests.client.transports import PODS, error_texts, proxied_client, read

CANARY = "sEcReTc4nary7q"
ESCAPE = "\x1b[31m"


def http(body: bytes, head: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def echoing(answer: Callable[[str], bytes]) -> ConnectionHandler:
    """Return a handler whose responses contain the credentials of the request."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            sent = dict(line.split(": ", 1) for line in head.decode().splitlines()[1:] if line)
            writer.write(answer(sent.get("Proxy-Authorization") or sent["Authorization"]))
            await writer.drain()

    return talk


def check_no_secret(error: BaseException) -> str:
    """All that can be read of an error, which must hold neither a secret nor what steers a
    terminal.
    """
    output = "\n".join(error_texts(error))
    if isinstance(error, ServerError):
        output += repr(error.status)
    assert CANARY not in output
    assert CANARY.lower() not in output.lower()
    assert CANARY[:8] not in output, "nor the most of it"
    assert "\x1b" not in str(error)
    assert "\n" not in str(error)
    assert len(str(error)) < MAX_TEXT_LENGTH + 300
    return output


# -- inside an answer --------------------------------------------------------------------------


def status(**more: Any) -> dict[str, Any]:
    return {"kind": "Status", "code": 500, **more}


def cut(sent: str) -> str:
    """Return a message that is cut off in the middle of a credential."""
    return sent.rjust(MAX_TEXT_LENGTH + 3, "x")


def event(kind: str, obj: object) -> bytes:
    return http(json.dumps({"type": kind, "object": obj}).encode() + b"\n")


EVENTS: dict[str, Callable[[str], bytes]] = {
    "message": lambda sent: event("ERROR", status(code=403, message=f"{ESCAPE}sent\n{sent}")),
    "reason": lambda sent: event("ERROR", status(code=403, reason=sent.split()[1])),
    "details": lambda sent: event("ERROR", status(code=403, details={sent: [sent]})),
    "cut": lambda sent: event("ERROR", status(code=403, message=cut(sent))),
    "type": lambda sent: event(sent, {}),
    "no Status": lambda sent: event("ERROR", {"kind": sent}),
    "no UTF-8": lambda sent: http(b'{"type":"ADDED","object":"\xff%s"}\n' % sent.encode()),
    "chunks": lambda sent: (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + sent.encode() + b"\r\n"
    ),
}


async def watch(client: Client) -> None:
    """Read a stream of events."""
    async with client.api(PODS).watch("1") as events:
        async for _ in events:
            pass


@pytest.mark.parametrize("place", EVENTS)
@in_accelerated_time
async def test_no_error_of_a_stream_contains_a_secret(
    place: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        tcp_server(echoing(EVENTS[place])) as address,
        Client(f"http://{address}", token=CANARY) as client,
    ):
        with pytest.raises(FetchError) as caught:
            await watch(client)

    check_no_secret(caught.value)
    assert CANARY not in caplog.text


# -- refusals ----------------------------------------------------------------------------------


def refusal(**more: Any) -> bytes:
    return http(json.dumps(status(**more)).encode(), "500 Internal Server Error")


REFUSALS: dict[str, Callable[[str], bytes]] = {
    "message": lambda sent: refusal(message=f"{ESCAPE}sent\n{sent}" + "x" * 5000),
    "reason": lambda sent: refusal(reason=f"{ESCAPE}{sent}" + "x" * 5000),
    "cut": lambda sent: refusal(message=cut(sent)),
    "details": lambda sent: refusal(details={sent: {"sent": sent}}),
    "text": lambda sent: http(f"{ESCAPE}{sent}\n".encode() + b"x" * 5000, "502 Bad Gateway"),
    "redirection": lambda sent: http(
        b"", f"302 Found\r\nLocation: https://{sent.split()[1]}.example.com/"
    ),
    "garbage": lambda sent: f"hello {sent}\r\n\r\n".encode(),
    "odd header": lambda sent: f"HTTP/1.1 200 OK\r\n{sent}\x00: x\r\n\r\n".encode(),
}


@pytest.mark.parametrize("place", REFUSALS)
async def test_no_error_of_a_rejected_request_contains_a_secret(place: str) -> None:
    async with (
        tcp_server(echoing(REFUSALS[place])) as address,
        Client(f"http://{address}", token=CANARY) as client,
    ):
        with pytest.raises(FetchError) as caught:
            await client.get_raw("/version")

    check_no_secret(caught.value)


PHRASES: dict[str, Callable[[str], bytes]] = {
    "reason phrase": lambda sent: http(b"", f"407 {sent}"),
    "long reason phrase": lambda sent: http(b"", f"407 {'x' * 5000} {sent}"),
    "header": lambda sent: http(b"", f"407 No\r\nX-Echo: {sent}"),
    "garbage": lambda sent: f"hello {sent}\r\n\r\n".encode(),
}


@pytest.mark.parametrize("place", PHRASES)
async def test_no_error_of_a_proxy_contains_a_secret(place: str) -> None:
    async with (
        tcp_server(echoing(PHRASES[place])) as address,
        proxied_client(f"http://me:{CANARY}@{address}", "https://10.0.0.1:6443") as client,
    ):
        with pytest.raises(FetchError) as caught:
            await read(client)

    assert "10.0.0.1" in check_no_secret(caught.value)


# -- what is written ---------------------------------------------------------------------------

PASSWORD = "wRiTTenC4nary8z"
"""Another one than the token, which is hidden wherever it stands."""


def repeating(answer: Callable[[str, str], bytes]) -> ConnectionHandler:
    """Return a handler whose responses contain the credentials and the body of the request."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            sent = dict(line.split(": ", 1) for line in head.decode().splitlines()[1:] if line)
            body = await reader.readexactly(int(sent.get("Content-Length", 0)))
            writer.write(answer(sent["Authorization"], body.decode()))
            await writer.drain()

    return talk


def invalid(body: str) -> bytes:
    """As the real server refuses a merge patch that makes a label a number: all is quoted."""
    text = f"Invalid value: {json.dumps(body)}: json: cannot unmarshal number"
    causes = [{"reason": "FieldValueInvalid", "message": text, "field": "patch"}]
    sent = status(code=422, reason="Invalid", message=text, details={"causes": causes})
    return http(json.dumps(sent).encode(), "422 Unprocessable Entity")


REPEATED: dict[str, Callable[[str, str], bytes]] = {
    "credential in a message": lambda sent, body: refusal(message=f"{ESCAPE}sent\n{sent}"),
    "credential in details": lambda sent, body: refusal(details={sent: [sent]}),
    "credential in a page": lambda sent, body: http(sent.encode(), "502 Bad Gateway"),
    "body in a page": lambda sent, body: http(body.encode(), "502 Bad Gateway"),
    "body in an unknown path": lambda sent, body: http(body.encode(), "404 Not Found"),
    "body in a Status": lambda sent, body: invalid(body),
    "body in a long Status": lambda sent, body: invalid(body * 5000),
    "body in a success": lambda sent, body: http(body.encode(), "204 No Content"),
    "body in garbage": lambda sent, body: f"{body}\r\n\r\n".encode(),
    "body in a header": lambda sent, body: f"HTTP/1.1 200 OK\r\n{body}\x00: x\r\n\r\n".encode(),
    "no end of it": lambda sent, body: http(body.encode()).replace(b"th: ", b"th: 9"),
    "body in chunks": lambda sent, body: (
        f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}\r\n".encode()
    ),
    "no object": lambda sent, body: http(json.dumps([body]).encode()),
}


@pytest.mark.parametrize("place", REPEATED)
@pytest.mark.parametrize("verb", ["create", "update", "patch", "apply"])
async def test_no_error_of_a_write_contains_a_secret(
    place: str, verb: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither the token, nor what is in the Secret."""
    secret = {"metadata": {"name": "a"}, "stringData": {"password": PASSWORD}}
    timeouts = Timeouts(read=0.05)
    async with (
        tcp_server(repeating(REPEATED[place])) as address,
        Client(f"http://{address}", token=CANARY, timeouts=timeouts) as client,
    ):
        secrets = client.api("secrets", namespace="web")
        writes: dict[str, Callable[[], Awaitable[object]]] = {
            "create": lambda: secrets.create(secret),
            "update": lambda: secrets.update(secret),
            "patch": lambda: secrets.patch("a", secret),
            "apply": lambda: secrets.apply(secret, field_manager="me"),
        }
        with pytest.raises(FetchError) as caught:
            await writes[verb]()

    output = check_no_secret(caught.value) + caplog.text
    assert PASSWORD[:8].lower() not in output.lower()
    assert CANARY not in output
    assert caught.value.phase == "write"


# -- discovery ---------------------------------------------------------------------------------


def document(kind: str, **more: Any) -> bytes:
    return http(json.dumps({"kind": kind, **more}).encode())


def described(name: str) -> list[dict[str, Any]]:
    versions = [{"version": "v1", "resources": [{"resource": name}]}]
    return [{"metadata": {"name": "a.io"}, "versions": versions}]


def grouped(version: str) -> list[dict[str, Any]]:
    return [{"name": "a.io", "versions": [{"groupVersion": version}]}]


DOCUMENTS: dict[str, Callable[[str], bytes]] = {
    "kind": document,
    "group version": lambda sent: document("APIResourceList", groupVersion=sent),
    "groups": lambda sent: document("APIGroupList", groups=grouped(f"{sent}/{ESCAPE}")),
    "name": lambda sent: document("APIGroupDiscoveryList", items=described(f"{sent}{ESCAPE}")),
    "no UTF-8": lambda sent: http(b'{"kind":"\xff%s"}' % sent.encode()),
}


@pytest.mark.parametrize("place", DOCUMENTS)
async def test_no_error_of_a_discovery_document_contains_a_secret(place: str) -> None:
    async with (
        tcp_server(echoing(DOCUMENTS[place])) as address,
        Client(f"http://{address}", token=CANARY) as client,
    ):
        with pytest.raises(InformerError) as found:
            await client.resource("widgets")
        with pytest.raises(InformerError) as served:
            await client.served(PODS)

    check_no_secret(found.value)
    check_no_secret(served.value)
