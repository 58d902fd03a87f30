"""Tests of the switches over HTTP, with a plain client."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Callable
from typing import Any, Literal, cast

import aiohttp
import msgspec
import pytest
import pytest_asyncio

from aioinformer import Client, Resource, SharedInformerFactory
from aioinformer._core.objects.resources import find_built_in
from aioinformer.testing import (
    ApiServer,
    ApiServerThread,
    Fault,
    Faults,
    ManualClock,
    UnusedFault,
)
from aioinformer.testing.faults.effects import RespondWithError
from aioinformer.testing.faults.exchange import FaultedRequest

PODS = "/api/v1/namespaces/default/pods"
FROM_NOW = f"{PODS}?watch=1&resourceVersion=2&allowWatchBookmarks=true"
WATCH_LIST = (
    f"{PODS}?watch=1&allowWatchBookmarks=true&sendInitialEvents=true"
    "&resourceVersionMatch=NotOlderThan"
)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer() as server:
        server.cluster.create("pods", {"metadata": {"name": "web-0"}})
        yield server


@pytest_asyncio.fixture
async def http(server: ApiServer) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(server.url) as session:
        yield session


async def fetch(http: aiohttp.ClientSession, path: str = PODS) -> bytes:
    async with asyncio.timeout(30), http.get(path) as response:
        assert response.status == 200
        return await response.read()


async def assert_no_bytes(reading: asyncio.Task[bytes]) -> None:
    """Assert that no bytes come, though all tasks have run."""
    await asyncio.wait([reading], timeout=0.02)
    assert not reading.done()


def label(server: ApiServer, value: str) -> None:
    server.cluster.merge_patch("pods", "web-0", {"metadata": {"labels": {"v": value}}})


async def event(response: aiohttp.ClientResponse) -> dict[str, Any]:
    async with asyncio.timeout(30):
        found: dict[str, Any] = msgspec.json.decode(await response.content.readline())
    return found


# -- connections -------------------------------------------------------------------------------


async def test_connections_are_refused_until_the_fault_ends(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    async with http.get(FROM_NOW) as watching:
        with server.faults.refuse():
            async with aiohttp.ClientSession(server.url) as other:
                with pytest.raises(aiohttp.ClientConnectorError) as caught:
                    await other.get(PODS)
            assert caught.value.os_error.errno == errno.ECONNREFUSED
            label(server, "a")
            assert (await event(watching))["type"] == "MODIFIED"  # an open watch goes on
        assert b"web-0" in await fetch(http)


async def test_a_refused_request_over_an_idle_connection_breaks(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    await fetch(http)
    with server.faults.refuse(), pytest.raises(aiohttp.ClientConnectionError):
        await fetch(http)
    await fetch(http)


async def test_a_server_that_refuses_can_be_stopped_and_started(server: ApiServer) -> None:
    fault = server.faults.refuse()
    await server.stop()
    await server.start()
    async with aiohttp.ClientSession(server.url) as http:
        with pytest.raises(aiohttp.ClientConnectorError):
            await fetch(http)
        fault.end()
        await fetch(http)


async def test_a_connection_is_reset_after_so_many_bytes(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    whole = await fetch(http)
    with server.faults.reset(after=10, verb="list", times=1) as fault:
        async with http.get(PODS) as response:
            assert response.status == 200
            with pytest.raises(aiohttp.ClientError):
                await response.content.readexactly(11)
        assert (fault.hits, fault.active) == (1, False)
        assert await fetch(http) == whole


async def test_a_connection_is_reset_before_the_head(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    with server.faults.reset(), pytest.raises(aiohttp.ClientConnectionError):
        await fetch(http)


async def test_an_idle_watch_is_reset_at_once(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    async with http.get(FROM_NOW) as watching:
        server.faults.reset(verb="watch", times=1)
        async with asyncio.timeout(30):
            with pytest.raises(aiohttp.ClientError):
                await watching.content.read()
    assert "0 watches" in repr(server)


async def test_a_stalled_server_accepts_and_sends_nothing(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    fault = server.faults.stall()
    reading = asyncio.create_task(fetch(http))
    await assert_no_bytes(reading)
    fault.end()
    assert b"web-0" in await reading


async def test_a_list_stalls_in_the_middle(server: ApiServer, http: aiohttp.ClientSession) -> None:
    whole = await fetch(http)
    fault = server.faults.stall(after=20, verb="list")
    async with http.get(PODS) as response:
        assert await response.content.readexactly(20) == whole[:20]
        reading = asyncio.create_task(response.content.read())
        await assert_no_bytes(reading)
        fault.end()
        assert await reading == whole[20:]


async def test_an_open_watch_stalls_and_a_new_one_does_not(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    async with http.get(FROM_NOW) as silent:
        server.faults.stall(verb="watch", times=1)
        label(server, "a")
        reading = asyncio.create_task(silent.content.readany())
        await assert_no_bytes(reading)
        async with http.get(FROM_NOW) as other:
            assert (await event(other))["type"] == "MODIFIED"
        reading.cancel()


# -- bytes -------------------------------------------------------------------------------------


async def test_a_body_is_sent_in_pieces_with_pauses(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    whole = await fetch(http)
    with server.faults.drip(size=len(whole) // 4, every=0.005, verb="list"):
        before = asyncio.get_running_loop().time()
        assert await fetch(http) == whole
        assert asyncio.get_running_loop().time() - before >= 0.015


async def test_bytes_are_overwritten_on_their_way(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    whole = await fetch(http)
    with server.faults.corrupt(after=7, put=b"\xff\xfe"):
        assert await fetch(http) == whole[:7] + b"\xff\xfe" + whole[9:]


# -- answers -----------------------------------------------------------------------------------


async def test_latency_delays_the_start_of_an_answer() -> None:
    clock = ManualClock()
    async with ApiServer(clock=clock) as server, aiohttp.ClientSession(server.url) as http:
        server.faults.latency(2.0, verb="list")
        reading = asyncio.create_task(fetch(http))
        async with asyncio.timeout(30):
            while not clock.waiting:  # noqa: ASYNC110 - the server waits behind a socket
                await asyncio.sleep(0)
        clock.advance(1.9)
        await assert_no_bytes(reading)
        clock.advance(0.1)
        await reading


@pytest.mark.parametrize("retry_after", [None, 7])
async def test_a_status_answers_the_chosen_requests(
    server: ApiServer, http: aiohttp.ClientSession, retry_after: int | None
) -> None:
    with server.faults.status(503, verb="list", resource="po", retry_after=retry_after) as fault:
        async with http.get(PODS) as response:
            assert response.status == 503
            assert response.headers.get("Retry-After") == (retry_after and str(retry_after))
            body = await response.json()
            assert (body["kind"], body["reason"]) == ("Status", "ServiceUnavailable")
        for other in (f"{PODS}/web-0", "/api/v1/services", "/readyz", "/apis"):
            await fetch(http, other)
        async with http.get(FROM_NOW) as watching:
            assert watching.status == 200
        assert fault.hits == 1
    await fetch(http)


async def test_a_status_for_everything_is_for_writes_and_discovery_too(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    with server.faults.status(429, times=3):
        for method, path in (("POST", PODS), ("GET", "/apis"), ("DELETE", f"{PODS}/web-0")):
            async with http.request(method, path) as response:
                assert response.status == 429
    await fetch(http, f"{PODS}/web-0")


async def test_a_forbidden_request_is_named_in_the_answer(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    with server.faults.forbid(verb="get"):
        for path, text in (
            (f"{PODS}/web-0", 'cannot get resource "pods"'),
            ("/api/v1/nodes/n", 'cannot get resource "nodes" in API group "" at the cluster'),
            ("/apis", "forbidden: User"),
        ):
            async with http.get(path) as response:
                assert response.status == 403
                assert text in (await response.json())["message"]


# -- watches -----------------------------------------------------------------------------------


@pytest_asyncio.fixture
async def manual() -> AsyncIterator[tuple[ApiServer, ManualClock, aiohttp.ClientSession]]:
    """Run a server with a clock that stands still."""
    clock = ManualClock()
    async with ApiServer(clock=clock) as server, aiohttp.ClientSession(server.url) as http:
        server.cluster.create("pods", {"metadata": {"name": "web-0"}})
        yield server, clock, http


async def test_bookmarks_are_dropped(
    manual: tuple[ApiServer, ManualClock, aiohttp.ClientSession],
) -> None:
    server, clock, http = manual
    fault = server.faults.drop_bookmarks()
    async with http.get(FROM_NOW) as watching:
        label(server, "a")
        assert (await event(watching))["type"] == "MODIFIED"
        clock.advance(60)
        reading = asyncio.create_task(watching.content.readline())
        await assert_no_bytes(reading)
        fault.end()
        clock.advance(60)
        assert b"BOOKMARK" in await reading


async def test_late_bookmarks_have_the_version_of_the_later_time(
    manual: tuple[ApiServer, ManualClock, aiohttp.ClientSession],
) -> None:
    server, clock, http = manual
    server.faults.delay_bookmarks(20)
    async with http.get(FROM_NOW) as watching:
        label(server, "a")
        assert (await event(watching))["type"] == "MODIFIED"
        clock.advance(60)
        reading = asyncio.create_task(watching.content.readline())
        await assert_no_bytes(reading)
        server.cluster.create("services", {"metadata": {"name": "s"}})
        clock.advance(20)
        bookmark = msgspec.json.decode(await reading)
        assert bookmark["type"] == "BOOKMARK"
        assert bookmark["object"]["metadata"]["resourceVersion"] == "4"


async def test_a_watch_list_never_ends(
    manual: tuple[ApiServer, ManualClock, aiohttp.ClientSession],
) -> None:
    server, _, http = manual
    with server.faults.endless_watch_list():
        async with http.get(WATCH_LIST) as watching:
            assert (await event(watching))["type"] == "ADDED"
            label(server, "a")
            assert (await event(watching))["type"] == "MODIFIED"
    async with http.get(WATCH_LIST) as watching:
        assert [(await event(watching))["type"] for _ in range(2)] == ["ADDED", "BOOKMARK"]


# -- the switches themselves -------------------------------------------------------------------


async def test_bookmarks_are_repeated(
    manual: tuple[ApiServer, ManualClock, aiohttp.ClientSession],
) -> None:
    server, clock, http = manual
    async with http.get(FROM_NOW) as watching:
        label(server, "a")
        assert (await event(watching))["type"] == "MODIFIED"
        with server.faults.repeat_bookmarks():
            clock.advance(60)
            first, second = await event(watching), await event(watching)
    assert first == second
    assert first["type"] == "BOOKMARK"


async def test_watches_end_properly_while_the_fault_is_on(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    async with http.get(FROM_NOW) as watching:
        with server.faults.end_watches(times=2) as fault:
            assert await watching.content.read() == b""
            assert await fetch(http, FROM_NOW) == b""
        assert fault.hits == 2


async def test_a_watch_ends_with_an_error_event(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    async with http.get(FROM_NOW) as watching:
        with server.faults.error_event(410, message="compacted"):
            sent = await event(watching)
            assert await watching.content.read() == b""
    assert sent["type"] == "ERROR"
    assert (sent["object"]["code"], sent["object"]["reason"]) == (410, "Expired")
    assert sent["object"]["message"] == "compacted"


async def test_watches_end_after_some_seconds_or_when_there_is_no_event(
    manual: tuple[ApiServer, ManualClock, aiohttp.ClientSession],
) -> None:
    server, clock, http = manual
    with server.faults.end_watches(after=5):
        async with http.get(FROM_NOW) as watching:
            clock.advance(4.9)
            label(server, "a")
            assert (await event(watching))["type"] == "MODIFIED"
            clock.advance(0.1)
            assert await watching.content.read() == b""
    with server.faults.end_watches(idle=True):
        async with http.get(FROM_NOW) as watching:
            modified, bookmark = (await watching.content.read()).splitlines()
    assert b"MODIFIED" in modified
    assert msgspec.json.decode(bookmark)["object"]["metadata"]["resourceVersion"] == "3"


async def test_events_are_rewritten_on_their_way(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    foreign = b'{"type":"ADDED","object":{"kind":"Secret"}}\n'
    with server.faults.rewrite_events(lambda line: [foreign, line], verb="watch_list", times=1):
        async with http.get(WATCH_LIST) as watching:
            assert (await event(watching))["object"] == {"kind": "Secret"}
            assert (await event(watching))["object"]["metadata"]["name"] == "web-0"


# -- answers that are not the server's ---------------------------------------------------------


async def test_the_fault_html_page_answers_every_request_with_html(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    with server.faults.html_page():
        for path in (PODS, FROM_NOW, "/apis"):
            async with http.get(path) as response:
                assert response.status == 200
                assert response.content_type == "text/html"
                assert (await response.read()).startswith(b"<html>")


async def test_a_redirection_is_to_another_host(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    with server.faults.status(302):
        async with http.get(PODS, allow_redirects=False) as response:
            assert (response.status, server.url in response.headers["Location"]) == (302, False)


async def test_a_404_may_be_plain_text(server: ApiServer, http: aiohttp.ClientSession) -> None:
    with server.faults.status(404, plain=True):
        async with http.get(PODS) as response:
            assert (response.status, response.content_type) == (404, "text/plain")


async def test_a_server_answers_that_a_version_is_too_large(
    server: ApiServer, http: aiohttp.ClientSession
) -> None:
    with server.faults.version_too_large("cause"):
        async with http.get(PODS) as response:
            assert response.status == 504
            causes = (await response.json())["details"]["causes"]
            assert causes == [{"message": "Too large resource version"}]


# -- lists -------------------------------------------------------------------------------------


async def test_a_list_shows_an_older_state(server: ApiServer, http: aiohttp.ClientSession) -> None:
    label(server, "a")
    with server.faults.stale_lists(1):
        stale = msgspec.json.decode(await fetch(http, f"{PODS}?resourceVersion=3"))
    assert stale["metadata"]["resourceVersion"] == "2"
    assert "labels" not in stale["items"][0]["metadata"]


@pytest.mark.parametrize("custom", [False, True])
async def test_pages_without_end_begin_again(
    server: ApiServer, http: aiohttp.ClientSession, *, custom: bool
) -> None:
    path = "/apis/example.com/v1/namespaces/default/widgets" if custom else PODS
    widgets = Resource("example.com", "v1", "widgets", "Widget")
    resource = widgets if custom else "pods"
    if custom:
        server.cluster.add_resource(widgets)
        server.cluster.create(resource, {"metadata": {"name": "web-0"}})
    server.cluster.create(resource, {"metadata": {"name": "web-1"}})
    token, names, tokens = "", list[str](), set[str]()
    with server.faults.endless_pages():
        for _ in range(6):
            page = msgspec.json.decode(await fetch(http, f"{path}?limit=1&continue={token}"))
            token = page["metadata"]["continue"]
            tokens.add(token)
            names += [item["metadata"]["name"] for item in page["items"]]
    assert names == ["web-0", "web-1"] * 3
    assert len(tokens - {""}) == 6, "each page has a token of its own"


def test_a_fault_is_on_until_it_ends() -> None:
    faults = Faults()
    with faults.stall() as one, faults.refuse() as other:
        assert list(faults.on) == [one, other]
        assert faults.refusing
    assert not faults.on
    assert (one.ended, one.active) == (True, False)
    one.end()  # a second end has no effect
    faults.reset()
    faults.status(500)
    faults.clear()
    assert not faults.on


def test_observers_are_called_at_each_switch_until_they_leave() -> None:
    faults, switched = Faults(), list[int]()
    leave = faults.observe(lambda: switched.append(len(faults.on)))
    with faults.stall():
        pass
    leave()
    faults.stall()
    assert switched == [1, 0]


def test_invalid_arguments_are_a_value_error() -> None:
    faults = Faults()
    nonsense: list[Callable[[], Fault]] = [
        lambda: faults.reset(after=-1),
        lambda: faults.stall(times=0),
        lambda: faults.drip(size=0),
        lambda: faults.status(200),
        lambda: faults.status(500, plain=True),
    ]
    for wrong in nonsense:
        with pytest.raises(ValueError, match=r"."):
            wrong()
    assert not faults.on


def test_the_repr_shows_effect_and_requests() -> None:
    faults = Faults()
    fault = faults.status(503, verb="list", resource="pods", times=2)
    assert "503" in repr(faults)
    assert "list pods on 0 hits" in repr(fault)
    fault.end()
    assert "ended" in repr(fault)


def test_a_403_has_the_text_of_rbac_unless_a_text_is_given() -> None:
    faults = Faults()
    with faults.status(403), FaultedRequest(faults, "list", find_built_in("pods"), "web") as asked:
        action = asked.response_action(0.0)
        assert isinstance(action, RespondWithError)
        assert action.error.status.message == (
            'pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group '
            '"" in the namespace "web"'
        )
    with faults.status(403, message="no"), FaultedRequest(faults, "get", None) as asked:
        action = asked.response_action(0.0)
        assert isinstance(action, RespondWithError)
        assert (action.error.status.message, action.error.status.reason) == ("no", "Forbidden")


# -- faults without a request ----------------------------------------------------------------------


async def watch_pods(server: ApiServer) -> None:
    """Let an informer sync, whose first request is a WatchList."""
    async with Client(server.url) as client, SharedInformerFactory(client) as informers:
        informers.informer("pods")
        await informers.wait_synced(timeout=30)


def leave_on(faults: Faults) -> None:
    faults.status(503, verb="list")


def end_at_once(faults: Faults) -> None:
    with faults.latency(1, verb="list", resource="nodes"):
        pass


def end_by_name(faults: Faults) -> None:
    faults.stall(verb="watch", resource="nodes").end()


@pytest.mark.parametrize(
    ("switch", "text"),
    [
        (leave_on, 'ErrorStatus 503 for verb="list" has'),
        (end_at_once, 'Delay for verb="list" resource="nodes" has'),
        (end_by_name, 'Cut for verb="watch" resource="nodes"'),
    ],
    ids=["still on", "left", "ended"],
)
async def test_a_server_warns_at_its_end_of_a_fault_that_concerned_no_request(
    switch: Callable[[Faults], None], text: str
) -> None:
    with pytest.warns(UnusedFault, match=f"the fault {text}.* no request; requests since it"):
        async with ApiServer() as server:
            switch(server.faults)


@pytest.mark.parametrize(
    ("verb", "advice"),
    [
        ("list", '; an informer begins with a watch_list: pass verb="watch_list"'),
        ("watch_list", ""),
    ],
)
async def test_the_warning_names_the_requests_that_arrived_instead(
    verb: Literal["list", "watch_list"], advice: str
) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            await watch_pods(server)
            server.faults.status(503, verb=verb, resource="nodes")
            await watch_pods(server)

    with pytest.warns(UnusedFault) as caught:
        await scenario()
    (warning,) = caught
    assert str(warning.message).endswith(f"requests since it began: watch_list pods{advice}")
    assert warning.filename == __file__


def test_a_verb_that_no_request_has_is_refused() -> None:
    with pytest.raises(ValueError, match=r"verb must be one of .*'watch_list'.*, not 'lst'"):
        Faults().status(503, verb=cast("Any", "lst"))


def test_a_server_in_a_thread_warns_as_well() -> None:
    with (
        pytest.warns(UnusedFault, match='ErrorStatus 503 for verb="list"'),
        ApiServerThread() as server,
    ):
        leave_on(server.faults)


async def test_a_server_does_not_warn_of_a_fault_that_has_occurred() -> None:
    """A warning is an error in this test run."""
    async with ApiServer() as server:
        with server.faults.status(503, verb="watch_list", times=1) as fault:
            await watch_pods(server)
        assert fault.hits == 1
        with server.faults.status(503, share=0.0):  # chance has spared the request
            await watch_pods(server)
        server.faults.refuse()  # which counts no connections


async def test_a_server_does_not_warn_after_an_exception() -> None:
    async def fail() -> None:
        async with ApiServer() as server:
            leave_on(server.faults)
            raise ZeroDivisionError

    def fail_in_thread() -> None:
        with ApiServerThread() as server:
            leave_on(server.faults)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    with pytest.raises(ZeroDivisionError):
        fail_in_thread()
