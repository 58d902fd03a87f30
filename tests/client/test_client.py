"""The client as a program uses it."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import ssl
import subprocess
import sys
import zlib
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol

import pytest
from aiohttp import web

from aioinformer import Client, Limits, ListRequest, Resource, Timeouts, WatchRequest
from aioinformer.errors import (
    ConfigurationError,
    Forbidden,
    NotFound,
    NotRunning,
    ProtocolError,
    RequestTimedOut,
    UnknownResource,
    UsageError,
)
from tests.client.conftest import Certificates
from tests.client.kubeconfigs import make_kubeconfig
from tests.client.recordings import read_recording
from tests.client.servers import http_server, replay_response, start_response

CANARY = "canary-51de"
PODS = Resource("", "v1", "pods", "Pod")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)


class ListerWatcher(Protocol):
    """The part of a client that the runtime uses."""

    @property
    def resource(self) -> Resource: ...

    def list(self, request: ListRequest) -> AbstractAsyncContextManager[AsyncIterator[bytes]]: ...

    def watch(self, request: WatchRequest) -> AbstractAsyncContextManager[AsyncIterator[bytes]]: ...


def lists_and_watches(source: ListerWatcher) -> ListerWatcher:
    """``source``: type checkers see here that a reader is a ``ListerWatcher``."""
    return source


async def discovery(request: web.Request) -> web.Response:
    match request.path:
        case "/api":
            return web.json_response({"kind": "APIVersions", "versions": ["v1"]})
        case "/api/v1":
            return replay_response(read_recording("01-core-v1-resources"))
        case "/apis":
            return replay_response(read_recording("02-aggregated-discovery"))
        case path:
            return web.Response(status=404, text=path)


async def url(request: web.Request) -> web.Response:
    return web.Response(text=str(request.rel_url))


# -- life --------------------------------------------------------------------------------------


async def test_a_client_is_open_inside_its_context_and_nowhere_else() -> None:
    async with http_server(url) as server:
        client = Client(server)
        with pytest.raises(NotRunning, match=r"is not open: use it inside `async with`"):
            await client.get_raw("/version")
        async with client:
            assert await client.get_raw("/version") == b"/version"
        with pytest.raises(NotRunning, match="closed> is not open"):
            await client.get_raw("/version")


@pytest.mark.parametrize("server", [None, 3, b"http://10.0.0.1"])
def test_a_server_that_is_no_text_is_a_type_error(server: Any) -> None:
    message = r"a server is a URL such as https://10\.0\.0\.1:6443, not .*Client\.connect\(\)"
    with pytest.raises(TypeError, match=message):
        Client(server)


async def test_a_client_is_entered_once() -> None:
    client = Client("http://10.0.0.1")
    async with client:
        with pytest.raises(NotRunning, match="can be entered only once"):
            await client.__aenter__()
    with pytest.raises(NotRunning, match="make a new client"):
        await client.__aenter__()


async def test_a_client_may_be_left_in_another_task_than_it_was_entered_in() -> None:
    """As fixtures of pytest and lifespans of web frameworks do."""
    async with http_server(url) as server:
        client = Client(server)
        await asyncio.create_task(client.__aenter__())
        assert await client.get_raw("/version") == b"/version"
        await asyncio.create_task(client.__aexit__(None, None, None))


@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
async def test_leaving_a_client_leaves_no_socket_open(
    secure: bool, certificates: Certificates
) -> None:
    tls = certificates.server_context() if secure else None
    trust = certificates.client_context() if secure else None
    async with http_server(url, tls=tls) as server:
        async with Client(server, ssl=trust) as client:
            await asyncio.gather(*(client.get_raw("/version") for _ in range(5)))
        del client
        gc.collect()  # an unclosed session, connector or transport would warn here, and fail


async def test_leaving_a_client_ends_the_watches_of_other_tasks() -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = await start_response(request, b"event\n")
        await asyncio.Event().wait()
        return response

    async with http_server(endless) as server:
        started = asyncio.Event()
        async with Client(server) as client:

            async def watch() -> None:
                async with client.lister_watcher(PODS).watch(WatchRequest("1", 300)) as stream:
                    async for _ in stream:
                        started.set()

            watching = asyncio.create_task(watch())
            await started.wait()
        with pytest.raises(NotRunning, match="the client was closed"):
            await watching


async def test_a_client_that_finds_no_configuration_stays_closed(tmp_path: Path) -> None:
    client = Client.connect(kubeconfig=tmp_path / "missing")
    assert repr(client) == "<Client not opened yet: enter it with 'async with'>"

    with pytest.raises(ConfigurationError, match="does not exist"):
        await client.__aenter__()
    with pytest.raises(NotRunning):
        await client.get_raw("/version")
    assert repr(client) == "<Client without a server closed>"


async def test_a_client_connects_with_a_kubeconfig(tmp_path: Path) -> None:
    async def whoami(request: web.Request) -> web.Response:
        return web.Response(text=request.headers["Authorization"])

    async with http_server(whoami) as server:
        config = tmp_path / "config"
        config.write_text(
            f"""
            current-context: main
            clusters: [{{name: main, cluster: {{server: {server}}}}}]
            users: [{{name: me, user: {{token: abc}}}}]
            contexts: [{{name: main, context: {{cluster: main, user: me}}}}]
            """
        )
        async with Client.connect(kubeconfig=config) as client:
            assert client.server == server
            assert await client.get_raw("/") == b"Bearer abc"


async def test_a_repr_shows_server_and_state_and_no_secret() -> None:
    client = Client("https://10.0.0.1", token=CANARY, headers={"Impersonate-User": CANARY})

    assert repr(client) == "<Client https://10.0.0.1 new>"
    async with client:
        assert repr(client) == "<Client https://10.0.0.1 open>"
        reader = client.lister_watcher(PODS, namespace="web", labels="app=shop")
        assert CANARY not in repr(reader)
        assert repr(reader) == "<ClientListerWatcher of pods in web, labelSelector=app=shop>"
        assert repr(client.lister_watcher(PODS)) == "<ClientListerWatcher of pods>"
    assert repr(client) == "<Client https://10.0.0.1 closed>"


# -- asking ------------------------------------------------------------------------------------


async def test_headers_of_the_program_go_with_every_request() -> None:
    async def whoami(request: web.Request) -> web.Response:
        return web.Response(text=request.headers["Impersonate-User"])

    async with (
        http_server(whoami) as server,
        Client(server, headers={"Impersonate-User": "jane"}) as client,
    ):
        assert await client.get_raw("/") == b"jane"


async def test_the_error_of_a_failed_get_has_its_phase() -> None:
    async with http_server(discovery) as server, Client(server) as client:
        with pytest.raises(NotFound) as caught:
            await client.get_raw("/nowhere", phase="discovery")
    assert caught.value.phase == "discovery"


async def test_a_list_request_has_its_query_its_scope_and_its_selectors() -> None:
    async with http_server(url) as server, Client(server) as client:
        reader = lists_and_watches(
            client.lister_watcher(
                PODS, namespace="web", labels="app=shop", fields="spec.nodeName=node-1"
            )
        )
        async with reader.list(ListRequest("0", 500)) as body:
            sent = b"".join([chunk async for chunk in body]).decode()

    assert reader.resource is PODS
    assert sent == (
        "/api/v1/namespaces/web/pods?limit=500&resourceVersion=0"
        "&labelSelector=app%3Dshop&fieldSelector=spec.nodeName%3Dnode-1"
    )


async def test_a_watch_request_has_bookmarks_and_a_timeout() -> None:
    async with (
        http_server(url) as server,
        Client(server) as client,
        client.lister_watcher(PODS).watch(WatchRequest("41", 300)) as body,
    ):
        sent = b"".join([chunk async for chunk in body])

    assert sent == (
        b"/api/v1/pods?watch=true&allowWatchBookmarks=true&resourceVersion=41&timeoutSeconds=300"
    )


@pytest.mark.parametrize("verb", ["list", "watch"])
async def test_an_error_status_is_raised_when_the_context_is_entered(verb: str) -> None:
    async def answer(request: web.Request) -> web.Response:
        return replay_response(read_recording("25-list-forbidden"))

    async with http_server(answer) as server, Client(server) as client:
        reader = client.lister_watcher(PODS)
        opening = (
            reader.list(ListRequest()) if verb == "list" else reader.watch(WatchRequest("1", 300))
        )
        with pytest.raises(Forbidden) as caught:
            async with opening:
                pytest.fail("entered")
    assert caught.value.phase == verb


def test_a_reader_can_be_made_before_the_client_is_entered() -> None:
    reader = Client("http://10.0.0.1").lister_watcher(PODS)

    assert reader.path == "/api/v1/pods"


def test_a_namespace_of_a_cluster_scoped_resource_is_an_error() -> None:
    with pytest.raises(ValueError, match="cluster-scoped"):
        Client("http://10.0.0.1").lister_watcher(NODES, namespace="web")


# -- discovery ---------------------------------------------------------------------------------


async def test_a_resource_is_found_on_the_server() -> None:
    async with http_server(discovery) as server, Client(server) as client:
        assert (await client.resource("deploy")).path() == "/apis/apps/v1/deployments"
        assert (await client.resource("PODS")).path() == "/api/v1/pods"
        with pytest.raises(UnknownResource, match="did you mean"):
            await client.resource("deploymets")


async def test_discovery_needs_an_open_client() -> None:
    with pytest.raises(NotRunning):
        await Client("http://10.0.0.1").resource("pods")


# -- what is imported --------------------------------------------------------------------------


def test_importing_the_client_does_not_import_kubernetes_asyncio() -> None:
    """Its models take longer to import than everything else together."""
    program = (
        "import sys\nfrom aioinformer import Client\n"
        "print([name in sys.modules for name in ('aiohttp', 'kubernetes_asyncio', 'yaml')])"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "[True, False, False]"


def test_a_kubeconfig_is_read_as_utf_8_in_each_locale_and_without_kubernetes_asyncio(
    tmp_path: Path,
) -> None:
    path, name = tmp_path / "config", "b\u00fcro"
    path.write_text(json.dumps(make_kubeconfig(name=name), ensure_ascii=False), "utf-8")
    program = f"""
import asyncio, locale, sys, aioinformer
async def main():
    async with aioinformer.Client.connect(kubeconfig={str(path)!r}, context={name!a}):
        print("kubernetes_asyncio" in sys.modules, locale.getpreferredencoding())
asyncio.run(main())
"""
    ascii_locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}

    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **ascii_locale},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "False ANSI_X3.4-1968\n"


async def test_an_explicit_server_may_bring_its_own_trust(certificates: Certificates) -> None:
    trust: ssl.SSLContext = certificates.client_context()
    async with (
        http_server(url, tls=certificates.server_context()) as server,
        Client(server, token="abc", ssl=trust) as client,
    ):
        assert await client.get_raw("/version") == b"/version"


async def test_a_resource_without_a_name_is_a_protocol_error() -> None:
    async def nameless(request: web.Request) -> web.Response:
        versions = [{"version": "v1", "resources": [{"resource": ""}]}]
        listed = [{"metadata": {"name": "a.io"}, "versions": versions}]
        return web.json_response({"kind": "APIGroupDiscoveryList", "items": listed})

    async with http_server(nameless) as server, Client(server) as client:
        with pytest.raises(ProtocolError, match="plural is one URL segment"):
            await client.resource("widgets")


@pytest.mark.parametrize(
    "path", ["/api/v1/namespaces/web/../kube-system/secrets", "/..", "/api/./v1", "version", ""]
)
async def test_a_path_with_dot_segments_is_an_error(path: str) -> None:
    async with http_server(url) as server, Client(server) as client:
        with pytest.raises(ValueError, match="a path must begin with '/' and not contain"):
            await client.get_raw(path)


async def test_dots_inside_a_segment_reach_the_server_unchanged() -> None:
    async with http_server(url) as server, Client(server) as client:
        assert await client.get_raw("/api/v1/pods/a..b") == b"/api/v1/pods/a..b"
        assert await client.get_raw("/api/%2e%2e/v1") == b"/api/%252e%252e/v1"


def test_a_namespace_of_several_segments_is_an_error() -> None:
    with pytest.raises(ValueError, match="a namespace is a DNS label"):
        Client("http://10.0.0.1").lister_watcher(PODS, namespace="web/../kube-system")


@pytest.mark.parametrize("headers", [{"X-Key": f"{CANARY}\r\nX-Evil: 1"}, {"X-Key": f"{CANARY}\0"}])
def test_a_header_with_control_characters_is_an_error_that_does_not_show_it(
    headers: dict[str, str],
) -> None:
    with pytest.raises(ValueError, match="the header 'X-Key' contains a newline") as caught:
        Client("http://10.0.0.1", headers=headers)
    assert CANARY not in str(caught.value)


# -- answers without an end --------------------------------------------------------------------


async def test_a_response_that_decompresses_to_more_than_the_limit_is_a_protocol_error() -> None:
    """A megabyte of gzip may hold a gigabyte."""
    packing = zlib.compressobj(wbits=31)
    mebibyte = bytes(1024 * 1024)
    packed = b"".join([packing.compress(mebibyte) for _ in range(80)]) + packing.flush()
    assert len(packed) < 1024 * 1024

    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=packed, headers={"Content-Encoding": "gzip"})

    async with http_server(answer) as server, Client(server) as client:
        with pytest.raises(ProtocolError, match="GET /apis: the response is longer than 67108864"):
            await client.get_raw("/apis", phase="discovery")


async def test_a_slow_endless_response_times_out() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = await start_response(request, b"{")
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.002)

    async with (
        http_server(answer) as server,
        Client(server, timeouts=Timeouts(whole=0.03)) as client,
    ):
        with pytest.raises(RequestTimedOut, match=r"GET /api: .* not end in 0\.03 s") as caught:
            await client.resource("widgets")

    assert caught.value.phase == "discovery"


# -- a resource that isn't served --------------------------------------------------------------


async def test_two_hundred_readers_of_a_removed_resource_share_one_check() -> None:
    sent: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        sent.append(request.path)
        if request.path == "/apis":
            return web.json_response({"kind": "APIGroupDiscoveryList", "items": []})
        return web.Response(status=404, text="404 page not found\n")

    widgets = Resource("example.com", "v1", "widgets", "Widget")
    limits = Limits(restarts=1e6, burst=200)
    async with http_server(answer) as server, Client(server, limits=limits) as client:
        readers = [client.lister_watcher(widgets, namespace=f"n{each}") for each in range(200)]
        found = await asyncio.gather(*(reader.discover() for reader in readers))

    assert found == [None] * 200
    assert sent == ["/apis/example.com/v1", "/apis"]


async def test_the_check_if_a_resource_is_served_waits_for_the_rate_limiter() -> None:
    async with (
        http_server(discovery) as server,
        Client(server, limits=Limits(restarts=0.01, burst=2)) as client,
    ):
        reader = client.lister_watcher(PODS)
        assert await reader.discover() is not None
        assert await reader.discover() is not None
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await reader.discover()


def elsewhere(use: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """In a loop of this thread's own."""
    asyncio.run(use())


async def test_a_client_raises_an_error_in_another_event_loop() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        return await start_response(request, b"{}")

    async with http_server(answer) as server, Client(server) as client:
        uses: tuple[Callable[[], Coroutine[Any, Any, object]], ...] = (
            lambda: client.get_raw("/version"),
            lambda: client.api("pods").get("web/web-0"),
            lambda: client.resource("widgets"),
        )
        for use in uses:
            with pytest.raises(UsageError, match="open> runs in another event loop"):
                await asyncio.to_thread(elsewhere, use)
        assert await client.get_raw("/version") == b"{}"
