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
from aioinformer.testing.cluster.features import Features
from tests.client.servers import talking
from tests.promises.conftest import QUICK, until
from tests.promises.lines import end_mark, now
from tests.promises.sockets import (
    Sent,
    answered,
    chunk,
    hurried,
    member,
    reading,
    refused,
)
from tests.runtime.running import touch, with_pods
from tests.runtime.sources import added, body, line, modified, page

STRANGE = "a\u0085b\u2028c\u2029d\x0b\x0ce\u00e9\U0001f600"
"""What ends a line for Unicode, and for no API server; and what takes several bytes."""
LARGE = 6_000_000
"""Bytes of JSON: a server writes six of them for each of three characters."""

STREAM = added("a", 3) + added("b", 4) + end_mark(10)
LIST = b"".join(page(body("a", 3), body("b", 4), version="10").chunks)
UNSERVED = refused(422)


# -- cut anywhere ------------------------------------------------------------------------------


def bytewise(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


async def test_every_byte_of_a_watch_list_and_its_watch_may_be_a_chunk_of_its_own() -> None:
    pieces = bytewise(STREAM + modified("a", 11) + added("c", 12))
    async with reading(answered(*pieces, ending="silence")) as served:
        await until(lambda: served.cached == {"a": "11", "b": "4", "c": "12"})
        assert served.asked == ["stream"]


async def test_so_may_every_byte_of_a_list_and_a_watch() -> None:
    watch = answered(*bytewise(modified("a", 11)), ending="silence")
    async with reading(UNSERVED, answered(*bytewise(LIST)), watch) as served:
        await until(lambda: served.cached == {"a": "11", "b": "4"})
        assert served.asked == ["stream", "list 0", "watch 10"]


async def test_the_frames_of_chunks_may_be_cut_too() -> None:
    sent = answered(STREAM, modified("a", 11), ending="silence")
    raw = b"".join(piece for piece in sent.pieces if isinstance(piece, bytes))
    async with reading(Sent(bytewise(raw), "silence")) as served:
        await until(lambda: served.cached == {"a": "11", "b": "4"})


@pytest.mark.parametrize("size", [3, 64])
async def test_a_slow_drip_arrives_in_the_end(size: int) -> None:
    async with ApiServer(with_pods("a", "b")) as server, Client(server.url) as client:
        server.faults.drip(size=size, every=0.0001)
        async with SharedInformerFactory(client, backoff=QUICK) as informers:
            pods = informers.informer("pods")
            await informers.wait_synced(20)
            touch(server.cluster, "a", "changed")
            await until(lambda: any(pod.labels.get("value") for pod in pods.lister.list()))
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
        SharedInformerFactory(client, backoff=QUICK) as informers,
    ):
        maps = informers.informer("configmaps")
        await informers.wait_synced(20)
        assert maps.health.strategy == ("watchlist" if watch_lists else "list")
        cluster.create("configmaps", {"metadata": {"name": "late"}, "data": data})
        await until(lambda: len(maps.lister) == 2)
        assert [found["data"] for found in maps.lister.list()] == [data, data]
        assert all("a\u0085b".encode() in found.raw for found in maps.lister.list())
        assert maps.health.error is None or not watch_lists


async def test_line_ends_of_unicode_end_nothing_however_they_arrive() -> None:
    """Go escapes two of them, an aggregated server perhaps none; each may be cut in the middle."""
    ends = "\u0085\u2028\u2029\u00e9"

    def pod(name: str, version: int) -> str:
        return body(name, version).replace('"data":""', f'"data":"{ends}"')

    watch = answered(*bytewise(line("MODIFIED", pod("a", 11))), ending="silence")
    listed = b"".join(page(pod("a", 3), pod("b", 4), version="10").chunks)
    async with reading(UNSERVED, answered(*bytewise(listed)), watch) as served:
        await until(lambda: served.cached == {"a": "11", "b": "4"})
        assert [found["data"] for found in served.pods.lister.list()] == [ends] * 2
    initial = line("ADDED", pod("a", 3)) + end_mark(10) + line("MODIFIED", pod("a", 11))
    async with reading(answered(*bytewise(initial), ending="silence")) as served:
        await until(lambda: served.cached == {"a": "11"})
        assert served.pods.lister.list()[0]["data"] == ends


async def test_a_list_of_several_gzip_members_is_read_to_its_end() -> None:
    """Kubernetes 1.37 writes one for each flush. Some clients stop behind the first."""
    third = len(LIST) // 3
    parts = (LIST[:third], LIST[third : 2 * third], LIST[2 * third :])
    members = [member(part) for part in parts]
    async with reading(UNSERVED, answered(*members, encoding="gzip")) as served:
        await until(lambda: served.cached == {"a": "3", "b": "4"})
        assert served.server.headers[1]["Accept-Encoding"] == "gzip"


async def test_members_may_be_cut_anywhere() -> None:
    zipped = member(LIST[:40]) + member(b"") + member(LIST[40:])
    async with reading(UNSERVED, answered(*bytewise(zipped), encoding="gzip")) as served:
        await until(lambda: served.cached == {"a": "3", "b": "4"})


async def test_watches_and_watch_lists_ask_for_plain_bytes() -> None:
    """A server of 1.37 would compress them otherwise, to the end of the watch."""
    async with reading(answered(STREAM), answered(modified("a", 11), ending="silence")) as served:
        await until(lambda: served.cached == {"a": "11", "b": "4"})
        assert served.asked == ["stream", "watch 10"]
        assert [sent["Accept-Encoding"] for sent in served.server.headers] == ["identity"] * 2


async def test_a_server_that_compresses_watch_lists_is_read() -> None:
    cluster = with_pods("a")
    cluster.features = Features(minor=37)
    async with (
        ApiServer(cluster) as server,
        Client(server.url) as client,
        SharedInformerFactory(client, backoff=QUICK) as informers,
    ):
        pods = informers.informer("pods")
        await informers.wait_synced(10)
        touch(cluster, "a", "live")
        await until(lambda: pods.lister.list()[0].labels.get("value") == "live")
        assert (pods.health.strategy, pods.health.error) == ("watchlist", None)


# -- broken off --------------------------------------------------------------------------------


async def test_a_list_with_a_truncated_chunk_is_asked_for_again_and_leaves_nothing() -> None:
    head, *_ = answered().pieces
    half = chunk(LIST)[: len(LIST) // 2]
    seen: list[int] = []
    async with reading(UNSERVED, Sent([head, half], "break off"), answered(LIST)) as served:
        served.pods.add_handler(lambda _: seen.append(len(served.cached)))
        await until(lambda: len(served.asked) >= 4)
        await until(lambda: len(seen) == 2)
    assert served.asked == ["stream", "list 0", "list 0", "watch 10"]
    assert seen == [2, 2]


async def test_a_watch_with_a_truncated_chunk_is_resumed_behind_its_last_event() -> None:
    head, *_ = answered().pieces
    chunks = [chunk(STREAM), chunk(modified("a", 11)), chunk(added("c", 12))[:40]]
    async with reading(
        Sent([head, *chunks], "break off"), answered(added("c", 12), ending="silence")
    ) as served:
        await until(lambda: served.cached == {"a": "11", "b": "4", "c": "12"})
        assert served.asked == ["stream", "watch 11"]


async def test_a_reset_inside_a_line_drops_the_line_and_resumes_before_it() -> None:
    applied = asyncio.Event()
    first = answered(STREAM, modified("a", 11) + added("c", 12)[:-20], applied, ending="reset")
    async with reading(first, answered(added("c", 12), ending="silence")) as served:
        await until(lambda: served.cached.get("a") == "11")
        assert "c" not in served.cached
        applied.set()
        await until(lambda: "c" in served.cached)
        assert served.asked == ["stream", "watch 11"]


async def test_a_reset_before_the_end_mark_leaves_nothing_behind() -> None:
    half = answered(added("ghost", 99), ending="reset")
    async with reading(half, answered(STREAM, ending="silence")) as served:
        await until(lambda: served.pods.synced)
        assert served.cached == {"a": "3", "b": "4"}
        assert served.asked == ["stream", "stream"]


@pytest.mark.parametrize("ending", ["break off", "reset"])
async def test_an_answer_of_a_head_alone_is_no_empty_state(ending: str) -> None:
    bad = answered(ending="reset" if ending == "reset" else "break off")
    async with reading(bad, UNSERVED, bad, answered(LIST)) as served:
        await until(lambda: served.pods.synced)
        assert served.cached == {"a": "3", "b": "4"}
        assert served.asked[:4] == ["stream", "stream", "list 0", "list 0"]


async def test_an_empty_state_is_one() -> None:
    async with reading(answered(end_mark(10), ending="silence")) as served:
        await served.pods.wait_synced(5)
        assert served.cached == {}
        assert served.pods.health.resource_version == "10"


async def test_a_redirect_is_not_followed_with_credentials_and_is_shown() -> None:
    elsewhere: list[bytes] = []

    async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        elsewhere.append(await reader.readuntil(b"\r\n\r\n"))

    async with talking(other) as address:
        away = refused(307, f"Location: http://{address}/api/v1/pods")
        async with reading(away, away, away, answered(LIST), token="s3cret") as served:
            await until(lambda: isinstance(served.pods.health.error, ServerError))
            shown = str(served.pods.health)
            assert "307" in shown
            assert "s3cret" not in shown
            await served.pods.wait_synced(5)
        assert served.asked[:4] == ["stream", "list 0", "list 0", "list 0"]
        assert [sent["Authorization"] for sent in served.server.headers[:4]] == [
            "Bearer s3cret"
        ] * 4
    assert elsewhere == []


# -- silence -----------------------------------------------------------------------------------


def test_a_half_open_connection_is_replaced_where_bookmarks_flow() -> None:
    """The peer's kernel still answers; nobody is behind it. Two hundred times as fast."""

    async def story() -> tuple[float, list[str]]:
        cluster = with_pods("a")
        async with (
            ApiServer(cluster) as server,
            Client(server.url) as client,
            SharedInformerFactory(client) as informers,
        ):
            pods = informers.informer("pods")
            causes: list[str] = []
            await informers.wait_synced(60)
            touch(cluster, "a", "first")
            await asyncio.sleep(70.0)  # a bookmark
            server.faults.stall(after=0, verb="watch", times=1)
            touch(cluster, "a", "second")
            fell_silent = now()
            while pods.lister.list()[0].labels["value"] != "second":
                await asyncio.sleep(1.0)
                if (error := pods.health.error) is not None:
                    causes.append(type(error).__name__)
            return now() - fell_silent, causes

    took, causes = hurried(story)
    # It was silent before that, since the bookmark; and each ms of a busy machine is 0.2 s.
    assert 50.0 <= took <= 110.0
    assert set(causes) <= {"RequestTimedOut"}


def test_a_half_open_connection_without_bookmarks_is_replaced_at_its_deadline() -> None:
    """The server was asked to end it after five to ten minutes, and has 30 s of grace."""

    async def story() -> float:
        cluster = with_pods("a")
        async with (
            ApiServer(cluster) as server,
            Client(server.url) as client,
            SharedInformerFactory(client) as informers,
        ):
            pods = informers.informer("pods")
            await informers.wait_synced(60)
            opened = now()
            server.faults.drop_bookmarks()
            server.faults.stall(after=0, verb="watch", times=1)
            touch(cluster, "a", "unheard")
            await until(lambda: "value" in pods.lister.list()[0].labels, timeout=2_000.0)
            return now() - opened

    took = hurried(story, speed=1_000.0)
    assert 300.0 <= took <= 800.0


async def test_a_server_that_resets_every_connection_is_no_reason_to_empty_the_cache() -> None:
    async with (
        ApiServer(with_pods("a", "b")) as server,
        Client(server.url) as client,
        SharedInformerFactory(client, backoff=QUICK) as informers,
    ):
        pods = informers.informer("pods")
        await informers.wait_synced(5)
        with server.faults.reset():
            await until(lambda: isinstance(pods.health.error, ConnectionLost))
            await asyncio.sleep(0.05)
            assert len(pods.lister) == 2
        touch(server.cluster, "a", "after")
        await until(lambda: any(pod.labels.get("value") for pod in pods.lister.list()))
