"""Refused requests, broken and silent networks, and the texts that no error shows."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from traceback import format_exception

import pytest
from aiohttp import web

from aioinformer._client.auth.credentials import FixedAuthorization
from aioinformer._client.auth.token_refresh import RefreshingAuthorization, TokenGrant
from aioinformer._client.http.error_responses import MAX_ERROR_BYTES
from aioinformer._client.http.request import ApiRequest
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
    LIST,
    SHORT_TIMEOUTS,
    WATCH,
    error_texts,
    read,
    read_error,
    running_transport,
    wait_closed,
)

# -- refusals ----------------------------------------------------------------------------------


async def test_an_error_has_the_status_of_the_server_and_the_request() -> None:
    async def answer(request: web.Request) -> web.Response:
        return replay_response(read_recording("25-list-forbidden"))

    async with http_server(answer) as server, running_transport(server) as transport:
        error = await read_error(transport, WATCH)

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

    async with http_server(answer) as server, running_transport(server) as transport:
        error = await read_error(transport)

    assert isinstance(error, ServerFailure)
    assert f"more than {MAX_ERROR_BYTES} bytes" in error.status.message
    assert sent < 1000 * MAX_ERROR_BYTES  # what the sockets between them hold, and no more


async def test_a_redirection_is_an_error_and_is_not_followed() -> None:
    requests: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        requests.append(request.path)
        raise web.HTTPFound("https://login.example.com/?next=/api")

    async with http_server(answer) as server, running_transport(server) as transport:
        error = await read_error(transport)

    assert isinstance(error, ServerError)
    assert error.status.code == 302
    assert "login.example.com" in str(error)
    assert "credentials are not sent there" in str(error)
    assert "next=" not in str(error)
    assert requests == ["/api/v1/pods"]


# -- a network that fails ----------------------------------------------------------------------


async def test_a_refused_connection_names_host_and_reason() -> None:
    address = await free_address()

    async with running_transport(f"http://{address}") as transport:
        error = await read_error(transport)

    assert type(error) is ConnectionFailed
    assert str(error).startswith(f"{address}: Connection refused; nothing listens there")
    assert error.phase == "list"
    assert error.__cause__ is not None


async def test_the_error_for_an_unknown_host_names_the_host() -> None:
    async with running_transport("http://no-such-host.invalid:6443") as transport:
        error = await read_error(transport)

    assert type(error) is ConnectionFailed
    assert str(error).startswith("no-such-host.invalid:6443: the name is not known: ")


UNREADABLE = (ConnectionLost, ProtocolError)
"""The errors for a body that is no HTTP: it may arrive with the head or behind it."""
OK = b"HTTP/1.1 200 OK\r\n"
BROKEN: dict[str, tuple[ApiRequest, bytes, type[FetchError], str]] = {
    "nothing": (LIST, b"", ConnectionLost, "the server closed the connection without a response"),
    "no HTTP": (LIST, b"SSH-2.0-OpenSSH_9.6\r\n", ProtocolError, "is not HTTP"),
    "half a list": (
        LIST,
        OK + b"Content-Length: 100\r\n\r\nhalf",
        ConnectionLost,
        "/api/v1/pods: the response broke off: the connection broke in the middle of the body",
    ),
    "half a watch": (
        WATCH,
        OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\none\r\n",
        ConnectionLost,
        "the connection broke in the middle of the body",
    ),
    "half an error": (
        LIST,
        b"HTTP/1.1 400 Bad Request\r\nContent-Length: 100\r\n\r\nthe sel",
        BadRequest,
        "400: Bad Request; the body is no Status: more than 7 bytes",
    ),
    "half a credential": (
        LIST,
        b"HTTP/1.1 403 Forbidden\r\nContent-Length: 100\r\n\r\nsent:" + CANARY[:-1].encode(),
        Forbidden,
        "more than 15 bytes of no known content type",
    ),
    "another success": (LIST, b"HTTP/1.1 204 No Content\r\n\r\n", ProtocolError, "204"),
    "no gzip": (
        LIST,
        OK + b"Content-Encoding: gzip\r\nContent-Length: 8\r\n\r\nnot gzip",
        ConnectionLost,
        "the response broke off: the body can't be decompressed",
    ),
    "no gzip, of unknown length": (
        LIST,
        OK + b"Content-Encoding: gzip\r\n\r\nnot gzip",
        FetchError,
        "",
    ),
    "no chunk": (LIST, OK + b"Transfer-Encoding: chunked\r\n\r\nno\r\n", FetchError, ""),
    "another compression": (
        LIST,
        OK + b"Content-Encoding: br\r\nContent-Length: 3\r\n\r\nabc",
        ProtocolError,
        "the response has a Content-Encoding that was not asked for and can't be decompressed: "
        "does a proxy in between compress it?",
    ),
}


@pytest.mark.parametrize(("call", "sent", "kind", "text"), BROKEN.values(), ids=BROKEN)
async def test_the_error_for_a_broken_response_says_what_is_broken(
    call: ApiRequest, sent: bytes, kind: type[FetchError], text: str
) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(sent)
        await writer.drain()
        writer.write_eof()

    async with tcp_server(talk) as address, running_transport(f"http://{address}") as transport:
        error = await read_error(transport, call)

    assert type(error) is kind or (kind is FetchError and type(error) in UNREADABLE)
    assert text in str(error)
    assert not any(CANARY[:-1] in shown for shown in error_texts(error))


LONG_HEADS = {
    "a field of 1 MB": b"Set-Cookie: " + b"a" * 1_000_000 + b"\r\n",
    "many fields": b"X-Trace: abc\r\n" * 500,
    "many long fields": b"Set-Cookie: " + b"a" * 9_000 + b"\r\n" + b"X-Trace: abc\r\n" * 300,
}


@pytest.mark.parametrize("fields", LONG_HEADS.values(), ids=LONG_HEADS)
@pytest.mark.parametrize("call", [LIST, WATCH], ids=["list", "watch"])
async def test_the_head_of_a_response_may_be_as_long_as_a_proxy_makes_it(
    fields: bytes, call: ApiRequest
) -> None:
    status = b"200 OK"

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 %b\r\nContent-Length: 4\r\n%b\r\npong" % (status, fields))
            await writer.drain()

    async with tcp_server(talk) as address, running_transport(f"http://{address}") as transport:
        assert await read(transport, call) == b"pong"
        status = b"403 Forbidden"
        assert type(await read_error(transport, call)) is Forbidden


# -- time --------------------------------------------------------------------------------------


@in_accelerated_time
async def test_a_handshake_that_stalls_is_a_timeout(certificates: Certificates) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await wait_closed(reader)

    async with tcp_server(talk) as address:
        trust = certificates.client_context()
        async with running_transport(
            f"https://{address}", tls=trust, timeouts=SHORT_TIMEOUTS
        ) as transport:
            error = await read_error(transport)

    assert type(error) is RequestTimedOut
    assert str(error).startswith(f"{address}: no connection in the time allowed; ")


SHORT_WATCH = ApiRequest("watch", "/api/v1/pods", watch_timeout=0)
NO_RESPONSE = "no response in the time allowed"
SILENT: dict[str, tuple[ApiRequest, bytes | None, str]] = {
    "list": (LIST, None, NO_RESPONSE),
    "watch": (WATCH, None, NO_RESPONSE),
    "half a list": (LIST, b"half", "no more data of the response came"),
    # It may be silent that long: what bookmarks promise is the reflector's to judge.
    "watch beyond its end": (SHORT_WATCH, b"", "outlived its 0 s by 10 s"),
}


@pytest.mark.parametrize(("call", "sent", "text"), SILENT.values(), ids=SILENT)
@in_accelerated_time
async def test_a_server_that_falls_silent_is_a_timeout(
    call: ApiRequest, sent: bytes | None, text: str
) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.Response() if sent is None else await start_response(request, sent)
        await asyncio.Event().wait()
        return response

    async with (
        http_server(answer) as server,
        running_transport(server, timeouts=SHORT_TIMEOUTS) as transport,
    ):
        error = await read_error(transport, call)

    assert type(error) is RequestTimedOut
    assert error.phase == call.phase
    assert text in str(error)


@in_accelerated_time
async def test_data_received_before_the_deadline_is_still_read() -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=b"x" * 1000)

    async with (
        http_server(answer) as server,
        running_transport(server, timeouts=SHORT_TIMEOUTS) as transport,
        transport.request(SHORT_WATCH) as body,
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
        running_transport(server, timeouts=SHORT_TIMEOUTS) as transport,
    ):
        assert await read(transport, WATCH) == b"onetwo"


@pytest.mark.parametrize("call", [LIST, WATCH], ids=["list", "watch"])
@in_accelerated_time
async def test_credentials_that_are_never_renewed_are_a_timeout(call: ApiRequest) -> None:
    """A token on a file system that hangs: the informer must not list for ever."""

    async def renew() -> TokenGrant:
        await asyncio.Event().wait()
        return TokenGrant()

    hanging = RefreshingAuthorization(renew)
    async with running_transport(
        "http://10.0.0.1", timeouts=SHORT_TIMEOUTS, authorization=hanging
    ) as transport:
        first, second = await asyncio.gather(
            read_error(transport, call), read_error(transport, call)
        )

    assert type(first) is type(second) is RequestTimedOut
    assert first.phase == "credentials"
    assert str(first) == "http://10.0.0.1: the credentials were not refreshed in 10 s"
    assert "CancelledError" not in "".join(format_exception(first))


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
            async with running_transport(server, tls=tls) as transport:
                errors.append(await read_error(transport))
                errors.append(await read_error(transport, WATCH))
                assert CANARY not in repr(vars(transport)["_credentials"])

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
@pytest.mark.parametrize("own", ["", "Bearer c4nary-token"], ids=["none", "token"])
async def test_no_header_that_was_sent_is_in_an_exception(echo: Echo, own: str) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=403, text=echo(dict(request.headers)))

    async with (
        http_server(answer) as server,
        running_transport(
            server, authorization=FixedAuthorization(own), headers=SECRETS
        ) as transport,
    ):
        error = await read_error(transport)

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
        running_transport(
            "http://10.0.0.1", proxy=proxy, proxy_authorization="Basic c4nary"
        ) as transport,
    ):
        error = await read_error(transport)

    assert "the body is no Status" in str(error)
    assert not any("c4nary" in shown for shown in error_texts(error))


@pytest.mark.parametrize("before", range(MAX_ERROR_BYTES - len(CANARY) - 1, MAX_ERROR_BYTES + 1))
async def test_a_credential_at_the_size_limit_of_the_body_is_in_no_exception(before: int) -> None:
    async def echo(request: web.Request) -> web.Response:
        credential = request.headers["Authorization"].split()[1]
        return web.Response(status=403, text=f"sent:{credential}".rjust(before + len(credential)))

    async with http_server(echo) as server, running_transport(server) as transport:
        error = await read_error(transport)

    assert isinstance(error, Forbidden)
    assert "sent:" not in error.status.message
