"""Refused requests, broken and silent networks, and the texts that no error shows."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable

import pytest
from aiohttp import web

from aioinformer.errors import (
    BadRequest,
    ConnectionFailed,
    ConnectionLost,
    FetchError,
    Forbidden,
    ProtocolError,
    RequestTimedOut,
    ServerError,
    ServerFailure,
)
from tests.client.accelerated_time import in_accelerated_time
from tests.client.conftest import Certificates
from tests.client.recordings import read_recording
from tests.client.servers import (
    free_address,
    http_server,
    replay_response,
    start_response,
    tcp_server,
)
from tests.client.transports import (
    CANARY,
    PONG,
    SHORT_TIMEOUTS,
    Verb,
    client_of,
    error_texts,
    proxied_client,
    read,
    read_error,
    wait_closed,
    watching,
)

MAX_ERROR_BYTES = 64 * 1024
"""Bytes that are read of an error's body."""

# -- refusals ----------------------------------------------------------------------------------


async def test_an_error_has_the_status_of_the_server_and_the_request() -> None:
    async def answer(request: web.Request) -> web.Response:
        return replay_response(read_recording("25-list-forbidden"))

    async with http_server(answer) as server, client_of(server) as client:
        error = await read_error(client, "watch")

    assert isinstance(error, Forbidden)
    assert error.phase == "watch"
    assert error.status.reason == "Forbidden"
    assert str(error).startswith(f"GET {server}/api/v1/pods: 403 Forbidden: pods is forbidden")


async def test_an_endless_error_body_is_read_up_to_a_limit() -> None:
    sent = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse(status=500)
        await response.prepare(request)
        while True:
            await response.write(b"x" * MAX_ERROR_BYTES)
            sent += MAX_ERROR_BYTES

    async with http_server(answer) as server, client_of(server) as client:
        error = await read_error(client)

    assert isinstance(error, ServerFailure)
    assert f"more than {MAX_ERROR_BYTES} bytes" in error.status.message
    assert sent < 1000 * MAX_ERROR_BYTES  # what the sockets between them hold, and no more


async def test_a_redirection_is_an_error_and_is_not_followed() -> None:
    requests: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        requests.append(request.path)
        raise web.HTTPFound("https://login.example.com/?next=/api")

    async with http_server(answer) as server, client_of(server) as client:
        error = await read_error(client)

    assert isinstance(error, ServerError)
    assert error.status.code == 302
    assert "login.example.com" in str(error)
    assert "credentials are not sent there" in str(error)
    assert "next=" not in str(error)
    assert requests == ["/api/v1/pods"]


# -- a network that fails ----------------------------------------------------------------------


async def test_a_refused_connection_names_host_and_reason() -> None:
    address = await free_address()

    async with client_of(f"http://{address}") as client:
        error = await read_error(client)

    assert type(error) is ConnectionFailed
    assert str(error).startswith(f"{address}: Connection refused; nothing listens there")
    assert error.phase == "list"
    assert error.__cause__ is not None


async def test_the_error_for_an_unknown_host_names_the_host() -> None:
    async with client_of("http://no-such-host.invalid:6443") as client:
        error = await read_error(client)

    assert type(error) is ConnectionFailed
    assert str(error).startswith("no-such-host.invalid:6443: the name is not known: ")


UNREADABLE = (ConnectionLost, ProtocolError)
"""The errors for a body that is no HTTP: it may arrive with the head or behind it."""
OK = b"HTTP/1.1 200 OK\r\n"
BROKEN: dict[str, tuple[Verb, bytes, type[FetchError], str]] = {
    "nothing": ("list", b"", ConnectionLost, "the server closed the connection without a response"),
    "no HTTP": ("list", b"SSH-2.0-OpenSSH_9.6\r\n", ProtocolError, "is not HTTP"),
    "half a list": (
        "list",
        OK + b"Content-Length: 100\r\n\r\nhalf",
        ConnectionLost,
        "/api/v1/pods: the response broke off: the connection broke in the middle of the body",
    ),
    "half a watch": (
        "watch",
        OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\none\r\n",
        ConnectionLost,
        "the connection broke in the middle of the body",
    ),
    "half an error": (
        "list",
        b"HTTP/1.1 400 Bad Request\r\nContent-Length: 100\r\n\r\nthe sel",
        BadRequest,
        "400: Bad Request; the body is no Status: more than 7 bytes",
    ),
    "half a credential": (
        "list",
        b"HTTP/1.1 403 Forbidden\r\nContent-Length: 100\r\n\r\nsent:" + CANARY[:-1].encode(),
        Forbidden,
        "more than 15 bytes of no known content type",
    ),
    "another success": ("list", b"HTTP/1.1 204 No Content\r\n\r\n", ProtocolError, "204"),
    "no gzip": (
        "list",
        OK + b"Content-Encoding: gzip\r\nContent-Length: 8\r\n\r\nnot gzip",
        ConnectionLost,
        "the response broke off: the body can't be decompressed",
    ),
    "no gzip, of unknown length": (
        "list",
        OK + b"Content-Encoding: gzip\r\n\r\nnot gzip",
        FetchError,
        "",
    ),
    "no chunk": ("list", OK + b"Transfer-Encoding: chunked\r\n\r\nno\r\n", FetchError, ""),
    "another compression": (
        "list",
        OK + b"Content-Encoding: br\r\nContent-Length: 3\r\n\r\nabc",
        ProtocolError,
        "the response has a Content-Encoding that was not asked for and can't be decompressed: "
        "does a proxy in between compress it?",
    ),
}


@pytest.mark.parametrize(("verb", "sent", "kind", "text"), BROKEN.values(), ids=BROKEN)
async def test_the_error_for_a_broken_response_says_what_is_broken(
    verb: Verb, sent: bytes, kind: type[FetchError], text: str
) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(sent)
        await writer.drain()
        writer.write_eof()

    async with tcp_server(talk) as address, client_of(f"http://{address}") as client:
        error = await read_error(client, verb)

    assert type(error) is kind or (kind is FetchError and type(error) in UNREADABLE)
    assert text in str(error)
    assert not any(CANARY[:-1] in shown for shown in error_texts(error))


LONG_HEADS = {
    "a field of 1 MB": b"Set-Cookie: " + b"a" * 1_000_000 + b"\r\n",
    "many fields": b"X-Trace: abc\r\n" * 500,
    "many long fields": b"Set-Cookie: " + b"a" * 9_000 + b"\r\n" + b"X-Trace: abc\r\n" * 300,
}


@pytest.mark.parametrize("fields", LONG_HEADS.values(), ids=LONG_HEADS)
@pytest.mark.parametrize("verb", ["list", "watch"])
async def test_the_head_of_a_response_may_be_as_long_as_a_proxy_makes_it(
    fields: bytes, verb: Verb
) -> None:
    status = b"200 OK"

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readuntil(b"\r\n\r\n"):
            head = b"HTTP/1.1 %b\r\nContent-Length: %d\r\n%b\r\n" % (status, len(PONG), fields)
            writer.write(head + PONG)
            await writer.drain()

    async with tcp_server(talk) as address, client_of(f"http://{address}") as client:
        assert await read(client, verb) == PONG
        status = b"403 Forbidden"
        assert type(await read_error(client, verb)) is Forbidden


# -- time --------------------------------------------------------------------------------------


@in_accelerated_time
async def test_a_handshake_that_stalls_is_a_timeout(certificates: Certificates) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await wait_closed(reader)

    async with tcp_server(talk) as address:
        trust = certificates.client_context()
        async with client_of(f"https://{address}", tls=trust, timeouts=SHORT_TIMEOUTS) as client:
            error = await read_error(client)

    assert type(error) is RequestTimedOut
    assert str(error).startswith(f"{address}: no connection in the time allowed; ")


NO_RESPONSE = "no response in the time allowed"
SILENT: dict[str, tuple[Verb, bytes | None, str]] = {
    "list": ("list", None, NO_RESPONSE),
    "watch": ("watch", None, NO_RESPONSE),
    "half a list": ("list", b"half", "no more data of the response came"),
    # It may be silent that long: what bookmarks promise is the reflector's to judge.
    "watch beyond its end": ("watch", b"", "outlived its 300 s by 10 s"),
}


@pytest.mark.parametrize(("verb", "sent", "text"), SILENT.values(), ids=SILENT)
@in_accelerated_time
async def test_a_server_that_falls_silent_is_a_timeout(
    verb: Verb, sent: bytes | None, text: str
) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.Response() if sent is None else await start_response(request, sent)
        await asyncio.Event().wait()
        return response

    async with (
        http_server(answer) as server,
        client_of(server, timeouts=SHORT_TIMEOUTS) as client,
    ):
        error = await read_error(client, verb)

    assert type(error) is RequestTimedOut
    assert error.phase == verb
    assert text in str(error)


@in_accelerated_time
async def test_data_received_before_the_deadline_is_still_read() -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=b"x" * 1000)

    async with (
        http_server(answer) as server,
        client_of(server, timeouts=SHORT_TIMEOUTS) as client,
        watching(client, timeout=0) as body,
    ):
        await asyncio.sleep(20)
        assert [len(chunk) async for chunk in body] == [1000]


@in_accelerated_time
async def test_a_watch_may_be_without_data_for_longer_than_a_list() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = await start_response(request, b"one")
        await asyncio.sleep(20)
        await response.write(b"two")
        return response

    async with (
        http_server(answer) as server,
        client_of(server, timeouts=SHORT_TIMEOUTS) as client,
    ):
        assert await read(client, "watch") == b"onetwo"


# -- secrets -----------------------------------------------------------------------------------


async def test_no_token_in_any_exception_repr_or_log(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    errors: list[FetchError] = []

    async def echo(request: web.Request) -> web.Response:
        return web.Response(status=500, text=f"you sent {request.headers['Authorization']}")

    async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"nonsense\r\n\r\n")
        await wait_closed(reader)

    async with http_server(echo) as echoing, tcp_server(nonsense) as talker:
        tls = certificates.client_context()
        https = echoing.replace("http://", "https://")
        gone = f"http://{await free_address()}"
        for server in (echoing, https, f"http://{talker}", gone):
            async with client_of(server, tls=tls) as client:
                errors.append(await read_error(client))
                errors.append(await read_error(client, "watch"))
                assert CANARY not in repr(client)

    assert "the body is no Status: 27 bytes of text/plain" in str(errors[0])
    assert not any(CANARY in shown for error in errors for shown in error_texts(error))
    assert CANARY not in caplog.text


SECRETS = {
    "X-Api-Key": 'c4n"<&ary-key/+==',
    "Authorization": "Token c4nary-own",
    "X-Pin": "7q",
    "X-Words": "Key c4nary-word",
    "Cookie": "session=c4nary-cookie",
}
"""Headers of the program; the one for Authorization goes where there is no other."""

Echo = Callable[[dict[str, str]], str]


def as_text(headers: dict[str, str]) -> str:
    return "\n".join(f"{name}: {value}" for name, value in headers.items())


def as_status(headers: dict[str, str]) -> str:
    shown = f"you sent {as_text(headers)}"
    details = {"sent": [headers], "causes": [{"message": shown}]}
    return json.dumps({"kind": "Status", "code": 403, "message": shown, "details": details})


def as_json(headers: dict[str, str]) -> str:
    return json.dumps([headers])


def broken_off_status(headers: dict[str, str]) -> str:
    return as_status(headers)[:-1]


@pytest.mark.parametrize("echo", [as_text, as_status, as_json, broken_off_status])
@pytest.mark.parametrize("own", ["", "c4nary-token"], ids=["none", "token"])
async def test_no_header_that_was_sent_is_in_an_exception(echo: Echo, own: str) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=403, text=echo(dict(request.headers)))

    async with (
        http_server(answer) as server,
        client_of(server, token=own, headers=SECRETS) as client,
    ):
        error = await read_error(client)

    assert isinstance(error, Forbidden)
    shown = " ".join([*error_texts(error), repr(error.status)])
    assert not any(secret in shown for secret in ("c4n", "7q"))
    if echo is as_status:
        assert "[credential]" in shown
        assert "X-Api-Key" in shown
        assert "aioinformer/" in shown, "the User-Agent is no secret and is shown"
    else:
        assert "the body is no Status" in shown


async def test_the_credentials_of_a_proxy_are_in_no_exception() -> None:
    async def echo(request: web.Request) -> web.Response:
        return web.Response(status=403, text=as_text(dict(request.headers)))

    async with (
        http_server(echo) as proxy,
        proxied_client(proxy.replace("//", "//me:c4nary@"), "http://10.0.0.1") as client,
    ):
        error = await read_error(client)

    assert "the body is no Status" in str(error)
    assert not any("c4nary" in shown for shown in error_texts(error))


@pytest.mark.parametrize("before", range(MAX_ERROR_BYTES - len(CANARY) - 1, MAX_ERROR_BYTES + 1))
async def test_a_credential_at_the_size_limit_of_the_body_is_in_no_exception(before: int) -> None:
    async def echo(request: web.Request) -> web.Response:
        credential = request.headers["Authorization"].split()[1]
        return web.Response(status=403, text=f"sent:{credential}".rjust(before + len(credential)))

    async with http_server(echo) as server, client_of(server) as client:
        error = await read_error(client)

    assert isinstance(error, Forbidden)
    assert "sent:" not in error.status.message
