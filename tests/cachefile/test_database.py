"""The file: its checks, and true past states after a crash at any point."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._runtime.reflector.lister_watcher import ClusterIdentity
from aioinformer.cachefile import database as database_module
from aioinformer.cachefile.database import PAGE_BYTES, Database
from aioinformer.cachefile.state import block_index
from aioinformer.cachefile.state.change_record import Changes
from aioinformer.cachefile.stored_scope import CacheFileProblem, ScopeWrite
from tests.core.builders import PODS, pod

CLUSTER = ClusterIdentity("uid", "endpoint")
State = dict[ObjectKey, KubeObject]


def open_database(path: Path) -> Database:
    return Database(path, CLUSTER)


def read(database: Database, scope: str = "pods") -> tuple[str, State]:
    """Return the version and the objects of a scope."""
    if not (scopes := database.read_scopes(scope)):
        return "", {}
    [stored] = scopes
    found = [obj for batch in database.read_objects(stored, PODS, 3) for obj in batch]
    assert len({obj.key for obj in found}) == len(found)
    return stored.version, {obj.key: obj for obj in found}


def write(database: Database, version: str, changes: Changes, scope: str = "pods") -> None:
    database.write([ScopeWrite(scope, version, False, ["audit"], changes)])


def test_a_written_state_is_read_in_another_process(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    database = open_database(path)
    a, b = pod("a", rv="1"), pod("b", rv="2")
    write(database, "2", {a.key: a, b.key: b})
    write(database, "4", {a.key: pod("a", rv="4"), b.key: None})
    write(database, "9", {b.key: b}, scope="others")
    database.close()
    again = open_database(path)
    assert read(again) == ("4", {a.key: pod("a", rv="4")})
    assert read(again, "others") == ("9", {b.key: b})
    [stored] = again.read_scopes("pods")
    assert (stored.handlers, stored.reread) == (frozenset({"audit"}), False)
    write(again, "", {})
    assert read(again) == ("", {})
    assert read(again, "others") == ("9", {b.key: b})
    again.close()


def test_a_new_file_has_large_pages(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    open_database(path).close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA page_size").fetchone()[0] == PAGE_BYTES


def no_directory(path: Path) -> None:
    path.parent.rmdir()


def garbage(path: Path) -> None:
    path.write_bytes(b"this is no database " * 100)


def foreign_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE mine (x)")


def another_version(path: Path) -> None:
    open_database(path).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA user_version = 99")


def another_cluster(path: Path) -> None:
    Database(path, ClusterIdentity("another", "endpoint")).close()


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
        (another_cluster, "holds the objects of another cluster; name a file for each cluster"),
        (a_directory, "is no regular file"),
        (a_file_as_folder, "can't be opened: Not a directory"),
    ],
)
def test_a_file_that_can_t_be_used_is_reported_with_the_reason_and_not_changed(
    tmp_path: Path, prepare: Callable[[Path], None], text: str
) -> None:
    path = tmp_path / "files" / "cache.db"
    path.parent.mkdir()
    prepare(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(CacheFileProblem, match=text) as raised:
        open_database(path)
    assert str(path) in str(raised.value)
    assert (path.read_bytes() if path.is_file() else None) == before


def of_another_user(path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can give a file to another user")
    path.touch(0o600)
    os.chown(path, 4321, 4321)


def readable_by_others(path: Path) -> None:
    path.touch()
    path.chmod(0o640)


def a_link(path: Path) -> None:
    (target := path.parent.with_name("target")).touch(0o644)
    path.symlink_to(target)


def a_link_to_nothing(path: Path) -> None:
    path.symlink_to(path.parent.with_name("target"))


def a_hard_link(path: Path) -> None:
    (target := path.parent.with_name("target")).touch(0o600)
    path.hardlink_to(target)


def describe(path: Path) -> tuple[int, int] | None:
    return (path.stat().st_size, path.stat().st_mode) if path.exists() else None


@pytest.mark.parametrize("existing", [False, True], ids=["new", "existing"])
@pytest.mark.parametrize("suffix", ["", "-journal", "-wal", "-shm"])
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
def test_a_file_that_another_user_may_have_planted_is_refused(
    tmp_path: Path, suffix: str, plant: Callable[[Path], None], text: str, existing: bool
) -> None:
    path = tmp_path / "files" / "cache.db"
    planted = Path(f"{path}{suffix}")
    path.parent.mkdir()
    if existing:
        open_database(path).close()
        planted.unlink(missing_ok=True)
    plant(planted)
    before = describe(tmp_path / "target")
    if plant is readable_by_others and not suffix:
        open_database(path).close()
        assert path.stat().st_mode & 0o777 == 0o600
        return
    with pytest.raises(CacheFileProblem, match=re.escape(text)) as raised:
        open_database(path)
    assert str(planted) in str(raised.value)
    assert describe(tmp_path / "target") == before, "the target of a link is not touched"


def test_a_volume_that_lets_a_group_read_all_files_keeps_the_cache_of_a_killed_program(
    tmp_path: Path,
) -> None:
    database = open_database(tmp_path / "cache.db")
    write(database, "1", {(a := pod("a", rv="1")).key: a})
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    for name in ("cache.db", "cache.db-wal"):
        shutil.copyfile(tmp_path / name, mounted / name)
        (mounted / name).chmod(0o660)  # as kubelet does with an fsGroup
    database.close()

    restored = open_database(mounted / "cache.db")

    assert read(restored)[0] == "1"
    assert {each.stat().st_mode & 0o777 for each in mounted.iterdir()} == {0o600}
    restored.close()


def test_no_name_that_sqlite_opens_is_free_for_another_user_s_file_while_sqlite_opens_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cache.db"
    connect, found = sqlite3.connect, list[set[str]]()

    def spy(path: Path, **options: Any) -> sqlite3.Connection:
        found.append({each.name for each in tmp_path.iterdir()})
        connection: sqlite3.Connection = connect(path, **options)
        return connection

    monkeypatch.setattr(sqlite3, "connect", spy)
    for _ in ("new", "existing"):
        database = open_database(path)
        assert found.pop() == {"cache.db", "cache.db-journal", "cache.db-wal"}
        write(database, "1", {(a := pod("a", rv="1")).key: a})
        assert sorted(each.name for each in tmp_path.iterdir()) == ["cache.db", "cache.db-wal"]
        assert {each.stat().st_mode & 0o777 for each in tmp_path.iterdir()} == {0o600}
        database.close()
        assert [each.name for each in tmp_path.iterdir()] == ["cache.db"]


def test_the_error_for_a_server_without_an_identity_differs_from_that_for_another_cluster(
    tmp_path: Path,
) -> None:
    path = tmp_path / "cache.db"
    open_database(path).close()
    Database(path, ClusterIdentity("", CLUSTER.endpoint)).close()  # the same address suffices
    with pytest.raises(CacheFileProblem, match="doesn't say which cluster it is"):
        Database(path, ClusterIdentity("", "another"))


def test_a_file_from_a_time_without_the_cluster_s_uid_is_bound_to_the_uid_once_that_is_known(
    tmp_path: Path,
) -> None:
    path = tmp_path / "cache.db"
    Database(path, ClusterIdentity("", CLUSTER.endpoint)).close()
    a = pod("a", rv="1")
    database = open_database(path)
    write(database, "1", {a.key: a})
    database.close()
    with pytest.raises(CacheFileProblem, match="holds the objects of another cluster"):
        Database(path, ClusterIdentity("rebuilt", CLUSTER.endpoint))
    Database(path, ClusterIdentity("", CLUSTER.endpoint)).close()  # must not forget the uid
    with pytest.raises(CacheFileProblem, match="holds the objects of another cluster"):
        Database(path, ClusterIdentity("rebuilt", CLUSTER.endpoint))
    again = open_database(path)
    assert read(again) == ("1", {a.key: a})
    again.close()


def test_a_second_process_can_t_use_the_file_until_the_first_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "LOCK_SECONDS", 0.1)
    path = tmp_path / "cache.db"
    database = open_database(path)
    code = (
        "import sys; from pathlib import Path\n"
        "from aioinformer._runtime.reflector.lister_watcher import ClusterIdentity\n"
        "from aioinformer.cachefile import database\n"
        "database.LOCK_SECONDS = 0.1\n"
        "from aioinformer.cachefile.stored_scope import CacheFileProblem\n"
        f"try: database.Database(Path(sys.argv[1]), {CLUSTER!r})\n"
        "except CacheFileProblem as problem: print(problem)\n"
        "else: print('open')"
    )

    def run() -> str:
        done = subprocess.run(
            [sys.executable, "-c", code, path], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    assert "is used by another process or factory; give each process its own file" in run()
    with pytest.raises(CacheFileProblem, match="is used by another process or factory"):
        open_database(path)
    assert "is used by another process" in run(), "the failed attempt has not ended the lock"
    database.close()
    assert run() == "open"


def test_a_corrupt_page_is_found_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    database = open_database(path)
    write(database, "1", {(obj := pod(f"p{n}", node="x" * 500)).key: obj for n in range(200)})
    database.close()
    content = bytearray(path.read_bytes())
    content[2 * PAGE_BYTES :] = b"\xff" * (len(content) - 2 * PAGE_BYTES)
    path.write_bytes(content)
    database = open_database(path)
    with pytest.raises(CacheFileProblem, match="is corrupt"):
        read(database)
    database.close()


def test_a_block_that_can_t_be_decompressed_is_corrupt(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    database = open_database(path)
    write(database, "1", {(a := pod("a")).key: a})
    database.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE blocks SET bodies = x'00'")
    database = open_database(path)
    with pytest.raises(CacheFileProblem, match="is corrupt"):
        read(database)
    database.close()


@pytest.mark.parametrize("flips", [300, pytest.param(5000, marks=pytest.mark.simulation)])
def test_no_state_is_read_of_a_file_with_a_flipped_bit(tmp_path: Path, flips: int) -> None:
    """The state is as it was written, is reported as damaged, or isn't found, so that a list is
    sent. Several writes make several blocks, with outdated and removed objects.
    """
    random, path = Random(5), tmp_path / "cache.db"
    database = open_database(path)
    state: State = {}
    for version in range(1, 9):
        _, changes = random_changes(random, state, 100 * version)
        write(database, str(version), changes)
    database.close()
    content = path.read_bytes()
    used = [at for at in range(len(content)) if content[at]] or [0]
    damaged = 0
    for _ in range(flips):
        at = random.choice(used) if random.random() < 0.8 else random.randrange(len(content))
        flipped = bytearray(content)
        flipped[at] ^= 1 << random.randrange(8)
        path.write_bytes(flipped)
        try:
            with closing(open_database(path)) as database:
                found = read(database)
                assert found in [("8", state), ("", {})], f"byte {at} of {len(content)}"
        except CacheFileProblem:
            damaged += 1
    assert damaged > flips / 4


def test_a_block_that_is_missing_or_has_another_place_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    for damage in (
        "DELETE FROM blocks WHERE id = 1",
        "UPDATE blocks SET id = 5 WHERE id = 1",
        "UPDATE blocks SET scope = 7 WHERE id = 2",
        "UPDATE scopes SET version = '7'",
        "UPDATE scopes SET id = 7",
    ):
        database = open_database(path)
        for name in ("a", "b"):
            write(database, name, {(obj := pod(name)).key: obj})
        database.close()
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(damage)
        database = open_database(path)
        with pytest.raises(CacheFileProblem, match="is corrupt"):
            read(database)
        database.close()
        path.unlink()


def test_a_full_disk_keeps_the_earlier_state(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    database = open_database(path)
    a = pod("a")
    write(database, "1", {a.key: a})
    database._connection.execute("PRAGMA max_page_count = 8")  # pyright: ignore[reportPrivateUsage]
    random = Random(1)  # its texts can't be compressed
    many: Changes = {
        (obj := pod(f"p{n}", node=random.randbytes(3000).hex())).key: obj for n in range(100)
    }
    with pytest.raises(CacheFileProblem, match="can't be written: the disk is full"):
        write(database, "2", many)
    assert read(database) == ("1", {a.key: a})
    database.close()


def random_changes(random: Random, state: State, version: int) -> tuple[int, Changes]:
    """Return the changes to a later version, and apply them to ``state``."""
    changes: Changes = {}
    for _ in range(random.randint(0, 12)):
        version += 1
        key = ObjectKey("web", f"p{random.randrange(30)}")
        if key in state and random.random() < 0.3:
            del state[key]
            changes[key] = None
        else:
            size = random.choice([1, 100, 5000])
            state[key] = changes[key] = pod(key.name, rv=str(version), node="n" * size)
    return version + 1, changes


@pytest.mark.parametrize("crashes", [60, pytest.param(1000, marks=pytest.mark.simulation)])
@pytest.mark.timeout(300)
def test_after_simulated_crashes_the_file_is_a_past_state(
    tmp_path: Path, crashes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash leaves the database, and the beginning of what the write-ahead log had.

    What was synchronized is in the log's beginning, so that a file system that loses the rest is
    simulated as well. The process alone (``kill -9``) loses nothing that was written.
    """
    monkeypatch.setattr(block_index, "SPARE_ENTRIES", 10)  # most writes reclaim blocks as well
    random, crashed = Random(22), tmp_path / "crashed.db"
    crashed_log = tmp_path / "crashed.db-wal"
    lost = 0
    for history in range(10):
        path, states = tmp_path / f"{history}.db", dict[str, State]({"": {}})
        database, state, version = open_database(path), State(), 0
        log = path.with_name(f"{path.name}-wal")
        for _ in range(crashes // 10):
            version, changes = random_changes(random, state, version)
            write(database, str(version), changes)
            states[str(version)] = dict(state)
            shutil.copyfile(path, crashed)
            kept = log.read_bytes()
            cut = random.random() < 0.7
            crashed_log.touch(0o600)
            crashed_log.write_bytes(kept[: random.randrange(len(kept) + 1)] if cut else kept)
            restored = open_database(crashed)
            found_version, found = read(restored)
            restored.close()
            assert found == states[found_version], f"history {history}, version {version}"
            assert cut or found_version == str(version), "kill -9 loses nothing"
            lost += found_version != str(version)
            crashed.unlink()
        database.close()
    assert lost > crashes / 10, "many of the crashes have lost something"
