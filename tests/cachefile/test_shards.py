"""The cache file of a group's informer: a member that restarts resumes the shards that return."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager, closing
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from aioinformer import CacheFile, ShardGroup, SharedInformer, SharedInformerFactory
from aioinformer.errors import UsageError
from aioinformer.testing import Cluster, ClusterSource, Faults
from tests.cachefile.programs import (
    INTERVAL,
    Program,
    RequestLog,
    crash_file,
    running,
    until,
)
from tests.sharding.memory_assignment import MemoryAssignment

LISTS = {"list", "watchlist", "page"}
"""The requests that read a whole state."""


@pytest.fixture(name="path")
def a_path(tmp_path: Path) -> Path:
    return tmp_path / "cache.db"


def cluster_with(count: int) -> Cluster:
    cluster = Cluster()
    for number in range(count):
        put(cluster, number)
    return cluster


def put(cluster: Cluster, number: int) -> None:
    cluster.create("pods", {"metadata": {"name": f"p{number}"}}, namespace="web")


def label(cluster: Cluster, name: str, value: str) -> None:
    body = cluster.get("pods", name, namespace="web")
    body["metadata"]["labels"] = {"value": value}
    cluster.update("pods", body)


def names(informer: SharedInformer[Any]) -> set[str]:
    return {obj.name for obj in informer.lister.list()}


def expected(cluster: Cluster, shards: Iterable[int]) -> set[str]:
    """Return the names of the pods of these shards of eight."""
    pods = [each["metadata"] for each in cluster.objects("pods")]
    return {each["name"] for each in pods if shard_of(each["uid"]) in set(shards)}


def shard_of(uid: str) -> int:
    """Return the shard of eight: the first bits of the 64-bit FNV-1a hash, as in KEP-5866."""
    hashed = 0xCBF29CE484222325
    for byte in uid.encode():
        hashed = (hashed ^ byte) * 0x100000001B3 % 2**64
    return hashed >> 61


async def until_shown(program: Program, cluster: Cluster, shards: Iterable[int]) -> None:
    """Wait until the informer shows the pods of these shards, as the server has them."""
    await until(lambda: names(program.pods) == expected(cluster, shards))


def lists(program: Program) -> list[str]:
    return [verb for verb in program.requests.verbs if verb in LISTS]


def has_shards(path: Path) -> bool:
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and b'"resource":"v1/pods"' in log.read_bytes()


def stored(path: Path) -> tuple[str, set[str]]:
    """Return the complete shards, and the names of all objects, of a file that is closed."""
    with closing(sqlite3.connect(path)) as connection:
        complete = connection.execute("SELECT shards FROM scopes").fetchone()[0]
        blocks = connection.execute("SELECT entries FROM blocks ORDER BY id").fetchall()
    entries = [entry for (block,) in blocks for entry in msgspec.msgpack.decode(block)]
    sizes = {name: size for _, name, _, _, size in entries}  # the newest of each; -1 if removed
    return complete, {name for name, size in sizes.items() if size >= 0}


async def test_a_member_that_restarts_with_its_shards_makes_no_list(path: Path) -> None:
    cluster, shards = cluster_with(60), [0, 1, 5]
    async with running(cluster, path, shard=MemoryAssignment(assigned=shards)) as first:
        assert len(lists(first)) == 1
        assert names(first.pods) == expected(cluster, shards)
        assert first.pods.health.cache_problem == ""
    assert stored(path) == ("0-1,5", expected(cluster, shards))
    changed, removed, *_ = sorted(expected(cluster, shards))
    label(cluster, changed, "new")
    cluster.delete("pods", removed, namespace="web")
    for number in range(60, 80):
        put(cluster, number)

    async with running(cluster, path, shard=MemoryAssignment(assigned=shards)) as second:
        assert names(second.pods) == expected(cluster, shards)
        assert second.pods.lister[f"web/{changed}"].labels["value"] == "new"
        assert lists(second) == []
        assert second.requests.verbs.count("freshness_check") == 1
        assert await second.pods.verify()
        put(cluster, 80)
        await until_shown(second, cluster, shards)
        assert set(second.heard) >= {f"= {name}" for name in expected(cluster, shards) - {"p80"}}
    assert stored(path) == ("0-1,5", expected(cluster, shards))


async def test_shards_that_return_one_after_the_other_are_restored(path: Path) -> None:
    cluster, shards = cluster_with(60), [0, 1, 5, 6]
    async with running(cluster, path, shard=MemoryAssignment(assigned=shards)):
        pass
    removed = min(expected(cluster, [5]))
    cluster.delete("pods", removed, namespace="web")
    group = MemoryAssignment()
    async with running(cluster, path, shard=group) as member:
        assert names(member.pods) == set(), "a member without shards is synced"
        group.assign([0])
        await until_shown(member, cluster, [0])
        put(cluster, 61)
        group.assign([0, 5, 6])
        await until_shown(member, cluster, [0, 5, 6])
        assert lists(member) == []
        group.assign([0, 2, 5, 6])  # 2 was never held
        await until_shown(member, cluster, [0, 2, 5, 6])
        assert len(lists(member)) == 1
        assert await member.pods.verify(timeout=10)
        label(cluster, min(expected(cluster, [0])), "1")  # the watch reaches the state of 2
        await until(lambda: any(each.startswith("~") for each in member.heard[-1:]))
    complete, rows = stored(path)
    assert complete == "0,2,5-6"
    assert rows >= expected(cluster, [0, 2, 5, 6])
    assert removed not in rows
    async with running(cluster, path, shard=MemoryAssignment(assigned=[0, 2, 5, 6])) as third:
        assert lists(third) == []
        assert names(third.pods) == expected(cluster, [0, 2, 5, 6])
        put(cluster, 62)
        await until_shown(third, cluster, [0, 2, 5, 6])
    assert stored(path) == ("0,2,5-6", expected(cluster, [0, 2, 5, 6])), "shard 1 has left the file"


async def test_a_shard_that_moves_away_leaves_the_file_and_is_listed_when_it_returns(
    path: Path,
) -> None:
    cluster, group = cluster_with(60), MemoryAssignment(assigned=[1, 2])
    async with running(cluster, path, shard=group) as member:
        group.assign([1])
        await until_shown(member, cluster, [1])
        label(cluster, min(expected(cluster, [2])), "elsewhere")
    assert stored(path) == ("1", expected(cluster, [1]))
    group = MemoryAssignment(assigned=[1])
    async with running(cluster, path, shard=group) as member:
        assert lists(member) == []
        group.assign([1, 2])
        await until_shown(member, cluster, [1, 2])
        assert len(lists(member)) == 1
        changed = min(expected(cluster, [2]))
        assert member.pods.lister[f"web/{changed}"].labels["value"] == "elsewhere"


async def test_a_first_assignment_is_listed_if_the_file_has_only_a_part_of_it(path: Path) -> None:
    cluster = cluster_with(60)
    async with running(cluster, path, shard=MemoryAssignment(assigned=[1])):
        pass
    async with running(cluster, path, shard=MemoryAssignment(assigned=[1, 2])) as member:
        assert names(member.pods) == expected(cluster, [1, 2]), "synced with all shards"
        assert len(lists(member)) == 1
    assert stored(path) == ("1-2", expected(cluster, [1, 2]))


async def test_a_state_that_the_server_no_longer_knows_is_listed(path: Path) -> None:
    cluster = cluster_with(60)
    async with running(cluster, path, shard=MemoryAssignment(assigned=[1, 2])):
        pass
    removed = min(expected(cluster, [1]))
    cluster.delete("pods", removed, namespace="web")
    put(cluster, 61)
    cluster.compact()
    async with running(cluster, path, shard=MemoryAssignment(assigned=[1, 2])) as member:
        assert names(member.pods) == expected(cluster, [1, 2])
        assert len(lists(member)) == 1
        assert await member.pods.verify()
    assert stored(path) == ("1-2", expected(cluster, [1, 2])), "the removed pod is not in the file"


async def test_the_shards_of_a_damaged_file_are_listed(path: Path) -> None:
    cluster = cluster_with(60)
    async with running(cluster, path, shard=MemoryAssignment(assigned=[1, 2])):
        pass
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE blocks SET bodies = x'00'")
    group = MemoryAssignment(assigned=[1])
    async with running(cluster, path, shard=group) as member:
        assert "is corrupt" in member.pods.health.cache_problem
        group.assign([1, 2])
        await until_shown(member, cluster, [1, 2])
        assert len(lists(member)) == 2


async def test_shards_that_are_lost_while_they_are_restored_are_not_shown(path: Path) -> None:
    cluster, faults = cluster_with(60), Faults()
    async with running(cluster, path, shard=MemoryAssignment(assigned=[1, 2, 3])):
        pass
    group = MemoryAssignment()
    async with running(cluster, path, shard=group, faults=faults) as member:
        with faults.refuse():
            group.assign([1, 2])
            await until(lambda: "freshness_check" in member.requests.verbs)
            group.assign([2])
            await until(lambda: group.working == {2})
            group.assign([2, 3])
            await until(lambda: group.working == {2, 3})
        await until_shown(member, cluster, [2, 3])
        assert lists(member) == []
        assert await member.pods.verify(timeout=10)
        with faults.refuse():
            group.assign([2, 3, 1])
            await until(lambda: group.working == {1, 2, 3})
            group.assign([])
            await until(lambda: group.working == set())
        await until(lambda: names(member.pods) == set())


@asynccontextmanager
async def member_of_a_group(
    cluster: Cluster, identity: str, path: Path | None = None
) -> AsyncGenerator[tuple[ShardGroup, SharedInformer, RequestLog]]:
    requests = RequestLog()
    group = ShardGroup(
        ClusterSource(cluster),
        "shop",
        namespace="web",
        identity=identity,
        shards=8,
        cache=None if path is None else CacheFile(path, interval=INTERVAL),
        lease_duration=5.0,
        renew_deadline=3.0,
        retry_period=0.1,
        metrics=requests,
    )
    async with group:
        yield group, group.informer("pods"), requests


async def test_a_member_of_a_real_group_receives_its_shards_again_without_a_list(
    path: Path,
) -> None:
    cluster = cluster_with(60)
    async with member_of_a_group(cluster, "a") as (other, _, _):
        await until(lambda: len(other.held) == 8)
        async with member_of_a_group(cluster, "b", path) as (member, pods, requests):
            await until(
                lambda: 0 < len(member.held) < 8 and len(other.held) + len(member.held) == 8
            )
            await until(lambda: pods.synced and names(pods) == expected(cluster, member.held))
            assert LISTS & set(requests.verbs)
            label(cluster, min(names(pods)), "1")  # the watch reaches the state of the last shards
            await until(lambda: "value" in pods.lister[f"web/{min(names(pods))}"].labels)
            shards = member.held
        await until(lambda: len(other.held) == 8)
        put(cluster, 60)
        async with member_of_a_group(cluster, "b", path) as (member, pods, requests):
            await until(lambda: member.held == shards)
            await until(lambda: names(pods) == expected(cluster, shards))
            assert not LISTS & set(requests.verbs)
            assert await pods.verify(timeout=10)


async def test_each_namespace_of_an_informer_has_its_shards_in_the_file(path: Path) -> None:
    cluster = cluster_with(60)
    cluster.create("pods", {"metadata": {"name": "other"}}, namespace="db")
    every = list(range(8))
    for round_ in range(2):
        group = MemoryAssignment(assigned=every)
        namespaces = ["web", "db"]
        async with running(cluster, path, shard=group, namespaces=namespaces) as member:
            assert names(member.pods) == expected(cluster, every)
            assert len(lists(member)) == (2 if round_ == 0 else 0)


async def test_a_file_of_another_number_of_shards_or_of_all_objects_is_not_used(path: Path) -> None:
    cluster = cluster_with(20)
    async with running(cluster, path, shard=MemoryAssignment(assigned=[1])):
        pass
    other = MemoryAssignment(assigned=[1], count=4)
    async with running(cluster, path, shard=other) as member:
        assert len(lists(member)) == 1
    async with running(cluster, path) as whole:
        assert len(lists(whole)) == 1
        assert len(names(whole.pods)) == 20


def test_an_informer_on_a_group_rejects_durable_listeners(path: Path) -> None:
    source, group = ClusterSource(cluster_with(3)), MemoryAssignment(assigned=range(8))
    pods = SharedInformerFactory(source, cache=CacheFile(path)).informer("pods", shard=group)
    with pytest.raises(UsageError, match=r"durable='audit' can't remember .* fixed shard=Shard"):
        pods.add_handler(print, durable="audit")


@pytest.mark.parametrize("crashes", [12, pytest.param(200, marks=pytest.mark.simulation)])
@pytest.mark.timeout(300)
async def test_after_a_crash_at_any_moment_a_member_shows_the_state_of_its_shards(
    tmp_path: Path, crashes: int
) -> None:
    """A crash leaves the database, and the beginning of what the write-ahead log had."""
    random, cluster, restored = Random(7), cluster_with(40), 0
    for crash in count():
        path, crashed = tmp_path / f"{crash}.db", tmp_path / f"crashed-{crash}.db"
        group = MemoryAssignment(assigned=random_shards(random))
        async with running(cluster, path, shard=group) as member:
            await until(partial(has_shards, path))
            for _ in range(random.randrange(1, 6)):
                change(random, cluster)
                group.assign(random_shards(random))
                if random.random() < 0.5:
                    await until_shown(member, cluster, group.assigned)
            crash_file(random, path, crashed)
        change(random, cluster)
        held = group.assigned
        group = MemoryAssignment()
        async with running(cluster, crashed, shard=group) as member:
            for shards in (random.sample(sorted(held), len(held) // 2), held, range(0, 8, 2)):
                group.assign(shards)
                await until_shown(member, cluster, shards)
                change(random, cluster)
            assert await member.pods.verify(timeout=10), f"crash {crash}"
            restored += "freshness_check" in member.requests.verbs
        # Some restarts must use what the crash has left; a slow disk leaves less.
        if crash + 1 >= crashes and restored > crashes / 5:
            break


def random_shards(random: Random) -> list[int]:
    return [0, 1, *random.sample(range(2, 8), random.randrange(7))]


def change(random: Random, cluster: Cluster) -> None:
    """Change, delete and create some pods, under the same names."""
    for number in random.sample(range(40), 8):
        present = {each["metadata"]["name"] for each in cluster.objects("pods")}
        if f"p{number}" not in present:
            put(cluster, number)
        elif random.random() < 0.5:
            cluster.delete("pods", f"p{number}", namespace="web")
            if random.random() < 0.7:
                put(cluster, number)  # in another shard, probably
        else:
            label(cluster, f"p{number}", str(random.random()))
