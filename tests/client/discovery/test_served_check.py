"""Whether a resource is served: asked once for all who want to know at the same time."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer._client.discovery.served_check import AGAIN, Lookups
from aioinformer._core.listwatch.availability import CONFIRMED_AFTER
from aioinformer._core.objects.resources import Resource
from aioinformer.errors import FetchError, Forbidden, Status, server_error
from tests.client.virtual import virtually

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
GADGETS = Resource("example.com", "v1", "gadgets", "Gadget")
NEWER = Resource("example.com", "v2", "widgets", "Widget")


class Server:
    """Answers after a second, and counts the questions."""

    def __init__(self, answer: Resource | FetchError | None = None) -> None:
        self.answer = answer
        self.asked: list[Resource] = []

    async def __call__(self, resource: Resource) -> Resource | None:
        self.asked.append(resource)
        await asyncio.sleep(1.0)
        if isinstance(self.answer, FetchError):
            raise self.answer
        return self.answer


@virtually
async def test_two_hundred_who_ask_at_once_are_one_question() -> None:
    server = Server()
    lookups = Lookups(server)

    answers = await asyncio.gather(*(lookups(WIDGETS) for _ in range(200)))

    assert answers == [None] * 200
    assert server.asked == [WIDGETS]


@virtually
async def test_an_answer_is_told_again_for_a_moment_and_then_asked_for_afresh() -> None:
    server = Server()
    lookups = Lookups(server)
    assert await lookups(WIDGETS) is None
    server.answer = WIDGETS

    await asyncio.sleep(AGAIN - 0.1)
    assert await lookups(WIDGETS) is None
    await asyncio.sleep(0.1)
    assert await lookups(WIDGETS) == WIDGETS
    assert len(server.asked) == 2
    assert AGAIN < CONFIRMED_AFTER, "else one answer would confirm itself"


@virtually
async def test_resources_and_versions_are_asked_for_apart() -> None:
    server = Server()
    lookups = Lookups(server)

    await asyncio.gather(lookups(WIDGETS), lookups(GADGETS), lookups(NEWER))

    assert server.asked == [WIDGETS, GADGETS, NEWER]


@virtually
async def test_a_failure_is_shared_and_each_gets_an_exception_of_its_own() -> None:
    server = Server(server_error(Status(403), phase="discovery"))
    lookups = Lookups(server)

    one, other = await asyncio.gather(lookups(WIDGETS), lookups(WIDGETS), return_exceptions=True)

    assert isinstance(one, Forbidden)
    assert isinstance(other, Forbidden)
    assert one is not other
    assert one.phase == "discovery"
    assert len(server.asked) == 1
    server.answer = WIDGETS
    await asyncio.sleep(AGAIN)
    assert await lookups(WIDGETS) == WIDGETS


@virtually
async def test_one_who_is_cancelled_leaves_the_question_to_the_next() -> None:
    server = Server(WIDGETS)
    lookups = Lookups(server)
    first = asyncio.create_task(lookups(WIDGETS))
    second = asyncio.create_task(lookups(WIDGETS))
    await asyncio.sleep(0.5)

    first.cancel()

    assert await second == WIDGETS
    with pytest.raises(asyncio.CancelledError):
        await first
    assert len(server.asked) == 2


@virtually
async def test_no_more_is_kept_than_is_asked_for() -> None:
    lookups = Lookups(Server())
    await lookups(WIDGETS)
    await asyncio.sleep(AGAIN)

    asking = asyncio.create_task(lookups(GADGETS))
    await asyncio.sleep(0.1)

    assert repr(lookups) == "<Lookups 1 known, 1 asking>"
    await asking
