"""TLS contexts whose certificates rotate, and keys that are left nowhere."""

from __future__ import annotations

import asyncio
import logging
import ssl
import stat
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import trustme

from aioinformer._client.auth.tls import (
    RotatingTls,
    TlsMaterial,
    open_certificate_file,
    open_memory_file,
    open_private_file,
)
from aioinformer._client.auth.token_refresh import CertificatePair
from aioinformer.errors import ConfigurationError
from tests.client.conftest import Certificates


def pair_of(leaf: trustme.LeafCert) -> CertificatePair:
    chain = b"".join(blob.bytes() for blob in leaf.cert_chain_pems)
    return CertificatePair(chain, leaf.private_key_pem.bytes())


class Files:
    """A source of certificates that counts its reads."""

    def __init__(self, authority: bytes, pair: CertificatePair | None = None) -> None:
        self.authority = authority
        self.pair = pair
        self.reads = 0
        self.fails = False

    def __call__(self) -> TlsMaterial:
        self.reads += 1
        if self.fails:
            raise FileNotFoundError(2, "No such file or directory", "/there/ca.crt")
        return TlsMaterial(self.authority, self.pair)

    def tls(self, granted: Callable[[], CertificatePair | None] = lambda: None) -> RotatingTls:
        return RotatingTls(self, origin="here", plugin_pair=granted)


@pytest.fixture
def files(certificates: Certificates) -> Files:
    return Files(certificates.authority_pem)


async def end_of_reading() -> None:
    """Return when nothing reads certificates any more."""
    tasks = [each for each in asyncio.all_tasks() if each.get_name() == "refresh of certificates"]
    await asyncio.gather(*tasks)


# -- rotation ----------------------------------------------------------------------------------


async def test_files_that_have_not_changed_are_read_once_a_minute_at_most(files: Files) -> None:
    tls = files.tls()

    first = await tls.context()
    assert await tls.context() is first
    await end_of_reading()
    assert files.reads == 1


async def test_after_the_interval_the_files_are_read_in_the_background(
    files: Files,
) -> None:
    tls = RotatingTls(files, origin="here", interval=0)
    first = await tls.context()
    files.authority = trustme.CA().cert_pem.bytes()

    assert await tls.context() is first  # nobody waited
    await end_of_reading()

    assert await tls.context() is not first
    await end_of_reading()


async def test_concurrent_requests_read_the_files_once(files: Files) -> None:
    tls = files.tls()

    contexts = await asyncio.gather(*(tls.context() for _ in range(10)))

    assert len({id(each) for each in contexts}) == 1
    assert files.reads == 1


async def test_a_failed_handshake_reads_the_files_at_once(files: Files) -> None:
    tls = files.tls()
    first = await tls.context()

    assert await tls.context(failed=first) is first  # nothing has changed
    files.authority = trustme.CA().cert_pem.bytes()
    second = await tls.context(failed=first)

    assert second is not first
    assert await tls.context(failed=first) is second  # it has been by now
    assert files.reads == 3


async def test_a_certificate_that_a_plugin_has_yielded_is_used_at_once(
    files: Files, certificates: Certificates
) -> None:
    pairs = [pair_of(certificates.user)]
    tls = files.tls(lambda: pairs[-1])
    first = await tls.context()
    assert await tls.context() is first

    pairs.append(pair_of(certificates.authority.issue_cert("other@example.com")))

    assert await tls.context() is not first


async def test_a_certificate_of_the_kubeconfig_goes_before_that_of_a_plugin(
    certificates: Certificates,
) -> None:
    """As client-go has it."""
    mine = pair_of(certificates.user)
    tls = Files(certificates.authority_pem, mine).tls(lambda: CertificatePair(b"never", b"used"))

    assert (await tls.context()).verify_mode is ssl.CERT_REQUIRED


async def test_unreadable_files_are_logged_once_and_the_last_context_stays_in_use(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    tls = files.tls()
    first = await tls.context()
    files.fails = True

    for _ in range(2):
        assert await tls.context(failed=first) is first
    assert caplog.messages == [
        "here: a certificate or its key can't be used: /there/ca.crt: No such file or directory; "
        "the last certificates stay in use"
    ]
    files.fails = False
    caplog.set_level(logging.INFO)
    for _ in range(2):
        await tls.context(failed=first)
    assert caplog.messages[1:] == [
        "here: the certificates can be used again, 0.0 s after the first warning"
    ]


async def test_a_certificate_without_its_new_key_is_not_used(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    """The certificate is written already, and its key not yet."""
    before, after = pair_of(certificates.user), pair_of(certificates.authority.issue_cert("x@y.z"))
    files = Files(certificates.authority_pem, before)
    tls = files.tls()
    first = await tls.context()

    files.pair = CertificatePair(after.certificate, before.key)
    assert await tls.context(failed=first) is first
    assert "KEY_VALUES_MISMATCH; authority, client certificate and" in caplog.text

    files.pair = after
    assert await tls.context(failed=first) is not first


async def test_unreadable_files_at_the_first_read_are_an_error(files: Files) -> None:
    files.fails = True
    tls = files.tls()

    with pytest.raises(ConfigurationError, match=r"^here: a certificate or its key can't be used"):
        await tls.context()
    files.fails = False
    assert (await tls.context()).verify_mode is ssl.CERT_REQUIRED


async def test_unchecked_certificates_are_not_checked(files: Files) -> None:
    context = TlsMaterial(files.authority, verify=False).make_context()

    assert context.verify_mode is ssl.CERT_NONE


async def test_closing_ends_the_reading_task(files: Files) -> None:
    tls = files.tls()
    await tls.context()

    await tls.aclose()

    assert repr(tls) == "<RotatingTls of here>"


# -- keys as files -----------------------------------------------------------------------------

Place = Callable[[bytes], AbstractContextManager[Path]]
places = pytest.mark.parametrize(
    "place",
    [
        pytest.param(
            open_memory_file,
            marks=pytest.mark.skipif(sys.platform != "linux", reason="Linux has it"),
        ),
        open_private_file,
    ],
)


@places
def test_the_file_of_a_key_is_removed_after_its_use(
    place: Place, certificates: Certificates
) -> None:
    pair = pair_of(certificates.user)

    with place(pair.certificate + pair.key) as path:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(path)
        assert path.read_bytes() == pair.certificate + pair.key

    assert not path.exists()


@places
def test_the_file_of_a_key_is_removed_after_a_failure(place: Place) -> None:
    paths: list[Path] = []

    def load() -> None:
        with place(b"no key") as path:
            paths.append(path)
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(path)

    with pytest.raises(ssl.SSLError):
        load()
    assert not paths[0].exists()


def test_only_the_own_user_can_read_the_file_of_a_key() -> None:
    with open_private_file(b"key") as path:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert not path.parent.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="Linux has it")
def test_a_key_is_kept_in_memory_where_memory_files_exist() -> None:
    with open_certificate_file(CertificatePair(b"certificate", b"key")) as path:
        assert "memfd" in str(path.readlink())
        assert path.read_bytes() == b"certificate\nkey"
