"""Followers of a file whose leaders crash: past states, in order, up to the last one."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from aioinformer._core.cachefile import block_index
from aioinformer._core.cachefile.change_log import LogEntry, LogSequence
from aioinformer._core.cachefile.change_record import Changes
from aioinformer._core.cachefile.identity import ClusterIdentity
from aioinformer._core.objects.kube_object import KubeObject, ObjectKey
from aioinformer._runtime.cachefile.database import Database, LedState
from aioinformer._runtime.cachefile.stored_scope import CacheFileProblem, ScopeWrite
from tests.core.builders import PODS, pod

CLUSTER = ClusterIdentity("uid", "endpoint")
State = dict[ObjectKey, KubeObject]


class Server:
    """All states of a server, one change after the other."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.state: State = {}
        self.states: list[State] = [{}]

    def change(self) -> LogEntry:
        key = ObjectKey("web", f"p{self.random.randrange(12)}")
        if key in self.state and self.random.random() < 0.3:
            entry = LogEntry("deleted", self.state.pop(key))
        else:
            size = self.random.choice([1, 100, 5000])
            self.state[key] = pod(key.name, rv=str(len(self.states)), node="n" * size)
            entry = LogEntry("stored", self.state[key])
        self.states.append(dict(self.state))
        return entry


class Leader:
    """A process that writes the file until it crashes, and continues at the file's version."""

    def __init__(self, path: Path, server: Server, term: str) -> None:
        self.server = server
        self.database = Database(path, CLUSTER, term=term)
        # A short log, so that followers fall behind it.
        tables = self.database._tables  # pyright: ignore[reportPrivateUsage]
        found = tables._sequence  # pyright: ignore[reportPrivateUsage]
        tables._sequence = LogSequence(  # pyright: ignore[reportPrivateUsage]
            found.head, found.oldest, keep=16
        )

    def write(self, entries: list[LogEntry] | None, changes: Changes) -> None:
        version = str(len(self.server.states) - 1)
        self.database.write(
            [ScopeWrite("pods", version, False, (), changes, entries=entries, synced=True)]
        )

    def crash(self) -> None:
        """End within a transaction that has written a part: its frames are in the log's file."""
        execute = self.database._connection.execute  # pyright: ignore[reportPrivateUsage]
        execute("PRAGMA cache_spill = 1")
        execute("BEGIN IMMEDIATE")
        execute("UPDATE blocks SET bodies = zeroblob(20000)")
        execute("DELETE FROM logged_changes")
        self.database._connection.close()  # pyright: ignore[reportPrivateUsage]


class Follower:
    """A process that follows."""

    def __init__(self, path: Path) -> None:
        self.database = Database(path, CLUSTER, term="follower", follows=True)
        self.position: int | None = None
        self.state: State = {}
        self.age = 0
        self.read_again = 0

    def advance(self, server: Server) -> None:
        self.age = server.states.index(self.state, self.age)

    def follow(self, server: Server) -> None:
        parts = self.database.follow("pods", self.position, PODS, 5)
        state = next(parts, None)
        if state is None:
            return
        assert isinstance(state, LedState)
        if state.whole:
            self.read_again += self.position is not None
            found = [obj for part in parts for obj in part]
            self.state = {each.key: each for each in found if isinstance(each, KubeObject)}
            assert len(self.state) == len(found)
            self.advance(server)
        else:
            for part in parts:
                for entry in part:
                    assert isinstance(entry, LogEntry)
                    self.apply(entry)
                    self.advance(server)
        self.position = state.led.head
        assert state.stored is not None
        assert self.state == server.states[int(state.stored.version)]

    def apply(self, entry: LogEntry) -> None:
        if entry.kind == "stored":
            self.state[entry.obj.key] = entry.obj
        else:
            del self.state[entry.obj.key]


@pytest.mark.parametrize("crashes", [40, pytest.param(1000, marks=pytest.mark.simulation)])
@pytest.mark.timeout(300)
def test_followers_see_past_states_in_order_through_crashes_of_leaders(
    tmp_path: Path, crashes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block_index, "SPARE_ENTRIES", 10)  # most writes reclaim blocks as well
    random = Random(4)
    path = tmp_path / "cache.db"
    server, read_again = Server(random), 0
    leader = Leader(path, server, "0")
    followers = [Follower(path) for _ in range(3)]
    for crash in range(crashes):
        for _ in range(random.randint(0, 6)):
            entries = [server.change() for _ in range(random.randint(0, 8))]
            changes: Changes = {
                each.obj.key: each.obj if each.kind == "stored" else None for each in entries
            }
            leader.write(None if random.random() < 0.05 else entries, changes)
            for each in followers:
                if random.random() < 0.4:
                    each.follow(server)
        leader.crash()
        reading = followers[crash % 3]
        reading.follow(server)
        if random.random() < 0.5:  # promoted, or a process that has just started
            reading.database.close()
            read_again += reading.read_again
            followers[crash % 3] = Follower(path)
        leader = Leader(path, server, str(crash + 1))
    for each in followers:
        each.follow(server)
        assert each.state == server.state
        each.database.close()
    leader.database.close()
    assert read_again + sum(each.read_again for each in followers) > crashes / 4


def test_a_follower_never_creates_the_file(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    with pytest.raises(CacheFileProblem, match="can't be used: unable to open database file"):
        Database(path, CLUSTER, term="t", follows=True)
    assert list(tmp_path.iterdir()) == []


def test_a_follower_of_another_cluster_leaves_the_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    leader = Database(path, CLUSTER, term="t")
    with pytest.raises(CacheFileProblem, match="holds the objects of another cluster"):
        Database(path, ClusterIdentity("another"), term="t", follows=True)
    leader.close()


def test_a_follower_reads_one_state_while_the_leader_writes(tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    server = Server(Random(1))
    leader = Leader(path, server, "t")
    first = [server.change() for _ in range(12)]
    leader.write(first, dict.fromkeys(server.state) | server.state)
    follower = Follower(path)
    parts = follower.database.follow("pods", None, PODS, 1)
    next(parts)
    before = dict(server.state)
    later = [server.change() for _ in range(12)]
    leader.write(later, {each.obj.key: server.state.get(each.obj.key) for each in later})
    found = [obj for part in parts for obj in part]
    assert {each.key: each for each in found if isinstance(each, KubeObject)} == before
    follower.follow(server)
    assert follower.state == server.state
    follower.database.close()
    leader.database.close()
