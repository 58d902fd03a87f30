"""The server of one informer's pods: its changes begin and pause when it is told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator

from aioinformer import Client, Event, SharedInformerFactory
from benchmarks.load.changes import random_changes
from benchmarks.load.pod_server import PodServer, post
from benchmarks.load.workloads import make_pods

PODS = list(make_pods(20))
RATE = 200.0
QUIET = 0.5
"""Seconds in which the server must send no change: the time of 100."""


class CountedLines:
    """Lines that count how many of them the server has taken: it takes one before it may send it.

    The test compares these numbers, and not those of the events, which arrive late on a machine
    that stalls.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        self.taken = 0
        self._lines = lines

    def __iter__(self) -> Iterator[bytes]:
        for line in self._lines:
            self.taken += 1
            yield line


async def test_an_informer_receives_changes_until_they_are_paused() -> None:
    lines, arrived = CountedLines(random_changes(PODS)), asyncio.Queue[Event]()
    server, received = PodServer(PODS, lines, RATE), 0
    async with Client(server.url) as client, SharedInformerFactory(client) as found:
        found.informer("pods").add_handler(arrived.put_nowait)
        await found.wait_synced(timeout=30)
        for _ in PODS:
            await arrived.get()

        for _ in (1, 2):
            start, before = time.monotonic(), lines.taken
            await asyncio.to_thread(post, server.url, "go")
            for _ in range(5):
                await arrived.get()
            await asyncio.to_thread(post, server.url, "pause")
            paused = lines.taken
            # The first at once, and the last up to the time of one after the pause.
            assert paused - before <= (time.monotonic() - start) * RATE + 2
            await asyncio.sleep(QUIET)
            assert lines.taken <= paused + 1, "the server holds the next one"
            received += 5
            while received < lines.taken - 1:
                await arrived.get()
                received += 1
            assert arrived.empty()
