"""Credentials and plain HTTP: they are sent to a loopback address, elsewhere only on request."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import kubernetes.aio.client
import kubernetes_asyncio.client
import pytest
from aiohttp import web

from aioinformer import Client
from aioinformer.adapters import kubernetes_aio
from aioinformer.adapters import kubernetes_asyncio as adapter_of_ka
from aioinformer.errors import ConfigurationError, FetchError, InformerError
from tests.client.conftest import Certificates
from tests.client.conftest import certificates as certificates
from tests.client.credential_kinds import (
    CREDENTIAL_KINDS,
    TOKENS,
    ConfiguredCredentials,
    CredentialKind,
)
from tests.client.servers import http_server
from tests.client.transports import error_texts

REMOTE = "http://kubernetes.example"
HEADER_KINDS = {
    name: kind
    for name, kind in CREDENTIAL_KINDS.items()
    # A pod's server has TLS, and certificates are presented in TLS alone.
    if name != "in a pod" and ("certificate" not in name or "token" in name)
}
SECRET = TOKENS[0]


class Recorder:
    """The proxy of ``$HTTP_PROXY``, which keeps the credentials of the requests that it reads."""

    def __init__(self) -> None:
        self.requests = 0
        self.received: list[str] = []

    async def handle(self, request: web.Request) -> web.Response:
        self.requests += 1
        names = ("Authorization", "Cookie")
        self.received += [request.headers[name] for name in names if name in request.headers]
        return web.Response(text="{}")


@asynccontextmanager
async def recorder(
    monkeypatch: pytest.MonkeyPatch, variable: str = "HTTP_PROXY"
) -> AsyncGenerator[Recorder]:
    it = Recorder()
    async with http_server(it.handle) as proxy:
        monkeypatch.setenv(variable, proxy)
        yield it


async def failure_of(client: Client) -> InformerError:
    with pytest.raises(InformerError) as caught:
        async with client:
            await client.get_raw("/version")
    assert not any(SECRET in text for text in error_texts(caught.value))
    return caught.value


def ready_made(
    library: Any,
    client_of: Callable[..., Client],
    host: str = REMOTE,
    proxy: str | None = None,
    **options: Any,
) -> Client:
    configuration = library.Configuration()
    configuration.host, configuration.proxy = host, proxy
    configuration.api_key = {"BearerToken": SECRET}
    # An ``ApiClient``, of which the adapters read these two attributes, would have to be closed.
    api = SimpleNamespace(configuration=configuration, default_headers={})
    return client_of(api, **options)


GIVEN: Mapping[str, Callable[..., Client]] = {
    "token=": partial(Client, REMOTE, token=SECRET),
    "headers=": partial(Client, REMOTE, headers={"authorization": SECRET}),
    "headers= with a cookie": partial(Client, REMOTE, headers={"Cookie": SECRET}),
    "kubernetes_asyncio": partial(ready_made, kubernetes_asyncio.client, adapter_of_ka.client_of),
    "kubernetes.aio": partial(ready_made, kubernetes.aio.client, kubernetes_aio.client_of),
}


@pytest.mark.parametrize("kind", HEADER_KINDS.values(), ids=HEADER_KINDS)
async def test_credentials_of_a_kubeconfig_are_sent_without_tls_only_on_request(
    kind: CredentialKind,
    tmp_path: Path,
    certificates: Certificates,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leaves = (certificates.user, certificates.user)
    kind(it := ConfiguredCredentials(tmp_path, certificates, leaves, REMOTE), 0)
    path = it.folder / "config"
    async with recorder(monkeypatch) as proxy:
        error = await failure_of(Client.connect(kubeconfig=path))
        assert type(error) is ConfigurationError
        assert str(error).startswith(f"{REMOTE} ({path}: context 'main'): the credentials are not")
        assert not proxy.requests
        async with Client.connect(kubeconfig=path, send_credentials_unencrypted=True) as client:
            await client.get_raw("/version")
        assert len(proxy.received) == 1


@pytest.mark.parametrize("make", GIVEN.values(), ids=GIVEN)
async def test_credentials_of_the_program_are_sent_without_tls_only_on_request(
    make: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with recorder(monkeypatch) as proxy:
        error = await failure_of(make())
        assert type(error) is ConfigurationError
        assert str(error) == (
            f"{REMOTE}: the credentials are not sent, because without TLS others on the network "
            "can read them: use a URL that begins with https://, remove the credentials, or pass "
            "send_credentials_unencrypted=True to the client"
        )
        assert not proxy.requests
        async with make(send_credentials_unencrypted=True) as client:
            await client.get_raw("/version")
        assert [SECRET in each for each in proxy.received] == [True]


async def test_credentials_that_come_with_a_later_request_are_withheld_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    headers = dict[str, str]()
    async with recorder(monkeypatch) as proxy, Client(REMOTE, headers=lambda: headers) as client:
        await client.get_raw("/version")
        headers["Authorization"] = SECRET
        with pytest.raises(FetchError, match="the credentials are not sent") as caught:
            await client.get_raw("/version")
        assert caught.value.phase == "credentials"
        assert proxy.requests == 1
        assert not proxy.received


async def test_a_request_without_credentials_needs_no_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    async with recorder(monkeypatch) as proxy, Client(REMOTE, headers={"X-Team": "shop"}) as client:
        await client.get_raw("/version")
        assert proxy.requests == 1


@pytest.mark.parametrize(
    ("server", "allowed"),
    [
        ("http://127.0.0.1:8001", True),
        ("http://127.8.9.1", True),
        ("http://[::1]:8001", True),
        ("http://[::ffff:127.0.0.1]", True),
        ("http://LOCALHOST:8001", True),
        ("http://localhost.:8001", True),
        ("https://10.0.0.1", True),
        ("http://10.0.0.1", False),
        ("http://0.0.0.0:8001", False),
        ("http://[fe80::1]", False),
        ("http://localhost.example", False),
        ("http://127.0.0.1.example", False),
    ],
)
async def test_plain_http_is_enough_for_a_loopback_address_alone(
    server: str, allowed: bool
) -> None:
    client = Client(server, token=SECRET)
    if allowed:
        async with client:
            return
    with pytest.raises(ConfigurationError, match="the credentials are not sent"):
        await client.__aenter__()
    assert client.state == "closed"


@pytest.mark.parametrize(
    ("proxy", "allowed"), [("http://127.0.0.1:9", True), ("http://proxy.example:9", False)]
)
async def test_a_loopback_address_behind_a_proxy_is_that_of_the_proxy(
    proxy: str, allowed: bool
) -> None:
    client = ready_made(
        kubernetes_asyncio.client, adapter_of_ka.client_of, "http://127.0.0.1:8001", proxy
    )
    if allowed:
        async with client:
            return
    with pytest.raises(ConfigurationError, match="the credentials are not sent"):
        await client.__aenter__()
