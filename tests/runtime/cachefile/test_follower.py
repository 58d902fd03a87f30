"""Informers whose source is the file of another process, and the takeover of its watch.

``flock`` separates two openings of a file also within one process. So two factories here share a
file in the way two processes do.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from aioinformer import CacheFile, KubeObject
from aioinformer._runtime.cachefile import follower
from aioinformer.errors import NotSynced, UsageError
from aioinformer.testing import Cluster, Faults
from tests.runtime.cachefile.programs import INTERVAL, Program, running, until
from tests.runtime.informers import cluster_with_pods, label_pod, names


@pytest.fixture(name="path")
def a_path(tmp_path: Path) -> Path:
    return tmp_path / "cache.db"


@asynccontextmanager
async def worker(cluster: Cluster, path: Path, **options: Any) -> AsyncGenerator[Program]:
    """Run a program that shares the file."""
    cache = CacheFile(path, shared=True, interval=INTERVAL)
    async with running(cluster, path, cache=cache, **options) as program:
        yield program


def watches(program: Program) -> bool:
    return program.pods.health.state == "watching"


async def test_a_second_process_follows_the_first_one_without_a_request(path: Path) -> None:
    cluster = cluster_with_pods("a", "b", "c")
    async with worker(cluster, path) as leader, worker(cluster, path) as second:
        assert names(second.pods.lister.list()) == ["a", "b", "c"]
        label_pod(cluster, "a", "1")
        label_pod(cluster, "a", "2")
        cluster.delete("pods", "b")
        cluster.create("pods", {"metadata": {"name": "d"}})
        cluster.delete("pods", "c")
        cluster.create("pods", {"metadata": {"name": "c"}})
        await until(lambda: second.heard[-1:] == ["+ c"])
        assert second.heard[3:] == [
            *("~ a ->1", "~ a 1->2", "- b deleted", "+ d", "- c deleted", "+ c"),
        ]
        assert second.requests.verbs == []
        assert await second.pods.verify()
        health = second.pods.health
        assert (health.state, health.synced, health.restored) == ("following", True, None)
        assert health.leader == leader.pods.health.leader != ""
        assert f"following for {health.since:.1f} s, led by pid " in str(health)
        assert health.fresh is not None
        assert 0 <= health.fresh < 30
        assert leader.pods.health.state == "watching"
        assert leader.requests.verbs == ["watchlist"]
        await until(
            lambda: second.pods.health.resource_version == leader.pods.health.resource_version
        )


async def test_a_follower_takes_over_the_watch_without_a_list(path: Path) -> None:
    cluster = cluster_with_pods("a", "b")
    first = worker(cluster, path)
    await first.__aenter__()
    async with worker(cluster, path) as second, worker(cluster, path) as third:
        label_pod(cluster, "a", "1")
        await until(lambda: second.heard[-1:] == third.heard[-1:] == ["~ a ->1"])
        await first.__aexit__(None, None, None)
        label_pod(cluster, "a", "2")
        cluster.delete("pods", "b")
        await until(lambda: second.heard[-1:] == third.heard[-1:] == ["- b deleted"])
        assert second.heard[-3:] == third.heard[-3:] == ["~ a ->1", "~ a 1->2", "- b deleted"]
        assert sorted([second.requests.verbs, third.requests.verbs]) == [[], ["watch"]]
        assert sorted(map(watches, [second, third])) == [False, True]
        assert second.pods.health.leader == third.pods.health.leader


async def test_a_follower_receives_every_change_once_over_many_takeovers(path: Path) -> None:
    cluster = cluster_with_pods("a")
    async with AsyncExitStack() as first_leader:
        await first_leader.enter_async_context(worker(cluster, path))
        workers = [worker(cluster, path) for _ in range(4)]
        programs = [await each.__aenter__() for each in workers]
        await first_leader.aclose()
        expected = ["= a", "~ a ->0"]
        label_pod(cluster, "a", "0")
        for value in range(1, 4):
            await until(lambda: all(each.heard == expected for each in programs))
            leading = next(each for each in programs if watches(each))
            await workers[programs.index(leading)].__aexit__(None, None, None)
            del workers[programs.index(leading)]
            programs.remove(leading)
            label_pod(cluster, "a", str(value))
            expected.append(f"~ a {value - 1}->{value}")
        await until(lambda: all(each.heard == expected for each in programs))
        assert [each.requests.verbs for each in programs] == [["watch"]]
        await workers[0].__aexit__(None, None, None)


async def test_a_relist_of_the_leader_reaches_followers_as_the_difference(path: Path) -> None:
    cluster, faults = cluster_with_pods("kept", "changed", "removed"), Faults()
    async with worker(cluster, path, faults=faults) as leader, worker(cluster, path) as second:
        with faults.refuse(), faults.reset():
            await until(lambda: not watches(leader))
            label_pod(cluster, "changed", "new")
            cluster.delete("pods", "removed")
            cluster.create("pods", {"metadata": {"name": "added"}})
            cluster.compact()
        await until(lambda: len(second.heard) == 6)
        assert sorted(second.heard[3:]) == ["+ added", "- removed vanished", "~ changed ->new"]
        assert names(second.pods.lister.list()) == ["added", "changed", "kept"]
        assert second.requests.verbs == []
        label_pod(cluster, "kept", "1")
        await until(lambda: second.heard[-1:] == ["~ kept ->1"])


async def test_a_burst_of_changes_reaches_a_follower_in_order_and_in_steps(path: Path) -> None:
    cluster = cluster_with_pods("a", "b")
    async with (
        worker(cluster, path) as leader,
        worker(cluster, path, setup=receive_every_change) as second,
    ):
        for value in range(1500):
            label_pod(cluster, "ab"[value % 2], str(value))
        await until(lambda: second.heard[-1:] == ["~ b 1497->1499"])
        assert second.heard[2:] == [
            f"~ {'ab'[value % 2]} {value - 2 if value > 1 else ''}->{value}"
            for value in range(1500)
        ]
        assert leader.pods.health.cache_problem == ""


def receive_every_change(program: Program) -> None:
    """Let no two events of a pod be merged."""
    for registration in program.pods.registrations:
        registration.remove()
    program.pods.add_handler(program.handle, overflow="block")


async def test_a_follower_is_synced_as_soon_as_the_leader_is_synced(path: Path) -> None:
    cluster, faults = cluster_with_pods("a"), Faults()
    async with worker(cluster, path):
        pass
    label_pod(cluster, "a", "new")
    with faults.refuse():
        first = worker(cluster, path, faults=faults, wait=False)
        leading = await first.__aenter__()
        await until(lambda: leading.pods.health.leader)  # before the second one can lead
        second = worker(cluster, path, wait=False)
        program = await second.__aenter__()
        await until(lambda: len(program.pods.lister.unsynced))
        assert not program.pods.health.synced
        with pytest.raises(NotSynced):
            program.pods.lister.list()
    await program.pods.wait_synced(timeout=10)
    await until(lambda: program.heard == ["= a", "~ a ->new"])
    assert program.requests.verbs == []
    await second.__aexit__(None, None, None)
    await first.__aexit__(None, None, None)


async def test_a_follower_watches_objects_that_the_leader_does_not_read(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(follower, "ANNOUNCE_SECONDS", 0.1)
    cluster = cluster_with_pods("a")
    async with (
        worker(cluster, path) as leader,
        worker(cluster, path, labels="app=shop") as second,
    ):
        assert second.requests.verbs == ["watchlist"]
        problem = second.pods.health.cache_problem
        assert problem == f"{path}: its leader does not read the same objects"
        assert leader.pods.health.cache_problem == ""
    logged = [each for each in caplog.records if "does not read the same objects" in each.message]
    assert len(logged) == 1
    assert f"pid {second.pods.health.leader.split()[1]}" in logged[0].message


async def test_followers_watch_a_scope_that_the_new_leader_does_not_read(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "ANNOUNCE_SECONDS", 0.5)
    cluster = cluster_with_pods("a")
    first = worker(cluster, path)
    await first.__aenter__()
    async with worker(cluster, path, labels="app=none") as other, worker(cluster, path) as second:
        await first.__aexit__(None, None, None)
        await until(lambda: other.requests.verbs == ["watchlist"])
        label_pod(cluster, "a", "1")
        await until(lambda: second.heard[-1:] == ["~ a ->1"])
        assert second.requests.verbs == ["watch"], "as the leader, or on its own"


async def test_several_namespaces_are_followed_each_with_its_version(path: Path) -> None:
    cluster = Cluster()
    for namespace in ("a", "b"):
        cluster.create("pods", {"metadata": {"name": f"in-{namespace}"}}, namespace=namespace)
    first = worker(cluster, path, namespaces=["a", "b"])
    await first.__aenter__()
    async with worker(cluster, path, namespaces=["a", "b"]) as second:
        assert names(second.pods.lister.list()) == ["in-a", "in-b"]
        assert {each.state for each in second.pods.health.scopes} == {"following"}
        assert second.pods.health.state == "following"
        cluster.delete("pods", "in-a", namespace="a")
        await until(lambda: second.heard[-1:] == ["- in-a deleted"])
        await first.__aexit__(None, None, None)
        cluster.create("pods", {"metadata": {"name": "late"}}, namespace="b")
        await until(lambda: second.heard[-1:] == ["+ late"])
        await until(lambda: second.requests.verbs == ["watch", "watch"])
        async with worker(cluster, path, namespaces=["a", "b"]) as third:
            await until(lambda: names(third.pods.lister.list()) == ["in-b", "late"])
            assert third.requests.verbs == []


async def test_a_durable_handler_needs_a_file_of_its_own(path: Path) -> None:
    cache = CacheFile(path, shared=True)
    async with running(cluster_with_pods("a"), path, cache=cache, setup=refuse_durable):
        pass


def refuse_durable(program: Program) -> None:
    with pytest.raises(UsageError, match="durable='audit' needs a file of its own"):
        program.pods.add_handler(program.handle, durable="audit")


async def test_an_object_that_a_transform_drops_is_deleted_for_followers(path: Path) -> None:
    def transform(obj: KubeObject) -> KubeObject | None:
        return None if obj.labels.get("value") == "hidden" else obj

    cluster = cluster_with_pods("a")
    async with (
        worker(cluster, path, transform=transform),
        worker(cluster, path, transform=transform) as second,
    ):
        label_pod(cluster, "a", "hidden")
        await until(lambda: second.heard == ["= a", "- a dropped"])
        label_pod(cluster, "a", "shown")
        await until(lambda: second.heard[-1:] == ["+ a"])


async def test_a_file_that_is_not_shared_is_used_by_one_process_only(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = cluster_with_pods("a")
    async with worker(cluster, path) as leader, running(cluster, path) as second:
        assert "is used by another process" in second.pods.health.cache_problem
        assert second.requests.verbs == ["watchlist"]
        assert leader.pods.health.cache_problem == ""
    assert len([each for each in caplog.records if "is used by another" in each.message]) == 1


async def test_followers_watch_objects_that_the_leader_no_longer_reads(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "ANNOUNCE_SECONDS", 0.2)
    cluster = cluster_with_pods("a")
    async with worker(cluster, path, namespace="other") as leader:
        async with leader.factory.use("pods", namespace="default") as pods:
            await pods.wait_synced(timeout=10)
            second = worker(cluster, path, namespace="default")
            program = await second.__aenter__()
            assert program.requests.verbs == []
        label_pod(cluster, "a", "1")
        await until(lambda: program.heard == ["= a", "~ a ->1"])
        assert program.requests.verbs == ["watch"], "from the last version that the leader had"
        assert "does not read the same objects" in program.pods.health.cache_problem
        await second.__aexit__(None, None, None)


async def test_followers_watch_a_namespace_that_the_leader_has_removed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "ANNOUNCE_SECONDS", 0.2)
    cluster = Cluster()
    for namespace in ("a", "b"):
        cluster.create("pods", {"metadata": {"name": f"in-{namespace}"}}, namespace=namespace)
    async with (
        worker(cluster, path, namespaces=["a", "b"]) as leader,
        worker(cluster, path, namespaces=["a", "b"]) as second,
    ):
        leader.pods.remove_namespace("b")
        await until(lambda: second.requests.verbs == ["watch"])
        cluster.create("pods", {"metadata": {"name": "late"}}, namespace="b")
        cluster.create("pods", {"metadata": {"name": "later"}}, namespace="a")
        await until(lambda: set(second.heard[2:]) == {"+ late", "+ later"})
        assert {each.namespace: each.state for each in second.pods.health.scopes} == {
            "a": "following",
            "b": "watching",
        }
