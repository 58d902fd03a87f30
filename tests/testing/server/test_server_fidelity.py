"""The server beside the real one: a row for every recorded exchange, asked again over HTTP.

Status, headers that clients use, and the body byte for byte: resourceVersions, continue tokens,
order of keys and events, bookmarks and all. What is another one in every run is set aside: uids
and times. Where there is more to set aside, the row's test says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from aioinformer.testing import Cluster
from tests.client.recordings import FOLDER, read_recording
from tests.testing import recorded_clusters
from tests.testing.recorded_exchanges import WIDGETS
from tests.testing.replay_scripts import (
    ReplayScript,
    do_nothing,
    remove_definition,
    replay_widgets_and_bookmarks,
    replay_writes,
    replay_writes_and_bookmarks,
    requested_timeout,
)
from tests.testing.replay_server import (
    RecordedRequest,
    ReplayServer,
    is_chunked,
    recorded_body,
    running_replay_server,
)


@dataclass(frozen=True, slots=True)
class Row:
    """What an exchange proves, and the state in which to ask again."""

    proves: str
    state: Callable[[], Cluster] = recorded_clusters.pods_cluster
    live: ReplayScript | None = None
    """What happens while a watch is open."""
    opening: int = 0
    """The lines with which the watch begins, before anything happens."""


# -- the table ---------------------------------------------------------------------------------

DOCUMENTS = {
    "01-core-v1-resources": "The core group lists its resources without an apiVersion.",
    "02-aggregated-discovery": "One document has all groups, for those who accept it.",
    "03-group-version-resources": "A group version lists its resources.",
}

LISTS = {
    "10-list-page-1": Row("A page says where the next one starts and how many objects remain."),
    "11-list-page-2": Row("The next page has the version of the first."),
    "12-list-page-3-last": Row("The last page has no token."),
    "13-list-rv0": Row("Any version will do: all objects, from the cache."),
    "14-list-rv0-limit3": Row("The cache ignores the limit."),
    "15-list-rv-exact": Row("Exactly one version can be asked for, in pages."),
    "16-list-label-selector": Row("A label selector chooses."),
    "17-list-field-selector": Row("A field selector chooses."),
    "18-list-all-namespaces": Row("All namespaces come in the order of their names."),
    "19-list-partial-metadata": Row("Metadata alone, in a list of its own kind."),
    "20-list-too-large-resource-version": Row(
        "A version that isn't there within three seconds is 504 with Retry-After."
    ),
    "21-list-bad-label-selector": Row("A label selector that doesn't parse is 400."),
    "22-list-bad-field-selector": Row("A field that pods can't be selected by is 400."),
    "23-list-bad-continue": Row("A token that is none is 400."),
    "24-list-unauthorized": Row("Who bears no token is 401."),
    "25-list-forbidden": Row("Who may not list is 403."),
    "26-list-unknown-resource": Row("A resource that its group lacks is 404 with a Status."),
    "27-get-not-found": Row("An object that isn't there is 404 with its name."),
    "28-list-table": Row(
        "A table has the columns of a pod.", recorded_clusters.pods_after_five_seconds
    ),
    "44-list-pretty-for-browser-agent": Row(
        "Who looks like curl gets an indented list.", recorded_clusters.handmade_widgets_cluster
    ),
    "50-cr-list": Row(
        "Custom resources: keys sorted, items first, each with its type.",
        recorded_clusters.widgets_cluster,
    ),
    "53-cr-list-after-crd-is-deleted": Row("Without its definition a resource is a plain 404."),
    "54-list-shard-selector": Row(
        "A server without shards ignores the selector.", lambda: recorded_clusters.pods_cluster(286)
    ),
    "55-list-gzip": Row(
        "A long list is compressed for who accepts it.", recorded_clusters.many_pods_cluster
    ),
    "56-list-chunked-large": Row("A long page is chunked.", recorded_clusters.many_pods_cluster),
    "57-list-expired-continue": Row(
        "A token of before still leads on while the window holds its version.",
        lambda: recorded_clusters.many_pods_cluster(423),
    ),
    "58-list-exact-compacted": Row(
        "So does an exact version.", lambda: recorded_clusters.many_pods_cluster(423)
    ),
    "62-list-expired-continue": Row(
        "A token that is too old is 410 with one for the inconsistent rest.",
        recorded_clusters.compacted_cluster,
    ),
    "63-list-exact-expired": Row(
        "An exact version that is too old is 410.", recorded_clusters.compacted_cluster
    ),
    "65-list-shard-lower": Row(
        "A shard without objects is empty, and named.", recorded_clusters.one_pod_in_a_shard
    ),
    "65-list-shard-upper": Row(
        "A shard has those whose uid has a hash in it.", recorded_clusters.one_pod_in_a_shard
    ),
    "66-list-shard-bad": Row(
        "A shard by another field than uid or namespace is 500.",
        recorded_clusters.one_pod_in_a_shard,
    ),
    "34-watch-list-without-match": Row("A WatchList needs resourceVersionMatch: 422."),
    "40-watch-forbidden": Row("Who may not watch is 403."),
    "41-watch-bad-rv": Row("A version that is no number is 500."),
}

WATCHES = {
    "30-watch-from-rv": Row(
        "A pod's life, then two bookmarks.", live=replay_writes_and_bookmarks(228, 232, marked=232)
    ),
    "31-watch-label-selector-leaves": Row(
        "What leaves the selection is DELETED in its last state there.",
        live=replay_writes(228, 238),
    ),
    "32-watch-partial-metadata": Row(
        "Metadata alone, in every event.", live=replay_writes(228, 245)
    ),
    "33-watch-list-streaming": Row(
        "A WatchList: what there is, the end mark, what happens then.",
        lambda: recorded_clusters.pods_cluster(245),
        replay_writes_and_bookmarks(246, 252, marked=252),
        opening=9,
    ),
    "35-watch-rv0-synthetic-added": Row(
        "A watch from any version starts with all there is.",
        lambda: recorded_clusters.pods_cluster(252),
        do_nothing,
        opening=8,
    ),
    "36-watch-no-rv": Row(
        "So does one from none.", lambda: recorded_clusters.pods_cluster(252), do_nothing, opening=8
    ),
    "37-watch-future-rv": Row("A watch from the future is silent.", live=replay_writes(228, 252)),
    "38-watch-too-old-rv": Row(
        "The window holds the full history.",
        lambda: recorded_clusters.pods_cluster(252),
        do_nothing,
        opening=28,
    ),
    "39-watch-bookmark-at-timeout": Row(
        "Two seconds before the end a bookmark comes, twice.",
        live=replay_writes_and_bookmarks(228, 252, marked=253),
    ),
    "42-watch-empty-namespace-list-streaming": Row(
        "A WatchList of nothing is its end mark.",
        lambda: recorded_clusters.pods_cluster(258),
        do_nothing,
        opening=1,
    ),
    "43-watch-list-storage-cannot-serve-it": Row(
        "A WatchList that can't be served is 200 and an ERROR of 500.",
        recorded_clusters.cluster_without_watch_lists,
        do_nothing,
    ),
    "51-cr-watch-list-streaming": Row(
        "A WatchList of custom resources, with bookmarks among what happens.",
        recorded_clusters.widgets_cluster,
        replay_widgets_and_bookmarks,
        opening=4,
    ),
    "52-cr-watch-while-crd-is-deleted": Row(
        "A definition takes its objects with it, one DELETED each, and its watches.",
        lambda: recorded_clusters.widgets_cluster(277),
        remove_definition,
        opening=3,
    ),
    "61-watch-expired-rv": Row(
        "A watch from too long ago is 200 and an ERROR of 410.",
        recorded_clusters.compacted_cluster,
        do_nothing,
    ),
    "64-watch-rv-compacted": Row(
        "The same, from a version that was compacted.",
        recorded_clusters.compacted_cluster,
        do_nothing,
    ),
}


# -- comparing ---------------------------------------------------------------------------------

_CHANCE = {
    rb'("uid": ?)"[-0-9a-f]{36}"': rb'\1"U"',
    rb"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z": b"T",
}
_HEADERS = ("Content-Type", "Content-Encoding", "Retry-After", "Vary", "X-Content-Type-Options")


def plain(body: bytes) -> list[bytes]:
    """The lines of a body, without uids and times."""
    for pattern, replacement in _CHANCE.items():
        body = re.sub(pattern, replacement, body)
    return body.splitlines(keepends=True)


async def prepared(stage: ReplayServer, name: str) -> None:
    """Who is refused in a recording is refused here."""
    if "forbidden" in name:
        stage.server.faults.forbid()


def test_no_exchange_is_left_out() -> None:
    there = {file.name.removesuffix(".request.http") for file in FOLDER.glob("*.request.http")}
    assert {*DOCUMENTS, *LISTS, *WATCHES} == there
    answered = {file.name.removesuffix(".response.http") for file in FOLDER.glob("*.response.http")}
    assert answered == there


@pytest.mark.parametrize("name", LISTS)
async def test_an_answer_is_that_of_the_real_server(name: str) -> None:
    row, expected = LISTS[name], read_recording(name)
    token = "sesame" if "unauthorized" in name else None
    async with running_replay_server(row.state(), token=token) as stage:
        await prepared(stage, name)
        answer = await stage.send(RecordedRequest.load(name))
    assert answer.status == expected.status
    for header in _HEADERS:
        assert answer.headers.get(header) == expected.headers.get(header), header
    assert ("chunked" in answer.headers.get("Transfer-Encoding", "")) is is_chunked(name)
    assert plain(answer.decompressed) == plain(recorded_body(name))


@pytest.mark.parametrize("name", WATCHES)
async def test_a_watch_is_that_of_the_real_server(name: str) -> None:
    row, expected = WATCHES[name], read_recording(name)
    async with (
        running_replay_server(row.state()) as stage,
        stage.watch(RecordedRequest.load(name)) as viewer,
    ):
        assert viewer.response.status == expected.status
        assert viewer.response.headers["Transfer-Encoding"] == "chunked"
        for header in _HEADERS:
            assert viewer.response.headers.get(header) == expected.headers.get(header), header
        await viewer.read_lines(row.opening)
        if row.live is not None:
            await row.live(stage, viewer)
        stage.clock.advance(requested_timeout(viewer))
        await viewer.read_rest()
    assert without_chance(name, plain(bytes(viewer.received))) == plain(recorded_body(name))


_FEWER_BOOKMARKS = {"33-watch-list-streaming": 1}
"""The bookmarks before the end that the real server happened not to send. It keeps its watches in
buckets of whole seconds: whether it comes upon one twice (30, 39, 51) or once depends on fractions
of them (apiserver's ``watcherBookmarkTimeBuckets``).
"""


def without_chance(name: str, lines: list[bytes]) -> list[bytes]:
    """The lines of our watch, without the bookmarks that only chance kept from the recording."""
    fewer = _FEWER_BOOKMARKS.get(name, 0)
    for line in lines[len(lines) - fewer :]:
        assert line.startswith(b'{"type":"BOOKMARK"')
        assert b"initial-events-end" not in line
    return lines[: len(lines) - fewer]


# -- discovery ---------------------------------------------------------------------------------

_MISSING = ("verbs", "categories", "storageVersionHash", "subresources")
"""What this server's entries don't have, or have less of: it can't delete a collection, has no
subresources, and serves what can be listed and watched."""


@pytest.mark.parametrize("name", DOCUMENTS)
async def test_discovery_is_that_of_the_real_server(name: str) -> None:
    expected = read_recording(name)
    async with running_replay_server(recorded_clusters.empty_cluster_with_widgets()) as stage:
        answer = await stage.send(RecordedRequest.load(name))
    assert answer.status == expected.status
    for header in (*_HEADERS, "Cache-Control"):
        assert answer.headers.get(header) == expected.headers.get(header), header
    assert ("Etag" in answer.headers) is ("Etag" in expected.headers)
    found, known = (msgspec.json.decode(body) for body in (answer.body, recorded_body(name)))
    assert list(found) == list(known)
    if "resources" in known:
        assert found | {"resources": None} == known | {"resources": None}
        assert entries(found["resources"]) == entries(known["resources"], only=found["resources"])
        return
    groups, known_groups = (
        {item["metadata"]["name"]: item for item in each["items"]} for each in (found, known)
    )
    common = groups.keys() & known_groups.keys()
    assert len(common) >= 10
    for group in common:
        for version, known_version in zip(
            groups[group]["versions"], known_groups[group]["versions"], strict=False
        ):
            resources = version["resources"]
            assert list(version) == list(known_version)
            assert entries(resources) == entries(known_version["resources"], only=resources)


def entries(
    resources: list[dict[str, Any]], *, only: list[dict[str, Any]] | None = None
) -> list[str]:
    """The entries as text, keys in their order, without what is missing here."""
    wanted = {_name(one) for one in only or resources}
    kept = [one for one in resources if _name(one) in wanted]
    return [
        msgspec.json.encode({key: one[key] for key in one if key not in _MISSING}).decode()
        for one in kept
    ]


def _name(entry: dict[str, Any]) -> str:
    name: str = entry.get("name") or entry["resource"]
    return name


async def test_discovery_that_is_still_so_need_not_be_sent_again() -> None:
    asked = RecordedRequest.load("02-aggregated-discovery")
    async with running_replay_server(recorded_clusters.empty_cluster_with_widgets()) as stage:
        first = await stage.send(asked)
        asked.headers["If-None-Match"] = first.headers["Etag"]
        assert ((await stage.send(asked)).status, (await stage.send(asked)).body) == (304, b"")
        stage.cluster.remove_resource(WIDGETS)
        assert (await stage.send(asked)).status == 200
