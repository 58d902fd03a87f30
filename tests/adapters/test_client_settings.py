"""Clients made of the ready-made ones of kubernetes_asyncio and kubernetes.aio, over TLS."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import kubernetes.aio.client
import kubernetes_asyncio.client
import pytest
import trustme
from aiohttp import web

from aioinformer import Client
from aioinformer.adapters import kubernetes_aio
from aioinformer.adapters import kubernetes_asyncio as adapter_of_ka
from aioinformer.adapters._client_settings import GeneratedClient, TlsFiles, client_of_external
from aioinformer.errors import ConfigurationError, FetchError, Unauthorized
from tests.client.auth_servers import AuthenticatingServer, client_certificate_context
from tests.client.conftest import Certificates
from tests.client.conftest import certificates as certificates
from tests.client.servers import http_server
from tests.client.transports import error_texts

CANARY = "canary-9a2b"


class Library:
    """One of the two, as a program uses it."""

    def __init__(self, client: Any, client_of: Callable[..., Client]) -> None:
        self.client = client
        self.client_of = client_of

    @asynccontextmanager
    async def api(self, server: str, **settings: Any) -> AsyncGenerator[Any]:
        """Its ``ApiClient``, with these attributes in its configuration."""
        configuration = self.client.Configuration()
        configuration.host = server
        for name, value in settings.items():
            setattr(configuration, name, value)
        async with self.client.ApiClient(configuration) as api:
            yield api


LIBRARIES = {
    "kubernetes_asyncio": Library(kubernetes_asyncio.client, adapter_of_ka.client_of),
    "kubernetes.aio": Library(kubernetes.aio.client, kubernetes_aio.client_of),
}


@pytest.fixture(params=LIBRARIES.values(), ids=list(LIBRARIES))
def library(request: pytest.FixtureRequest) -> Library:
    found = request.param
    assert isinstance(found, Library)
    return found


async def ask(client: Client) -> str:
    return (await client.get_raw("/api")).decode()


async def test_the_server_the_token_and_the_authority_of_the_client_are_used(
    library: Library, certificates: Certificates, tmp_path: Path
) -> None:
    guard = AuthenticatingServer("Bearer abc")
    authority = str(certificates.write_authority(tmp_path))
    async with (
        http_server(guard.handle, tls=client_certificate_context(certificates)) as server,
        library.api(server, ssl_ca_cert=authority, api_key={"BearerToken": "Bearer abc"}) as api,
        library.client_of(api) as client,
    ):
        assert client.server == server
        assert await ask(client) == "Bearer abc"


async def test_the_certificate_of_the_client_is_presented(
    library: Library, certificates: Certificates, tmp_path: Path
) -> None:
    guard = AuthenticatingServer("user@example.com")
    certificates.user.private_key_pem.write_to_path(tmp_path / "key")
    for blob in certificates.user.cert_chain_pems:
        blob.write_to_path(tmp_path / "certificate", append=True)
    settings = {
        "ssl_ca_cert": str(certificates.write_authority(tmp_path)),
        "cert_file": str(tmp_path / "certificate"),
        "key_file": str(tmp_path / "key"),
    }
    async with (
        http_server(guard.handle, tls=client_certificate_context(certificates)) as server,
        library.api(server, **settings) as api,
        library.client_of(api) as client,
    ):
        assert await ask(client) == "user@example.com"


async def test_the_certificate_is_checked_for_the_tls_server_name_of_the_client(
    library: Library, certificates: Certificates, tmp_path: Path
) -> None:
    other = certificates.authority.issue_cert("kubernetes.example")
    authority = str(certificates.write_authority(tmp_path))
    settings = {"ssl_ca_cert": authority, "tls_server_name": "kubernetes.example"}
    async with (
        http_server(
            AuthenticatingServer("").handle, tls=client_certificate_context(certificates, other)
        ) as server,
        library.api(server, **settings) as api,
        library.client_of(api) as client,
    ):
        assert await ask(client) == ""


async def test_certificate_verification_may_be_switched_off(
    library: Library, certificates: Certificates
) -> None:
    async with (
        http_server(
            AuthenticatingServer("").handle, tls=client_certificate_context(certificates)
        ) as server,
        library.api(server, verify_ssl=False) as api,
        library.client_of(api) as client,
    ):
        assert await ask(client) == ""


async def test_an_authority_that_was_replaced_is_trusted(
    library: Library, certificates: Certificates, tmp_path: Path
) -> None:
    authority = tmp_path / "ca.crt"
    trustme.CA().cert_pem.write_to_path(authority)
    async with (
        http_server(
            AuthenticatingServer("").handle, tls=client_certificate_context(certificates)
        ) as server,
        library.api(server, ssl_ca_cert=str(authority), verify_ssl=True) as api,
        library.client_of(api) as client,
    ):
        with pytest.raises(FetchError, match="certificate"):
            await ask(client)
        certificates.write_authority(tmp_path)
        assert await ask(client) == ""


async def test_the_refresh_hook_runs_once_for_concurrent_requests_and_again_after_a_401(
    library: Library,
) -> None:
    runs: list[str] = []

    async def hook(configuration: Any) -> None:
        runs.append("Bearer 2" if runs else "Bearer 1")
        await asyncio.sleep(0)
        configuration.api_key["BearerToken"] = runs[-1]

    guard = AuthenticatingServer("Bearer 2")
    settings = {"api_key": {"BearerToken": "Bearer 0"}, "refresh_api_key_hook": hook}
    async with (
        http_server(guard.handle) as server,
        library.api(server, **settings) as api,
        library.client_of(api) as client,
    ):
        assert set(await asyncio.gather(*(ask(client) for _ in range(5)))) == {"Bearer 2"}
        assert guard.identities == ["Bearer 1"] * 5 + ["Bearer 2"] * 5
        guard.accepted = set()
        with pytest.raises(Unauthorized):
            await ask(client)
        assert guard.identities[10:] == ["Bearer 2"]  # it had nothing else


async def test_default_headers_of_the_client_are_sent_except_its_user_agent(
    library: Library,
) -> None:
    seen: dict[str, str] = {}

    async def answer(request: web.Request) -> web.Response:
        seen.update(request.headers)
        return web.Response()

    async with http_server(answer) as server, library.api(server) as api:
        api.set_default_header("Impersonate-User", "jane")
        api.set_default_header("authorization", "Bearer abc")
        async with library.client_of(api, headers={"X-Mine": "1"}) as client:
            await ask(client)

    assert seen["Impersonate-User"] == "jane"
    assert seen["Authorization"] == "Bearer abc"
    assert seen["X-Mine"] == "1"
    assert " aioinformer/" in seen["User-Agent"]


async def test_the_client_of_the_program_stays_open(library: Library) -> None:
    guard = AuthenticatingServer("")
    async with http_server(guard.handle) as server, library.api(server) as api:
        async with library.client_of(api) as client:
            await ask(client)
        assert not getattr(api.rest_client.pool_manager, "closed", False)


async def test_the_proxy_of_the_client_is_used_and_its_password_is_sent_in_a_header(
    library: Library,
) -> None:
    seen: list[tuple[str, str]] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append((request.headers["Host"], request.headers["Proxy-Authorization"]))
        return web.Response()

    async with http_server(answer) as proxy:
        with_user = proxy.replace("://", "://me:pw@")
        async with (
            library.api("http://kubernetes.example", proxy=with_user) as api,
            library.client_of(api) as client,
        ):
            await ask(client)
        named = {"Proxy-Authorization": "Basic other"}
        async with (
            library.api("http://kubernetes.example", proxy=proxy, proxy_headers=named) as api,
            library.client_of(api) as client,
        ):
            await ask(client)

    assert seen == [
        ("kubernetes.example", "Basic bWU6cHc="),
        ("kubernetes.example", "Basic other"),
    ]


async def test_the_proxy_of_the_environment_is_used_as_by_the_client(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, str]] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append((request.headers["Host"], request.headers["Proxy-Authorization"]))
        return web.Response()

    named = {"Proxy-Authorization": "Basic other"}
    async with http_server(answer) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy)
        async with (
            library.api("http://kubernetes.example", proxy_headers=named) as api,
            library.client_of(api) as client,
        ):
            await ask(client)

    assert seen == [("kubernetes.example", "Basic other")]


async def test_a_proxy_header_that_cannot_be_sent_is_an_error(library: Library) -> None:
    async with library.api("http://10.0.0.1", proxy_headers={"X-Tunnel": CANARY}) as api:
        with pytest.raises(ConfigurationError, match=r"X-Tunnel can't be sent") as caught:
            async with library.client_of(api):
                pass
    assert CANARY not in str(caught.value)


async def test_no_error_repr_or_log_shows_a_secret_of_the_client(
    library: Library, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    broken = False

    def hook(configuration: Any) -> None:
        if broken:
            raise RuntimeError(f"the vault has no lease for {CANARY}")
        configuration.api_key["BearerToken"] = f"Bearer {CANARY}"

    settings = {"api_key": {"BearerToken": CANARY}, "refresh_api_key_hook": hook}
    async with (
        http_server(AuthenticatingServer().handle) as server,
        library.api(server, **settings) as api,
        library.client_of(api) as client,
    ):
        said = [repr(client), repr(GeneratedClient(api))]
        with pytest.raises(Unauthorized) as rejected:
            await ask(client)
        broken = True
        with pytest.raises(FetchError, match=r"can't be renewed \(RuntimeError\)") as failed:
            await ask(client)
        said += error_texts(rejected.value) + error_texts(failed.value)
    assert failed.value.phase == "credentials"
    assert CANARY not in caplog.text + "".join(said)


async def test_a_token_of_two_lines_is_rejected_without_showing_it(library: Library) -> None:
    async with (
        library.api("http://10.0.0.1", api_key={"BearerToken": f"{CANARY}\nX: 1"}) as api,
        library.client_of(api) as client,
    ):
        with pytest.raises(FetchError, match="newline or control character") as caught:
            await ask(client)
    assert CANARY not in "".join(error_texts(caught.value))


class Own:
    """Something else, fitted to the protocol."""

    host = "http://10.0.0.1"
    tls = TlsFiles()
    tls_server_name: str | None = None
    proxy: str | None = None
    proxy_headers: Mapping[str, str] = {}

    async def header(self) -> str:
        return "Bearer own\n"


async def test_another_client_can_be_adapted_to_the_protocol() -> None:
    guard, own = AuthenticatingServer("Bearer own"), Own()
    async with http_server(guard.handle) as own.host, client_of_external(own) as client:
        assert await ask(client) == "Bearer own"


def test_an_authority_may_be_given_as_text() -> None:
    assert TlsFiles(authority_data="PEM").read_material().authority == b"PEM"
    assert "PEM" not in repr(TlsFiles(authority_data="PEM"))


def test_importing_an_adapter_imports_neither_library() -> None:
    code = (
        "import aioinformer.adapters.kubernetes_asyncio, aioinformer.adapters.kubernetes_aio, sys\n"
        "sys.exit(', '.join({'kubernetes', 'kubernetes_asyncio'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
