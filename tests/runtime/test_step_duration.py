"""No step holds the event loop for long, whatever happens to many objects at once.

A generous guard, in wall time, on machines that may be busy: asyncio complains of a longer step,
and the test fails for that. What a step really takes is measured by the benchmarks.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest

from aioinformer import Event, KubeObject, SharedInformer
from tests.runtime.informers import FAST_BACKOFF, running_in_background, running_informer
from tests.runtime.scripted_source import (
    added,
    body,
    error_event,
    list_response,
    modified,
    scripted_lister_watcher,
    wait_until,
    watch_response,
    yield_to_loop,
)

MANY = 20_000
STEP = 0.2
"""Seconds; the promise is 0.01."""
TURN = 0.04
"""Seconds of CPU time, of all that one turn of the loop does: of the pump, the reflector, and the
handlers."""
BURST = 2_000
"""Live events at once."""


def relisted(*after: str) -> SharedInformer:
    """Create an informer of many objects, whose second list contains ``after``."""
    first = list_response(*(body(f"web-{number}", 5) for number in range(MANY)), version="10")
    deleted = watch_response(error_event(410, "Expired"))
    then = list_response(*after, version="20")
    return SharedInformer(
        scripted_lister_watcher(first, deleted, then, watch_response(never_ends=True)),
        backoff=FAST_BACKOFF,
    )


async def patiently(informer: SharedInformer) -> None:
    """Run an informer to the end of its second list, and measure each step."""
    await asyncio.sleep(0)  # to make so many objects is a step of the test's own
    asyncio.get_running_loop().slow_callback_duration = STEP
    async with running_informer(informer):
        await wait_until(lambda: informer.health.resource_version == "20")
        await yield_to_loop(MANY // 64)  # what the old state held is freed in steps of 64


async def test_all_of_them_vanish() -> None:
    informer = relisted()
    await patiently(informer)
    assert not len(informer.lister)


async def test_all_of_them_change() -> None:
    informer = relisted(*(body(f"web-{number}", 15) for number in range(MANY)))
    await patiently(informer)
    assert len(informer.lister) == MANY


async def test_all_of_them_are_refused_by_an_index_function() -> None:
    def broken(obj: KubeObject) -> str:
        raise KeyError(obj.name)

    informer = relisted(*(body(f"web-{number}", 15) for number in range(MANY)))
    informer.add_indexers({"broken": broken})
    await patiently(informer)
    assert informer.health.rejections == MANY


async def test_all_of_them_went_before_a_handler_came_to_them() -> None:
    informer = relisted()
    go_on, received = asyncio.Event(), 0

    async def slow(_event: Event) -> None:
        nonlocal received
        received += 1
        await go_on.wait()

    registration = informer.add_handler(slow)
    await asyncio.sleep(0)  # to make so many objects is a step of the test's own
    asyncio.get_running_loop().slow_callback_duration = STEP
    async with running_informer(informer):
        await wait_until(lambda: informer.health.resource_version == "20")
        go_on.set()
        await registration.wait_synced(10)
    assert received <= 2


# -- with filters -----------------------------------------------------------------------------


@asynccontextmanager
async def short_turns() -> AsyncGenerator[None]:
    """No turn of the loop takes long, in CPU time, whatever else the machine does."""
    turns = [time.thread_time()]

    async def tick() -> None:
        while True:
            await asyncio.sleep(0)
            turns.append(time.thread_time())

    async with running_in_background(tick()):
        yield
    assert max(after - before for before, after in pairwise(turns)) < TURN


def fussy(obj: KubeObject) -> bool:
    """Match every object after about 20 µs, the time of a filter that decodes a pod."""
    return sum(range(2000)) > len(obj.name)


def fussy_too(obj: KubeObject) -> bool:
    """Match no object, after the same time."""
    return not fussy(obj)


@pytest.mark.parametrize("filtered", [fussy, fussy_too])
async def test_a_burst_of_changes_and_several_filters(
    filtered: Callable[[KubeObject], bool],
) -> None:
    burst = [added(f"web-{number}", 100 + number) for number in range(BURST)]
    informer = SharedInformer(
        scripted_lister_watcher(
            list_response(version="10"), watch_response(*burst, never_ends=True)
        )
    )
    for _ in range(10):
        informer.add_handler(lambda _: None, filter=filtered)
    async with running_informer(informer), short_turns():
        await wait_until(lambda: informer.health.resource_version == str(99 + BURST))


@pytest.mark.parametrize("filtered", [None, fussy])
async def test_changes_while_handlers_that_hang_have_all_of_a_list_pending(
    filtered: Callable[[KubeObject], bool] | None,
) -> None:
    """Pending events must be filtered and merged to make room."""
    first = list_response(*(body(f"web-{number}", 5) for number in range(BURST)), version="10")
    then = list_response(*(body(f"web-{number}", 15) for number in range(BURST)), version="20")
    burst = [modified(f"web-{number}", 100 + number) for number in range(BURST)]
    deleted = watch_response(error_event(410, "Expired"))
    informer = SharedInformer(
        scripted_lister_watcher(first, deleted, then, watch_response(*burst, never_ends=True)),
        backoff=FAST_BACKOFF,
    )
    for _ in range(5):

        async def hangs(_event: Event) -> None:
            await asyncio.sleep(3600)

        informer.add_handler(hangs, filter=filtered)
    async with running_informer(informer):
        await wait_until(lambda: informer.health.resource_version != "10")
        async with short_turns():
            await wait_until(lambda: informer.health.resource_version == str(99 + BURST))
