"""Fidelity of the server: every recorded exchange is repeated over HTTP and compared.

Compared are the status, the headers that clients use, and the body byte for byte:
resourceVersions, continue tokens, order of keys and events, bookmarks. Only uids and times, which
differ in every run, are left out; the comments name further exceptions.
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
    """The fact that an exchange proves, and the state in which to repeat it."""

    proves: str
    state: Callable[[], Cluster] = recorded_clusters.pods_cluster
    script: ReplayScript | None = None
    """The writes while the watch is open."""
    opening: int = 0
    """The number of lines of the watch before the first write."""


# -- the table ---------------------------------------------------------------------------------

DOCUMENTS = {
    "01-core-v1-resources": "The core group lists its resources without an apiVersion.",
    "02-aggregated-discovery": "One document has all groups, for clients that accept it.",
    "03-group-version-resources": "A group version lists its resources.",
}

LISTS = {
    "10-list-page-1": Row(
        "A page has the token of the next page and the number of the remaining objects."
    ),
    "11-list-page-2": Row("The next page has the version of the first."),
    "12-list-page-3-last": Row("The last page has no token."),
    "13-list-rv0": Row("Version 0 stands for any version: all objects, from the cache."),
    "14-list-rv0-limit3": Row("The cache ignores the limit."),
    "15-list-rv-exact": Row("A list of exactly one version, in pages."),
    "16-list-label-selector": Row("A label selector selects objects."),
    "17-list-field-selector": Row("A field selector selects objects."),
    "18-list-all-namespaces": Row("All namespaces come in the order of their names."),
    "19-list-partial-metadata": Row("Metadata alone, in a list of its own kind."),
    "20-list-too-large-resource-version": Row(
        "A version that isn't reached within three seconds is 504 with Retry-After."
    ),
    "21-list-bad-label-selector": Row("A label selector that doesn't parse is 400."),
    "22-list-bad-field-selector": Row("A field that pods can't be selected by is 400."),
    "23-list-bad-continue": Row("A malformed token is 400."),
    "24-list-unauthorized": Row("A request without a token is 401."),
    "25-list-forbidden": Row("A list that RBAC doesn't allow is 403."),
    "26-list-unknown-resource": Row("A resource that its group lacks is 404 with a Status."),
    "27-get-not-found": Row("An object that doesn't exist is 404 with its name."),
    "28-list-table": Row(
        "A table has the columns of a pod.", recorded_clusters.pods_after_five_seconds
    ),
    "44-list-pretty-for-browser-agent": Row(
        "A client that looks like curl gets an indented list.",
        recorded_clusters.handmade_widgets_cluster,
    ),
    "50-cr-list": Row(
        "Custom resources: keys sorted, items first, each with its type.",
        recorded_clusters.widgets_cluster,
    ),
    "53-cr-list-after-crd-is-deleted": Row(
        "A custom resource without its definition is a plain 404."
    ),
    "54-list-shard-selector": Row(
        "A server without shards ignores the selector.", lambda: recorded_clusters.pods_cluster(286)
    ),
    "55-list-gzip": Row(
        "A long list is compressed for clients that accept gzip.",
        recorded_clusters.many_pods_cluster,
    ),
    "56-list-chunked-large": Row("A long page is chunked.", recorded_clusters.many_pods_cluster),
    "57-list-expired-continue": Row(
        "An old token is valid while the window has its version.",
        lambda: recorded_clusters.many_pods_cluster(423),
    ),
    "58-list-exact-compacted": Row(
        "So is an exact version.", lambda: recorded_clusters.many_pods_cluster(423)
    ),
    "62-list-expired-continue": Row(
        "A token that is too old is 410, with a token for the inconsistent rest.",
        recorded_clusters.compacted_cluster,
    ),
    "63-list-exact-expired": Row(
        "An exact version that is too old is 410.", recorded_clusters.compacted_cluster
    ),
    "65-list-shard-lower": Row(
        "A shard without objects is an empty list that names the shard.",
        recorded_clusters.one_pod_in_a_shard,
    ),
    "65-list-shard-upper": Row(
        "A shard has the objects whose uid has a hash in its range.",
        recorded_clusters.one_pod_in_a_shard,
    ),
    "66-list-shard-bad": Row(
        "A shard by another field than uid or namespace is 500.",
        recorded_clusters.one_pod_in_a_shard,
    ),
    "34-watch-list-without-match": Row("A WatchList needs resourceVersionMatch: 422."),
    "40-watch-forbidden": Row("A watch that RBAC doesn't allow is 403."),
    "41-watch-bad-rv": Row("A version that is not a number is 500."),
}

WATCHES = {
    "30-watch-from-rv": Row(
        "A pod's life, then two bookmarks.",
        script=replay_writes_and_bookmarks(228, 232, marked=232),
    ),
    "31-watch-label-selector-leaves": Row(
        "An object that leaves the selection is DELETED in its last selected state.",
        script=replay_writes(228, 238),
    ),
    "32-watch-partial-metadata": Row(
        "Metadata alone, in every event.", script=replay_writes(228, 245)
    ),
    "33-watch-list-streaming": Row(
        "A WatchList: all objects, the end bookmark, later changes.",
        lambda: recorded_clusters.pods_cluster(245),
        replay_writes_and_bookmarks(246, 252, marked=252),
        opening=9,
    ),
    "35-watch-rv0-synthetic-added": Row(
        "A watch from version 0 starts with all objects.",
        lambda: recorded_clusters.pods_cluster(252),
        do_nothing,
        opening=8,
    ),
    "36-watch-no-rv": Row(
        "So does a watch without a version.",
        lambda: recorded_clusters.pods_cluster(252),
        do_nothing,
        opening=8,
    ),
    "37-watch-future-rv": Row(
        "A watch from a version that is not reached yet sends nothing.",
        script=replay_writes(228, 252),
    ),
    "38-watch-too-old-rv": Row(
        "The window holds the full history.",
        lambda: recorded_clusters.pods_cluster(252),
        do_nothing,
        opening=28,
    ),
    "39-watch-bookmark-at-timeout": Row(
        "The last bookmark is sent twice, from two seconds before the end on.",
        script=replay_writes_and_bookmarks(228, 252, marked=253),
    ),
    "42-watch-empty-namespace-list-streaming": Row(
        "A WatchList without objects is its end bookmark.",
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
        "A WatchList of custom resources, with bookmarks between changes.",
        recorded_clusters.widgets_cluster,
        replay_widgets_and_bookmarks,
        opening=4,
    ),
    "52-cr-watch-while-crd-is-deleted": Row(
        "Deleting a definition deletes its objects, one DELETED each, and ends its watches.",
        lambda: recorded_clusters.widgets_cluster(277),
        remove_definition,
        opening=3,
    ),
    "61-watch-expired-rv": Row(
        "A watch from a forgotten version is 200 and an ERROR of 410.",
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

_NONDETERMINISTIC = {
    rb'("uid": ?)"[-0-9a-f]{36}"': rb'\1"U"',
    rb"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z": b"T",
}
_HEADERS = ("Content-Type", "Content-Encoding", "Retry-After", "Vary", "X-Content-Type-Options")


def normalized_lines(body: bytes) -> list[bytes]:
    """Return the lines of a body, without uids and times."""
    for pattern, replacement in _NONDETERMINISTIC.items():
        body = re.sub(pattern, replacement, body)
    return body.splitlines(keepends=True)


def apply_faults(replay: ReplayServer, name: str) -> None:
    """Forbid the request if the recording was forbidden."""
    if "forbidden" in name:
        replay.server.faults.forbid()


def test_every_recorded_exchange_is_compared() -> None:
    recorded = {file.name.removesuffix(".request.http") for file in FOLDER.glob("*.request.http")}
    assert {*DOCUMENTS, *LISTS, *WATCHES} == recorded
    answered = {file.name.removesuffix(".response.http") for file in FOLDER.glob("*.response.http")}
    assert answered == recorded


@pytest.mark.parametrize("name", LISTS)
async def test_an_answer_is_that_of_the_real_server(name: str) -> None:
    row, expected = LISTS[name], read_recording(name)
    token = "sesame" if "unauthorized" in name else None
    async with running_replay_server(row.state(), token=token) as replay:
        apply_faults(replay, name)
        answer = await replay.send(RecordedRequest.load(name))
    assert answer.status == expected.status
    for header in _HEADERS:
        assert answer.headers.get(header) == expected.headers.get(header), header
    assert ("chunked" in answer.headers.get("Transfer-Encoding", "")) is is_chunked(name)
    assert normalized_lines(answer.decompressed) == normalized_lines(recorded_body(name))


@pytest.mark.parametrize("name", WATCHES)
async def test_a_watch_is_that_of_the_real_server(name: str) -> None:
    row, expected = WATCHES[name], read_recording(name)
    async with (
        running_replay_server(row.state()) as replay,
        replay.watch(RecordedRequest.load(name)) as reader,
    ):
        assert reader.response.status == expected.status
        assert reader.response.headers["Transfer-Encoding"] == "chunked"
        for header in _HEADERS:
            assert reader.response.headers.get(header) == expected.headers.get(header), header
        await reader.read_lines(row.opening)
        if row.script is not None:
            await row.script(replay, reader)
        replay.clock.advance(requested_timeout(reader))
        await reader.read_rest()
    assert without_extra_bookmarks(
        name, normalized_lines(bytes(reader.received))
    ) == normalized_lines(recorded_body(name))


_FEWER_BOOKMARKS = {"33-watch-list-streaming": 1}
"""The number of last bookmarks that a recording lacks. The real server keeps its watches in buckets
of whole seconds, and visits a watch twice (30, 39, 51) or once, depending on fractions of a second
(apiserver's ``watcherBookmarkTimeBuckets``)."""


def without_extra_bookmarks(name: str, lines: list[bytes]) -> list[bytes]:
    """Return the lines of our watch, without the bookmarks that the recording lacks by chance."""
    fewer = _FEWER_BOOKMARKS.get(name, 0)
    for line in lines[len(lines) - fewer :]:
        assert line.startswith(b'{"type":"BOOKMARK"')
        assert b"initial-events-end" not in line
    return lines[: len(lines) - fewer]


# -- discovery ---------------------------------------------------------------------------------

_MISSING = ("verbs", "categories", "storageVersionHash", "subresources")
"""The keys that the entries of this server lack or fill in part: the server can't delete a
collection, and has no subresource but the status."""


@pytest.mark.parametrize("name", DOCUMENTS)
async def test_discovery_is_that_of_the_real_server(name: str) -> None:
    expected = read_recording(name)
    async with running_replay_server(recorded_clusters.empty_cluster_with_widgets()) as replay:
        answer = await replay.send(RecordedRequest.load(name))
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
    """Return the entries as JSON, keys in order, without the keys that are missing here."""
    wanted = {_name(each) for each in only or resources}
    selected = [each for each in resources if _name(each) in wanted]
    return [
        msgspec.json.encode({key: each[key] for key in each if key not in _MISSING}).decode()
        for each in selected
    ]


def _name(entry: dict[str, Any]) -> str:
    name: str = entry.get("name") or entry["resource"]
    return name


async def test_unchanged_discovery_is_answered_with_304() -> None:
    request = RecordedRequest.load("02-aggregated-discovery")
    async with running_replay_server(recorded_clusters.empty_cluster_with_widgets()) as replay:
        first = await replay.send(request)
        request.headers["If-None-Match"] = first.headers["Etag"]
        assert ((await replay.send(request)).status, (await replay.send(request)).body) == (
            304,
            b"",
        )
        replay.cluster.remove_resource(WIDGETS)
        assert (await replay.send(request)).status == 200
