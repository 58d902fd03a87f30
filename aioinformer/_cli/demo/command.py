"""``aioinformer demo``: an informer at work, with nothing but this process.

An API server is started on a loopback port and its pods are changed all the time; a client and
an informer watch them over HTTP as they would watch a cluster. What is seen is what the cache,
the index, a handler and an event stream say. At the end, the cache is compared with the server.
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
from aioinformer._cli.arguments import DemoOptions
from aioinformer._cli.demo.comparison import Verdict, judge
from aioinformer._cli.demo.counters import Rate, Tally, Ticker
from aioinformer._cli.demo.dashboard import ASCII, UNICODE, Snapshot, dashboard, one_line
from aioinformer._cli.demo.faults import Interruptions
from aioinformer._cli.demo.workload import Churn
from aioinformer._cli.terminal.process import Terminal
from aioinformer._cli.terminal.screen import Screen
from aioinformer.testing import ApiServer, Cluster

__all__ = ["run_demo"]

CHANGES = 200
"""Writes a second: a busy cluster of a few hundred nodes."""
BATCH = 500
"""Pods created at the beginning between two looks at the loop: about 40 ms."""
TICK = 0.02
"""Seconds between two rounds of writes."""
FRAME = 0.2
"""Seconds between two pictures."""
LINE = 1.0
"""Seconds between two lines where there is no terminal."""
CATCH_UP = 15.0
"""Seconds for the cache to reach the server's last write. The longest wait of ``BACKOFF`` and a
list are a small part of it."""

UNJUDGED = "interrupted: the cache was not compared with the server"

BACKOFF = BackoffPolicy(initial=0.5, maximum=1.0, jitter=0.5, reset_after=5.0)
"""Shorter waits than the default's: a demo interrupts its server every few seconds on purpose."""


async def run_demo(options: DemoOptions, terminal: Terminal) -> int:
    """Run it; 0 if the cache equals the server at the end, else 1."""
    cluster = Cluster(seed=options.seed, clock=lambda: datetime.now(UTC))
    churn = Churn(cluster, objects=options.objects, seed=options.seed)
    filled = False
    while not filled:
        filled = churn.populate(BATCH)
        await asyncio.sleep(0)  # Ctrl-C works, however many there shall be
    async with (
        ApiServer(cluster) as server,
        Client(server.url) as client,
        SharedInformerFactory(client, backoff=BACKOFF) as informers,
    ):
        pods = informers.informer("pods", indexers={"node": _node})
        demo = _Demo(options, terminal, server, churn, pods)
        async with demo.following():
            try:
                await demo.show()
                await demo.settle()
                verdict = judge(await client.get("/api/v1/pods"), pods.lister, demo.tally.versions)
            except asyncio.CancelledError:  # Ctrl-C: what was seen until then, and no more waiting
                terminal.output.write_now(demo.summary(UNJUDGED))
                raise
        await terminal.output.write(demo.summary(verdict))
    return 0 if verdict.equal else 1


def _node(pod: KubeObject) -> str | None:
    """The index function: the node that a pod is on."""
    node: str | None = pod["spec"].get("nodeName")
    return node


class _Demo:
    """The parts of a demo that runs."""

    def __init__(
        self,
        options: DemoOptions,
        terminal: Terminal,
        server: ApiServer,
        churn: Churn,
        pods: SharedInformer,
    ) -> None:
        self.tally = Tally()
        self._options = options
        self._terminal = terminal
        self._server = server
        self._churn = churn
        self._pods = pods
        self._registration = pods.add_handler(self.tally)
        self._ticker = Ticker()
        self._interruptions = Interruptions(server, seconds=options.seconds)
        self._clock = asyncio.get_running_loop().time
        self._start = self._clock()
        self._rate = Rate(0.0, 0)
        self._written = 0
        self._messages: list[str] = []
        """Said while the terminal is painted on, and not shown yet."""

    @property
    def _now(self) -> float:
        return self._clock() - self._start

    # -- events --------------------------------------------------------------------------------

    @asynccontextmanager
    async def following(self) -> AsyncGenerator[None]:
        """Read an event stream meanwhile."""
        task = asyncio.create_task(self._follow(), name="event stream of the demo")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})
        if not task.cancelled():
            task.result()  # it ended by itself: by an error

    async def _follow(self) -> None:
        async with self._pods.events() as events:
            async for event in events:
                self._ticker.see(event, self._now)

    # -- the show ------------------------------------------------------------------------------

    async def show(self) -> None:
        """Write, interrupt and show until the time is over."""
        await self._registration.wait_synced(CATCH_UP)
        self._start = self._clock()
        self._rate = Rate(0.0, self.tally.total)
        output, notices = self._terminal.output, self._terminal.notices
        try:
            with ExitStack() as stack:
                screen = stack.enter_context(Screen(output)) if output.terminal else None
                if screen is not None and notices.terminal:
                    stack.enter_context(notices.diverted(self._messages.append))
                await self._rounds(screen)
        finally:
            for message in self._messages:
                notices.say(message)

    async def _rounds(self, screen: Screen | None) -> None:
        due, end = 0.0, self._options.seconds or float("inf")
        while (now := self._now) < end:
            self._write(now)
            await self._interruptions.act(now, self._pods.health)
            self._rate.sample(now, self.tally.total)
            if now >= due:
                await self._picture(screen)
                due += FRAME if screen is not None else LINE
            await asyncio.sleep(TICK)
        await self._picture(screen)

    def _write(self, now: float) -> None:
        """Make the writes that are due, as far as they fit into a tick or two."""
        due = min(int(now * CHANGES) - self._written, int(CHANGES * TICK * 4))
        for _ in range(due):
            self._churn.step()
        self._written = int(now * CHANGES)

    async def _picture(self, screen: Screen | None) -> None:
        output, snapshot = self._terminal.output, self._snapshot()
        if screen is None:
            await output.write(one_line(snapshot) + "\n")
            return
        size = output.size
        glyphs = UNICODE if output.unicode else ASCII
        # The last line stays free: the shell's prompt goes there.
        lines = dashboard(snapshot, width=size.columns - 1, height=size.lines - 1, glyphs=glyphs)
        messages = list(self._messages)
        self._messages.clear()
        await screen.paint(lines, size, above=messages)

    def _snapshot(self) -> Snapshot:
        now, tally, lister, health = self._now, self.tally, self._pods.lister, self._pods.health
        objects = lister.list()
        return Snapshot(
            elapsed=now,
            server=self._server.url,
            interruption=self._interruptions.describe(now),
            state=health.state,
            health=_spoken(health),
            resource_version=health.resource_version,
            objects=len(objects),
            size=sum(len(obj.raw) for obj in objects),
            namespaces=Counter(obj.namespace for obj in objects),
            nodes={
                node: len(lister.by_index("node", node)) for node in lister.index_values("node")
            },
            added=tally.added,
            updated=tally.updated,
            deleted=tally.deleted,
            restarts=tally.restarts,
            rate=self._rate.per_second,
            history=self._rate.history,
            latest=tuple(self._ticker.latest()),
        )

    # -- the end -------------------------------------------------------------------------------

    async def settle(self) -> None:
        """Let the informer and the handler catch up with the server's last write."""
        await self._interruptions.end()
        deadline = self._clock() + CATCH_UP
        while not self._caught_up and self._clock() < deadline:
            await self._interruptions.act(self._now, self._pods.health)
            await asyncio.sleep(TICK)

    @property
    def _caught_up(self) -> bool:
        last = str(self._server.cluster.resource_version)  # every write was one to a pod
        return (
            self._pods.lister.resource_version == last
            and self._registration.statistics().pending == 0
            and not self._interruptions.recovering
        )

    def summary(self, verdict: Verdict | str) -> str:
        """What is printed at the end; a text stands for a verdict that there isn't."""
        tally, done = self.tally, self._interruptions
        return (
            f"{tally.total:,} events delivered: {tally.added:,} added, {tally.updated:,} updated, "
            f"{tally.deleted:,} deleted\n"
            f"{done.count} interruption{'s' * (done.count != 1)}, {done.recovered} recovered from\n"
            f"{verdict}\n"
        )


def _spoken(health: Health) -> str:
    """Health in one line whose beginning matters most: a terminal may cut the rest."""
    parts = [f"{health.state} for {health.since:.1f} s"]
    if health.retry_in is not None:
        parts.append(f"next attempt in {health.retry_in:.1f} s")
    if health.blocked_by:
        parts.append(f"blocked by {', '.join(health.blocked_by)}")
    if health.error is not None:
        parts.append(f"{type(health.error).__name__}: {health.error}")
    return ", ".join(parts)
