"""The faults of a plan as clients see them.

The faults themselves are tested in ``tests/testing``, without sockets and over HTTP.
"""

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
    BadRequest,
    ConnectionFailed,
    ConnectionLost,
    FetchError,
    Forbidden,
    Invalid,
    RequestTimedOut,
    Status,
    TooManyRequests,
    server_error,
)
from aioinformer.testing import Cluster
from aioinformer.testing.simulation import run
from tests.simulation.network import Network, RecordingSource
from tests.simulation.plan import PODS, Fault, Plan
from tests.simulation.records import History

T = TypeVar("T")

MARK = b'"k8s.io/initial-events-end":"true"'


@dataclass
class Seen:
    """The part of an answer that a client received."""

    data: bytes = b""
    error: FetchError | None = None
    ended: float = 0.0


def three_pods() -> Cluster:
    cluster = Cluster()
    for name in "abc":
        cluster.create("pods", {"metadata": {"name": name}})
    return cluster


@dataclass
class Site:
    """A cluster with three pods, and a network to it."""

    cluster: Cluster = field(default_factory=three_pods)
    history: History = field(default_factory=lambda: History(Plan(seed=0, informers=(), steps=())))

    def __post_init__(self) -> None:
        self.history.clock = asyncio.get_running_loop().time
        self.network = Network(self.cluster, self.history, Random(0))
        self.web = RecordingSource(self.network, "web").lister_watcher(PODS)

    async def list(self) -> Seen:
        return await _read(self.web.list(ListRequest()))

    async def watch(self, timeout: int = 300, *, initial: bool = False) -> Seen:
        """Watch from the first pod on, or with the state first."""
        return await _read(self.web.watch(WatchRequest("" if initial else "2", timeout, initial)))

    def begin(self, **fault: Any) -> None:
        self.network.begin(Fault(at=0.0, **fault))


async def _read(context: AbstractAsyncContextManager[AsyncIterator[bytes]]) -> Seen:
    seen = Seen()
    try:
        async with context as chunks:
            async for chunk in chunks:
                seen.data += chunk
    except FetchError as error:
        seen.error = error
    seen.ended = asyncio.get_running_loop().time()
    return seen


def on_site(main: Callable[[Site], Coroutine[Any, Any, T]]) -> T:
    """Run ``main`` on a new site in simulated time."""

    async def on_a_new_site() -> T:
        return await main(Site())

    return run(on_a_new_site(), seed=0)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ({"kind": "refuse"}, ConnectionFailed),
        ({"kind": "outage"}, ConnectionFailed),
        ({"kind": "status", "amount": 403}, Forbidden),
        ({"kind": "status", "amount": 429, "retry_after": 9}, TooManyRequests),
        ({"kind": "reset", "amount": 70}, ConnectionLost),
        ({"kind": "hang"}, RequestTimedOut),
    ],
)
def test_new_requests_fail_while_a_fault_lasts(
    fault: dict[str, Any], error: type[FetchError]
) -> None:
    async def main(site: Site) -> list[Seen]:
        site.begin(lasting=30.0, **fault)
        hit = await asyncio.gather(site.list(), site.watch())
        await asyncio.sleep(90)
        return [*hit, await site.list()]

    *hit, after = on_site(main)
    for seen in hit:
        assert type(seen.error) is error
        assert len(seen.data) == (70 if fault["kind"] == "reset" else 0)
    assert (after.error, after.data.count(b'"name"')) == (None, 3)


@pytest.mark.parametrize(
    ("fault", "error", "ended", "events"),
    [
        ({"kind": "outage"}, ConnectionLost, 10, 2),
        ({"kind": "reset", "amount": 0}, ConnectionLost, 10, 2),
        ({"kind": "reset", "amount": 40}, ConnectionLost, 20, 3),
        ({"kind": "compact"}, ConnectionLost, 10, 2),
        ({"kind": "stall"}, RequestTimedOut, 330, 2),
        ({"kind": "end"}, type(None), 10, 2),
        ({"kind": "error_event", "amount": 500}, type(None), 10, 2),
        ({"kind": "no_bookmarks", "lasting": 1000.0}, type(None), 300, 3),
        ({"kind": "refuse", "lasting": 1000.0}, type(None), 300, 3),
        ({"kind": "end", "target": "another"}, type(None), 300, 3),
    ],
)
def test_a_momentary_fault_affects_the_open_watch(
    fault: dict[str, Any], error: type[object], ended: float, events: int
) -> None:
    async def main(site: Site) -> Seen:
        watching = asyncio.create_task(site.watch())
        await asyncio.sleep(10)
        site.begin(**fault)
        await asyncio.sleep(10)
        site.cluster.create("pods", {"metadata": {"name": "d"}})
        return await watching

    seen = on_site(main)
    assert (type(seen.error), seen.ended) == (error, ended)
    assert seen.data.count(b'"ADDED","object":{"kind":"Pod"') == events
    assert seen.data.count(b'"code":500') == (fault["kind"] == "error_event")
    assert (b"BOOKMARK" in seen.data) == (ended == 300 and fault["kind"] != "no_bookmarks")


@pytest.mark.parametrize(
    ("fault", "error", "ended"),
    [
        ({"kind": "no_watchlist", "amount": 400}, BadRequest, 0),
        ({"kind": "no_watchlist", "amount": 422}, Invalid, 0),
        ({"kind": "no_watchlist", "amount": 500}, type(None), 0),
        ({"kind": "endless", "amount": 0}, type(None), 300),
        ({"kind": "endless", "amount": 12}, type(None), 12),
        ({"kind": "brief", "amount": 3}, type(None), 3),
        ({"kind": "unserved"}, type(None), 0),
        ({"kind": "empty_watch"}, type(None), 0),
        ({"kind": "html_page"}, type(None), 0),
    ],
)
def test_faults_deny_watch_lists_omit_their_end_mark_or_end_them_early(
    fault: dict[str, Any], error: type[object], ended: float
) -> None:
    async def main(site: Site) -> Seen:
        site.begin(lasting=1000.0, **fault)
        return await site.watch(initial=True)

    seen = on_site(main)
    assert (type(seen.error), seen.ended) == (error, ended)
    assert (MARK in seen.data) == (fault["kind"] in ("brief", "empty_watch"))


@pytest.mark.parametrize("code", [403, 404, 405])
def test_the_fault_watch_refused_denies_watches_and_watch_lists_but_not_lists(code: int) -> None:
    async def main(site: Site) -> list[Seen]:
        site.begin(kind="watch_refused", amount=code, lasting=10.0)
        return [await site.watch(initial=True), await site.watch(), await site.list()]

    *refused, listed = on_site(main)
    assert [type(seen.error) for seen in refused] == [type(server_error(Status(code)))] * 2
    assert listed.error is None
