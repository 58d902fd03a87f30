"""Files that can't be used, and damaged ones: shown in health, while informers go on without."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from aioinformer import CacheFile, Client, SharedInformerFactory
from aioinformer.testing import ApiServer, Cluster, ClusterSource
from tests.cachefile.programs import (
    INTERVAL,
    change_connect,
    pods_are_stored,
    running,
    send_bookmarks_often,
    until,
)
from tests.runtime.informers import cluster_with_pods, label_pod, names

PAGE_BYTES = 16384


@pytest.fixture(name="path")
def a_path(tmp_path: Path) -> Path:
    (tmp_path / "files").mkdir()
    return tmp_path / "files" / "cache.db"


async def write_two_blocks(cluster: Cluster, path: Path) -> None:
    """Write a file of a cluster in two transactions."""
    async with running(cluster, path):
        for name in ("a", "b"):
            cluster.create("pods", {"metadata": {"name": name}})
            await until(lambda: pods_are_stored(cluster, path, "default"))


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def replace_content(path: Path, content: bytes | bytearray) -> None:
    path.write_bytes(content)


def modes(folder: Path) -> set[int]:
    return {each.stat().st_mode & 0o777 for each in folder.iterdir()}


# -- files that are not the program's ----------------------------------------------------------


def no_directory(path: Path) -> None:
    path.parent.rmdir()


def garbage(path: Path) -> None:
    path.write_bytes(b"this is no database " * 100)


def foreign_database(path: Path) -> None:
    change(path, "CREATE TABLE mine (x)")


def another_version(path: Path) -> None:
    change(path, f"PRAGMA application_id = {int.from_bytes(b'aioi', 'big')}")
    change(path, "PRAGMA user_version = 99")


def a_directory(path: Path) -> None:
    path.mkdir()


def a_file_as_folder(path: Path) -> None:
    path.parent.rmdir()
    path.parent.touch()


@pytest.mark.parametrize(
    ("prepare", "text"),
    [
        (no_directory, "does not exist; create the folder first"),
        (garbage, "is corrupt, or no cache file"),
        (foreign_database, "is a SQLite database of another program; name another file"),
        (another_version, "was written by another version of aioinformer"),
        (a_directory, "is no regular file"),
        (a_file_as_folder, "can't be opened: Not a directory"),
    ],
)
async def test_a_file_that_can_t_be_used_is_reported_with_the_reason_and_not_changed(
    path: Path, prepare: Callable[[Path], None], text: str
) -> None:
    prepare(path)
    before = content(path)
    async with running(cluster_with_pods("a"), path) as program:
        assert names(program.pods.lister.list()) == ["a"]
        assert text in program.pods.health.cache_problem
        assert str(path) in program.pods.health.cache_problem
    assert content(path) == before


def of_another_user(path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can give a file to another user")
    path.touch(0o600)
    os.chown(path, 4321, 4321)


def readable_by_others(path: Path) -> None:
    path.touch()
    path.chmod(0o640)


def a_link(path: Path) -> None:
    (target := path.with_name("target")).touch(0o644)
    path.symlink_to(target)


def a_link_to_nothing(path: Path) -> None:
    path.symlink_to(path.with_name("target"))


def a_hard_link(path: Path) -> None:
    (target := path.with_name("target")).touch(0o600)
    path.hardlink_to(target)


def describe(path: Path) -> tuple[int, int] | None:
    return (path.stat().st_size, path.stat().st_mode) if path.exists() else None


@pytest.mark.parametrize(
    ("plant", "text"),
    [
        (of_another_user, "belongs to another user (uid 4321)"),
        (readable_by_others, "has the mode 0640"),
        (a_link, "is a link"),
        (a_link_to_nothing, "is a link"),
        (a_hard_link, "is a link"),
        (a_directory, "is no regular file"),
    ],
)
async def test_a_file_that_another_user_may_have_planted_is_refused(
    path: Path, plant: Callable[[Path], None], text: str
) -> None:
    """One informer for each of SQLite's files, beside a cache file that exists or not."""
    cluster, before = cluster_with_pods("a"), dict[Path, tuple[int, int] | None]()
    async with running(cluster, path):
        pass
    planted = list[Path]()
    for suffix in ("", "-journal", "-wal", "-shm"):
        for existing in (False, True):
            (folder := path.parent / f"{suffix}{existing}").mkdir()
            if existing and suffix:
                shutil.copyfile(path, folder / "cache.db")
            plant(file := folder / f"cache.db{suffix}")
            planted.append(file)
            before[file] = describe(folder / "target")
    async with SharedInformerFactory(ClusterSource(cluster)) as factory:
        for number, file in enumerate(planted):
            cache = CacheFile(file.with_name("cache.db"))
            pods = factory.informer("pods", namespace=f"n{number}", cache=cache)
            await pods.wait_synced(timeout=10)
            if plant is readable_by_others and file == cache.path:
                assert (pods.health.cache_problem, file.stat().st_mode & 0o777) == ("", 0o600)
            else:
                assert pods.health.cache_problem.startswith(f"{file} {text}")
    targets = {file: describe(file.with_name("target")) for file in planted}
    assert targets == before, "the target of a link is not touched"


async def test_a_volume_that_lets_a_group_read_all_files_keeps_the_cache_of_a_killed_program(
    path: Path, tmp_path: Path
) -> None:
    cluster, mounted = cluster_with_pods("a"), tmp_path / "mounted"
    mounted.mkdir()
    async with running(cluster, path):
        await until(lambda: pods_are_stored(cluster, path, "default"))
        for name in ("cache.db", "cache.db-wal"):
            shutil.copyfile(path.with_name(name), mounted / name)
            (mounted / name).chmod(0o660)  # as kubelet does with an fsGroup
    async with running(cluster, mounted / "cache.db") as restored:
        assert restored.requests.verbs[0] == "freshness_check"
        assert modes(mounted) == {0o600}


async def test_no_name_that_sqlite_opens_is_free_for_another_user_s_file_while_sqlite_opens_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, found = cluster_with_pods("a"), list[set[str]]()
    change_connect(monkeypatch, lambda: found.append({each.name for each in path.parent.iterdir()}))
    for _ in ("new", "existing"):
        async with running(cluster, path):
            await until(lambda: pods_are_stored(cluster, path, "default"))
            assert found.pop() == {"cache.db", "cache.db-journal", "cache.db-wal"}
            assert {each.name for each in path.parent.iterdir()} == {"cache.db", "cache.db-wal"}
            assert modes(path.parent) == {0o600}
        assert [each.name for each in path.parent.iterdir()] == ["cache.db"]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA page_size").fetchone()[0] == PAGE_BYTES


# -- clusters ----------------------------------------------------------------------------------


async def problem_with(server: ApiServer, path: Path) -> str:
    """Run an informer of a server, and return the problem of its file."""
    async with (
        Client(server.url) as client,
        SharedInformerFactory(client, cache=CacheFile(path, interval=INTERVAL)) as factory,
    ):
        pods = factory.informer("pods")
        await pods.wait_synced(timeout=10)
        return pods.health.cache_problem


async def test_a_file_belongs_to_the_address_of_a_server_until_the_cluster_s_uid_is_known(
    path: Path,
) -> None:
    system, cluster = {"metadata": {"name": "kube-system"}}, Cluster()
    send_bookmarks_often(cluster)
    async with ApiServer(cluster) as server, ApiServer(cluster) as another:
        for rebuilt in (False, True):
            assert await problem_with(server, path) == "", "the uid of kube-system is unknown"
            problem = await problem_with(another, path)
            assert "this server doesn't say which cluster it is" in problem
            cluster.create("namespaces", system)
            for each in (server, another):
                problem = await problem_with(each, path)
                assert ("holds the objects of another cluster; name a" in problem) is rebuilt
                assert bool(problem) is rebuilt
            cluster.delete("namespaces", "kube-system")


# -- damage ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM blocks WHERE id = 1",
        "UPDATE blocks SET id = 5 WHERE id = 1",
        "UPDATE blocks SET scope = 7 WHERE id = 2",
        "UPDATE blocks SET bodies = x'00'",
        "UPDATE blocks SET bodies = x'00', bodies_checksum = 3523407757",
        "UPDATE scopes SET version = '7'",
        "UPDATE scopes SET id = 7",
    ],
)
async def test_a_state_that_is_not_the_one_that_was_written_is_listed(
    path: Path, damage: str
) -> None:
    cluster = Cluster()
    await write_two_blocks(cluster, path)
    change(path, damage)
    async with running(cluster, path) as program:
        assert "is corrupt" in program.pods.health.cache_problem
        assert program.requests.verbs == ["watchlist"]
        assert names(program.pods.lister.list()) == ["a", "b"]


@pytest.mark.parametrize("flips", [50, pytest.param(2000, marks=pytest.mark.simulation)])
@pytest.mark.timeout(300)
async def test_no_flipped_bit_of_a_file_reaches_the_cache(path: Path, flips: int) -> None:
    """The state is as it was written, is reported as damaged, or isn't found and is listed."""
    random, cluster, damaged = Random(5), cluster_with_pods(*"cdefgh"), 0
    await write_two_blocks(cluster, path)
    async with running(cluster, path):  # with outdated and removed objects
        cluster.delete("pods", "c")
        label_pod(cluster, "d", "new")
        await until(lambda: pods_are_stored(cluster, path, "default"))
    before = content(path) or b""
    used = [at for at, byte in enumerate(before) if byte]
    for _ in range(flips):
        at = random.choice(used) if random.random() < 0.8 else random.randrange(len(before))
        flipped = bytearray(before)
        flipped[at] ^= 1 << random.randrange(8)
        replace_content(path, flipped)
        async with running(cluster, path) as program:
            damaged += bool(program.pods.health.cache_problem)
            assert await program.pods.verify(), f"byte {at} of {len(before)}"
    assert damaged > flips / 4


async def test_a_corrupt_page_is_found_when_it_is_read(path: Path) -> None:
    cluster = Cluster()
    await write_two_blocks(cluster, path)
    before = content(path) or b""
    replace_content(path, before[: 2 * PAGE_BYTES].ljust(len(before), b"\xff"))
    async with running(cluster, path) as program:
        assert "is corrupt" in program.pods.health.cache_problem


async def test_a_full_disk_keeps_the_earlier_state(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class SmallDisk(sqlite3.Connection):
        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            if sql == "BEGIN IMMEDIATE":
                super().execute("PRAGMA max_page_count = 8")
            return super().execute(sql, *parameters)

    cluster, random = cluster_with_pods("a"), Random(1)
    change_connect(monkeypatch, factory=SmallDisk)
    async with running(cluster, path) as program:
        await until(lambda: pods_are_stored(cluster, path, "default"))
        for number in range(40):  # with texts that can't be compressed
            metadata = {"name": f"p{number}", "annotations": {"x": random.randbytes(5000).hex()}}
            cluster.create("pods", {"metadata": metadata})
        await until(lambda: program.pods.health.cache_problem)
        assert program.pods.health.cache_problem == (f"{path} can't be written: the disk is full")
    async with running(cluster, path) as program:
        await until(lambda: len(program.heard) == 41)
        assert program.heard[0] == "= a"
        assert "watchlist" not in program.requests.verbs


# -- the thread of a file ----------------------------------------------------------------------


@pytest.mark.parametrize("others", [False, True])
async def test_a_program_that_ends_while_the_file_is_opened_leaves_it_to_others(
    path: Path, monkeypatch: pytest.MonkeyPatch, *, others: bool
) -> None:
    began, ended = threading.Event(), threading.Event()

    def wait() -> None:
        began.set()
        ended.wait(30)

    change_connect(monkeypatch, wait)
    cluster, cache = cluster_with_pods("a"), CacheFile(path, interval=INTERVAL)
    if others:  # in the same process
        async with running(cluster, path, cache=cache, wait=False) as second:
            async with running(cluster, path, cache=cache, wait=False):
                await asyncio.to_thread(began.wait)
            ended.set()
            await second.pods.wait_synced(timeout=10)
            assert second.pods.health.cache_problem == ""
            await until(lambda: pods_are_stored(cluster, path, "default"))
    else:
        async with running(cluster, path, cache=cache, wait=False):
            await asyncio.to_thread(began.wait)
            asyncio.get_running_loop().call_later(0.05, ended.set)
    async with running(cluster, path) as later:
        assert later.pods.health.cache_problem == ""


# -- the size of a file ------------------------------------------------------------------------


async def test_states_that_are_outdated_are_removed_from_the_file(path: Path) -> None:
    cluster, random = cluster_with_pods(*(f"p{number}" for number in range(300))), Random(3)
    for value in map(str, range(9)):
        async with running(cluster, path) as program:
            assert program.requests.verbs[0] == ("freshness_check" if int(value) else "watchlist")
            assert await program.pods.verify()
            for number in random.sample(range(10, 200), 180):
                label_pod(cluster, f"p{number}", value)
            cluster.delete("pods", f"p{value}")
            await until(lambda: len(program.pods.lister) == len([*cluster.objects("pods")]))
    with closing(sqlite3.connect(path)) as connection:
        last, blocks = connection.execute("SELECT max(id), count(*) FROM blocks").fetchone()
    assert 1 < blocks < last, "blocks were reclaimed"
