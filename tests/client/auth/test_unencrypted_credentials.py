"""Credentials and plain HTTP: they are sent to a loopback address, elsewhere only on request."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
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
from aioinformer.errors import ConfigurationError, FetchError
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
    # Certificates are presented in TLS alone.
    if "certificate" not in name or "token" in name
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


@pytest.fixture
async def proxy(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Recorder]:
    it = Recorder()
    async with http_server(it.handle) as url:
        monkeypatch.setenv("HTTP_PROXY", url)
        yield it


async def failure_of(client: Client) -> str:
    with pytest.raises(ConfigurationError) as caught:
        await client.__aenter__()
    assert client.state == "closed"
    assert not any(SECRET in text for text in error_texts(caught.value))
    return str(caught.value)


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
    kind: CredentialKind, tmp_path: Path, certificates: Certificates, proxy: Recorder
) -> None:
    leaves = (certificates.user, certificates.user)
    kind(it := ConfiguredCredentials(tmp_path, certificates, leaves, REMOTE), 0)
    path = it.folder / "config"
    error = await failure_of(Client.connect(kubeconfig=path))
    assert error.startswith(f"{REMOTE} ({path}: context 'main'): the credentials are not sent")
    assert not proxy.requests
    async with Client.connect(kubeconfig=path, send_credentials_unencrypted=True) as client:
        await client.get_raw("/version")
    assert len(proxy.received) == 1


@pytest.mark.parametrize("make", GIVEN.values(), ids=GIVEN)
async def test_credentials_of_the_program_are_sent_without_tls_only_on_request(
    make: Callable[..., Client], proxy: Recorder
) -> None:
    assert await failure_of(make()) == (
        f"{REMOTE}: the credentials are not sent, because without TLS others on the network "
        "can read them: use a URL that begins with https://, remove the credentials, or pass "
        "send_credentials_unencrypted=True to the client"
    )
    assert not proxy.requests
    async with make(send_credentials_unencrypted=True) as client:
        await client.get_raw("/version")
    assert [SECRET in each for each in proxy.received] == [True]


async def test_credentials_that_come_with_a_later_request_are_withheld_as_well(
    proxy: Recorder,
) -> None:
    headers = {"X-Team": "shop"}  # which needs no TLS
    async with Client(REMOTE, headers=lambda: headers) as client:
        await client.get_raw("/version")
        headers["Authorization"] = SECRET
        with pytest.raises(FetchError, match="the credentials are not sent") as caught:
            await client.get_raw("/version")
    assert caught.value.phase == "credentials"
    assert (proxy.requests, proxy.received) == (1, [])


async def test_a_request_without_credentials_needs_no_tls(proxy: Recorder) -> None:
    async with Client(REMOTE, headers={"X-Team": "shop"}) as client:
        await client.get_raw("/version")
    assert proxy.requests == 1


@pytest.mark.parametrize(
    ("server", "proxy", "allowed"),
    [
        ("http://127.0.0.1:8001", None, True),
        ("http://127.8.9.1", None, True),
        ("http://[::1]:8001", None, True),
        ("http://[::ffff:127.0.0.1]", None, True),
        ("http://LOCALHOST:8001", None, True),
        ("http://localhost.:8001", None, True),
        ("https://10.0.0.1", None, True),
        ("http://10.0.0.1", None, False),
        ("http://0.0.0.0:8001", None, False),
        ("http://[fe80::1]", None, False),
        ("http://localhost.example", None, False),
        ("http://127.0.0.1.example", None, False),
        # A loopback address behind a proxy is that of the proxy.
        ("http://127.0.0.1:8001", "http://127.0.0.1:9", True),
        ("http://127.0.0.1:8001", "http://proxy.example:9", False),
    ],
)
async def test_plain_http_is_enough_for_a_loopback_address_alone(
    server: str, proxy: str | None, allowed: bool
) -> None:
    client = ready_made(kubernetes_asyncio.client, adapter_of_ka.client_of, server, proxy)
    if not allowed:
        assert "the credentials are not sent" in await failure_of(client)
        return
    async with client:
        pass
