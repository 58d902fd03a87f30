"""Impersonation by a kubeconfig's user, in the headers of every request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from aioinformer import Client
from aioinformer.errors import ConfigurationError, Forbidden
from aioinformer.testing import ApiServer, Cluster, Features, PolicyRule
from tests.client.kubeconfigs import (
    CANARY,
    connect,
    error_chain_text,
    load_error,
    make_kubeconfig,
    write_kubeconfig,
)
from tests.client.servers import http_server

ACTING = {
    "token": "abc",
    "as": "jane@example.com",
    "as-uid": "06f6",
    "as-groups": ["developers", "admins"],
    "as-user-extra": {"scopes": ["view", "edit"], "example.com/Team%": ["shop"]},
}
HEADERS = [
    ("Impersonate-User", "jane@example.com"),
    ("Impersonate-Uid", "06f6"),
    ("Impersonate-Group", "developers"),
    ("Impersonate-Group", "admins"),
    ("Impersonate-Extra-scopes", "view"),
    ("Impersonate-Extra-scopes", "edit"),
    ("Impersonate-Extra-example.com%2FTeam%25", "shop"),
]


class Recorder:
    """A server that notes the headers which say whom a request is from."""

    def __init__(self) -> None:
        self.received: list[list[tuple[str, str]]] = []

    async def answer(self, request: web.Request) -> web.Response:
        sent = request.headers.items()
        self.received.append([each for each in sent if each[0].lower().startswith("impersonate-")])
        return web.Response(text="pong")


@pytest.mark.parametrize(
    ("user", "headers"),
    [
        (ACTING, HEADERS),
        ({"token": "abc"}, []),
        ({"as": "jane"}, [("Impersonate-User", "jane")]),
    ],
    ids=["all", "none", "user"],
)
async def test_every_request_has_the_impersonation_headers_of_the_user(
    tmp_path: Path, user: dict[str, Any], headers: list[tuple[str, str]]
) -> None:
    recorder = Recorder()
    async with http_server(recorder.answer) as server:
        path = write_kubeconfig(tmp_path, make_kubeconfig(cluster={"server": server}, user=user))
        async with Client.connect(kubeconfig=path) as client:
            await client.get_raw("/version")
            await client.get_raw("/version")

    assert [sorted(each) for each in recorder.received] == [sorted(headers)] * 2


async def test_the_programs_own_headers_win(tmp_path: Path) -> None:
    recorder, own = Recorder(), {"impersonate-user": "joe"}
    async with http_server(recorder.answer) as server:
        path = write_kubeconfig(tmp_path, make_kubeconfig(cluster={"server": server}, user=ACTING))
        async with Client.connect(kubeconfig=path, headers=own) as client:
            await client.get_raw("/version")

    assert recorder.received == [[("impersonate-user", "joe")]]


@pytest.mark.parametrize(
    ("resource", "denied", "command"),
    [
        ("pods", 'User "jane@example.com" cannot list', "list pods -n web --as=jane@example.com"),
        ("secrets", 'User "jane@example.com" cannot list', "secrets -n web --as=jane@example.com"),
    ],
)
async def test_a_denied_request_names_the_impersonated_user(
    tmp_path: Path, resource: str, denied: str, command: str
) -> None:
    async with ApiServer(token="root", authorization="RBAC") as server:
        user = {"token": "root", "as": "jane@example.com"}
        path = write_kubeconfig(
            tmp_path, make_kubeconfig(cluster={"server": server.url}, user=user)
        )
        async with Client.connect(kubeconfig=path) as client:
            with pytest.raises(Forbidden) as caught:
                await client.api(resource, namespace="web").list()
    assert denied in str(caught.value)
    assert f"{command}`" in str(caught.value)


@pytest.mark.parametrize("resource", ["pods", "secrets"])
async def test_a_denied_extra_value_names_the_right_to_impersonate(resource: str) -> None:
    headers = {"Impersonate-User": "jane", "Impersonate-Extra-scopes": CANARY}
    cluster = Cluster(features=Features(minor=35))  # whose denial names one right
    async with ApiServer(cluster, authorization="RBAC") as server:
        rules = [PolicyRule(verbs=["impersonate"], resources=["users"])]
        server.access.add_user("ada", token="t", rules=rules)
        async with Client(server.url, token="t", headers=headers) as client:
            with pytest.raises(Forbidden) as caught:
                await client.api(resource, namespace="web").list()
    missing = "userextras.authentication.k8s.io"
    assert str(caught.value).endswith(
        f"a Role or ClusterRole must allow impersonate on {missing}/scopes: check with "
        f"`kubectl auth can-i impersonate {missing} --subresource=scopes --as=ada`"
    )
    assert CANARY not in error_chain_text(caught.value)


@pytest.mark.parametrize("key", ["as-groups", "as-uid", "as-user-extra"])
async def test_impersonated_groups_without_a_user_are_an_error(tmp_path: Path, key: str) -> None:
    path = write_kubeconfig(tmp_path, make_kubeconfig(user={key: ACTING[key]}))

    message = await load_error(path)

    assert f"{path}: context 'main': its user impersonates groups" in message
    assert "set `as:`" in message


@pytest.mark.parametrize(
    "user",
    [
        {"as": f"{CANARY}\r\nX: y"},
        {"as": "jane", "as-groups": [f"{CANARY}\nX: y"]},
        {"as": "jane", "as-user-extra": {"scopes": [f"{CANARY}\x1b"]}},
    ],
    ids=["a user", "a group", "an extra"],
)
async def test_a_value_that_cannot_be_a_header_is_an_error_that_does_not_quote_it(
    tmp_path: Path, user: dict[str, Any]
) -> None:
    path = write_kubeconfig(tmp_path, make_kubeconfig(user=user))

    with pytest.raises(ConfigurationError, match="which no header may contain") as caught:
        await connect(path).__aenter__()

    assert CANARY not in error_chain_text(caught.value)
