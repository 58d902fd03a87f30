"""Caches that are restored from a file, and kept in it."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import stat
import subprocess
import sys
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from aioinformer import CacheFile, KubeObject, Resource, Scope, Shard, SharedInformerFactory
from aioinformer.errors import NotSynced, UsageError
from aioinformer.testing import Cluster, ClusterSource, Faults
from tests.cachefile.programs import (
    INTERVAL,
    Program,
    change_connect,
    pods_are_stored,
    running,
    send_bookmarks_often,
    until,
)
from tests.runtime.informers import cluster_with_pods, label_pod, names
from tests.runtime.scripted_source import list_response, scripted_source
from tests.sharding.memory_assignment import MemoryAssignment


class Pod(Struct):
    """A model of pods."""

    metadata: dict[str, object]


@pytest.fixture(name="path")
def a_path(tmp_path: Path) -> Path:
    return tmp_path / "cache.db"


def content(path: Path) -> bytes:
    return path.read_bytes()


def put_content(path: Path, damaged: bytes) -> None:
    path.write_bytes(damaged)


def contains(path: Path, part: bytes) -> bool:
    return path.exists() and part in content(path)


def make_readable_by_all(path: Path) -> None:
    path.touch(0o644)


def link_to_nothing(path: Path) -> None:
    path.symlink_to(path.with_name("target"))


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def last_block(path: Path) -> int:
    """Return the number of the newest block of objects in a file that is closed."""
    with closing(sqlite3.connect(path)) as connection:
        number: int = connection.execute("SELECT max(id) FROM blocks").fetchone()[0]
    return number


def modes(path: Path) -> set[int]:
    return {stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}


async def test_a_warm_start_sends_no_list_and_delivers_the_changes_of_the_downtime(
    path: Path,
) -> None:
    cluster = cluster_with_pods("kept", "changed", "removed")
    async with running(cluster, path) as cold:
        assert names(cold.pods.lister.list()) == ["changed", "kept", "removed"]
        assert "watchlist" in cold.requests.verbs
    label_pod(cluster, "changed", "new")
    cluster.delete("pods", "removed")
    cluster.create("pods", {"metadata": {"name": "added"}})

    async with running(cluster, path) as warm:
        assert names(warm.pods.lister.list()) == ["added", "changed", "kept"]
        assert warm.requests.verbs == ["freshness_check", "watch"], (
            "the check of the version, and the watch"
        )
        assert await warm.pods.verify()
        await until(lambda: len(warm.heard) == 6)
        assert warm.heard == [
            *("= changed", "= kept", "= removed"),
            *("~ changed ->new", "- removed deleted", "+ added"),
        ]
        assert warm.pods.health.restored is None
        assert warm.pods.health.cache_problem == ""
    before = last_block(path)
    async with running(cluster, path):
        pass
    assert last_block(path) == before, "what is in the file already is not written again"


async def test_only_this_user_can_read_the_file(path: Path) -> None:
    make_readable_by_all(path)
    async with running(cluster_with_pods("a"), path):
        await until(lambda: size(path))
        assert modes(path) == {0o600}


@pytest.mark.parametrize("suffix", ["", "-journal", "-wal", "-shm"])
async def test_a_planted_file_is_shown_in_health_and_the_informer_goes_on_without_it(
    path: Path, suffix: str
) -> None:
    planted = Path(f"{path}{suffix}")
    link_to_nothing(planted)
    async with running(cluster_with_pods("a"), path) as program:
        assert program.pods.health.cache_problem == (
            f"{planted} is a link; name a file of this program's own"
        )
        assert names(program.pods.lister.list()) == ["a"]


async def test_a_restored_state_is_unsynced_until_the_server_has_confirmed_it(path: Path) -> None:
    cluster, faults = cluster_with_pods("a"), Faults()
    async with running(cluster, path):
        pass
    with faults.refuse():
        program = running(cluster, path, faults=faults, wait=False)
        warm = await program.__aenter__()
        await until(lambda: len(warm.pods.lister.unsynced))
        health = warm.pods.health
        assert not health.synced
        assert not health.ok
        assert health.restored is not None
        assert 0 <= health.restored < 60
        assert f"restored from a state that is {health.restored:.0f} s old" in str(health)
        with pytest.raises(NotSynced):
            warm.pods.lister.list()
    try:
        await warm.pods.wait_synced(timeout=10)
        assert warm.pods.health.restored is None
        assert warm.heard == ["= a"]
    finally:
        await program.__aexit__(None, None, None)


async def test_after_410_the_difference_from_the_restored_state_is_delivered(path: Path) -> None:
    cluster = cluster_with_pods("kept", "changed", "removed", "reborn")
    async with running(cluster, path):
        pass
    label_pod(cluster, "changed", "new")
    cluster.delete("pods", "removed")
    cluster.delete("pods", "reborn")
    cluster.create("pods", {"metadata": {"name": "reborn"}})
    cluster.create("pods", {"metadata": {"name": "added"}})
    cluster.compact()

    async with running(cluster, path) as warm:
        await until(lambda: len(warm.heard) == 9)
        assert sorted(warm.heard[:4]) == ["= changed", "= kept", "= reborn", "= removed"]
        assert sorted(warm.heard[4:]) == [
            *("+ added", "+ reborn", "- reborn vanished", "- removed vanished"),
            "~ changed ->new",
        ]
    async with running(cluster, path) as again:
        assert names(again.pods.lister.list()) == ["added", "changed", "kept", "reborn"]
        assert again.requests.verbs == ["freshness_check", "watch"]


async def test_a_server_with_an_older_version_than_the_file_is_reported_as_a_rewind(
    path: Path,
) -> None:
    cluster = cluster_with_pods("a", "b")
    async with running(cluster, path):
        pass
    restored, faults = cluster_with_pods("a"), Faults()  # another history, the same identity
    faults.latency(0.05, verb="watch_list")
    async with running(restored, path, faults=faults) as warm:
        assert names(warm.pods.lister.list()) == ["a"]
        assert warm.pods.health.rewinds == 1
        await until(lambda: "- b vanished" in warm.heard)


async def test_a_file_of_another_cluster_is_reported_and_not_changed(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(cluster_with_pods("a"), path):
        pass
    before = content(path)
    other = Cluster(seed=1)
    other.create("pods", {"metadata": {"name": "b"}})
    async with running(other, path) as warm:
        assert names(warm.pods.lister.list()) == ["b"]
        assert "objects of another cluster" in warm.pods.health.cache_problem
        assert warm.pods.health.cache_problem in str(warm.pods.health)
        assert warm.pods.health.ok
    assert [
        record.levelname for record in caplog.records if "another cluster" in record.message
    ] == ["WARNING"]
    assert content(path) == before


def unchanged(obj: KubeObject) -> KubeObject:
    return obj


async def test_informers_of_other_selectors_shapes_and_versions_do_not_share_a_state(
    path: Path,
) -> None:
    cluster = cluster_with_pods("a")
    variants: list[dict[str, Any]] = [
        {},
        {"labels": "app=shop"},
        {"namespace": "default"},
        {"namespaces": ["default"]},
        {"metadata_only": True},
        {"managed_fields": True},
        {"transform": unchanged},
        {"shard": Shard(0, 2)},
        {"cache": CacheFile(path, interval=INTERVAL, version="2")},
    ]
    for variant in variants:
        async with running(cluster, path, **variant) as cold:
            assert cold.requests.verbs[0] == "watchlist", variant
    for variant in variants[:-1]:
        async with running(cluster, path, **variant) as warm:
            assert warm.requests.verbs[0] == "freshness_check", variant


async def test_several_namespaces_are_restored_each_with_its_version(path: Path) -> None:
    cluster = Cluster()
    send_bookmarks_often(cluster)
    for namespace in ("a", "b", "c"):
        cluster.create("pods", {"metadata": {"name": f"in-{namespace}"}}, namespace=namespace)
    async with running(cluster, path, namespaces=["a", "b"]) as cold:
        assert names(cold.pods.lister.list()) == ["in-a", "in-b"]
        await until(lambda: pods_are_stored(cluster, path, "a", "b"))
        cold.pods.remove_namespace("b")
        await until(lambda: len(cold.pods.lister) == 1)
        cold.pods.add_namespace("b")  # recorded no more: its stored state stays a past state
        await until(lambda: len(cold.pods.lister) == 2)
        cluster.create("pods", {"metadata": {"name": "late"}}, namespace="b")
        await until(lambda: len(cold.pods.lister) == 3)
        await asyncio.sleep(INTERVAL * 3)
    cluster.delete("pods", "in-a", namespace="a")
    async with running(
        cluster, path, namespaces={"a": Scope(), "b": Scope(), "c": Scope()}
    ) as warm:
        assert names(warm.pods.lister.list()) == ["in-b", "in-c", "late"]
        assert warm.requests.verbs.count("freshness_check") == 2
        assert warm.requests.verbs.count("watchlist") == 1, "c is new"
        await until(lambda: "- in-a deleted" in warm.heard)


async def test_secrets_are_stored_only_if_the_program_allows_it(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Cluster()
    cluster.create("secrets", {"metadata": {"name": "s"}, "data": {"key": "c2VjcmV0"}})
    for allow in (False, True):
        cache = CacheFile(path, interval=INTERVAL, allow_secrets=allow)
        async with SharedInformerFactory(ClusterSource(cluster), cache=cache) as factory:
            secrets = factory.informer("secrets")
            if not allow:
                with pytest.raises(UsageError, match="durable='x' needs the cache file: Secrets"):
                    secrets.add_handler(print, durable="x")
            await secrets.wait_synced(timeout=10)
            refused = "pass allow_secrets=True" in secrets.health.cache_problem
            assert refused is not allow
        assert contains(path, b'"resource":"v1/secrets"') is allow, "the body may be compressed"
    assert len([each for each in caplog.records if "allow_secrets" in each.message]) == 1


async def test_objects_of_a_model_are_not_stored_but_conversions_and_foreign_secrets_are(
    path: Path,
) -> None:
    cache = CacheFile(path, interval=INTERVAL)
    source = ClusterSource(cluster_with_pods("a"))
    async with SharedInformerFactory(source, cache=cache) as factory:
        pods = factory.informer("pods", model=Pod)
        await pods.wait_synced(timeout=10)
        assert "model= keeps no JSON; use convert=" in pods.health.cache_problem
        assert not contains(path, b"")
        converted = factory.informer("pods", convert=repr)
        secrets = factory.informer(Resource("example.com", "v1", "secrets", "Secret"))
        await converted.wait_synced(timeout=10)
        assert [each.health.cache_problem for each in (converted, secrets)] == ["", ""]


async def test_informers_of_different_objects_share_a_file(path: Path) -> None:
    cluster = cluster_with_pods("a")
    cache = CacheFile(path, interval=INTERVAL)
    async with SharedInformerFactory(ClusterSource(cluster), cache=cache) as factory:
        informers = [
            factory.informer("pods"),
            factory.informer("pods", namespaces=["x"]),
        ]
        for informer in informers:
            await informer.wait_synced(timeout=10)
        assert [each.health.cache_problem for each in informers] == ["", ""]


@pytest.mark.parametrize(
    ("assigned", "heard"),
    [(None, ["= a", "~ a ->bad"]), (range(8), ["= a"])],
    ids=["all", "shards"],
)
async def test_rejected_objects_are_read_again_after_a_restart(
    path: Path, assigned: range | None, heard: list[str]
) -> None:
    cluster, fixed = cluster_with_pods("a"), asyncio.Event()

    def transform(obj: KubeObject) -> KubeObject:
        if obj.labels.get("value") == "bad" and not fixed.is_set():
            raise ValueError("bad")
        return obj

    def start() -> AbstractAsyncContextManager[Program]:
        shard = None if assigned is None else MemoryAssignment(assigned=assigned)
        return running(cluster, path, transform=transform, shard=shard)

    async with start() as cold:
        label_pod(cluster, "a", "bad")
        await until(lambda: cold.pods.health.rejected)
    fixed.set()
    async with start() as warm:
        assert warm.pods.lister["default/a"].labels["value"] == "bad"
        await until(lambda: warm.heard == heard)


async def test_a_full_disk_ends_only_the_use_of_the_file(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    resource = pytest.importorskip("resource")
    cluster = cluster_with_pods("a")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    async with running(cluster, path) as program:
        await until(lambda: size(path))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))  # no file can grow
        try:
            cluster.create("pods", {"metadata": {"name": "b", "labels": {"x": "y" * 60}}})
            await until(lambda: program.pods.health.cache_problem)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert str(path) in program.pods.health.cache_problem
        cluster.create("pods", {"metadata": {"name": "c"}})
        await until(lambda: len(program.pods.lister) == 3)
        assert program.pods.health.ok
    warnings = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert len(warnings) == 1
    async with running(cluster, path) as warm:
        assert names(warm.pods.lister.list()) == ["a", "b", "c"]


def process_uses(path: Path) -> str:
    """Return what a process receives that tries to use a file: an error, or ``free``."""
    code = (
        "import sqlite3, sys\n"
        "try: sqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN IMMEDIATE')\n"
        "except sqlite3.Error as error: print(error)\n"
        "else: print('free')"
    )
    command = [sys.executable, "-c", code, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


async def test_a_file_is_used_by_one_process_at_a_time(
    path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_connect(monkeypatch, timeout=0.05)  # in the place of two seconds for the lock
    cluster = cluster_with_pods("a")
    async with running(cluster, path) as first, running(cluster, path) as second:
        assert "is used by another process" in second.pods.health.cache_problem
        assert process_uses(path) == "database is locked", "also after the failed attempt"
        assert second.requests.verbs == ["watchlist"]
        assert first.pods.health.cache_problem == ""
    assert process_uses(path) == "free"
    assert len([each for each in caplog.records if "is used by another" in each.message]) == 1


@pytest.mark.parametrize(
    "options", [{}, {"durable": "audit"}, {"durable": "audit", "since": "now"}]
)
async def test_a_damaged_block_is_read_from_the_server_with_a_warning(
    path: Path, caplog: pytest.LogCaptureFixture, options: dict[str, Any]
) -> None:
    cluster = cluster_with_pods("first", "other")
    async with running(cluster, path, **options):
        await until(lambda: pods_are_stored(cluster, path, "default"))
    damaged = content(path).replace(b"first", b"fjrst")
    assert damaged != content(path)
    put_content(path, damaged)
    async with running(cluster, path, **options) as warm:
        assert names(warm.pods.lister.list()) == ["first", "other"]
        assert "is corrupt" in warm.pods.health.cache_problem
        await until(lambda: sorted(warm.heard) == ["= first", "= other"])
    assert content(path) == damaged
    [warning] = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert "; remove it; the informers go on without a cache file" in warning.message


async def test_a_source_without_an_identity_goes_on_without_the_file(path: Path) -> None:
    source, cache = scripted_source(pods=[list_response()]), CacheFile(path, interval=INTERVAL)
    async with SharedInformerFactory(source, cache=cache) as factory:
        pods = factory.informer("pods", watch_list=False)
        await pods.wait_synced(timeout=10)
        assert "says neither its cluster nor its selection" in pods.health.cache_problem
        assert not contains(path, b"")


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"interval": 0}, ValueError, "interval"),
        ({"interval": -1}, ValueError, "interval"),
        ({"allow_secrets": 1}, TypeError, "allow_secrets"),
        ({"version": 2}, TypeError, "version must be text, not 2"),
    ],
)
def test_an_option_that_makes_no_sense_is_rejected(
    options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        CacheFile("pods.db", **options)
    assert repr(CacheFile("pods.db")) == "<CacheFile pods.db>"


@pytest.mark.parametrize("options", [{"cache": "pods.db"}, {"cache": Path("pods.db")}])
def test_the_cache_option_accepts_only_a_cache_file(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"cache is a CacheFile: write cache=CacheFile\("):
        SharedInformerFactory(ClusterSource(Cluster()), **options)


def test_durable_needs_a_cache_file() -> None:
    pods = SharedInformerFactory(ClusterSource(Cluster())).informer("pods")
    with pytest.raises(UsageError, match="needs a cache file: make the factory with"):
        pods.add_handler(print, durable="audit")
