"""Lines that say that a command goes on while its requests fail, and when they succeed again."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from aioinformer import SharedInformer
from aioinformer._cli.outages import REFRESH_INTERVAL, describe_retry, format_wait, show_outages
from aioinformer._cli.terminal.messages import Messages
from aioinformer.testing import ClusterSource, Faults
from aioinformer.testing.simulation import run
from tests.runtime.informers import SLOW_BACKOFF, cluster_with_pods, running_in_background
from tests.runtime.scripted_source import PODS


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


class Outage:
    """An informer of pods that a test cuts off, and the lines of its command."""

    def __init__(self, stream: io.StringIO | None = None) -> None:
        self.faults = Faults()
        self.stream = stream or io.StringIO()
        source = ClusterSource(cluster_with_pods("a"), self.faults)
        self.informer = SharedInformer(source.lister_watcher(PODS), backoff=SLOW_BACKOFF)

    @asynccontextmanager
    async def shown(self, *, final: bool = False) -> AsyncGenerator[None]:
        messages = Messages(self.stream)
        async with (
            running_in_background(self.informer.run()),
            show_outages(
                self.informer, messages, until="until interrupted", is_final=lambda _: final
            ),
        ):
            yield

    @property
    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()


def test_the_begin_and_the_end_of_an_outage_are_one_line_each() -> None:
    async def main() -> list[str]:
        outage = Outage()
        outage.faults.refuse()
        async with outage.shown():
            await asyncio.sleep(5)
            assert outage.lines == ["aioinformer: pods: trying again until interrupted"]
            outage.faults.clear()
            await asyncio.sleep(60)
        return outage.lines[1:]

    assert run(main(), seed=1) == ["aioinformer: pods: requests succeed again, after 60 s"]


def test_each_outage_is_shown() -> None:
    async def main() -> list[str]:
        outage = Outage()
        async with outage.shown():
            for _ in range(2):
                outage.faults.refuse()
                await asyncio.sleep(70)
                outage.faults.clear()
                await asyncio.sleep(70)
        return outage.lines

    assert len(run(main(), seed=1)) == 4


def test_requests_that_succeed_are_not_shown() -> None:
    async def main() -> list[str]:
        outage = Outage()
        async with outage.shown():
            await asyncio.sleep(60)
        return outage.lines

    assert run(main(), seed=1) == []


def test_an_error_that_ends_the_command_is_no_outage() -> None:
    async def main() -> list[str]:
        outage = Outage()
        outage.faults.refuse()
        async with outage.shown(final=True):
            await asyncio.sleep(5)
        return outage.lines

    assert run(main(), seed=1) == []


def test_a_server_that_refuses_watches_is_polled_and_no_outage() -> None:
    async def main() -> list[str]:
        outage = Outage()
        outage.faults.status(405, verb="watch")
        outage.faults.status(405, verb="watch_list")
        async with outage.shown():
            await asyncio.sleep(200)
            assert outage.informer.health.state == "polling"
        return outage.lines[-1:]

    assert "trying again" not in "".join(run(main(), seed=1))


def test_a_terminal_counts_down_in_its_status_line() -> None:
    async def main() -> None:
        outage = Outage(Terminal())
        outage.faults.refuse()
        async with outage.shown():
            await asyncio.sleep(10 * REFRESH_INTERVAL)
            status = outage.stream.getvalue().rpartition("\r")[2]
            assert "waiting for pods: next attempt in 5" in status
            assert "trying again" not in outage.stream.getvalue()
            assert format_wait(outage.informer.health).startswith("next attempt in 57.")
            outage.faults.clear()
            await asyncio.sleep(70)
            assert describe_retry(outage.informer) == ""
            assert format_wait(outage.informer.health).startswith("watching for ")

    run(main(), seed=1)
