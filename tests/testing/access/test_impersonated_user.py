"""Tests of impersonation: who may send a request in the name of whom, and with whose rights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from aioinformer import Client
from aioinformer.errors import Forbidden
from aioinformer.testing import ApiServer, Cluster, Features, PolicyRule

PODS = "/api/v1/namespaces/web/pods"
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


async def send(
    server: ApiServer, token: str, *headers: tuple[str, str], path: str = PODS
) -> tuple[int, str]:
    """Send a GET with the token of a user; return the status and the message of an error."""
    sent = [("Authorization", f"Bearer {token}"), *headers]
    async with (
        aiohttp.ClientSession() as http,
        http.get(server.url + path, headers=sent) as response,
    ):
        return response.status, (await response.json()).get("message", "")


def impersonated(name: str, *groups: str) -> list[tuple[str, str]]:
    return [("Impersonate-User", name), *(("Impersonate-Group", group) for group in groups)]


async def review(server: ApiServer, token: str, *headers: tuple[str, str]) -> dict[str, Any]:
    """Return the user whom the server sees."""
    sent = [("Authorization", f"Bearer {token}"), *headers]
    async with (
        aiohttp.ClientSession() as http,
        http.post(server.url + REVIEWS, headers=sent, json={}) as response,
    ):
        assert response.status == 201, await response.text()
        user: dict[str, Any] = (await response.json())["status"]["userInfo"]
        return user


def refused(verb: str, resource: str = "pods", *, sender: str = "ada", name: str = "") -> str:
    shown = f' "{name}"' if name else ""
    where = 'in the namespace "web"' if resource == "pods" else "at the cluster scope"
    return (
        f'{resource}{shown} is forbidden: User "{sender}" cannot {verb} resource "{resource}" in '
        f'API group "" {where}'
    )


async def test_the_administrator_sends_requests_with_the_rights_of_another_user() -> None:
    async with ApiServer(token="root", authorization="RBAC") as server:
        bob = impersonated("bob")
        assert await send(server, "root", *bob) == (403, refused("list", sender="bob"))
        assert (await send(server, "root", *impersonated("bob", "system:masters")))[0] == 200
        user = server.access.add_user("bob", token="bob-token")
        user.rules.append(PolicyRule(verbs=["list"], resources=["pods"]))
        assert (await send(server, "root", *bob))[0] == 200
        assert (await send(server, "root"))[0] == 200


async def test_bindings_give_rights_to_impersonated_users_and_groups() -> None:
    async with ApiServer(token="root", authorization="RBAC") as server:
        rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
        server.cluster.create("clusterroles", {"metadata": {"name": "r"}, "rules": rules})
        binding = {
            "metadata": {"name": "b"},
            "subjects": [{"kind": "Group", "name": "devs"}],
            "roleRef": {"kind": "ClusterRole", "name": "r"},
        }
        server.cluster.create("clusterrolebindings", binding)
        assert (await send(server, "root", *impersonated("bob")))[0] == 403
        assert (await send(server, "root", *impersonated("bob", "ops", "devs")))[0] == 200


async def test_a_user_without_the_right_to_impersonate_is_refused() -> None:
    async with ApiServer(authorization="RBAC") as server:
        ada = server.access.add_user("ada", token="t")
        ada.rules.append(PolicyRule(verbs=["list"], resources=["pods"]))
        assert (await send(server, "t"))[0] == 200
        expected = (403, refused("impersonate-on:user-info:list"))
        assert await send(server, "t", *impersonated("bob")) == expected


async def test_an_older_server_names_the_right_that_is_missing() -> None:
    cluster = Cluster(features=Features(minor=35))
    async with ApiServer(cluster, authorization="RBAC") as server:
        ada = server.access.add_user("ada", token="t")
        expected = refused("impersonate", "users", name="bob")
        assert await send(server, "t", *impersonated("bob", "devs")) == (403, expected)
        ada.rules.append(PolicyRule(verbs=["impersonate"], resources=["users"]))
        expected = refused("impersonate", "groups", name="devs")
        assert await send(server, "t", *impersonated("bob", "devs")) == (403, expected)
        expected = refused("list", sender="bob")
        assert await send(server, "t", *impersonated("bob")) == (403, expected)


async def test_a_user_impersonates_by_the_right_for_one_verb_alone() -> None:
    async with ApiServer(authorization="RBAC") as server:
        rules = [
            PolicyRule(verbs=["impersonate-on:user-info:list"], resources=["pods"]),
            PolicyRule(verbs=["impersonate:user-info"], resources=["users"], names=["bob"]),
        ]
        server.access.add_user("ada", token="t", rules=rules)
        rule = PolicyRule(verbs=["*"], resources=["pods"])
        server.access.add_user("bob", token="b", rules=[rule])
        assert (await send(server, "t", *impersonated("bob")))[0] == 200
        assert (await send(server, "t", *impersonated("eve")))[0] == 403
        assert (await send(server, "t", *impersonated("bob"), path=f"{PODS}/a"))[0] == 403


async def test_an_impersonated_user_has_the_groups_the_uid_and_the_extra_values() -> None:
    async with ApiServer(token="root") as server:
        headers = [
            *impersonated("bob", "devs"),
            ("Impersonate-Uid", "5"),
            ("Impersonate-Extra-Example.com%2FTeam", "a"),
            ("Impersonate-Extra-Example.com%2FTeam", "b"),
        ]
        assert await review(server, "root", *headers) == {
            "username": "bob",
            "uid": "5",
            "groups": ["devs", "system:authenticated"],
            "extra": {"example.com/team": ["a", "b"]},
        }


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        (
            "system:serviceaccount:web:robot",
            ["system:serviceaccounts", "system:serviceaccounts:web", "system:authenticated"],
        ),
        ("system:node:n1", ["system:nodes", "system:authenticated"]),
        ("system:anonymous", ["system:unauthenticated"]),
    ],
)
async def test_an_impersonated_user_has_the_groups_of_the_name(
    name: str, groups: list[str]
) -> None:
    async with ApiServer(token="root") as server:
        user = await review(server, "root", ("Impersonate-User", name))
        assert user == {"username": name, "groups": groups}


async def test_an_impersonation_of_groups_without_a_user_is_a_bad_request() -> None:
    async with ApiServer(token="root") as server:
        for header in ("Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-a"):
            status, message = await send(server, "root", (header, "x"))
            assert status == 400
            assert message.endswith("without impersonating a user name")


async def test_the_user_of_a_kubeconfig_is_impersonated(tmp_path: Path) -> None:
    async with ApiServer(token="root", authorization="RBAC") as server:
        path = server.kubeconfig(tmp_path / "config")
        config = yaml.safe_load(path.read_text())
        config["users"][0]["user"]["as"] = "bob"
        path.write_text(yaml.safe_dump(config))
        async with Client.connect(kubeconfig=path) as client:
            with pytest.raises(Forbidden, match=r'User "bob" cannot get'):
                await client.api("pods").get("web/a")
