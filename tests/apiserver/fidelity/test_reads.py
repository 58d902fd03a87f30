"""The embedded server against the real one, request by request, where that serves the resource.

The recordings are of Kubernetes 1.36 and decide what the embedded server does by default; the real
one here is a 1.37, so it is compared with ``Features(minor=37)``, without the
garbage collector, which is not a part of that server. What is compared: status, headers
that clients use, bodies with the order of their keys, and the events of watches.
"""

import asyncio
import re
import zlib
from collections.abc import AsyncIterator, Mapping

import pytest

from aioinformer.testing import Features
from tests.apiserver.fidelity.read_requests import (
    BIG,
    GET_REQUESTS,
    METADATA,
    TABLE,
    WATCH_LIST,
    WATCH_REQUESTS,
)
from tests.apiserver.fidelity.server_pair import (
    IN_DEFAULT,
    WIDGETS,
    ComparedServer,
    NormalizedResponse,
    ServerPair,
    server_pair,
    widget,
)
from tests.apiserver.server.server_process import ApiServerProcess, Json

pytestmark = pytest.mark.apiserver

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"


@pytest.fixture
async def pair(api_server: ApiServerProcess) -> AsyncIterator[ServerPair]:
    """Both servers, with the same widgets: two, and a third one since ``{before}``."""
    async with server_pair(api_server, Features(minor=37, garbage_collection=False)) as pair:
        note = 'quotes " and < & >, unicode é'
        labels = {"tier": "front", "app": "shop"}
        await pair.write("POST", IN_DEFAULT, widget("a", labels=labels, size=1, note=note))
        await pair.write("POST", IN_DEFAULT, widget("c", size=3))
        await pair.save_version("before")
        await pair.write("POST", IN_DEFAULT, widget("b", labels=labels, size=2))
        yield pair


# -- whole answers -----------------------------------------------------------------------------


async def test_answers_are_those_of_the_real_server(pair: ServerPair) -> None:
    await pair.write("POST", BIG, widget("large", note="y" * 140_000))
    different: dict[str, tuple[NormalizedResponse, NormalizedResponse]] = {}
    for what, (path, headers) in GET_REQUESTS.items():
        real, ours = await pair.get(path, headers)
        if real != ours:
            different[what] = real, ours
    assert not different


async def test_an_unsupported_format_is_rejected_as_on_the_real_server(pair: ServerPair) -> None:
    """The text names the formats, which aren't the same."""
    real, ours = await pair.get(IN_DEFAULT, {"Accept": "text/html"})
    assert (real.status, real.headers) == (ours.status, ours.headers)
    assert [re.sub("accepted: .*", "", line) for line in real.lines] == [
        re.sub("accepted: .*", "", line) for line in ours.lines
    ]


async def test_discovery_describes_a_custom_resource_as_on_the_real_server(
    pair: ServerPair,
) -> None:
    """Except for collections, which can't be deleted here, and what serves storage versions."""
    real, ours = await pair.get("/apis/example.com/v1", {})
    assert (real.status, real.headers) == (ours.status, ours.headers)

    def without(line: str) -> str:
        return re.sub(r'"verbs":\[.*?\]|,"storageVersionHash":".*?"', "", line)

    assert [without(line) for line in real.lines] == [without(line) for line in ours.lines]


# -- watches -----------------------------------------------------------------------------------


async def changes(pair: ServerPair) -> None:
    """Change objects while the watches are open."""
    leave = {"metadata": {"labels": {"app": "other"}}}
    for method, path, body in (
        ("PATCH", f"{IN_DEFAULT}/b", {"spec": {"size": 5}}),
        ("PATCH", f"{IN_DEFAULT}/a", leave),
        ("POST", IN_DEFAULT, widget("d")),
        ("DELETE", f"{IN_DEFAULT}/b", None),
    ):
        await pair.write(method, path, body)


async def test_watches_are_those_of_the_real_server(pair: ServerPair) -> None:
    watching = {
        what: asyncio.create_task(pair.get(f"{IN_DEFAULT}?{query}", headers))
        for what, (query, headers) in WATCH_REQUESTS.items()
    }
    await asyncio.sleep(0.8)  # the real one bookmarks the end of initial events about each second
    await changes(pair)
    different: dict[str, tuple[NormalizedResponse, NormalizedResponse]] = {}
    for what, task in watching.items():
        real, ours = await task
        if without_bookmarks(real) != without_bookmarks(ours):
            different[what] = real, ours
    assert not different


def without_bookmarks(seen: NormalizedResponse) -> tuple[int, Mapping[str, str | None], list[str]]:
    """Return the lines of a watch without periodic bookmarks.

    The times and the number of periodic bookmarks of the real server vary by fractions of a second.
    Another test compares their form.
    """
    lines = [
        line
        for line in seen.lines
        if not line.startswith('{"type":"BOOKMARK"') or "initial-events-end" in line
    ]
    return seen.status, seen.headers, lines


async def test_a_watch_list_of_an_empty_collection_consists_of_its_end_mark(
    pair: ServerPair,
) -> None:
    path = f"/apis/example.com/v1/namespaces/empty/widgets?{WATCH_LIST}&timeoutSeconds=2"
    real, ours = await pair.get(path, {})
    assert without_bookmarks(real) == without_bookmarks(ours)
    (mark,) = without_bookmarks(real)[2]
    assert '"k8s.io/initial-events-end":"true"' in mark


async def test_bookmarks_are_those_of_the_real_server(pair: ServerPair) -> None:
    for accept in ("application/json", METADATA, TABLE):
        query = "watch=1&resourceVersion={before}&allowWatchBookmarks=true&timeoutSeconds=4"
        watching = asyncio.create_task(pair.get(f"{IN_DEFAULT}?{query}", {"Accept": accept}))
        await asyncio.sleep(0.5)
        await pair.write("PATCH", f"{IN_DEFAULT}/c", {"spec": {"seen": accept}})
        real, ours = await watching
        assert [line[9:14] for line in real.events][-2:] == ["MODIF", "BOOKM"]
        assert real.events == ours.events


async def test_without_a_new_change_the_real_server_sends_no_bookmark_either(
    pair: ServerPair,
) -> None:
    query = "watch=1&resourceVersion={before}&allowWatchBookmarks=true&timeoutSeconds=4"
    real, ours = await pair.get(f"{IN_DEFAULT}?{query}", {})
    assert real == ours
    assert [line[9:14] for line in real.lines] == ["ADDED"]


async def test_a_watch_list_is_compressed_in_members(pair: ServerPair) -> None:
    """Kubernetes 1.37: a gzip member for all that is sent at once, to the end of the watch."""
    path = f"{IN_DEFAULT}?{WATCH_LIST}&timeoutSeconds=4"
    opened = [asyncio.create_task(members(twin, path)) for twin in pair.both]
    await asyncio.sleep(2)
    await pair.write("DELETE", f"{IN_DEFAULT}/b")
    await asyncio.sleep(0.5)
    await pair.write("DELETE", f"{IN_DEFAULT}/a")
    (real_headers, real), (our_headers, ours) = [await task for task in opened]
    assert real_headers == our_headers == ("gzip", "Accept-Encoding")
    assert len(real) > 2
    assert len(ours) > 2
    types = [[line[9:14] for line in b"".join(each).splitlines()] for each in (real, ours)]
    kept = [[kind for kind in each if kind != b"BOOKM"] for each in types]
    assert kept[0] == kept[1] == [b"ADDED"] * 3 + [b"DELET"] * 2


async def members(twin: ComparedServer, path: str) -> tuple[tuple[str, str], list[bytes]]:
    """Return the decompressed gzip members of a watch."""
    async with twin.http.get(path, headers={"Accept-Encoding": "gzip"}) as response:
        rest, found = await response.read(), list[bytes]()
        headers = (response.headers["Content-Encoding"], response.headers["Vary"])
    while rest:
        member = zlib.decompressobj(zlib.MAX_WBITS | 16)
        found.append(member.decompress(rest))
        assert member.eof
        rest = member.unused_data
    return headers, found


async def test_a_deleted_definition_ends_watches_as_on_the_real_server(pair: ServerPair) -> None:
    """Recordings 52 and 53. The last bookmark of 52 comes or doesn't, as its timer has it."""
    query = "watch=1&resourceVersion=0&timeoutSeconds=20&allowWatchBookmarks=true"
    watching = asyncio.create_task(pair.get(f"{IN_DEFAULT}?{query}", {}))
    await asyncio.sleep(0.5)
    await pair.real.write("DELETE", CRD)
    pair.cluster.remove_resource("widgets")
    real, ours = await asyncio.wait_for(watching, 15)
    assert (real.status, real.headers) == (ours.status, ours.headers)
    kept = [without_bookmarks(seen)[-1] for seen in (real, ours)]
    assert sorted(kept[0]) == sorted(kept[1])  # objects go in any order there
    await _gone(pair.real)
    for path in (IN_DEFAULT, f"{IN_DEFAULT}?watch=1&timeoutSeconds=1", f"{IN_DEFAULT}/a"):
        real, ours = await pair.get(path, {})
        assert real == ours


async def _gone(twin: ComparedServer) -> None:
    async with asyncio.timeout(15):
        while True:
            async with twin.http.get(WIDGETS) as response:
                if response.status == 404:
                    return
            await asyncio.sleep(0.05)


async def test_a_restarted_server_rejects_the_same_old_versions(
    api_server: ApiServerProcess, pair: ServerPair
) -> None:
    """Watches from before are expired; lists and tokens of before are etcd's, and good."""
    async with pair.embedded.http.get(f"{IN_DEFAULT}?limit=2"):
        await pair.get(f"{IN_DEFAULT}?limit=2", {})
    await api_server.restart()
    pair.cluster.empty_watch_cache()
    for path in (
        f"{IN_DEFAULT}?watch=1&resourceVersion={{before}}&timeoutSeconds=2",
        f"{IN_DEFAULT}?resourceVersion={{before}}&resourceVersionMatch=Exact",
        f"{IN_DEFAULT}?limit=2&continue={{token}}",
        f"{IN_DEFAULT}?resourceVersion={{before}}",
    ):
        real, ours = await pair.get(path, {})
        assert real == ours


async def test_writes_are_answered_as_on_the_real_server(pair: ServerPair) -> None:
    stale: Json = {"metadata": {"resourceVersion": "1"}, "spec": {"size": 9}}
    nothing: Json = {"spec": {}}
    written: list[tuple[str, str, Json | None]] = [
        ("POST", IN_DEFAULT, widget("a")),
        ("POST", IN_DEFAULT, widget("new")),
        ("POST", IN_DEFAULT, {**widget("x"), "kind": "Gadget"}),
        ("POST", IN_DEFAULT, {**widget("x"), "apiVersion": "example.com/v2"}),
        ("PATCH", f"{IN_DEFAULT}/a", {"metadata": {"labels": {"x": "y"}}}),
        ("PATCH", f"{IN_DEFAULT}/a", stale),
        ("PATCH", f"{IN_DEFAULT}/nope", nothing),
        ("PUT", f"{IN_DEFAULT}/a", widget("a", size=3)),
        ("DELETE", f"{IN_DEFAULT}/nope", None),
        ("DELETE", f"{IN_DEFAULT}/a", {"preconditions": {"uid": "other"}}),
        ("DELETE", f"{IN_DEFAULT}/a", None),
    ]
    for method, path, body in written:
        real, ours = [await twin.request(method, path, body) for twin in pair.both]
        assert real == ours, (method, path)
