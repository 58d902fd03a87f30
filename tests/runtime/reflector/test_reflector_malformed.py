"""Responses of servers that follow the API in form, and make no sense."""

from __future__ import annotations

import asyncio

from aioinformer import Problem, SharedInformer
from aioinformer.errors import ProtocolError
from tests.runtime.informers import FAST_BACKOFF, SLOW_BACKOFF, running_in_background
from tests.runtime.scripted_source import (
    added,
    body,
    event_line,
    list_response,
    pod,
    scripted_lister_watcher,
    wait_until,
    watch_response,
    yield_to_loop,
)

LONG_VERSION = "9" * 5000


async def test_pages_without_end_are_bounded_and_reported() -> None:
    """Each page has a new token, so that a reader would follow them without a pause."""
    source = scripted_lister_watcher(
        *(list_response(version="10", token=f"t{number}") for number in range(500))
    )
    problems: list[Problem] = []
    informer = SharedInformer(source, backoff=SLOW_BACKOFF, on_error=problems.append)

    async with running_in_background(informer.run()):
        await wait_until(lambda: informer.health.state == "waiting")
        await yield_to_loop()

        assert len(source.requests) <= 10
        assert "the list does not end" in str(informer.health.error)
        assert [problem.cause for problem in problems] == ["protocol_error"]


async def test_a_version_of_thousands_of_digits_is_reported_and_does_not_end_the_informer() -> None:
    """While a task waits for a version, the pump compares each version with the awaited one."""
    bookmark = event_line("BOOKMARK", f'{{"metadata":{{"resourceVersion":"{LONG_VERSION}"}}}}')
    changed = event_line("MODIFIED", body("a", 5).replace('"5"', f'"{LONG_VERSION}"'))
    source = scripted_lister_watcher(
        list_response(body("a", 5), version="10"),
        watch_response(bookmark, never_ends=True),
        list_response(body("a", 5), version="11"),
        watch_response(changed, never_ends=True),
        list_response(body("a", 5), version=LONG_VERSION),
        list_response(body("a", 5), version="12"),
        watch_response(added("b", 20), never_ends=True),
    )
    problems: list[Problem] = []
    informer = SharedInformer(source, backoff=FAST_BACKOFF, on_error=problems.append)

    async with running_in_background(informer.run()):
        await informer.wait_synced(timeout=30)
        waiting = asyncio.create_task(informer.wait_for(pod("b", 20), timeout=10))
        assert await waiting == pod("b", 20)

        assert informer.health.state == "watching"
        assert len(problems) == 3
        assert all(type(problem.error) is ProtocolError for problem in problems)
        assert not any("999" in str(problem.error) for problem in problems)
