"""With what a request goes out again that failed; in virtual time."""

from __future__ import annotations

import asyncio
import ssl

import pytest
from yarl import URL

from aioinformer import Client
from aioinformer._client.auth.authenticator import (
    REFRESH_COOLDOWN,
    Authenticator,
    RequestCredentials,
)
from aioinformer._client.auth.credentials import (
    Credentials,
    ExplicitServer,
    FixedAuthorization,
    FixedTls,
    create_ssl_context,
    parse_server_url,
)
from aioinformer._client.auth.proxies import Proxy
from aioinformer._client.auth.tls import RotatingTls, TlsMaterial
from aioinformer._client.auth.token_refresh import RefreshingAuthorization, TokenGrant
from aioinformer.errors import FetchError, RequestTimedOut
from tests.client.conftest import Certificates
from tests.client.kubeconfigs import CANARY
from tests.client.virtual_time import in_virtual_time

TIMEOUT = 10.0


class Source:
    """Yields another token each time, or the same one for ever."""

    def __init__(self, *, always: str = "", takes: float = 0.0) -> None:
        self.runs = 0
        self._always = always
        self._takes = takes

    async def __call__(self) -> TokenGrant:
        self.runs += 1
        await asyncio.sleep(self._takes)
        return TokenGrant(self._always or f"Bearer {self.runs}")

    def access(self) -> Authenticator:
        authorization = RefreshingAuthorization(self.__call__)
        return Authenticator(Credentials(URL("http://10.0.0.1"), authorization), timeout=TIMEOUT)


class Contexts:
    """A ``Tls`` that has another context when it is asked again after a failure."""

    def __init__(self, *contexts: ssl.SSLContext) -> None:
        self._contexts = list(contexts)

    async def context(self, *, failed: ssl.SSLContext | None = None) -> ssl.SSLContext:
        if failed is self._contexts[0] and len(self._contexts) > 1:
            del self._contexts[0]
        return self._contexts[0]

    async def aclose(self) -> None: ...


def context() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def secured(*contexts: ssl.SSLContext) -> Authenticator:
    tls = Contexts(*contexts)
    return Authenticator(
        Credentials(URL("https://10.0.0.1"), FixedAuthorization("Bearer abc"), tls), timeout=1
    )


@in_virtual_time
async def test_a_token_that_another_request_has_renewed_ends_the_waits() -> None:
    """An exec plugin is not run to find out if it has other credentials."""
    source = Source()
    access = source.access()
    rejected = await access.current_credentials()
    waits = [asyncio.create_task(access.wait_for_change(60.0)) for _ in range(2)]
    await asyncio.sleep(30.0)
    assert (source.runs, [wait.done() for wait in waits]) == (1, [False, False])

    await access.refresh_after_401(rejected)
    await asyncio.sleep(1.0)

    assert [wait.done() and wait.result() for wait in waits] == [True, True]
    assert not await access.wait_for_change(60.0)
    assert source.runs == 2


@in_virtual_time
async def test_credentials_that_never_change_end_no_wait() -> None:
    assert not await secured(context()).wait_for_change(60.0)


async def test_certificates_of_a_program_that_raises_anything_end_no_wait() -> None:
    materials = [TlsMaterial()]

    def read() -> TlsMaterial:
        if not materials:
            raise TypeError(CANARY)
        return materials.pop()

    tls = RotatingTls(read, origin="here")
    credentials = Credentials(URL("https://10.0.0.1"), FixedAuthorization(), tls)
    access = Authenticator(credentials, timeout=TIMEOUT)
    await access.current_credentials()

    assert not await access.wait_for_change(0.1)
    await access.aclose()


@in_virtual_time
async def test_a_renewed_token_that_is_rejected_is_not_renewed_again_during_the_cooldown() -> None:
    source = Source()
    access = source.access()
    second = await access.refresh_after_401(await access.current_credentials())
    assert second is not None

    assert await access.refresh_after_401(second) is None
    await asyncio.sleep(REFRESH_COOLDOWN - 1)
    assert await access.refresh_after_401(second) is None
    await asyncio.sleep(1)
    assert await access.refresh_after_401(second) == RequestCredentials("Bearer 3", None)
    assert source.runs == 3


@in_virtual_time
async def test_a_successful_request_ends_the_cooldown() -> None:
    source = Source()
    access = source.access()
    second = await access.refresh_after_401(await access.current_credentials())
    assert second is not None

    access.record_success()

    assert await access.refresh_after_401(second) == RequestCredentials("Bearer 3", None)


@in_virtual_time
async def test_a_request_is_not_repeated_with_the_same_token() -> None:
    source = Source(always="Bearer abc")
    access = source.access()

    assert await access.refresh_after_401(await access.current_credentials()) is None
    assert source.runs == 2


@in_virtual_time
async def test_credentials_that_take_too_long_are_a_timeout_each_time() -> None:
    source = Source(takes=25)
    access = source.access()

    for _ in range(2):
        began = asyncio.get_running_loop().time()
        with pytest.raises(RequestTimedOut, match=r"^http://10\.0\.0\.1: the credentials were not"):
            await access.current_credentials()
        assert asyncio.get_running_loop().time() == pytest.approx(began + TIMEOUT)

    assert await access.current_credentials() == RequestCredentials("Bearer 1", None)
    assert source.runs == 1  # the third request got what the first one had begun


@in_virtual_time
async def test_after_a_failed_handshake_another_context_is_tried_if_there_is_one() -> None:
    first, second = context(), context()
    access = secured(first, second)

    identity = await access.refresh_after_tls_failure(await access.current_credentials())

    assert identity == RequestCredentials("Bearer abc", second)
    assert await access.refresh_after_tls_failure(RequestCredentials("Bearer abc", second)) is None


@in_virtual_time
async def test_a_tls_failure_is_not_retried_without_a_tls_context() -> None:
    access = Source().access()

    assert await access.refresh_after_tls_failure(await access.current_credentials()) is None


@in_virtual_time
async def test_no_repr_shows_a_secret() -> None:
    access = Source(always="Bearer canary").access()

    assert "canary" not in f"{await access.current_credentials()!r} {access!r}"
    assert repr(access) == "<Authenticator to http://10.0.0.1>"
    await access.aclose()


class BrokenAuthorization:
    """An ``Authorization`` of a program that raises, or takes long."""

    def __init__(self, error: type[BaseException] | None) -> None:
        self._error = error

    async def header(self, *, rejected: str | None = None) -> str:
        if self._error is not None:
            raise self._error(CANARY)
        await asyncio.sleep(3600)
        return ""

    async def aclose(self) -> None: ...


@pytest.mark.parametrize("error", [asyncio.CancelledError, BaseException, ValueError, OSError])
@in_virtual_time
async def test_a_source_that_raises_anything_makes_one_failed_request(
    error: type[BaseException],
) -> None:
    source = Credentials(URL("http://10.0.0.1"), BrokenAuthorization(error))
    access = Authenticator(source, timeout=TIMEOUT)
    with pytest.raises(FetchError, match=rf"credentials failed with {error.__name__} \(raised at"):
        await access.current_credentials()


@in_virtual_time
async def test_a_cancellation_arrives_while_a_source_works() -> None:
    source = Credentials(URL("http://10.0.0.1"), BrokenAuthorization(None))
    waiting = asyncio.create_task(Authenticator(source, timeout=TIMEOUT).current_credentials())
    await asyncio.sleep(1)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


@in_virtual_time
async def test_a_refresh_that_cancels_itself_is_a_failed_request_and_no_closed_client() -> None:
    async def refresh() -> TokenGrant:
        raise asyncio.CancelledError

    access = Authenticator(
        Credentials(URL("http://10.0.0.1"), RefreshingAuthorization(refresh)), timeout=TIMEOUT
    )
    with pytest.raises(FetchError, match="refresh of credentials was cancelled, but not by this"):
        await access.current_credentials()


# -- credentials that never change -------------------------------------------------------------

SERVER = URL("https://10.0.0.1:6443")


async def test_https_without_a_context_trusts_the_authorities_of_the_system() -> None:
    tls = (await ExplicitServer(SERVER).load()).tls

    assert tls is not None
    context = await tls.context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert await tls.context(failed=context) is context


async def test_no_repr_shows_the_query_of_a_server_that_another_source_names() -> None:
    class Source:
        async def load(self) -> Credentials:
            return Credentials(SERVER.with_query(token=CANARY), FixedAuthorization())

    credentials = await Source().load()
    async with Client.of(Source()) as client:
        shown = [repr(client), client.server]
    shown += [repr(credentials), repr(Authenticator(credentials, timeout=1))]
    assert CANARY not in "".join(shown)
    assert credentials.server == SERVER


def test_a_slash_at_the_end_of_a_server_url_is_removed() -> None:
    assert str(parse_server_url("https://host/k8s/")) == "https://host/k8s"


def test_the_description_of_credentials_has_the_server_and_the_origin() -> None:
    fixed = FixedAuthorization()

    assert Credentials(SERVER, fixed).description == str(SERVER).rstrip("/")
    assert CANARY not in Credentials(SERVER.with_query(token=CANARY), fixed).description
    assert Credentials(SERVER, fixed, origin="config").description.endswith(" (config)")


def test_no_repr_of_fixed_credentials_shows_a_secret() -> None:
    fixed = FixedAuthorization("Bearer canary")
    shown = [
        fixed,
        ExplicitServer(SERVER, "canary"),
        Credentials(SERVER, fixed, proxy=Proxy(URL("http://proxy"), "Basic canary")),
    ]

    assert not any("canary" in repr(each) for each in shown)
    assert "10.0.0.1" in repr(shown[-1])


async def test_closing_fixed_credentials_has_no_effect() -> None:
    tls = FixedTls(create_ssl_context())
    credentials = Credentials(SERVER, FixedAuthorization("Bearer abc"), tls)

    await credentials.aclose()

    assert await credentials.authorization.header() == "Bearer abc"
    assert await tls.context() is tls.value


def test_a_clusters_own_certificate_is_not_checked_more_strictly_than_by_kubectl(
    certificates: Certificates,
) -> None:
    context = create_ssl_context(certificates.authority_pem)

    assert not context.verify_flags & ssl.VERIFY_X509_STRICT
    assert len(context.get_ca_certs()) == 1


@pytest.mark.parametrize("authority", [b"", "§".encode(), b"nonsense"])
def test_an_authority_without_certificates_is_an_error(authority: bytes) -> None:
    with pytest.raises(ValueError, match="no certificate that can be used"):
        create_ssl_context(authority)
