"""The check if a resource is served: concurrent callers share one request."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer._client.discovery.served_check import ANSWER_LIFETIME, ServedCheck
from aioinformer._core.listwatch.availability import CONFIRMATION_INTERVAL
from aioinformer._core.objects.resources import Resource
from aioinformer.errors import FetchError, Forbidden, Status, server_error
from tests.client.virtual_time import in_virtual_time

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
GADGETS = Resource("example.com", "v1", "gadgets", "Gadget")
NEWER = Resource("example.com", "v2", "widgets", "Widget")


class Server:
    """Answers after a second, and counts the questions."""

    def __init__(self, answer: Resource | FetchError | None = None) -> None:
        self.answer = answer
        self.requests: list[Resource] = []

    async def __call__(self, resource: Resource) -> Resource | None:
        self.requests.append(resource)
        await asyncio.sleep(1.0)
        if isinstance(self.answer, FetchError):
            raise self.answer
        return self.answer


@in_virtual_time
async def test_concurrent_checks_of_a_resource_share_one_request() -> None:
    server = Server()
    lookups = ServedCheck(server)

    answers = await asyncio.gather(*(lookups(WIDGETS) for _ in range(200)))

    assert answers == [None] * 200
    assert server.requests == [WIDGETS]


@in_virtual_time
async def test_an_answer_is_used_for_an_interval_and_then_requested_again() -> None:
    server = Server()
    lookups = ServedCheck(server)
    assert await lookups(WIDGETS) is None
    server.answer = WIDGETS

    await asyncio.sleep(ANSWER_LIFETIME - 0.1)
    assert await lookups(WIDGETS) is None
    await asyncio.sleep(0.1)
    assert await lookups(WIDGETS) == WIDGETS
    assert len(server.requests) == 2
    assert ANSWER_LIFETIME < CONFIRMATION_INTERVAL, "else one answer would confirm itself"


@in_virtual_time
async def test_each_resource_and_version_has_its_own_check() -> None:
    server = Server()
    lookups = ServedCheck(server)

    await asyncio.gather(lookups(WIDGETS), lookups(GADGETS), lookups(NEWER))

    assert server.requests == [WIDGETS, GADGETS, NEWER]


@in_virtual_time
async def test_a_failure_is_shared_and_each_caller_gets_its_own_exception() -> None:
    server = Server(server_error(Status(403), phase="discovery"))
    lookups = ServedCheck(server)

    one, other = await asyncio.gather(lookups(WIDGETS), lookups(WIDGETS), return_exceptions=True)

    assert isinstance(one, Forbidden)
    assert isinstance(other, Forbidden)
    assert one is not other
    assert one.phase == "discovery"
    assert len(server.requests) == 1
    server.answer = WIDGETS
    await asyncio.sleep(ANSWER_LIFETIME)
    assert await lookups(WIDGETS) == WIDGETS


@in_virtual_time
async def test_a_waiting_caller_repeats_the_request_of_a_cancelled_one() -> None:
    server = Server(WIDGETS)
    lookups = ServedCheck(server)
    first = asyncio.create_task(lookups(WIDGETS))
    second = asyncio.create_task(lookups(WIDGETS))
    await asyncio.sleep(0.5)

    first.cancel()

    assert await second == WIDGETS
    with pytest.raises(asyncio.CancelledError):
        await first
    assert len(server.requests) == 2


@in_virtual_time
async def test_an_outdated_answer_is_removed() -> None:
    lookups = ServedCheck(Server())
    await lookups(WIDGETS)
    await asyncio.sleep(ANSWER_LIFETIME)

    asking = asyncio.create_task(lookups(GADGETS))
    await asyncio.sleep(0.1)

    assert repr(lookups) == "<ServedCheck 1 known, 1 asking>"
    await asking
