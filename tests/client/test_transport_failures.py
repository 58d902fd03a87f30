"""Refusals, broken networks, silence; and what an error never says."""

from __future__ import annotations

import asyncio
import logging

import pytest
from aiohttp import web

from aioinformer._client.transport import (
    ERROR_CAP,
    Call,
)
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
from tests.client.conftest import Certificates
from tests.client.exchanges import (
    BRISK,
    CANARY,
    LIST,
    WATCH,
    eventually_closed,
    everything_said,
    read,
    refused,
    transport_to,
)
from tests.client.recordings import recorded
from tests.client.servers import free_address, replay, serving, streamed, talking

# -- refusals ----------------------------------------------------------------------------------


async def test_a_refusal_has_the_servers_status_and_what_was_asked() -> None:
    async def answer(request: web.Request) -> web.Response:
        return replay(recorded("25-list-forbidden"))

    async with serving(answer) as server, transport_to(server) as transport:
        error = await refused(transport, WATCH)

    assert isinstance(error, Forbidden)
    assert error.phase == "watch"
    assert error.status.reason == "Forbidden"
    assert str(error).startswith(f"GET {server}/api/v1/pods: 403 Forbidden: pods is forbidden")


async def test_an_endless_refusal_is_read_up_to_a_cap() -> None:
    sent = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse(status=500)
        await response.prepare(request)
        while True:
            await response.write(b"x" * ERROR_CAP)
            sent += ERROR_CAP

    async with serving(answer) as server, transport_to(server) as transport:
        error = await refused(transport)

    assert isinstance(error, ServerFailure)
    assert error.status.message.startswith("xxx")
    assert sent < 1000 * ERROR_CAP  # what the sockets between them hold, and no more


async def test_a_refusal_that_breaks_off_is_still_that_refusal() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 100\r\n\r\nthe sel")
        await writer.drain()
        writer.write_eof()

    async with talking(talk) as address, transport_to(f"http://{address}") as transport:
        error = await refused(transport)

    assert isinstance(error, BadRequest)
    assert error.status.message == "the sel"


async def test_a_redirection_is_an_error_and_is_not_followed() -> None:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        raise web.HTTPFound("https://login.example.com/?next=/api")

    async with serving(answer) as server, transport_to(server) as transport:
        error = await refused(transport)

    assert isinstance(error, ServerError)
    assert error.status.code == 302
    assert "login.example.com" in str(error)
    assert "credentials are not sent there" in str(error)
    assert "next=" not in str(error)
    assert asked == ["/api/v1/pods"]


async def test_a_success_other_than_200_makes_no_sense() -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=204)

    async with serving(answer) as server, transport_to(server) as transport:
        error = await refused(transport)

    assert type(error) is ProtocolError
    assert "204" in str(error)


# -- a network that fails ----------------------------------------------------------------------


async def test_a_refused_connection_names_host_and_reason() -> None:
    address = await free_address()

    async with transport_to(f"http://{address}") as transport:
        error = await refused(transport)

    assert type(error) is ConnectionFailed
    assert str(error) == f"{address}: Connection refused"
    assert error.phase == "list"
    assert error.__cause__ is not None


async def test_an_unknown_host_is_called_unknown() -> None:
    async with transport_to("http://no-such-host.invalid:6443") as transport:
        error = await refused(transport)

    assert type(error) is ConnectionFailed
    assert str(error).startswith("no-such-host.invalid:6443: the name is not known: ")


async def test_a_server_that_hangs_up_without_an_answer_lost_the_connection() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")

    async with talking(talk) as address, transport_to(f"http://{address}") as transport:
        assert type(await refused(transport)) is ConnectionLost


async def test_a_list_that_breaks_off_lost_the_connection() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        await writer.drain()
        writer.write_eof()

    async with talking(talk) as address, transport_to(f"http://{address}") as transport:
        error = await refused(transport)

    assert type(error) is ConnectionLost
    assert "broke off" in str(error)


async def test_a_reset_in_the_middle_of_a_watch_lost_the_connection() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        await writer.drain()

    async with talking(talk) as address, transport_to(f"http://{address}") as transport:
        assert type(await refused(transport, WATCH)) is ConnectionLost


@pytest.mark.parametrize(
    "body",
    [b"Transfer-Encoding: chunked\r\n\r\nnonsense\r\n", b"Content-Encoding: gzip\r\n\r\nnot gzip"],
    ids=["chunk size", "gzip"],
)
async def test_a_body_that_makes_no_sense_ends_in_one_of_our_errors(body: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n" + body)
        await writer.drain()
        writer.write_eof()

    async with talking(talk) as address, transport_to(f"http://{address}") as transport:
        assert isinstance(await refused(transport), ProtocolError | ConnectionLost)


async def test_bytes_that_are_no_http_are_called_so() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\n")
        await writer.drain()
        await eventually_closed(reader)

    async with talking(talk) as address, transport_to(f"http://{address}") as transport:
        error = await refused(transport)

    assert type(error) is ProtocolError
    assert "is not HTTP" in str(error)


# -- time --------------------------------------------------------------------------------------


async def test_a_handshake_that_stalls_is_a_timeout(certificates: Certificates) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await eventually_closed(reader)

    async with talking(talk) as address:
        trust = certificates.client_context()
        async with transport_to(f"https://{address}", tls=trust, timeouts=BRISK) as transport:
            error = await refused(transport)

    assert type(error) is RequestTimedOut
    assert str(error) == f"{address}: no connection in the time allowed"


@pytest.mark.parametrize("call", [LIST, WATCH], ids=["list", "watch"])
async def test_a_server_that_says_nothing_is_a_timeout(call: Call) -> None:
    async def answer(request: web.Request) -> web.Response:
        await asyncio.Event().wait()
        return web.Response()

    async with serving(answer) as server, transport_to(server, timeouts=BRISK) as transport:
        error = await refused(transport, call)

    assert type(error) is RequestTimedOut
    assert error.phase == call.phase


async def test_a_list_that_stops_coming_is_a_timeout() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = await streamed(request, b"half")
        await asyncio.Event().wait()
        return response

    async with serving(answer) as server, transport_to(server, timeouts=BRISK) as transport:
        error = await refused(transport)

    assert type(error) is RequestTimedOut
    assert "stopped coming" in str(error)


async def test_a_silent_watch_is_ended_at_its_own_time_and_the_grace() -> None:
    """It may be silent that long: what bookmarks promise is the reflector's to judge."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = await streamed(request)
        await asyncio.Event().wait()
        return response

    short = Call("watch", "/api/v1/pods", watch=0)
    async with serving(answer) as server, transport_to(server, timeouts=BRISK) as transport:
        error = await refused(transport, short)

    assert type(error) is RequestTimedOut
    assert "outlived its 0 s by 0.05 s" in str(error)


async def test_what_had_arrived_before_the_deadline_is_still_read() -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=b"x" * 1000)

    short = Call("watch", "/api/v1/pods", watch=0)
    async with (
        serving(answer) as server,
        transport_to(server, timeouts=BRISK) as transport,
        transport.request(short) as body,
    ):
        await asyncio.sleep(0.08)
        assert [len(chunk) async for chunk in body] == [1000]


async def test_a_watch_outlives_the_silence_allowed_to_a_list() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = await streamed(request, b"one")
        await asyncio.sleep(0.08)
        await response.write(b"two")
        return response

    async with serving(answer) as server, transport_to(server, timeouts=BRISK) as transport:
        assert await read(transport, WATCH) == b"onetwo"


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
        await eventually_closed(reader)

    async with serving(echo) as echoing, talking(nonsense) as talker:
        tls = certificates.client_context()
        https = echoing.replace("http://", "https://")
        gone = f"http://{await free_address()}"
        for server in (echoing, https, f"http://{talker}", gone):
            async with transport_to(server, tls=tls) as transport:
                errors.append(await refused(transport))
                errors.append(await refused(transport, WATCH))
                assert CANARY not in repr(vars(transport)["_credentials"])

    assert "you sent Bearer [credential]" in str(errors[0])
    assert not any(CANARY in said for error in errors for said in everything_said(error))
    assert CANARY not in caplog.text
