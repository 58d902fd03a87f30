"""Every kind of credentials over TLS: it is used, it rotates, and no error shows it."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme

from aioinformer import Client
from aioinformer.errors import (
    ConfigurationError,
    ConnectionFailed,
    FetchError,
    InformerError,
    Unauthorized,
)
from tests.client.accelerated_time import in_accelerated_time
from tests.client.auth_servers import (
    AuthenticatingServer,
    client_certificate_context,
    replace_certificate,
)
from tests.client.conftest import Certificates
from tests.client.credential_kinds import (
    CREDENTIAL_KINDS,
    NAMES,
    TOKENS,
    ConfiguredCredentials,
    CredentialKind,
    configure_certificate_files,
    configure_token,
)
from tests.client.servers import http_server, tcp_server
from tests.client.transports import PODS, error_texts, read, read_error, watching

every_kind = pytest.mark.parametrize("kind", CREDENTIAL_KINDS.values(), ids=CREDENTIAL_KINDS.keys())

RENEWED_DIFFERENTLY = (
    "token",
    "tokenFile",
    "certificate in files",
    "exec v1 token",
    "exec v1 certificate",
    "exec token and certificate",
)
every_way = pytest.mark.parametrize(
    "kind", [CREDENTIAL_KINDS[name] for name in RENEWED_DIFFERENTLY], ids=RENEWED_DIFFERENTLY
)


@pytest.fixture(scope="session")
def leaves(certificates: Certificates) -> tuple[trustme.LeafCert, trustme.LeafCert]:
    one, two = map(certificates.authority.issue_cert, NAMES)
    return one, two


@pytest.fixture
def it(
    tmp_path: Path,
    certificates: Certificates,
    leaves: tuple[trustme.LeafCert, trustme.LeafCert],
) -> ConfiguredCredentials:
    return ConfiguredCredentials(tmp_path, certificates, leaves)


@asynccontextmanager
async def guarded(
    it: ConfiguredCredentials, kind: CredentialKind
) -> AsyncGenerator[tuple[AuthenticatingServer, Client]]:
    """Run a server that accepts the credentials of the first turn, and a client for it."""
    guard = AuthenticatingServer()
    async with http_server(
        guard.handle, tls=client_certificate_context(it.certificates)
    ) as it.server:
        guard.accepted.add(kind(it, 0))
        async with it.client() as client:
            yield guard, client


# -- what each kind does -----------------------------------------------------------------------


@every_kind
async def test_the_server_accepts_the_credentials(
    it: ConfiguredCredentials, kind: CredentialKind
) -> None:
    async with guarded(it, kind) as (guard, client):
        assert (await read(client)).decode() in guard.accepted
        assert guard.identities == [kind(it, 0)]


@every_kind
async def test_rejected_credentials_are_renewed_and_the_request_is_sent_again(
    it: ConfiguredCredentials, kind: CredentialKind
) -> None:
    async with guarded(it, kind) as (guard, client):
        first = kind(it, 0)
        await read(client)

        second = kind(it, 1)
        guard.accepted = {second}

        assert (await read(client)).decode() == second
        assert (await read(client)).decode() == second
        assert guard.identities == [first, first, second, second]


SEEN_WITHOUT_A_RUN = [name for name in CREDENTIAL_KINDS if not name.startswith("exec")]


@pytest.mark.parametrize(
    "kind", [CREDENTIAL_KINDS[name] for name in SEEN_WITHOUT_A_RUN], ids=SEEN_WITHOUT_A_RUN
)
@in_accelerated_time
async def test_replaced_credentials_end_the_wait_after_a_rejection(
    it: ConfiguredCredentials, kind: CredentialKind
) -> None:
    async with guarded(it, kind) as (guard, client):
        guard.accepted = set()
        assert type(await read_error(client)) is Unauthorized
        pods = client.lister_watcher(PODS)
        waits = [asyncio.create_task(pods.wait_for_credentials(600.0)) for _ in range(2)]
        await asyncio.sleep(3)
        assert not any(wait.done() for wait in waits)

        guard.accepted = {second := kind(it, 1)}
        assert await asyncio.gather(*waits) == [True, True]
        assert (await read(client)).decode() == second
        assert not await pods.wait_for_credentials(3)


@every_way
async def test_a_rotation_of_the_credentials_does_not_end_a_watch(
    it: ConfiguredCredentials, kind: CredentialKind
) -> None:
    async with guarded(it, kind) as (guard, client), watching(client) as body:
        assert await anext(body) == b"one"
        guard.accepted = {kind(it, 1)}
        await read(client)

        guard.continue_watches.set()

        assert [chunk async for chunk in body] == [b"two"]


@every_way
async def test_concurrent_requests_that_are_rejected_cause_one_renewal(
    it: ConfiguredCredentials, kind: CredentialKind
) -> None:
    async with guarded(it, kind) as (guard, client):
        await read(client)
        second = kind(it, 1)
        guard.accepted = {second}

        answers = await asyncio.gather(*(read(client) for _ in range(8)))

        assert [answer.decode() for answer in answers] == [second] * 8
        assert it.plugin is None or it.plugin.runs == 2


@every_way
async def test_a_server_that_rejects_everything_causes_one_renewal(
    it: ConfiguredCredentials, kind: CredentialKind
) -> None:
    async with guarded(it, kind) as (guard, client):
        await read(client)
        guard.accepted = set()
        kind(it, 1)

        for _ in range(4):
            assert type(await read_error(client)) is Unauthorized

        assert len(guard.identities) == 1 + 4 + 1  # one of the four was sent twice
        assert it.plugin is None or it.plugin.runs == 2


@every_kind
async def test_no_secret_of_the_credentials_is_in_an_error_a_repr_or_a_log(
    it: ConfiguredCredentials, kind: CredentialKind, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    errors: list[InformerError] = []
    shown: list[str] = []
    async with guarded(it, kind) as (guard, client):
        shown.append(repr(client))
        await read(client)
        guard.accepted = set()
        kind(it, 1)
        errors.append(await read_error(client))
        errors += await broken(it, client)
    errors.append(await unreachable(it))

    message = "\n".join([caplog.text, *shown, *(line for e in errors for line in error_texts(e))])
    assert len(it.secrets) >= 2
    assert [secret for secret in it.secrets if secret in message] == []


async def broken(it: ConfiguredCredentials, client: Client) -> list[InformerError]:
    """Return the messages after the files and the plugin have become unusable."""
    for path in it.folder.iterdir():
        if path.suffix != ".runs" and path.name != "plugin":
            path.write_text(f"a: [{TOKENS[0]}\n{TOKENS[1]}: *x")
    if it.plugin is not None:
        it.plugin.write_script(f"echo 'your token {TOKENS[1]} has expired' >&2; exit 1")
    errors: list[InformerError] = [await read_error(client)]
    try:
        await it.client().__aenter__()
    except ConfigurationError as error:
        errors.append(error)
    return errors


async def unreachable(it: ConfiguredCredentials) -> FetchError:
    """Return the messages about a server that does not listen."""
    for name in ("config", "ca.crt"):
        (it.folder / name).unlink(missing_ok=True)
    it.plugin = None
    it.server = "https://127.0.0.1:1"
    configure_token(it, 0)
    async with it.client() as client:
        error = await read_error(client)
    assert type(error) is ConnectionFailed
    return error


# -- authorities -------------------------------------------------------------------------------


async def test_an_authority_that_was_replaced_is_trusted_by_the_request_that_failed(
    it: ConfiguredCredentials,
) -> None:
    """The stream that goes on was opened with the authority of before."""
    guard, tls = AuthenticatingServer(), client_certificate_context(it.certificates)
    async with http_server(guard.handle, tls=tls) as it.server:
        guard.accepted.add(configure_token(it, 0))
        async with it.client() as client, watching(client) as body:
            assert await anext(body) == b"one"
            other = trustme.CA()
            replace_certificate(tls, other.issue_cert("127.0.0.1"))

            error = await read_error(client)
            assert type(error) is ConnectionFailed
            it.put("ca.crt", other.cert_pem.bytes())
            assert (await read(client)).decode() in guard.accepted

            guard.continue_watches.set()
            assert [chunk async for chunk in body] == [b"two"]


async def test_a_client_certificate_that_the_handshake_rejects_is_read_again(
    it: ConfiguredCredentials,
) -> None:
    guard, tls = AuthenticatingServer(), client_certificate_context(it.certificates)
    other = trustme.CA()
    tls.verify_mode = ssl.CERT_REQUIRED
    async with http_server(guard.handle, tls=tls) as it.server:
        foreign = other.issue_cert(NAMES[0])
        it.leaves = (foreign, it.leaves[1])
        configure_certificate_files(it, 0)
        async with it.client() as client:
            await read_error(client)
            guard.accepted.add(configure_certificate_files(it, 1))

            assert (await read(client)).decode() == NAMES[1]


async def test_a_client_certificate_that_a_reset_rejects_is_read_again(
    it: ConfiguredCredentials,
) -> None:
    """A system resets a connection that a server closes before it has read the request."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        subject = str(writer.get_extra_info("peercert"))
        if NAMES[1] in subject:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npong")
            await reader.read()
        else:
            reset_on_close = struct.pack("ii", 1, 0)
            connection = writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset_on_close)

    async with tcp_server(talk, tls=client_certificate_context(it.certificates)) as address:
        it.server = f"https://{address}"
        configure_certificate_files(it, 0)
        async with it.client() as client:
            assert "reset" in str(await read_error(client))
            configure_certificate_files(it, 1)

            assert await read(client) == b"pong"
