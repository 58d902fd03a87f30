"""With what a request goes out again that failed; in virtual time."""

from __future__ import annotations

import asyncio
import ssl

import pytest
from yarl import URL

from aioinformer._client.auth.authenticator import OUTAGE, Access, Identity
from aioinformer._client.auth.credentials import Credentials, FixedAuthorization
from aioinformer._client.auth.token_refresh import Grant, RenewedAuthorization
from aioinformer.errors import RequestTimedOut
from tests.client.virtual import virtually

PATIENCE = 10.0


class Source:
    """Yields another token each time, or the same one for ever."""

    def __init__(self, *, always: str = "", takes: float = 0.0) -> None:
        self.runs = 0
        self._always = always
        self._takes = takes

    async def __call__(self) -> Grant:
        self.runs += 1
        await asyncio.sleep(self._takes)
        return Grant(self._always or f"Bearer {self.runs}")

    def access(self) -> Access:
        authorization = RenewedAuthorization(self.__call__)
        return Access(Credentials(URL("http://10.0.0.1"), authorization), patience=PATIENCE)


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


def secured(*contexts: ssl.SSLContext) -> Access:
    tls = Contexts(*contexts)
    return Access(
        Credentials(URL("https://10.0.0.1"), FixedAuthorization("Bearer abc"), tls), patience=1
    )


@virtually
async def test_a_refused_token_is_renewed_once_for_all_who_were_refused() -> None:
    source = Source()
    access = source.access()
    refused = await access.identity()

    others = await asyncio.gather(*(access.instead_of(refused) for _ in range(10)))

    assert others == [Identity("Bearer 2", None)] * 10
    assert source.runs == 2


@virtually
async def test_what_is_refused_again_is_not_renewed_again_in_the_same_outage() -> None:
    source = Source()
    access = source.access()
    second = await access.instead_of(await access.identity())
    assert second is not None

    assert await access.instead_of(second) is None
    await asyncio.sleep(OUTAGE - 1)
    assert await access.instead_of(second) is None
    await asyncio.sleep(1)
    assert await access.instead_of(second) == Identity("Bearer 3", None)
    assert source.runs == 3


@virtually
async def test_an_outage_ends_when_something_has_worked() -> None:
    source = Source()
    access = source.access()
    second = await access.instead_of(await access.identity())
    assert second is not None

    access.worked()

    assert await access.instead_of(second) == Identity("Bearer 3", None)


@virtually
async def test_a_source_that_yields_the_same_again_has_nothing_to_send_with() -> None:
    source = Source(always="Bearer abc")
    access = source.access()

    assert await access.instead_of(await access.identity()) is None
    assert source.runs == 2


@virtually
async def test_credentials_that_take_too_long_are_a_timeout_each_time() -> None:
    source = Source(takes=25)
    access = source.access()

    for _ in range(2):
        began = asyncio.get_running_loop().time()
        with pytest.raises(RequestTimedOut, match=r"^http://10\.0\.0\.1: the credentials were not"):
            await access.identity()
        assert asyncio.get_running_loop().time() == pytest.approx(began + PATIENCE)

    assert await access.identity() == Identity("Bearer 1", None)
    assert source.runs == 1  # the third request got what the first one had begun


@virtually
async def test_a_refused_certificate_is_looked_at_again() -> None:
    """An expired client certificate is answered with 401."""
    first, second = context(), context()
    access = secured(first, second)

    assert await access.instead_of(await access.identity()) == Identity("Bearer abc", second)


@virtually
async def test_after_a_failed_handshake_another_context_is_tried_if_there_is_one() -> None:
    first, second = context(), context()
    access = secured(first, second)

    identity = await access.after_handshake(await access.identity())

    assert identity == Identity("Bearer abc", second)
    assert await access.after_handshake(Identity("Bearer abc", second)) is None


@virtually
async def test_plain_http_has_no_handshake_to_try_again() -> None:
    access = Source().access()

    assert await access.after_handshake(await access.identity()) is None


@virtually
async def test_no_repr_shows_a_secret() -> None:
    access = Source(always="Bearer canary").access()

    assert "canary" not in f"{await access.identity()!r} {access!r}"
    assert repr(access) == "<Access to http://10.0.0.1>"
    await access.aclose()
