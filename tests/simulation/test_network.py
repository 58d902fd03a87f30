"""The effect of each fault on requests, seen by a client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

import pytest

from aioinformer import ListRequest, WatchRequest
from aioinformer._core.listwatch.outcomes import Outcome, classify
from aioinformer.errors import (
    BadRequest,
    ConnectionFailed,
    ConnectionLost,
    FetchError,
    Forbidden,
    Invalid,
    RequestTimedOut,
    TooManyRequests,
)
from aioinformer.testing import Cluster
from aioinformer.testing.simulation import run
from tests.simulation.lister_watcher import FaultyListerWatcher
from tests.simulation.network import Network
from tests.simulation.plan import PODS, Fault, Plan
from tests.simulation.records import Closed, History, Request

T = TypeVar("T")


@dataclass
class Seen:
    """The part of an answer that a client received."""

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
        self.line = FaultyListerWatcher(self.network, "web", PODS)

    async def list(self) -> Seen:
        return await _read(self.line.list(ListRequest()))

    async def watch(self, timeout: int = 300) -> Seen:
        """Watch from the first pod on."""
        return await _read(self.line.watch(WatchRequest("2", timeout)))

    async def watch_list(self, timeout: int = 300) -> Seen:
        """Watch with the state first."""
        return await _read(self.line.watch(WatchRequest("", timeout, initial=True)))

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
    """Watch; a fault begins after 10 s, and an object changes after 20 s."""
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
    ("fault", "error", "ended", "events"),
    [
        ({"kind": "outage"}, ConnectionLost, 10, 2),
        ({"kind": "reset", "amount": 0}, ConnectionLost, 10, 2),
        ({"kind": "reset", "amount": 40}, ConnectionLost, 20, 3),
        ({"kind": "compact"}, ConnectionLost, 10, 2),
        ({"kind": "stall"}, RequestTimedOut, 330, 2),
        ({"kind": "stall", "amount": 40}, RequestTimedOut, 330, 3),
        ({"kind": "end"}, type(None), 10, 2),
        ({"kind": "error_event", "amount": 500}, type(None), 10, 2),
        ({"kind": "no_bookmarks", "lasting": 1000.0}, type(None), 300, 3),
        ({"kind": "refuse", "lasting": 1000.0}, type(None), 300, 3),
        ({"kind": "end", "target": "another"}, type(None), 300, 3),
    ],
)
def test_a_fault_hits_a_watch_that_is_open(
    fault: dict[str, Any], error: type[object], ended: float, events: int
) -> None:
    seen = on_site(lambda site: interrupted(site, **fault))
    assert (type(seen.error), seen.ended) == (error, ended)
    assert seen.data.count(b"ADDED") == events
    assert seen.data.count(b'"code":500') == (fault["kind"] == "error_event")
    assert (b"BOOKMARK" in seen.data) == (ended == 300 and fault["kind"] != "no_bookmarks")


def test_only_the_client_ends_a_silent_connection_unless_it_breaks() -> None:
    async def main(site: Site) -> Seen:
        watching = asyncio.create_task(site.watch())
        await asyncio.sleep(10)
        site.begin(kind="stall")
        await asyncio.sleep(10)
        site.begin(kind="end")
        await asyncio.sleep(10)
        assert not watching.done()
        site.begin(kind="outage")
        return await watching

    seen = on_site(main)
    assert (type(seen.error), seen.ended) == (ConnectionLost, 30)


def test_silent_answers_time_out_as_a_client_s_do() -> None:
    async def main(site: Site) -> list[Seen]:
        site.begin(kind="hang", lasting=1.0)
        unanswered = [*await asyncio.gather(site.list(), site.watch())]
        site.begin(kind="stall", lasting=1.0, amount=50)
        return [*unanswered, await site.list()]

    *unanswered, half = on_site(main)
    assert [(type(seen.error), seen.ended) for seen in unanswered] == [
        (RequestTimedOut, 75),
        (RequestTimedOut, 90),
    ]
    assert (type(half.error), half.ended, len(half.data)) == (RequestTimedOut, 90 + 75, 50)


MARK = b'"k8s.io/initial-events-end":"true"'


def test_a_watch_list_has_its_mark_and_perhaps_a_bookmark_that_is_none() -> None:
    async def main(site: Site) -> list[Seen]:
        return [await site.watch_list(1) for _ in range(20)]

    seen = on_site(main)
    assert {each.data.count(MARK) for each in seen} == {1}
    assert {each.data.count(b"ADDED") for each in seen} == {3}
    decoys = [each.data.count(b'"k8s.io/initial-events-end":"false"') for each in seen]
    assert set(decoys) == {0, 1}
    assert all(each.data.rindex(MARK) > each.data.find(b'end":"false"') for each in seen)


@pytest.mark.parametrize(
    ("fault", "error", "ended"),
    [
        ({"kind": "no_watchlist", "amount": 400}, BadRequest, 0),
        ({"kind": "no_watchlist", "amount": 422}, Invalid, 0),
        ({"kind": "endless", "amount": 0}, type(None), 300),
        ({"kind": "endless", "amount": 12}, type(None), 12),
        ({"kind": "brief", "amount": 3}, type(None), 3),
    ],
)
def test_watch_lists_are_refused_or_have_no_end_or_a_soon_one(
    fault: dict[str, Any], error: type[object], ended: float
) -> None:
    async def main(site: Site) -> tuple[Seen, Seen]:
        site.begin(lasting=1000.0, **fault)
        return await site.watch_list(), await site.watch(300)

    seen, watched = on_site(main)
    assert (type(seen.error), seen.ended) == (error, ended)
    assert (MARK in seen.data) == (fault["kind"] == "brief")
    assert watched.error is None


def test_a_watch_list_that_the_storage_cant_serve_ends_with_an_error_event() -> None:
    async def main(site: Site) -> Seen:
        site.begin(kind="no_watchlist", amount=500, lasting=1.0)
        return await site.watch_list()

    seen = on_site(main)
    assert b"RequestWatchProgress is disabled" in seen.data
    assert (seen.data.count(b"\n"), seen.error, seen.ended) == (1, None, 0)


@pytest.mark.parametrize("dialect", [0, 1, 2])
def test_a_server_that_lags_says_so_in_three_dialects(dialect: int) -> None:
    async def main(site: Site) -> Seen:
        site.begin(kind="version_too_large", amount=dialect, lasting=1.0)
        return await site.list()

    seen = on_site(main)
    assert seen.error is not None
    assert classify(seen.error) is Outcome.VERSION_TOO_LARGE


def test_garbage_comes_with_200() -> None:
    async def main(site: Site) -> list[Seen]:
        site.begin(kind="html_page", lasting=1.0)
        return [await site.list(), await site.watch()]

    for seen in on_site(main):
        assert seen.data.startswith(b"<html>")
        assert (seen.error, seen.ended) == (None, 0)


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (302, Outcome.BAD_REQUEST),
        (400, Outcome.BAD_REQUEST),
        (401, Outcome.UNAUTHORIZED),
        (404, Outcome.NOT_FOUND),
        (410, Outcome.EXPIRED),
        (429, Outcome.THROTTLED),
        (500, Outcome.SERVER_ERROR),
        (503, Outcome.THROTTLED),
        (504, Outcome.VERSION_TOO_LARGE),
    ],
)
def test_a_status_is_what_it_says(code: int, outcome: Outcome) -> None:
    async def main(site: Site) -> Seen:
        site.begin(kind="status", amount=code, lasting=1.0)
        return await site.list()

    seen = on_site(main)
    assert seen.error is not None
    assert classify(seen.error) is outcome


def test_a_fault_may_hit_a_share_of_requests() -> None:
    async def main(site: Site) -> list[Seen]:
        site.begin(kind="refuse", lasting=1.0, share=0.5)
        return [await site.list() for _ in range(200)]

    assert 70 < sum(seen.error is None for seen in on_site(main)) < 130


def test_discovery_says_what_is_served_and_in_which_version() -> None:
    async def main(site: Site) -> list[object]:
        seen: list[object] = [await site.line.discover()]
        site.begin(kind="absent", lasting=1.0)
        seen += await site.line.discover(), (await site.list()).error
        await asyncio.sleep(2)
        site.begin(kind="moved", lasting=10.0)
        found = await site.line.discover()
        assert found is not None
        seen += found.version, (await site.list()).error
        site.line = site.line.with_resource(found)
        return [*seen, (await site.list()).data == site.cluster.list("pods")]

    served, absent, missing, moved, elsewhere, there = on_site(main)
    assert (served, absent, moved, there) == (PODS, None, "v9", True)
    for error in (missing, elsewhere):
        assert isinstance(error, FetchError)
        assert classify(error) is Outcome.NOT_FOUND


def test_what_came_through_is_written_down() -> None:
    async def main(site: Site) -> History:
        await site.list()
        watching = asyncio.create_task(site.watch_list(150))
        await asyncio.sleep(10)
        site.cluster.create("pods", {"metadata": {"name": "d"}})
        await watching
        site.begin(kind="reset", amount=70, lasting=1.0)
        await site.list()
        return site.history

    listed, watched, broken = on_site(main).of(Request)
    assert listed.initial_list_complete > listed.order
    assert watched.initial_list_complete > watched.order
    assert broken.initial_list_complete == 0
    assert [round(at) for at in watched.bookmarks] == [60, 120, 148, 149]
    assert (watched.answered, watched.last_read, watched.silent_since, watched.ended) == (
        0,
        149,
        None,
        150,
    )


def test_an_echo_repeats_bookmarks_and_nothing_else() -> None:
    seen = on_site(lambda site: interrupted(site, kind="duplicate_bookmarks", lasting=70.0))
    plain = on_site(lambda site: interrupted(site, kind="duplicate_bookmarks", target="another"))
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
        site.begin(kind="empty_watch", lasting=5.0)
        return await site.watch()

    seen = on_site(main)
    assert seen.data.count(b"ADDED") == 2
    assert seen.data.splitlines()[-1].startswith(b'{"type":"BOOKMARK"')
    assert (seen.error, seen.ended) == (None, 0)


def test_a_curt_watch_from_the_present_says_nothing() -> None:
    async def main(site: Site) -> Seen:
        site.begin(kind="empty_watch", lasting=5.0)
        return await _read(site.line.watch(WatchRequest("4", 300)))

    assert on_site(main) == Seen()


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
    assert [request.failure for request in history.of(Request)] == [
        "",
        "TooManyRequests: 429 TooManyRequests: made up",
        "",  # 410 comes inside the stream, and it is the client's to make an error of it
    ]
    assert [request.retry_after for request in history.of(Request)] == [0, 7, 0]
    assert [closed.request for closed in history.of(Closed)] == history.of(Request)
    assert repr(network) == "<Network open=0 faults=2>"
