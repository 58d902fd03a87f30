"""``aioinformer demo``: an informer under load and faults, within this process.

A client and an informer watch the changing pods of an API server over HTTP, as they would watch a
cluster. At the end, the cache is compared with the server.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from datetime import UTC, datetime

from aioinformer import (
    BackoffPolicy,
    Client,
    Health,
    KubeObject,
    SharedInformer,
    SharedInformerFactory,
)
from aioinformer._cli.demo.cache_comparison import CacheComparison, compare_cache
from aioinformer._cli.demo.counters import EventCounter, EventRate, RecentEvents
from aioinformer._cli.demo.dashboard import (
    ASCII,
    UNICODE,
    DashboardSnapshot,
    draw_dashboard,
    format_line,
)
from aioinformer._cli.demo.interruptions import DemoFaults
from aioinformer._cli.options import DemoCommandOptions
from aioinformer._cli.terminal.command_process import Terminal
from aioinformer._cli.terminal.screen import Screen
from aioinformer.testing import ApiServer, Cluster
from aioinformer.testing.workload.workload import PodWorkload
from aioinformer.testing.workload.write_rate import WriteRate

WRITES_PER_SECOND = 200
"""Writes a second, as in a busy cluster of a few hundred nodes."""
POPULATE_BATCH = 500
"""Pods created at the start before the command yields to the loop: about 40 ms of work."""
TICK_SECONDS = 0.02
"""Seconds between two rounds of writes."""
FRAME_SECONDS = 0.2
"""Seconds between two pictures."""
LINE_SECONDS = 1.0
"""Seconds between two lines when the output is not a terminal."""
CATCH_UP_TIMEOUT = 15.0
"""Seconds for the cache to reach the server's last write, many times a wait of ``BACKOFF``."""

NOT_COMPARED = "interrupted: the cache was not compared with the server"

BACKOFF = BackoffPolicy(initial=0.5, maximum=1.0, jitter=0.5, reset_after=5.0)
"""Shorter than the default, since the demo interrupts its server every few seconds."""


async def run_demo(options: DemoCommandOptions, terminal: Terminal) -> int:
    """Run the demo, and return 0 if the cache equals the server at the end, else 1."""
    cluster = Cluster(seed=options.seed, clock=lambda: datetime.now(UTC))
    workload = PodWorkload(cluster, objects=options.objects, seed=options.seed)
    populated = False
    while not populated:
        populated = workload.populate(POPULATE_BATCH)
        await asyncio.sleep(0)  # handle Ctrl-C, also with a large number of pods
    async with (
        ApiServer(cluster) as server,
        Client(server.url) as client,
        SharedInformerFactory(client, backoff=BACKOFF) as informers,
    ):
        faults = DemoFaults(server, seconds=options.seconds)
        pods = informers.informer("pods", indexers={"node": _index_by_node}, on_error=faults.notice)
        demo = DemoRun(options, terminal, server, workload, pods, faults)
        async with demo.follow_events():
            try:
                await demo.run()
                await demo.wait_caught_up()
                comparison = compare_cache(
                    await client.get_raw("/api/v1/pods"), pods.lister, demo.counter.versions
                )
            except asyncio.CancelledError:  # Ctrl-C: print the counts so far, without a wait
                terminal.output.write_now(demo.format_summary(NOT_COMPARED))
                raise
        await terminal.output.write(demo.format_summary(comparison))
    return 0 if comparison.equal else 1


def _index_by_node(pod: KubeObject) -> str | None:
    node: str | None = pod["spec"].get("nodeName")
    return node


class DemoRun:
    def __init__(
        self,
        options: DemoCommandOptions,
        terminal: Terminal,
        server: ApiServer,
        workload: PodWorkload,
        pods: SharedInformer,
        faults: DemoFaults,
    ) -> None:
        self.counter = EventCounter()
        self._options = options
        self._terminal = terminal
        self._server = server
        self._workload = workload
        self._pods = pods
        self._registration = pods.add_handler(self.counter)
        self._recent_events = RecentEvents()
        self._faults = faults
        self._clock = asyncio.get_running_loop().time
        self._start = self._clock()
        self._rate = EventRate(0.0, 0)
        self._messages: list[str] = []
        """Messages that came while a ``Screen`` owned the terminal, and are not shown yet."""

    @property
    def _now(self) -> float:
        return self._clock() - self._start

    # -- events --------------------------------------------------------------------------------

    @asynccontextmanager
    async def follow_events(self) -> AsyncGenerator[None]:
        task = asyncio.create_task(self._follow(), name="event stream of the demo")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})
        if not task.cancelled():
            task.result()  # the task ended without a cancellation, so this raises its error

    async def _follow(self) -> None:
        async with self._pods.events() as events:
            async for event in events:
                self._recent_events.add(event, self._now)

    # -- the display ---------------------------------------------------------------------------

    async def run(self) -> None:
        await self._registration.wait_synced(CATCH_UP_TIMEOUT)
        self._start = self._clock()
        self._rate = EventRate(0.0, self.counter.total)
        output, messages = self._terminal.output, self._terminal.messages
        if not output.is_terminal:  # on a terminal, the display names the server
            await output.write(f"server: {self._server.url}\n")
        try:
            with ExitStack() as stack:
                screen = stack.enter_context(Screen(output)) if output.is_terminal else None
                if screen is not None and messages.is_terminal:
                    stack.enter_context(messages.redirect(self._messages.append))
                await self._run_rounds(screen)
        finally:
            for message in self._messages:
                messages.show(message)

    async def _run_rounds(self, screen: Screen | None) -> None:
        due, end = 0.0, self._options.seconds or float("inf")
        writes = WriteRate(self._workload, WRITES_PER_SECOND, self._now)
        while (now := self._now) < end:
            writes.make_due(now)
            await self._faults.step(now, self._pods.health)
            self._rate.sample(now, self.counter.total)
            if now >= due:
                await self._draw(screen)
                due += FRAME_SECONDS if screen is not None else LINE_SECONDS
            await asyncio.sleep(TICK_SECONDS)
        await self._draw(screen)

    async def _draw(self, screen: Screen | None) -> None:
        output, snapshot = self._terminal.output, self._take_snapshot()
        if screen is None:
            await output.write(format_line(snapshot) + "\n")
            return
        size = output.size
        glyphs = UNICODE if output.supports_unicode else ASCII
        # The last line of the terminal stays free for the shell's prompt.
        lines = draw_dashboard(
            snapshot, width=size.columns - 1, height=size.lines - 1, glyphs=glyphs
        )
        messages = list(self._messages)
        self._messages.clear()
        await screen.paint(lines, size, above=messages)

    def _take_snapshot(self) -> DashboardSnapshot:
        now, counter, lister, health = (
            self._now,
            self.counter,
            self._pods.lister,
            self._pods.health,
        )
        objects = lister.list()
        return DashboardSnapshot(
            elapsed=now,
            server=self._server.url,
            interruption=self._faults.describe(now),
            state=health.state,
            health=_describe_health(health),
            resource_version=health.resource_version,
            objects=len(objects),
            size=sum(len(obj.raw) for obj in objects),
            namespaces=Counter(obj.namespace for obj in objects),
            nodes={
                node: len(lister.by_index("node", node)) for node in lister.index_values("node")
            },
            added=counter.added,
            updated=counter.updated,
            deleted=counter.deleted,
            restarts=counter.restarts,
            rate=self._rate.per_second,
            history=self._rate.history,
            latest=tuple(self._recent_events.latest()),
        )

    # -- the end -------------------------------------------------------------------------------

    async def wait_caught_up(self) -> None:
        """Wait until the informer and the handler have processed the server's last write."""
        await self._faults.restore_server()
        deadline = self._clock() + CATCH_UP_TIMEOUT
        while not self._caught_up and self._clock() < deadline:
            await self._faults.step(self._now, self._pods.health)
            await asyncio.sleep(TICK_SECONDS)

    @property
    def _caught_up(self) -> bool:
        last = str(self._server.cluster.resource_version)  # every write is a write of a pod
        return (
            self._pods.lister.resource_version == last
            and self._registration.statistics().pending == 0
            and not self._faults.recovering
        )

    def format_summary(self, comparison: CacheComparison | str) -> str:
        """Return the closing lines; a text replaces a comparison that was not made."""
        counter, faults = self.counter, self._faults
        return (
            f"{counter.total:,} events delivered: {counter.added:,} added, "
            f"{counter.updated:,} updated, {counter.deleted:,} deleted\n"
            f"{faults.count} interruption{'s' * (faults.count != 1)}, "
            f"{faults.recovered} recovered from\n"
            f"{comparison}\n"
        )


def _describe_health(health: Health) -> str:
    """Return an informer's health as one line, the state first: a terminal may cut the rest."""
    parts = [f"{health.state} for {health.since:.1f} s"]
    if health.retry_in is not None:
        parts.append(f"next attempt in {health.retry_in:.1f} s")
    if health.blocked_by:
        parts.append(f"blocked by {', '.join(health.blocked_by)}")
    if health.error is not None:
        parts.append(f"{type(health.error).__name__}: {health.error}")
    return ", ".join(parts)
