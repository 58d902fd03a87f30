"""Informers of several namespaces, over HTTP, by users with the rights of namespaced Roles."""

from __future__ import annotations

import json

import pytest

from aioinformer import Client, ObjectKey, Scope, SharedInformerFactory, labelled
from aioinformer.errors import Forbidden, SyncTimeout
from aioinformer.testing import ApiServer, Cluster, Features, PolicyRule, User
from tests.promises.conftest import FAST_BACKOFF, wait_until
from tests.promises.event_recorder import RecordingHandler, check_event_order, states

TOKEN = "ada-token"


def permit(*namespaces: str) -> list[PolicyRule]:
    """Return the rules of a Role for pods in each namespace."""
    return [
        PolicyRule(verbs=["list", "watch"], resources=["pods"], namespaces=[namespace])
        for namespace in namespaces
    ]


def user_of(server: ApiServer, *namespaces: str) -> User:
    return server.access.add_user("ada", token=TOKEN, rules=permit(*namespaces))


def put(server: ApiServer, *keys: str) -> None:
    for key in keys:
        namespace, _, name = key.partition("/")
        server.cluster.create("pods", {"metadata": {"name": name}}, namespace=namespace)


@pytest.mark.parametrize("watch_list", [True, False], ids=["WatchList", "LIST"])
async def test_namespaced_roles_suffice(watch_list: bool) -> None:
    async with ApiServer(Cluster(features=Features(watch_list=watch_list))) as server:
        user_of(server, "a", "b")
        put(server, "a/x", "b/x", "c/x")
        async with (
            Client(server.url, token=TOKEN) as client,
            SharedInformerFactory(client, backoff=FAST_BACKOFF) as informers,
        ):
            pods = informers.informer("pods", namespaces=["a", "b"])
            await informers.wait_synced(30)
            assert pods.health.strategy == ("watchlist" if watch_list else "list")
            put(server, "a/y", "b/y", "c/y")
            await wait_until(lambda: len(pods.lister) == 4)
            assert await pods.verify(contents=True)


async def test_a_later_role_completes_the_cache_and_a_revoked_role_does_not_empty_it(
    server: ApiServer,
) -> None:
    user = user_of(server, "a")
    put(server, "a/x", "b/x")
    async with (
        Client(server.url, token=TOKEN) as client,
        SharedInformerFactory(client, backoff=FAST_BACKOFF) as informers,
    ):
        pods = informers.informer("pods", namespaces=["a", "b"])
        handler = RecordingHandler(pods)
        pods.add_handler(handler)
        await wait_until(lambda: pods.lister.unsynced.get("a/x") is not None)
        await wait_until(lambda: any(each.error is not None for each in pods.health.scopes))
        with pytest.raises(SyncTimeout, match=r"namespace b: .*403 Forbidden: pods is forbidden"):
            await informers.wait_synced(0.3)
        user.rules.extend(permit("b"))
        await informers.wait_synced(30)
        assert set(pods.lister.keys()) == {ObjectKey("a", "x"), ObjectKey("b", "x")}
        # A watch that is refused right after its list would be a role that may list only.
        await wait_until(lambda: {each.state for each in pods.health.scopes} == {"watching"})
        user.rules[:] = permit("a")
        server.drop_connections()
        put(server, "a/y", "b/y")
        await wait_until(lambda: pods.lister.get("a/y") is not None)
        await wait_until(lambda: isinstance(pods.health.error, Forbidden))
        assert pods.lister.get("b/x") is not None
        assert pods.lister.get("b/y") is None
        user.rules.extend(permit("b"))
        await wait_until(lambda: pods.lister.get("b/y") is not None)
        await wait_until(lambda: check_event_order(handler.events) == states(pods.lister))


async def test_every_namespace_survives_a_restart_and_a_restore_from_a_backup(
    server: ApiServer,
) -> None:
    cluster = server.cluster
    put(server, "a/x", "b/x")
    backup = cluster.snapshot()
    async with (
        Client(server.url) as client,
        SharedInformerFactory(client, backoff=FAST_BACKOFF) as informers,
    ):
        pods = informers.informer("pods", namespaces={"a": Scope(), "b": Scope(optional=True)})
        handler = RecordingHandler(pods)
        pods.add_handler(handler)
        await informers.wait_synced(30)
        put(server, "a/y", "b/y", "a/z")
        cluster.delete("pods", "x", namespace="a")
        await wait_until(lambda: len(pods.lister) == 4)
        passed = cluster.resource_version
        await server.restart(state=backup)
        while cluster.resource_version <= passed:
            put(server, f"b/new-{cluster.resource_version}")
        cluster.compact()  # a watch from a version of the former life is answered with 410
        server.drop_connections()
        truth = {*cluster_keys(cluster, "a"), *cluster_keys(cluster, "b")}
        await wait_until(lambda: set(pods.lister.keys()) == truth)
        assert await pods.verify(contents=True)


def cluster_keys(cluster: Cluster, namespace: str) -> list[ObjectKey]:
    items = json.loads(cluster.list("pods", namespace=namespace))["items"]
    return [ObjectKey(namespace, item["metadata"]["name"]) for item in items]


async def test_namespaces_are_followed_over_http(server: ApiServer) -> None:
    for name, team in (("a", "shop"), ("b", "other")):
        metadata = {"name": name, "labels": {"team": team}}
        server.cluster.create("namespaces", {"metadata": metadata})
    put(server, "a/x", "b/x")
    async with (
        Client(server.url) as client,
        SharedInformerFactory(client, backoff=FAST_BACKOFF) as informers,
    ):
        pods = informers.informer("pods", namespaces=labelled("team=shop"))
        await informers.wait_synced(30)
        assert pods.lister.keys() == [ObjectKey("a", "x")]
        patch = {"metadata": {"labels": {"team": "shop"}}}
        server.cluster.merge_patch("namespaces", "b", patch)
        await wait_until(lambda: pods.lister.get("b/x") is not None)
        server.cluster.delete("namespaces", "a")
        await wait_until(lambda: pods.namespaces == ("b",) and len(pods.lister) == 1)
