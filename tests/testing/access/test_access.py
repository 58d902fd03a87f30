"""Tests of users, rules and RBAC objects: who may send a request, and the text of each 403."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from aioinformer import Client, ObjectKey, SharedInformerFactory
from aioinformer.errors import Forbidden, NotRunning
from aioinformer.testing import ApiServer, Cluster, ClusterSource, PolicyRule, User

PODS = "/api/v1/namespaces/web/pods"
ADA = {"Authorization": "Bearer ada-token"}


async def send(
    server: ApiServer,
    path: str,
    headers: dict[str, str] | None = None,
    method: str = "GET",
    body: Any = None,
) -> tuple[int, str]:
    """Send a request; return the status and the message of an error."""
    async with (
        aiohttp.ClientSession() as http,
        http.request(method, server.url + path, headers=headers, json=body) as response,
    ):
        if response.content_type != "application/json":
            return response.status, await response.text()
        return response.status, (await response.json()).get("message", "")


def denied(verb: str, *, name: str = "", namespace: str = "web", user: str = "ada") -> str:
    shown = f' "{name}"' if name else ""
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    return (
        f'pods{shown} is forbidden: User "{user}" cannot {verb} resource "pods" in API group "" '
        f"{where}"
    )


async def test_a_user_may_do_only_the_requests_that_the_rules_allow() -> None:
    async with ApiServer() as server:
        rule = PolicyRule(verbs=["get", "list"], resources=["pods"], namespaces=["web"])
        server.access.add_user("ada", token="ada-token", rules=[rule])
        server.cluster.create("pods", {"metadata": {"name": "a", "namespace": "web"}})
        assert (await send(server, PODS, ADA))[0] == 200
        assert (await send(server, f"{PODS}/a", ADA))[0] == 200
        assert await send(server, f"{PODS}?watch=1", ADA) == (403, denied("watch"))
        assert await send(server, "/api/v1/pods", ADA) == (403, denied("list", namespace=""))
        assert await send(server, f"{PODS}/a", ADA, "DELETE") == (403, denied("delete", name="a"))
        assert await send(server, PODS, ADA, "DELETE") == (403, denied("deletecollection"))
        assert await send(server, PODS, ADA, "POST", {}) == (403, denied("create"))
        assert (await send(server, "/apis", ADA))[0] == 200
        assert (await send(server, "/api/v1/nopes", ADA))[0] == 403


async def test_requests_without_the_token_of_a_user_are_allowed() -> None:
    async with ApiServer() as server:
        server.access.add_user("ada", token="ada-token")
        assert (await send(server, PODS))[0] == 200
        assert (await send(server, PODS, ADA))[0] == 403


async def test_rules_can_be_taken_away_and_given_back() -> None:
    async with ApiServer() as server:
        ada = server.access.add_user("ada", token="ada-token")
        assert (await send(server, PODS, ADA))[0] == 403
        ada.rules.append(PolicyRule(verbs=["*"]))
        assert (await send(server, PODS, ADA))[0] == 200
        ada.rules.clear()
        assert (await send(server, PODS, ADA))[0] == 403


async def test_a_rule_for_a_subresource_or_a_name_allows_only_that_subresource_or_name() -> None:
    async with ApiServer() as server:
        rules = [
            PolicyRule(verbs=["patch"], resources=["deployments.apps/scale"]),
            PolicyRule(verbs=["get", "list"], resources=["po"], names=["a"]),
        ]
        server.access.add_user("ada", token="ada-token", rules=rules)
        path = "/apis/apps/v1/namespaces/web/deployments/d"
        merge = {**ADA, "Content-Type": "application/merge-patch+json"}
        assert (await send(server, f"{path}/scale", merge, "PATCH", {}))[0] == 404
        status, message = await send(server, path, merge, "PATCH", {})
        assert (status, message.partition(":")[0]) == (
            403,
            'deployments.apps "d" is forbidden',
        )
        assert (await send(server, f"{PODS}/a", ADA))[0] == 404
        assert (await send(server, f"{PODS}/b", ADA))[0] == 403
        assert (await send(server, f"{PODS}?fieldSelector=metadata.name%3Da", ADA))[0] == 200
        assert (await send(server, PODS, ADA))[0] == 403


async def test_an_apply_that_creates_an_object_needs_the_right_to_create_it() -> None:
    config = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "web"}}
    async with ApiServer() as server:
        ada = server.access.add_user(
            "ada", token="ada-token", rules=[PolicyRule(verbs=["patch"], resources=["pods"])]
        )
        async with Client(server.url, token="ada-token") as client:
            with pytest.raises(Forbidden) as caught:
                await client.api("pods").apply(config, field_manager="m")
            assert caught.value.status.message == denied("create", name="a")
            assert server.cluster.find_object("pods", "a", namespace="web") is None
            ada.rules.append(PolicyRule(verbs=["create"], resources=["pods"]))
            assert (await client.api("pods").apply(config, field_manager="m")).name == "a"
            ada.rules.pop()
            changed = {**config, "spec": {"x": 1}}
            assert (await client.api("pods").apply(changed, field_manager="m"))["spec"] == {"x": 1}


async def test_a_source_without_sockets_needs_the_right_to_create_what_it_applies() -> None:
    ada = User("ada", rules=[PolicyRule(verbs=["patch"], resources=["pods"])])
    source = ClusterSource(Cluster(), user=ada)
    with pytest.raises(Forbidden, match='User "ada" cannot create resource "pods"'):
        await source.api("pods").apply(
            {"metadata": {"name": "a", "namespace": "b"}}, field_manager="m"
        )


def test_a_text_in_the_place_of_a_collection_is_an_error() -> None:
    with pytest.raises(TypeError, match=r"verbs of a PolicyRule .* such as \['list'\]"):
        PolicyRule(verbs="list")


async def test_roles_and_bindings_of_the_cluster_decide_with_rbac(tmp_path: Path) -> None:
    async with ApiServer(authorization="RBAC") as server:
        cluster = server.cluster
        cluster.create("serviceaccounts", {"metadata": {"name": "robot", "namespace": "web"}})
        rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]
        cluster.create("roles", {"metadata": {"name": "r", "namespace": "web"}, "rules": rules})
        binding = {
            "metadata": {"name": "b", "namespace": "web"},
            "subjects": [{"kind": "ServiceAccount", "name": "robot"}],
            "roleRef": {"kind": "Role", "name": "r"},
        }
        server.access.add_user("root", token="root-token", groups=["system:masters"])
        root = {"Authorization": "Bearer root-token"}
        url = "/api/v1/namespaces/web/serviceaccounts/robot/token"
        async with (
            aiohttp.ClientSession(server.url, headers=root) as http,
            http.post(url, json={}) as response,
        ):
            assert response.status == 201
            token = (await response.json())["status"]["token"]
        robot = {"Authorization": f"Bearer {token}"}
        name = "system:serviceaccount:web:robot"
        assert await send(server, PODS, robot) == (403, denied("list", user=name))
        cluster.create("rolebindings", binding)
        assert (await send(server, PODS, robot))[0] == 200
        assert (await send(server, "/api/v1/pods", robot))[0] == 403
        cluster_binding = {
            "metadata": {"name": "b"},
            "subjects": [{"kind": "Group", "name": "system:serviceaccounts"}],
            "roleRef": {"kind": "ClusterRole", "name": "r"},
        }
        cluster.create("clusterroles", {"metadata": {"name": "r"}, "rules": rules})
        cluster.create("clusterrolebindings", cluster_binding)
        assert (await send(server, "/api/v1/pods", robot))[0] == 200
        assert (await send(server, "/api/v1/secrets", robot))[0] == 403
        cluster.delete("serviceaccounts", "robot", namespace="web")
        assert (await send(server, PODS, robot))[0] == 401


async def test_anonymous_requests_see_public_documents_alone_with_rbac() -> None:
    async with ApiServer(authorization="RBAC") as server:
        assert (await send(server, "/healthz"))[0] == 200
        assert (await send(server, "/version"))[0] == 200
        message = 'forbidden: User "system:anonymous" cannot get path "/apis"'
        assert await send(server, "/apis") == (403, message)
        assert await send(server, PODS) == (403, denied("list", user="system:anonymous"))
        assert (await send(server, PODS, {"Authorization": "Bearer nope"}))[0] == 401


async def test_a_token_of_a_service_account_expires() -> None:
    now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    cluster = Cluster(clock=lambda: now)
    cluster.create("serviceaccounts", {"metadata": {"name": "robot", "namespace": "web"}})
    async with ApiServer(cluster, authorization="RBAC") as server:
        server.access.add_user("root", token="root-token", groups=["system:masters"])
        root = {"Authorization": "Bearer root-token"}
        url = "/api/v1/namespaces/web/serviceaccounts/robot/token"
        async with aiohttp.ClientSession(server.url, headers=root) as http:
            body = {"spec": {"expirationSeconds": 600}}
            async with http.post(url, json=body) as response:
                token = (await response.json())["status"]["token"]
            async with http.post(url, json={"spec": {"expirationSeconds": 599}}) as response:
                assert response.status == 422
        robot = {"Authorization": f"Bearer {token}"}
        assert (await send(server, PODS, robot))[0] == 403
        now += dt.timedelta(seconds=601)
        assert (await send(server, PODS, robot))[0] == 401
        assert (await send(server, PODS, {"Authorization": f"Bearer x{token}"}))[0] == 401


async def test_a_kubeconfig_of_a_user_has_the_token_of_the_user(tmp_path: Path) -> None:
    async with ApiServer(token="admin-token") as server:
        rule = PolicyRule(verbs=["list", "watch"], resources=["pods"])
        server.access.add_user("ada", token="ada-token", rules=[rule])
        path = server.kubeconfig(str(tmp_path / "ada"), user="ada")
        assert path == tmp_path / "ada"
        config = yaml.safe_load(path.read_text())
        assert config["users"][0]["user"] == {"token": "ada-token"}
        with pytest.raises(ValueError, match="no user is called 'bob'; the users are: admin, ada"):
            server.kubeconfig(tmp_path / "bob", user="bob")
        server.cluster.create("pods", {"metadata": {"name": "a"}})
        async with Client.connect(kubeconfig=path) as client:
            async with SharedInformerFactory(client) as informers:
                pods = informers.informer("pods")
                await pods.wait_synced(timeout=30)
                assert pods.lister.get("default/a") is not None
            with pytest.raises(Forbidden, match='User "ada" cannot get resource "pods"'):
                await client.api("pods").get(ObjectKey("default", "a"))


async def test_a_source_without_sockets_has_a_user_too() -> None:
    cluster = Cluster()
    cluster.create("pods", {"metadata": {"name": "a"}})
    ada = User("ada", rules=[PolicyRule(verbs=["list"], resources=["pods"])])
    source = ClusterSource(cluster, user=ada)
    with pytest.raises(Forbidden, match='User "ada" cannot get resource "pods"'):
        await source.api("pods").get("default/a")
    ada.rules.append(PolicyRule(verbs=["get"], resources=["pods"]))
    assert (await source.api("pods").get("default/a")).name == "a"


def test_a_user_needs_a_name_and_a_token() -> None:
    with pytest.raises(ValueError, match="not empty"):
        ApiServer().access.add_user("ada", token="")
    with pytest.raises(NotRunning):
        ApiServer().kubeconfig("nowhere")


def test_no_token_is_shown() -> None:
    access = ApiServer(token="secret-1").access
    access.add_user("ada", token="secret-2")
    assert "secret" not in repr(access)
