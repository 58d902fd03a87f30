"""The identity of a cluster: the UID of kube-system, and the endpoint with its authorities."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable

import pytest
import trustme

from aioinformer._client.client import IDENTITY_SECONDS, find_cluster_identity
from aioinformer._runtime.reflector.lister_watcher import ClusterIdentity
from aioinformer.errors import ConnectionFailed
from aioinformer.testing.simulation import run

BODY = b'{"kind":"Namespace","metadata":{"name":"kube-system","uid":"u-1"}}'


def answer(body: bytes = BODY) -> Callable[[str], Awaitable[bytes]]:
    async def get(path: str) -> bytes:
        assert path == "/api/v1/namespaces/kube-system"
        return body

    return get


def identity(
    get: Callable[[str], Awaitable[bytes]],
    server: str = "https://one",
    tls: ssl.SSLContext | None = None,
) -> ClusterIdentity:
    return run(find_cluster_identity(get, server, tls), seed=1)


def context(*authorities: trustme.CA) -> ssl.SSLContext:
    found = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for each in authorities:
        found.load_verify_locations(cadata=each.cert_pem.bytes().decode())
    return found


def test_a_cluster_is_known_by_the_uid_of_kube_system() -> None:
    assert identity(answer()).uid == "u-1"


@pytest.mark.parametrize(
    "body",
    [
        *(b"<html>", b"{}", b'{"metadata":{"uid":7}}', b"\xff", b'{"a":' + b"[" * 50_000),
        b'{"metadata":{"uid":"\xff"}}',
    ],
    ids=["page", "empty", "number", "no UTF-8", "deep", "no UTF-8 inside"],
)
def test_an_answer_that_is_no_namespace_leaves_the_endpoint(body: bytes) -> None:
    found = identity(answer(body))

    assert found.uid == ""
    assert found.endpoint == identity(answer()).endpoint


def test_a_server_that_refuses_or_does_not_answer_leaves_the_endpoint() -> None:
    async def refuse(path: str) -> bytes:
        raise ConnectionFailed("refused")

    async def wait(path: str) -> bytes:
        await asyncio.get_running_loop().create_future()
        return BODY

    async def main() -> float:
        start = asyncio.get_running_loop().time()
        assert (await find_cluster_identity(wait, "https://one", None)).uid == ""
        return asyncio.get_running_loop().time() - start

    assert identity(refuse) == ClusterIdentity("", identity(answer()).endpoint)
    assert run(main(), seed=1) == IDENTITY_SECONDS


def test_url_and_authorities_identify_the_endpoint() -> None:
    first, second = trustme.CA(), trustme.CA()
    endpoints = {
        identity(answer(), server, tls).endpoint
        for server in ("https://one", "https://two")
        for tls in (None, context(first), context(second), context(first, second))
    }

    assert len(endpoints) == 8
    assert (
        identity(answer(), tls=context(first, second)).endpoint
        == identity(answer(), tls=context(second, first)).endpoint
    )
