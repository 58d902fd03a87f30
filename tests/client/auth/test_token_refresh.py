"""The calls of a token source, in virtual time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest

from aioinformer._client.auth.token_refresh import (
    CertificatePair,
    RefreshingAuthorization,
    TokenGrant,
)
from aioinformer.errors import FetchError
from tests.client.virtual_time import in_virtual_time


class Source:
    """Yields what the test says, and counts."""

    def __init__(
        self, grant: Callable[[int], TokenGrant] = lambda n: TokenGrant(f"Bearer {n}")
    ) -> None:
        self.runs = 0
        self.takes = 0.0
        self.fails = False
        self._grant = grant

    async def __call__(self) -> TokenGrant:
        self.runs += 1
        await asyncio.sleep(self.takes)
        if self.fails:
            raise FetchError("no luck", phase="credentials")
        return self._grant(self.runs)


def granted(fresh: float, valid: float) -> Source:
    return Source(lambda n: TokenGrant(f"Bearer {n}", fresh_for=fresh, valid_for=valid))


@in_virtual_time
async def test_concurrent_requests_share_one_renewal() -> None:
    source = Source()
    source.takes = 3
    authorization = RefreshingAuthorization(source.__call__)

    assert await asyncio.gather(*(authorization.header() for _ in range(20))) == ["Bearer 1"] * 20
    assert source.runs == 1


@in_virtual_time
async def test_a_grant_without_an_expiry_is_used_until_it_is_rejected() -> None:
    source = Source()
    authorization = RefreshingAuthorization(source.__call__)
    await authorization.header()
    await asyncio.sleep(1e6)

    assert await authorization.header() == "Bearer 1"
    assert await authorization.header(rejected="Bearer 1") == "Bearer 2"
    assert await authorization.header(rejected="Bearer 1") == "Bearer 2"  # it has been by now
    assert source.runs == 2


@in_virtual_time
async def test_a_grant_is_renewed_in_the_background_before_it_ends() -> None:
    source = granted(fresh=80, valid=100)
    authorization = RefreshingAuthorization(source.__call__)
    await authorization.header()
    source.takes = 5

    await asyncio.sleep(79)
    assert await authorization.header() == "Bearer 1"
    assert source.runs == 1
    await asyncio.sleep(2)
    requests = asyncio.get_running_loop().time()
    assert await authorization.header() == "Bearer 1"
    assert asyncio.get_running_loop().time() == requests  # nobody waited for the five seconds
    await asyncio.sleep(6)
    assert await authorization.header() == "Bearer 2"


@in_virtual_time
async def test_a_grant_that_has_ended_is_waited_for() -> None:
    source = granted(fresh=80, valid=100)
    authorization = RefreshingAuthorization(source.__call__)
    await authorization.header()
    await asyncio.sleep(101)

    assert await authorization.header() == "Bearer 2"


@in_virtual_time
async def test_a_failed_renewal_is_logged_once_and_the_valid_grant_stays_in_use(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = granted(fresh=80, valid=100)
    authorization = RefreshingAuthorization(source.__call__)
    await authorization.header()
    source.fails = True

    await asyncio.sleep(90)
    for _ in range(2):
        assert await authorization.header() == "Bearer 1"
        await asyncio.sleep(1)
    assert source.runs == 3
    assert caplog.messages == ["no luck"]
    await asyncio.sleep(20)
    with pytest.raises(FetchError, match="no luck"):
        await authorization.header()
    source.fails = False
    caplog.set_level(logging.INFO)
    await authorization.header()
    assert caplog.messages[1:] == [
        "the credentials are refreshed again, 22.0 s after the first warning"
    ]
    source.fails = False
    assert (await authorization.header()).startswith("Bearer")


@in_virtual_time
async def test_each_request_that_waited_for_a_failed_renewal_gets_its_own_error() -> None:
    source = Source()
    source.fails = True
    authorization = RefreshingAuthorization(source.__call__)

    first, second = await asyncio.gather(
        authorization.header(), authorization.header(), return_exceptions=True
    )

    assert isinstance(first, FetchError)
    assert isinstance(second, FetchError)
    assert first is not second
    assert first.phase == "credentials"
    assert source.runs == 1


@in_virtual_time
async def test_the_renewal_goes_on_after_the_request_that_started_it_timed_out() -> None:
    source = Source()
    source.takes = 15
    authorization = RefreshingAuthorization(source.__call__)

    for _ in range(2):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(7):
                await authorization.header()

    assert await authorization.header() == "Bearer 1"
    assert source.runs == 1


@in_virtual_time
async def test_the_repr_shows_the_state_and_no_secret() -> None:
    pair = CertificatePair(b"canary", b"canary")
    source = Source(lambda n: TokenGrant("Bearer canary", pair))
    authorization = RefreshingAuthorization(source.__call__)
    assert repr(authorization) == "<RefreshingAuthorization new>"

    await authorization.header()

    assert repr(authorization) == "<RefreshingAuthorization granted>"
    assert authorization.pair == pair
    assert "canary" not in f"{pair!r} {TokenGrant('Bearer canary', pair)!r}"
    await authorization.aclose()
