"""What a kubeconfig may name as the authority of a server, as kubectl accepts it."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path

import pytest
import trustme
from aiohttp import web

from aioinformer import Client
from aioinformer.errors import ConfigurationError, ConnectionFailed
from tests.client.servers import http_server

ROOT = trustme.CA()
INTERMEDIATE = ROOT.create_child_ca()
LEAF = INTERMEDIATE.issue_cert("127.0.0.1")
OTHER = trustme.CA()

GOOD = ROOT.cert_pem.bytes()
BROKEN = {
    "no certificate": b"-----BEGIN CERTIFICATE-----\nTm9uZQ==\n-----END CERTIFICATE-----\n",
    "no base64": b"-----BEGIN CERTIFICATE-----\n%%%\n-----END CERTIFICATE-----\n",
    "empty": b"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
    "truncated": GOOD[: len(GOOD) // 2] + b"\n",
    "damaged": GOOD.replace(GOOD[60:100], b"A" * 40),
    "headers": GOOD.replace(b"-----\n", b"-----\nProc-Type: 4,ENCRYPTED\n\n", 1),
}
"""Certificates that Go skips (``CertPool.AppendCertsFromPEM``)."""


async def request(folder: Path, authority: bytes, *, chain: trustme.LeafCert = LEAF) -> bytes:
    """Return the answer of a server to a client whose kubeconfig has this authority."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=request.path)

    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with chain.private_key_and_cert_chain_pem.tempfile() as path:
        tls.load_cert_chain(path)
    (folder / "ca.crt").write_bytes(authority)
    async with http_server(answer, tls=tls) as server:
        (folder / "config").write_text(
            f"""
current-context: main
clusters: [{{name: main, cluster: {{server: "{server}", certificate-authority: ca.crt}}}}]
contexts: [{{name: main, context: {{cluster: main, user: main}}}}]
users: [{{name: main, user: {{}}}}]
"""
        )
        async with Client.connect(kubeconfig=folder / "config") as client:
            return await client.get_raw("/version")


@pytest.mark.parametrize(
    "authority",
    [
        ROOT.cert_pem.bytes(),
        INTERMEDIATE.cert_pem.bytes(),
        LEAF.cert_chain_pems[0].bytes(),
        OTHER.cert_pem.bytes() + INTERMEDIATE.cert_pem.bytes(),
    ],
    ids=["root", "intermediate", "the server's own", "one of a bundle"],
)
async def test_each_certificate_of_the_chain_may_be_the_authority(
    tmp_path: Path, authority: bytes
) -> None:
    assert await request(tmp_path, authority) == b"/version"


async def test_another_authority_is_not_accepted(tmp_path: Path) -> None:
    with pytest.raises(ConnectionFailed, match="certificate was not accepted"):
        await request(tmp_path, OTHER.cert_pem.bytes())
    sibling = ROOT.create_child_ca().cert_pem.bytes()
    with pytest.raises(ConnectionFailed, match="certificate was not accepted"):
        await request(tmp_path, sibling)


async def test_an_authority_issues_for_other_names_only_what_it_says(tmp_path: Path) -> None:
    other_name = INTERMEDIATE.issue_cert("127.0.0.2")
    with pytest.raises(ConnectionFailed, match="certificate was not accepted"):
        await request(tmp_path, other_name.cert_chain_pems[0].bytes(), chain=other_name)


@pytest.mark.parametrize("order", ["before", "behind", "between"])
@pytest.mark.parametrize("fault", BROKEN)
async def test_a_broken_certificate_in_a_bundle_is_skipped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, fault: str, order: str
) -> None:
    other, broken, good = OTHER.cert_pem.bytes(), BROKEN[fault], GOOD
    bundle = {
        "before": broken + other + good,
        "behind": good + other + broken,
        "between": other + broken + good,
    }[order]
    with caplog.at_level(logging.WARNING):
        assert await request(tmp_path, b"# \xc3\xa4 comment\n" + bundle) == b"/version"
    assert "1 certificate of a certificate authority can't be used" in caplog.text


@pytest.mark.parametrize("fault", [*BROKEN, "nothing", "a key", "text"])
async def test_an_authority_without_a_usable_certificate_is_named(
    tmp_path: Path, fault: str
) -> None:
    others = {"nothing": b"", "a key": LEAF.private_key_pem.bytes(), "text": b"none"}
    with pytest.raises(ConfigurationError, match="contains no certificate that can be used: it"):
        await request(tmp_path, (BROKEN | others)[fault])
