"""The guide about security: each of its sentences has a test, and those without one are here."""

from __future__ import annotations

import ast
import asyncio
import re
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import cache
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from aioinformer import CacheFile, Client, Event, Operator, SharedInformerFactory
from aioinformer.adapters.asgi import EventFeed, MetricsEndpoint, Probe, alive
from aioinformer.adapters.prometheus import PrometheusMetrics
from aioinformer.testing import ApiServer, Cluster, ClusterSource
from tests.adapters.asgi_clients import connected, request
from tests.client.servers import http_server
from tests.operator.operators import running, succeed
from tests.promises.conftest import wait_until

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "examples" / "guides" / "security.md"
SECRET = "aHVudGVyMg=="
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
ROWS = "test_each_row_is_a_sentence_with_a_test"
POLICY = "test_the_policy_names_one_private_channel"
PROSE = {
    "This page says what the library protects, what it leaves to your program, and how to report "
    "a vulnerability.": ROWS,
    "Each row names the tests that prove it.": ROWS,
    "Report a vulnerability in private: on the page of the project's repository, choose "
    "*Security*, then *Report a vulnerability*.": POLICY,
    "Don't open an issue or a pull request for it, because everybody reads these.": POLICY,
    "Say which version you use, what an attacker must be able to do, and what the attacker gets "
    "by it.": POLICY,
    "Add the smallest program or manifest that shows it, without credentials and without objects "
    "of your clusters.": POLICY,
    "Only the newest minor version gets corrections, and the [changelog](changelog.md) names "
    "them.": POLICY,
}
"""The sentences outside of the tables, and the tests of this module for them."""


# -- the page ----------------------------------------------------------------------------------


def rows() -> list[list[str]]:
    """Return the cells of the tables: whose task it is, the sentence, the links to tests."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in cells if "".join(row).strip(" |-") != "Tests" and "---" not in row[0]]


def prose() -> list[str]:
    text = PAGE.read_text()
    kept = [line for line in text.splitlines() if not line.startswith(("#", "|"))]
    return re.split(r"(?<=\.) ", " ".join(" ".join(kept).split()))


@cache
def names_of_tests(path: Path) -> frozenset[str]:
    found = ast.walk(ast.parse(path.read_text()))
    return frozenset(
        each.name for each in found if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def linked_tests(cell: str) -> Iterator[tuple[Path, str]]:
    for words, target in re.findall(r"\[([^]]+)\]\(([^)]+)\)", cell):
        yield (PAGE.parent / target).resolve(), f"test_{words.replace(' ', '_')}"


def test_each_row_is_a_sentence_with_a_test() -> None:
    assert len(rows()) > 30
    for who, sentence, tests in rows():
        assert who in ("protected", "yours")
        assert sentence.endswith(".")
        assert re.findall(r"\. [A-Z`]", sentence) == [], "one sentence has one row"
        linked = [*linked_tests(tests)]
        assert linked, sentence
        for path, name in linked:
            assert path.exists(), f"{sentence} {path}"
            assert name in names_of_tests(path), f"{sentence} {name} in {path}"


def test_each_sentence_of_the_prose_has_a_test() -> None:
    assert prose() == [*PROSE]
    assert set(PROSE.values()) <= names_of_tests(Path(__file__))


def test_the_policy_names_one_private_channel() -> None:
    policy = PAGE.read_text().partition("## Reporting a vulnerability")[2]
    assert "*Report a\nvulnerability*" in policy, "private vulnerability reporting of a repository"
    assert re.findall(r"\S+@\S+|https?://\S+", policy) == [], "no address that nobody reads"
    changelog = (PAGE.parent / "changelog.md").read_text()
    assert "a patch version only corrects" in changelog


# -- what has no test elsewhere ----------------------------------------------------------------


def secrets() -> Cluster:
    cluster = Cluster()
    body = {"metadata": {"name": "s", "annotations": {APPLIED: SECRET}}, "data": {"p": SECRET}}
    cluster.create("secrets", body)
    return cluster


async def test_the_netrc_file_of_the_user_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1\nlogin ada\npassword secret\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    seen: list[str | None] = []

    async def answer(received: web.Request) -> web.Response:
        seen.append(received.headers.get("Authorization"))
        return web.json_response({"kind": "PodList", "metadata": {}, "items": []})

    async with http_server(answer) as server, Client(server) as client:
        await client.api("pods").list()
    assert seen == [None]


async def test_the_cache_gives_the_contents_of_secrets_to_readers_and_listeners() -> None:
    received: list[str] = []

    async def on_event(event: Event) -> None:
        received.append(event.obj["data"]["p"])

    async with SharedInformerFactory(ClusterSource(secrets())) as informers:
        informer = informers.informer("secrets")
        informer.add_handler(on_event)
        await informer.wait_synced(timeout=30)
        await wait_until(lambda: bool(received))
        assert informer.lister["default/s"]["data"]["p"] == received[0] == SECRET


async def test_an_informer_of_metadata_keeps_what_kubectl_copies_to_an_annotation() -> None:
    async with SharedInformerFactory(ClusterSource(secrets())) as informers:
        informer = informers.informer("secrets", metadata_only=True)
        await informer.wait_synced(timeout=30)
        assert informer.lister["default/s"].annotations[APPLIED] == SECRET


async def test_a_cache_file_is_not_encrypted(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    cluster = Cluster()
    cluster.create("configmaps", {"metadata": {"name": "c"}, "data": {"needle": "in plain text"}})
    source = ClusterSource(cluster)
    async with SharedInformerFactory(source, cache=CacheFile(path)) as informers:
        await informers.informer("configmaps").wait_synced(timeout=30)
    assert any(b"in plain text" in blob for blob in stored_blobs(path))


def stored_blobs(path: Path) -> Iterator[bytes]:
    """Yield the bytes in a database, decompressed where they are compressed."""
    with closing(sqlite3.connect(path)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_schema")]
        for table in tables:
            with suppress(sqlite3.OperationalError):  # an index
                for row in database.execute(f'SELECT * FROM "{table}"'):  # noqa: S608
                    for value in row:
                        if isinstance(value, bytes):
                            yield value
                            with suppress(zlib.error):
                                yield zlib.decompress(value)


async def test_the_port_of_an_operator_shows_no_contents_of_objects() -> None:
    metrics = PrometheusMetrics(registry=CollectorRegistry())
    operator = Operator(
        ClusterSource(secrets()), name="it", port=0, host="127.0.0.1", metrics=metrics
    )
    operator.controller("secrets", succeed)
    async with running(operator):
        await operator.wait_synced(20)
        async with aiohttp.ClientSession(f"http://127.0.0.1:{operator.port}") as http:
            for path in ("/livez", "/healthz", "/readyz", "/metrics"):
                async with http.get(path) as response:
                    text = await response.text()
                    assert "secrets" in text or path == "/livez"
                    assert SECRET not in text


async def test_the_embedded_server_listens_on_one_address() -> None:
    async with ApiServer() as server:
        port = int(server.url.rpartition(":")[2])
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()
        with pytest.raises(OSError):  # noqa: PT011 - of the system: refused, or no such address
            await asyncio.open_connection("127.0.0.2", port)


async def test_the_applications_for_asgi_answer_without_credentials() -> None:
    async with SharedInformerFactory(ClusterSource(secrets())) as informers:
        informers.informer("secrets")
        await informers.wait_synced(timeout=30)
        async with connected(EventFeed(lambda: informers)) as client:
            assert client.object_names("added") == ["s"]
        for app in (Probe(lambda: informers, alive), MetricsEndpoint(lambda accept: (b"m 1", ""))):
            assert (await request(app)).status == 200
