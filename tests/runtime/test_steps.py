"""No step holds the event loop for long, whatever happens to many objects at once.

A generous guard, in wall time, on machines that may be busy: asyncio complains of a longer step,
and the test fails for that. What a step really takes is measured by the benchmarks.
"""

from __future__ import annotations

import asyncio

from aioinformer import Event, KubeObject, SharedInformer
from tests.runtime.running import BRISK, informing
from tests.runtime.sources import body, error_event, page, script, settle, stream, until

MANY = 20_000
STEP = 0.2
"""Seconds; the promise is 0.01."""


def relisted(*after: str) -> SharedInformer:
    """An informer of many objects, whose second list finds what is ``after``."""
    first = page(*(body(f"web-{number}", 5) for number in range(MANY)), version="10")
    gone = stream(error_event(410, "Expired"))
    then = page(*after, version="20")
    return SharedInformer(script(first, gone, then, stream(hangs=True)), backoff=BRISK)


async def patiently(informer: SharedInformer) -> None:
    """Run it to the end of its second list, with an eye on each step."""
    asyncio.get_running_loop().slow_callback_duration = STEP
    async with informing(informer):
        await until(lambda: informer.health.resource_version == "20")
        await settle(MANY // 64)  # what the old state held is freed in steps of 64


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
    go_on, heard = asyncio.Event(), 0

    async def slow(_event: Event) -> None:
        nonlocal heard
        heard += 1
        await go_on.wait()

    registration = informer.add_handler(slow)
    asyncio.get_running_loop().slow_callback_duration = STEP
    async with informing(informer):
        await until(lambda: informer.health.resource_version == "20")
        go_on.set()
        await registration.wait_synced(10)
    assert heard <= 2
