"""An informer and a real socket: bytes cut anywhere, answers that break, peers that vanish.

What the transport makes of each alone is in ``tests/client``; here it is what comes of it: what
is asked next, and that the cache is right in the end.
"""

from __future__ import annotations

import asyncio

import pytest

from aioinformer import Client, SharedInformerFactory
from aioinformer.errors import ConnectionLost, ServerError
from aioinformer.testing import ApiServer, Cluster
from aioinformer.testing.cluster.server_features import Features
from tests.client.accelerated_time import run_accelerated
from tests.client.servers import tcp_server
from tests.promises.conftest import FAST_BACKOFF, wait_until
from tests.promises.function_lister_watcher import initial_events_end, loop_time
from tests.promises.raw_server import (
    RawResponse,
    chunk,
    error_response,
    gzip_member,
    ok_response,
    running_raw_server,
)
from tests.runtime.informers import cluster_with_pods, label_pod
from tests.runtime.scripted_source import added, body, event_line, list_response, modified

STRANGE = "a\u0085b\u2028c\u2029d\x0b\x0ce\u00e9\U0001f600"
"""Unicode's line separators, which don't end a line of an API server, and multi-byte characters."""
LARGE = 6_000_000
"""Bytes of JSON: a server writes six of them for each of three characters."""

STREAM = added("a", 3) + added("b", 4) + initial_events_end(10)
LIST = b"".join(list_response(body("a", 3), body("b", 4), version="10").chunks)
UNSERVED = error_response(422)
CHECKED = ok_response(*list_response(version="11").chunks)
"""The answer to the check of the server's version that follows a watch that broke."""


# -- cut anywhere ------------------------------------------------------------------------------


def bytewise(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


async def test_every_byte_of_a_watch_list_and_its_watch_may_be_a_chunk_of_its_own() -> None:
    pieces = bytewise(STREAM + modified("a", 11) + added("c", 12))
    async with running_raw_server(ok_response(*pieces, ending="silence")) as served:
        await wait_until(lambda: served.cached_versions == {"a": "11", "b": "4", "c": "12"})
        assert served.request_summaries == ["stream"]


async def test_every_byte_of_a_list_and_its_watch_may_be_a_chunk_of_its_own() -> None:
    watch = ok_response(*bytewise(modified("a", 11)), ending="silence")
    async with running_raw_server(UNSERVED, ok_response(*bytewise(LIST)), watch) as served:
        await wait_until(lambda: served.cached_versions == {"a": "11", "b": "4"})
        assert served.request_summaries == ["stream", "list 0", "watch 10"]


async def test_the_frames_of_http_chunks_may_be_cut_anywhere() -> None:
    sent = ok_response(STREAM, modified("a", 11), ending="silence")
    raw = b"".join(piece for piece in sent.pieces if isinstance(piece, bytes))
    async with running_raw_server(RawResponse(bytewise(raw), "silence")) as served:
        await wait_until(lambda: served.cached_versions == {"a": "11", "b": "4"})


@pytest.mark.parametrize("size", [3, 64])
async def test_an_informer_syncs_from_a_server_that_sends_a_few_bytes_at_a_time(size: int) -> None:
    async with ApiServer(cluster_with_pods("a", "b")) as server, Client(server.url) as client:
        server.faults.drip(size=size, every=0.0001)
        async with SharedInformerFactory(client, backoff=FAST_BACKOFF) as informers:
            pods = informers.informer("pods")
            await informers.wait_synced(20)
            label_pod(server.cluster, "a", "changed")
            await wait_until(lambda: any(pod.labels.get("value") for pod in pods.lister.list()))
            assert pods.health.error is None


# -- what is inside ----------------------------------------------------------------------------


@pytest.mark.parametrize("watch_lists", [True, False], ids=["WatchList", "LIST"])
async def test_an_object_of_six_megabytes_and_strange_line_ends_arrives_whole(
    watch_lists: bool,
) -> None:
    cluster = Cluster(features=Features(watch_list=watch_lists))
    data = {"strange": STRANGE, "large": "x<&>" * (LARGE // 19)}
    cluster.create("configmaps", {"metadata": {"name": "early"}, "data": data})
    async with (
        ApiServer(cluster) as server,
        Client(server.url) as client,
        SharedInformerFactory(client, backoff=FAST_BACKOFF) as informers,
    ):
        maps = informers.informer("configmaps")
        await informers.wait_synced(20)
        assert maps.health.strategy == ("watchlist" if watch_lists else "list")
        cluster.create("configmaps", {"metadata": {"name": "late"}, "data": data})
        await wait_until(lambda: len(maps.lister) == 2)
        assert [found["data"] for found in maps.lister.list()] == [data, data]
        assert all("a\u0085b".encode() in found.raw for found in maps.lister.list())
        assert maps.health.error is None or not watch_lists


async def test_line_ends_of_unicode_do_not_end_a_line_even_if_they_are_cut() -> None:
    """Go escapes two of them, an aggregated server perhaps none; each may be cut in the middle."""
    ends = "\u0085\u2028\u2029\u00e9"

    def pod(name: str, version: int) -> str:
        return body(name, version).replace('"data":""', f'"data":"{ends}"')

    watch = ok_response(*bytewise(event_line("MODIFIED", pod("a", 11))), ending="silence")
    listed = b"".join(list_response(pod("a", 3), pod("b", 4), version="10").chunks)
    async with running_raw_server(UNSERVED, ok_response(*bytewise(listed)), watch) as served:
        await wait_until(lambda: served.cached_versions == {"a": "11", "b": "4"})
        assert [found["data"] for found in served.pods.lister.list()] == [ends] * 2
    initial = (
        event_line("ADDED", pod("a", 3))
        + initial_events_end(10)
        + event_line("MODIFIED", pod("a", 11))
    )
    async with running_raw_server(ok_response(*bytewise(initial), ending="silence")) as served:
        await wait_until(lambda: served.cached_versions == {"a": "11"})
        assert served.pods.lister.list()[0]["data"] == ends


async def test_a_list_of_several_gzip_members_is_read_to_its_end() -> None:
    """Kubernetes 1.37 writes one for each flush. Some clients stop behind the first."""
    third = len(LIST) // 3
    parts = (LIST[:third], LIST[third : 2 * third], LIST[2 * third :])
    members = [gzip_member(part) for part in parts]
    async with running_raw_server(UNSERVED, ok_response(*members, encoding="gzip")) as served:
        await wait_until(lambda: served.cached_versions == {"a": "3", "b": "4"})
        assert served.server.headers[1]["Accept-Encoding"] == "gzip"


async def test_gzip_members_may_be_cut_anywhere() -> None:
    zipped = gzip_member(LIST[:40]) + gzip_member(b"") + gzip_member(LIST[40:])
    async with running_raw_server(
        UNSERVED, ok_response(*bytewise(zipped), encoding="gzip")
    ) as served:
        await wait_until(lambda: served.cached_versions == {"a": "3", "b": "4"})


async def test_watches_and_watch_lists_ask_for_plain_bytes() -> None:
    """A server of 1.37 would compress them otherwise, to the end of the watch."""
    async with running_raw_server(
        ok_response(STREAM), ok_response(modified("a", 11), ending="silence")
    ) as served:
        await wait_until(lambda: served.cached_versions == {"a": "11", "b": "4"})
        assert served.request_summaries == ["stream", "watch 10"]
        assert [sent["Accept-Encoding"] for sent in served.server.headers] == ["identity"] * 2


async def test_a_server_that_compresses_watch_lists_is_read() -> None:
    cluster = cluster_with_pods("a")
    cluster.features = Features(minor=37)
    async with (
        ApiServer(cluster) as server,
        Client(server.url) as client,
        SharedInformerFactory(client, backoff=FAST_BACKOFF) as informers,
    ):
        pods = informers.informer("pods")
        await informers.wait_synced(30)
        label_pod(cluster, "a", "live")
        await wait_until(lambda: pods.lister.list()[0].labels.get("value") == "live")
        assert (pods.health.strategy, pods.health.error) == ("watchlist", None)


# -- broken off --------------------------------------------------------------------------------


async def test_a_list_with_a_truncated_chunk_is_repeated_and_adds_no_objects() -> None:
    head, *_ = ok_response().pieces
    half = chunk(LIST)[: len(LIST) // 2]
    seen: list[int] = []
    async with running_raw_server(
        UNSERVED, RawResponse([head, half], "break off"), ok_response(LIST)
    ) as served:
        served.pods.add_handler(lambda _: seen.append(len(served.cached_versions)))
        await wait_until(lambda: len(served.request_summaries) >= 4)
        await wait_until(lambda: len(seen) == 2)
    assert served.request_summaries == ["stream", "list 0", "list 0", "watch 10"]
    assert seen == [2, 2]


async def test_a_watch_with_a_truncated_chunk_is_resumed_behind_its_last_event() -> None:
    head, *_ = ok_response().pieces
    chunks = [chunk(STREAM), chunk(modified("a", 11)), chunk(added("c", 12))[:40]]
    async with running_raw_server(
        RawResponse([head, *chunks], "break off"),
        CHECKED,
        ok_response(added("c", 12), ending="silence"),
    ) as served:
        await wait_until(lambda: served.cached_versions == {"a": "11", "b": "4", "c": "12"})
        assert served.request_summaries == ["stream", "list", "watch 11"]


async def test_a_reset_inside_a_line_drops_the_line_and_resumes_before_it() -> None:
    applied = asyncio.Event()
    first = ok_response(STREAM, modified("a", 11) + added("c", 12)[:-20], applied, ending="reset")
    resumed = ok_response(added("c", 12), ending="silence")
    async with running_raw_server(first, CHECKED, resumed) as served:
        await wait_until(lambda: served.cached_versions.get("a") == "11")
        assert "c" not in served.cached_versions
        applied.set()
        await wait_until(lambda: "c" in served.cached_versions)
        assert served.request_summaries == ["stream", "list", "watch 11"]


async def test_a_reset_before_the_end_mark_adds_no_objects() -> None:
    half = ok_response(added("ghost", 99), ending="reset")
    async with running_raw_server(half, ok_response(STREAM, ending="silence")) as served:
        await wait_until(lambda: served.pods.synced)
        assert served.cached_versions == {"a": "3", "b": "4"}
        assert served.request_summaries == ["stream", "stream"]


@pytest.mark.parametrize("ending", ["break off", "reset"])
async def test_an_answer_with_only_a_head_is_not_read_as_an_empty_state(ending: str) -> None:
    bad = ok_response(ending="reset" if ending == "reset" else "break off")
    async with running_raw_server(bad, UNSERVED, bad, ok_response(LIST)) as served:
        await wait_until(lambda: served.pods.synced)
        assert served.cached_versions == {"a": "3", "b": "4"}
        assert served.request_summaries[:4] == ["stream", "stream", "list 0", "list 0"]


async def test_an_initial_list_without_objects_completes_the_sync() -> None:
    async with running_raw_server(ok_response(initial_events_end(10), ending="silence")) as served:
        await served.pods.wait_synced(30)
        assert served.cached_versions == {}
        assert served.pods.health.resource_version == "10"


async def test_a_redirect_is_not_followed_with_credentials_and_is_shown() -> None:
    elsewhere: list[bytes] = []

    async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        elsewhere.append(await reader.readuntil(b"\r\n\r\n"))

    async with tcp_server(other) as address:
        away = error_response(307, f"Location: http://{address}/api/v1/pods")
        async with running_raw_server(
            away, away, away, ok_response(LIST), token="s3cret"
        ) as served:
            await wait_until(lambda: isinstance(served.pods.health.error, ServerError))
            shown = str(served.pods.health)
            assert "307" in shown
            assert "s3cret" not in shown
            await served.pods.wait_synced(30)
        assert served.request_summaries[:4] == ["stream", "list 0", "list 0", "list 0"]
        assert [sent["Authorization"] for sent in served.server.headers[:4]] == [
            "Bearer s3cret"
        ] * 4
    assert elsewhere == []


# -- silence -----------------------------------------------------------------------------------


def test_a_half_open_connection_with_bookmarks_is_replaced_after_an_idle_timeout() -> None:
    """The peer's kernel still answers; nobody is behind it. Two hundred times as fast."""

    async def scenario() -> tuple[float, list[str]]:
        cluster = cluster_with_pods("a")
        async with (
            ApiServer(cluster) as server,
            Client(server.url) as client,
            SharedInformerFactory(client) as informers,
        ):
            pods = informers.informer("pods")
            causes: list[str] = []
            await informers.wait_synced(60)
            label_pod(cluster, "a", "first")
            await asyncio.sleep(70.0)  # a bookmark
            server.faults.stall(after=0, verb="watch", times=1)
            label_pod(cluster, "a", "second")
            fell_silent = loop_time()
            while pods.lister.list()[0].labels["value"] != "second":
                await asyncio.sleep(1.0)
                if (error := pods.health.error) is not None:
                    causes.append(type(error).__name__)
            return loop_time() - fell_silent, causes

    took, causes = run_accelerated(scenario())
    # It was silent before that, since the bookmark.
    assert 50.0 <= took <= 110.0
    assert set(causes) <= {"RequestTimedOut"}


def test_a_half_open_connection_without_bookmarks_is_replaced_at_its_deadline() -> None:
    """The server was asked to end it after five to ten minutes, and has 30 s of grace."""

    async def scenario() -> float:
        cluster = cluster_with_pods("a")
        async with (
            ApiServer(cluster) as server,
            Client(server.url) as client,
            SharedInformerFactory(client, watch_list=False) as informers,
        ):
            # Without a WatchList, whose end mark is a bookmark and proves that bookmarks come.
            pods = informers.informer("pods")
            await informers.wait_synced(60)
            opened = loop_time()
            server.faults.stall(after=0, verb="watch", times=1)  # before the first bookmark
            label_pod(cluster, "a", "unheard")
            await pods.wait_until(
                "default/a", lambda pod: pod is not None and "value" in pod.labels, timeout=2_000.0
            )
            return loop_time() - opened

    took = run_accelerated(scenario(), speed=1_000.0)
    assert 300.0 <= took <= 800.0


async def test_the_cache_is_kept_while_the_server_resets_every_connection() -> None:
    async with (
        ApiServer(cluster_with_pods("a", "b")) as server,
        Client(server.url) as client,
        SharedInformerFactory(client, backoff=FAST_BACKOFF) as informers,
    ):
        pods = informers.informer("pods")
        await informers.wait_synced(30)
        with server.faults.reset():
            await wait_until(lambda: isinstance(pods.health.error, ConnectionLost))
            await asyncio.sleep(0.05)
            assert len(pods.lister) == 2
        label_pod(server.cluster, "a", "after")
        await wait_until(lambda: any(pod.labels.get("value") for pod in pods.lister.list()))
