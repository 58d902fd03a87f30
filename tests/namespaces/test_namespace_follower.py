"""Namespaces that are followed through an informer of namespaces."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer import KubeObject, Scope, SharedInformerFactory, labelled
from aioinformer._core.selectors.predicates import ObjectPredicate
from aioinformer.errors import SyncTimeout
from aioinformer.namespaces.namespace_follower import NamespaceFollower
from aioinformer.namespaces.scoped_source import FollowedNamespaces
from aioinformer.testing import Cluster, ClusterSource
from tests.namespaces.refusing_source import RefusingSource
from tests.namespaces.test_scope_set import cached, put, take
from tests.runtime.informers import FAST_BACKOFF, running_in_background, running_informer
from tests.runtime.scripted_source import wait_until

SHOP = labelled("team=shop")


def create_namespace(cluster: Cluster, name: str, team: str = "shop") -> None:
    cluster.create("namespaces", {"metadata": {"name": name, "labels": {"team": team}}})


def move_namespace(cluster: Cluster, name: str, team: str) -> None:
    cluster.merge_patch("namespaces", name, {"metadata": {"labels": {"team": team}}})


def cluster_of(**teams: str) -> Cluster:
    """Return a cluster with these namespaces, and a pod in each of them."""
    cluster = Cluster()
    for name, team in teams.items():
        create_namespace(cluster, name, team)
        put(cluster, f"{name}/x")
    return cluster


async def test_the_namespaces_that_match_are_read_and_all_are_waited_for() -> None:
    source = RefusingSource(cluster_of(a="shop", b="shop", c="other"), refused={"b"})
    async with SharedInformerFactory(source, backoff=FAST_BACKOFF) as informers:
        pods = informers.informer("pods", namespaces=SHOP)
        assert pods.name == "pods in namespaces labelled('team=shop')"
        await wait_until(lambda: "b" in {namespace for namespace, _ in source.requests})
        with pytest.raises(SyncTimeout, match="namespace b"):
            await informers.wait_synced(0.1)
        source.refused.clear()
        await informers.wait_synced(30)
        assert pods.namespaces == ("a", "b")
        assert cached(pods) == ["a/x", "b/x"]
        assert {namespace for namespace, _ in source.requests} == {"", "a", "b"}


async def test_a_namespace_joins_and_leaves_with_its_labels() -> None:
    cluster = cluster_of(a="shop", b="other")
    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        pods = informers.informer("pods", namespaces=SHOP, labels="app=shop")
        await informers.wait_synced(30)
        put(cluster, "b/tool", app="tool")
        async with pods.events() as events:
            assert await take(events, 1) == ["= a/x"]
            move_namespace(cluster, "b", "shop")
            assert await take(events, 1) == ["= b/x"]
            move_namespace(cluster, "a", "other")
            assert await take(events, 1) == ["- a/x scope_removed"]
            create_namespace(cluster, "c")
            put(cluster, "c/x")
            [joined] = await take(events, 1)
            assert joined in ("= c/x", "+ c/x"), "it may be listed or watched"
        assert pods.namespaces == ("b", "c")
        assert pods.synced


async def test_a_namespace_that_is_deleted_and_created_again_is_listed_again() -> None:
    source = RefusingSource(cluster_of(a="shop"))
    async with SharedInformerFactory(source) as informers:
        pods = informers.informer("pods", namespaces=SHOP)
        await informers.wait_synced(30)
        async with pods.events() as events:
            assert await take(events, 1) == ["= a/x"]
            source.cluster.delete("namespaces", "a")
            create_namespace(source.cluster, "a")
            # The cluster deletes no pods with their namespace, so the same pod is read again.
            assert await take(events, 2) == ["- a/x scope_removed", "= a/x"]
        assert len(source.sent("a")) == 2
        assert pods.namespaces == ("a",)
        assert await pods.verify(contents=True)


async def test_an_informer_without_matching_namespaces_is_synced_and_empty() -> None:
    async with SharedInformerFactory(ClusterSource(cluster_of(a="other"))) as informers:
        pods = informers.informer("pods", namespaces=SHOP)
        await informers.wait_synced(30)
        assert pods.namespaces == ()


async def test_the_sync_timeout_names_a_forbidden_list_of_namespaces() -> None:
    source = RefusingSource(cluster_of(a="shop"), refused={""})
    async with SharedInformerFactory(source, backoff=FAST_BACKOFF) as informers:
        pods = informers.informer("pods", namespaces=SHOP)
        await wait_until(lambda: pods.health.error is not None)
        with pytest.raises(SyncTimeout, match="namespaces is forbidden"):
            await pods.wait_synced(0.001)
        assert pods.health.error is not None


async def test_followed_namespaces_can_be_optional() -> None:
    source = RefusingSource(cluster_of(a="shop", b="shop"), refused={"b"})
    async with SharedInformerFactory(source, backoff=FAST_BACKOFF) as informers:
        pods = informers.informer("pods", namespaces={SHOP: Scope(optional=True)})
        await informers.wait_synced(30)
        assert pods.namespaces == ("a", "b")
        assert cached(pods) == ["a/x"]
        assert pods.health.state == "watching"
        assert [each.optional for each in pods.health.scopes] == [True, True]
        create_namespace(source.cluster, "c")
        put(source.cluster, "c/x")
        await pods.wait_until("c/x", lambda pod: pod is not None, timeout=10)
        source.refused.clear()
        await pods.wait_until("b/x", lambda pod: pod is not None, timeout=10)


async def test_equal_predicates_share_an_informer_and_its_informer_of_namespaces() -> None:
    async with SharedInformerFactory(ClusterSource(Cluster())) as informers:
        pods = informers.informer("pods", namespaces=SHOP)
        assert informers.informer("pods", namespaces=labelled({"team": "shop"})) is pods
        services = informers.informer("services", namespaces=SHOP)
        assert services is not pods
        assert [each.name for each in informers].count("namespaces") == 1


async def test_a_predicate_that_raises_excludes_the_namespace() -> None:
    def raising(obj: KubeObject) -> bool:
        if obj.name == "b":
            raise ValueError("no")
        return True

    cluster = cluster_of(a="shop", b="shop", c="shop")
    async with SharedInformerFactory(ClusterSource(cluster)) as informers:
        pods = informers.informer("pods", namespaces=ObjectPredicate(raising))
        await informers.wait_synced(30)
        assert pods.namespaces == ("a", "c")


class Recorder:
    """The namespaces of an informer, as a list of changes."""

    def __init__(self) -> None:
        self.changes: list[str] = []
        self.namespaces: tuple[str, ...] = ()

    def add(self, namespace: str, scope: Scope) -> None:
        assert scope == Scope(labels="app=shop")
        self.changes.append(f"+{namespace}")

    def remove(self, namespace: str) -> None:
        self.changes.append(f"-{namespace}")

    def complete(self) -> None:
        self.changes.append("complete")


async def test_the_follower_adds_and_removes_only_changed_namespaces() -> None:
    cluster = cluster_of(a="shop", b="other")
    recorder = Recorder()
    informer = SharedInformerFactory(ClusterSource(cluster)).informer("namespaces")
    async with running_informer(informer):
        scope = Scope(labels="app=shop")
        follower = NamespaceFollower(FollowedNamespaces(informer, SHOP, scope), recorder)
        async with running_in_background(follower.run()):
            await wait_until(lambda: recorder.changes == ["+a", "complete"])
            cluster.merge_patch("namespaces", "a", {"metadata": {"labels": {"x": "y"}}})
            cluster.delete("namespaces", "b")
            cluster.delete("namespaces", "a")
            create_namespace(cluster, "a")
            await wait_until(lambda: len(recorder.changes) == 4)
            await asyncio.sleep(0)
            assert recorder.changes == ["+a", "complete", "-a", "+a"]
