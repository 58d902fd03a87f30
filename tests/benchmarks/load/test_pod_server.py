"""The server of one informer's pods: its changes begin and pause when it is told."""

from __future__ import annotations

import asyncio
import time

import anyio

from aioinformer import Client, Event, SharedInformerFactory
from benchmarks.load.changes import random_changes
from benchmarks.load.pod_server import PodServer, post
from benchmarks.load.workloads import make_pods

PODS = list(make_pods(20))
RATE = 200.0
QUIET = 0.5
"""Seconds without an event after which the changes have paused: the time of 100."""


async def test_an_informer_receives_changes_until_they_are_paused() -> None:
    server, arrived = PodServer(PODS, random_changes(PODS), RATE), asyncio.Queue[Event]()
    async with Client(server.url) as client, SharedInformerFactory(client) as found:
        found.informer("pods").add_handler(arrived.put_nowait)
        await found.wait_synced(timeout=30)
        for _ in PODS:
            await arrived.get()

        for _ in (1, 2):
            start, count = time.monotonic(), 5
            await asyncio.to_thread(post, server.url, "go")
            for _ in range(count):
                await arrived.get()
            await asyncio.to_thread(post, server.url, "pause")
            seconds = time.monotonic() - start
            with anyio.move_on_after(QUIET) as quiet:
                while True:
                    await arrived.get()
                    count += 1
                    quiet.deadline = anyio.current_time() + QUIET
            # The first at once, and the last up to the time of one after the pause.
            assert count <= seconds * RATE + 2
