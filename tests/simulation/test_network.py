"""What each fault does to requests, seen by a client of one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

import pytest

from aioinformer import ListRequest, WatchRequest
from aioinformer.errors import (
    ConnectionFailed,
    ConnectionLost,
    FetchError,
    Forbidden,
    RequestTimedOut,
    TooManyRequests,
)
from aioinformer.testing import Cluster
from aioinformer.testing.simulation import Plan, run
from aioinformer.testing.simulation.history import History
from aioinformer.testing.simulation.line import Line
from aioinformer.testing.simulation.network import Network
from aioinformer.testing.simulation.plan import PODS, Fault

T = TypeVar("T")


@dataclass
class Seen:
    """What a client got of one request."""

    data: bytes = b""
    chunks: int = 0
    error: FetchError | None = None
    ended: float = 0.0


@dataclass
class Site:
    """A cluster with three pods, and a network to it."""

    cluster: Cluster = field(default_factory=lambda: three_pods())
    history: History = field(default_factory=lambda: History(Plan(seed=0, informers=(), steps=())))

    def __post_init__(self) -> None:
        self.history.clock = asyncio.get_running_loop().time
        self.network = Network(self.cluster, self.history, Random(0))
        self.line = Line(self.network, "web", PODS)

    async def list(self) -> Seen:
        return await _read(self.line.list(ListRequest()))

    async def watch(self, timeout: int = 300) -> Seen:
        """Watch from the first pod on."""
        return await _read(self.line.watch(WatchRequest("2", timeout)))

    def begin(self, **fault: Any) -> None:
        self.network.begin(Fault(at=0.0, **fault))


async def _read(context: AbstractAsyncContextManager[AsyncIterator[bytes]]) -> Seen:
    seen = Seen()
    try:
        async with context as chunks:
            async for chunk in chunks:
                seen.data += chunk
                seen.chunks += 1
    except FetchError as error:
        seen.error = error
    seen.ended = asyncio.get_running_loop().time()
    return seen


def on_site(main: Callable[[Site], Coroutine[Any, Any, T]]) -> T:
    """Run ``main`` on a new site in simulated time."""

    async def on_a_new_site() -> T:
        return await main(Site())

    return run(on_a_new_site(), seed=0)


async def interrupted(site: Site, **fault: Any) -> Seen:
    """A watch to which something happens after 10 s, and a change after 20."""
    watching = asyncio.create_task(site.watch())
    await asyncio.sleep(10)
    site.begin(**fault)
    await asyncio.sleep(10)
    site.cluster.create("pods", {"metadata": {"name": "d"}})
    return await watching


def test_without_faults_everything_arrives() -> None:
    async def main(site: Site) -> tuple[Seen, Seen]:
        return await site.list(), await site.watch(100)

    listed, watched = on_site(main)
    assert listed.data == three_pods().list("pods")
    assert watched.data.count(b"ADDED") == 2
    assert (listed.error, watched.error, watched.ended) == (None, None, 100)


def three_pods() -> Cluster:
    cluster = Cluster()
    for name in "abc":
        cluster.create("pods", {"metadata": {"name": name}})
    return cluster


@pytest.mark.parametrize(
    ("fault", "error", "text"),
    [
        ({"kind": "refuse"}, ConnectionFailed, "connection refused"),
        ({"kind": "outage"}, ConnectionFailed, "connection refused"),
        ({"kind": "status", "amount": 403}, Forbidden, "403 Forbidden"),
        ({"kind": "status", "amount": 429, "retry_after": 9}, TooManyRequests, "429"),
        ({"kind": "reset", "amount": 70}, ConnectionLost, "connection reset"),
    ],
)
def test_a_fault_hits_new_requests_while_it_lasts(
    fault: dict[str, Any], error: type[FetchError], text: str
) -> None:
    async def main(site: Site) -> list[Seen]:
        site.begin(lasting=30.0, **fault)
        hit = [await site.list(), await site.watch()]
        await asyncio.sleep(31)
        return [*hit, await site.list()]

    *hit, after = on_site(main)
    for seen in hit:
        assert type(seen.error) is error
        assert text in str(seen.error)
        assert len(seen.data) == (70 if fault["kind"] == "reset" else 0)
    assert (after.error, after.data.count(b'"name"')) == (None, 3)


@pytest.mark.parametrize(
    ("fault", "error", "ended", "told"),
    [
        ({"kind": "outage"}, ConnectionLost, 10, 2),
        ({"kind": "reset", "amount": 0}, ConnectionLost, 10, 2),
        ({"kind": "reset", "amount": 40}, ConnectionLost, 20, 3),
        ({"kind": "compact"}, ConnectionLost, 10, 2),
        ({"kind": "stall", "lasting": 45.0}, RequestTimedOut, 55, 2),
        ({"kind": "end"}, type(None), 10, 2),
        ({"kind": "error_event", "amount": 500}, type(None), 10, 2),
        ({"kind": "mute", "lasting": 1000.0}, type(None), 300, 3),
        ({"kind": "refuse", "lasting": 1000.0}, type(None), 300, 3),
        ({"kind": "end", "target": "another"}, type(None), 300, 3),
    ],
)
def test_a_fault_hits_a_watch_that_is_open(
    fault: dict[str, Any], error: type[object], ended: float, told: int
) -> None:
    seen = on_site(lambda site: interrupted(site, **fault))
    assert (type(seen.error), seen.ended) == (error, ended)
    assert seen.data.count(b"ADDED") == told
    assert seen.data.count(b'"code":500') == (fault["kind"] == "error_event")
    assert (b"BOOKMARK" in seen.data) == (ended == 300 and fault["kind"] != "mute")


def test_an_echo_repeats_bookmarks_and_nothing_else() -> None:
    seen = on_site(lambda site: interrupted(site, kind="echo", lasting=70.0))
    plain = on_site(lambda site: interrupted(site, kind="echo", target="another"))
    assert seen.data.count(b"BOOKMARK") == plain.data.count(b"BOOKMARK") + 1
    assert seen.data.count(b"ADDED") == plain.data.count(b"ADDED") == 3


def test_unserved_watches_end_with_nothing_in_them() -> None:
    async def main(site: Site) -> Seen:
        site.begin(kind="unserved", lasting=5.0)
        return await site.watch()

    seen = on_site(main)
    assert (seen.data, seen.error, seen.ended) == (b"", None, 0)


def test_curt_watches_say_what_there_is_and_a_bookmark() -> None:
    async def main(site: Site) -> Seen:
        site.begin(kind="curt", lasting=5.0)
        return await site.watch()

    seen = on_site(main)
    assert seen.data.count(b"ADDED") == 2
    assert seen.data.splitlines()[-1].startswith(b'{"type":"BOOKMARK"')
    assert (seen.error, seen.ended) == (None, 0)


def test_latency_and_drip_take_time_and_change_nothing() -> None:
    async def main(site: Site) -> list[Seen]:
        site.begin(kind="latency", lasting=100.0, amount=800)
        site.begin(kind="drip", lasting=100.0, amount=50)
        return [await site.list()]

    (seen,) = on_site(main)
    assert seen.data == three_pods().list("pods")
    assert seen.chunks == -(-len(seen.data) // 50)
    assert seen.ended == pytest.approx(0.8 * (seen.chunks + 1))


def test_corruption_breaks_one_brace() -> None:
    async def main(site: Site) -> Seen:
        site.begin(kind="corrupt", lasting=1.0)
        return await site.list()

    seen, whole = on_site(main), three_pods().list("pods")
    assert len(seen.data) == len(whole)
    changed = [(found, was) for found, was in zip(seen.data, whole, strict=True) if found != was]
    assert changed == [(0, ord("{"))]


def test_requests_are_written_down_with_how_they_ended() -> None:
    async def main(site: Site) -> tuple[History, Network]:
        await site.list()
        site.begin(kind="status", lasting=1.0, amount=429, retry_after=7)
        await site.list()
        site.begin(kind="compact")
        await asyncio.sleep(2)
        site.cluster.create("pods", {"metadata": {"name": "e"}})
        site.cluster.compact()
        await site.watch()
        return site.history, site.network

    history, network = on_site(main)
    assert [request.failure for request in history.requests] == [
        "",
        "TooManyRequests: 429 TooManyRequests",
        "",  # 410 comes inside the stream, and it is the client's to make an error of it
    ]
    assert [request.retry_after for request in history.requests] == [0, 7, 0]
    assert [closed.request for closed in history.closings] == history.requests
    assert repr(network) == "<Network open=0 faults=2>"
