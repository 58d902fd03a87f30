"""Users with few rights, on the embedded server beside the real one: the same answers.

The real server reads the rights of ``ada`` from a file; its requests without a token are those of
a member of ``system:masters``, who has a token on the embedded server.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest

from aioinformer.testing import Features, PolicyRule, User
from tests.apiserver.fidelity.server_pair import (
    IN_DEFAULT,
    ServerPair,
    normalize_line,
    server_pair,
)
from tests.apiserver.fidelity.write_requests import APPLY, JSON, MERGE, widget
from tests.apiserver.server.server_process import ApiServerProcess

pytestmark = pytest.mark.apiserver

ADA, ROOT = "ada", "root"
WIDGETS = ("example.com", "widgets")


class Sent(NamedTuple):
    """A request of a user."""

    user: str
    method: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    body: str = ""
    kind: str = JSON


def get(user: str, *headers: str, path: str = f"{IN_DEFAULT}/a") -> Sent:
    """Return a GET with headers such as ``User: bob``, whose names begin with ``Impersonate-``."""
    parts = [header.partition(": ") for header in headers]
    named = tuple((f"Impersonate-{name}", value) for name, _, value in parts)
    return Sent(user, "GET", path, named)


def apply(user: str, name: str, query: str = "") -> Sent:
    path = f"{IN_DEFAULT}/{name}?fieldManager=m{query}"
    return Sent(user, "PATCH", path, (), widget(name), APPLY)


@dataclass
class Users:
    """Both servers, and the rights of ada on both."""

    pair: ServerPair
    file: Path
    ada: User

    def grant(self, *rules: tuple[str, str, str]) -> None:
        """Replace the rights of ada by rules: a verb, a group and a resource."""
        self.ada.rules[:] = [PolicyRule(verbs=[verb], resources=[name]) for verb, _, name in rules]
        written: list[dict[str, Any]] = [
            {"verbs": [verb], "apiGroups": [group], "resources": [name]}
            for verb, group, name in rules
        ]
        account = {"token": ADA, "user": ADA, "roles": [{"rules": written}]}
        write_accounts(self.file, account)

    async def answers(self, sent: Sent) -> tuple[tuple[int, str], tuple[int, str]]:
        """Return the answers of the real server and of the embedded one."""
        real, embedded = self.pair.both
        tokens = {} if sent.user == ROOT else {"Authorization": f"Bearer {sent.user}"}
        return (
            await send(real.http, sent, tokens),
            await send(embedded.http, sent, {"Authorization": f"Bearer {sent.user}"}),
        )


def write_accounts(file: Path, *accounts: Mapping[str, Any]) -> None:
    temporary = file.with_suffix(".new")
    temporary.write_text(json.dumps(accounts))
    temporary.replace(file)


async def send(
    http: aiohttp.ClientSession, sent: Sent, token: Mapping[str, str]
) -> tuple[int, str]:
    kind = {"Content-Type": sent.kind} if sent.body else {}
    headers = [*sent.headers, *token.items(), *kind.items()]
    async with http.request(sent.method, sent.path, data=sent.body, headers=headers) as response:
        return response.status, normalize_line(await response.text())


@pytest.fixture
async def users(
    apiserver_binary: Path, data_with_widgets: Path, tmp_path: Path
) -> AsyncIterator[Users]:
    data, file = tmp_path / "apiserver", tmp_path / "roles.json"
    shutil.copytree(data_with_widgets, data, ignore=shutil.ignore_patterns("*.log"))
    write_accounts(file)
    process = ApiServerProcess(apiserver_binary, data, "--roles", str(file))
    await process.start()
    features = Features(minor=37, garbage_collection=False)
    try:
        async with server_pair(process, features, authorization="RBAC") as pair:
            ada = pair.access.add_user(ADA, token=ADA)
            pair.access.add_user("test", token=ROOT, groups=["system:masters"])
            users = Users(pair, file, ada)
            users.grant()
            await users.answers(Sent(ROOT, "POST", IN_DEFAULT, (), widget("a")))
            yield users
    finally:
        await process.kill()
        shutil.rmtree(data / "etcd")


async def check(users: Users, *requests: Sent) -> list[int]:
    """Compare the answers to requests; return their codes."""
    found = [(sent, *await users.answers(sent)) for sent in requests]
    assert [each for each in found if each[1] != each[2]] == []
    return [real[0] for _, real, _ in found]


async def test_an_apply_needs_the_right_to_create_as_on_the_real_server(users: Users) -> None:
    users.grant(("patch", *WIDGETS))
    merge = Sent(ADA, "PATCH", f"{IN_DEFAULT}/b", (), "{}", MERGE)
    sent = (apply(ADA, "a"), apply(ADA, "b"), apply(ADA, "b", "&dryRun=All"), merge)
    assert await check(users, *sent) == [200, 403, 403, 404]
    users.grant(("patch", *WIDGETS), ("create", *WIDGETS))
    assert await check(users, *sent) == [200, 201, 200, 200]


def impersonations(user: str, name: str) -> tuple[Sent, ...]:
    """Return requests in the name of a user, of a service account, of a node and of nobody."""
    account = f"User: system:serviceaccount:web:{name}"
    return (
        get(user, f"User: {name}"),
        get(user, f"User: {name}", "Group: devs", "Group: ops"),
        get(user, f"User: {name}", "Uid: 5"),
        get(user, f"User: {name}", "Extra-Team%2FName: x"),
        get(user, f"User: {name}", "Group: system:masters"),
        get(user, account),
        get(user, account, "Group: devs"),
        get(user, f"User: system:node:{name}"),
        get(user, "User: system:anonymous"),
        get(user, f"User: {name}", path=IN_DEFAULT),
    )


async def test_a_user_without_rights_impersonates_nobody_as_on_the_real_server(
    users: Users,
) -> None:
    assert {*await check(users, *impersonations(ADA, "bob"))} == {403}


async def test_an_impersonated_user_has_the_own_rights_as_on_the_real_server(users: Users) -> None:
    codes = await check(users, *impersonations(ROOT, "bob"))
    assert codes == [403, 403, 403, 403, 200, 403, 403, 403, 403, 403]
    users.grant(("get", *WIDGETS))
    assert await check(users, get(ROOT, "User: ada"), get(ROOT, "User: ada", "Uid: 5")) == [200] * 2


@pytest.mark.parametrize(
    "rules",
    [
        [("impersonate", "", "users")],
        [("impersonate", "", "users"), ("impersonate", "", "groups")],
        [("impersonate", "", "serviceaccounts")],
        [("impersonate", "", "users"), ("impersonate", "authentication.k8s.io", "uids")],
        [("impersonate-on:user-info:get", *WIDGETS)],
        [
            ("impersonate-on:user-info:get", *WIDGETS),
            ("impersonate:user-info", "authentication.k8s.io", "users"),
        ],
        [
            ("impersonate-on:serviceaccount:get", *WIDGETS),
            ("impersonate:serviceaccount", "authentication.k8s.io", "serviceaccounts"),
        ],
        [("get", *WIDGETS)],
    ],
    ids=str,
)
async def test_a_user_impersonates_by_the_same_rights_as_on_the_real_server(
    users: Users, rules: list[tuple[str, str, str]]
) -> None:
    """After a success, the real server's refusals name the rights that were used then."""
    users.grant(*rules)
    found = [(sent, *await users.answers(sent)) for sent in impersonations(ADA, "bob")]
    assert [each for each in found if each[1][0] != each[2][0]] == []


@pytest.mark.parametrize("header", ["Group: devs", "Uid: 5", "Extra-a: b"])
async def test_an_impersonation_without_a_user_is_rejected_as_on_the_real_server(
    users: Users, header: str
) -> None:
    """The text of the real server quotes a Go value."""
    real, ours = await users.answers(get(ROOT, header))
    assert real[0] == ours[0] == 400
    for _, text in (real, ours):
        assert '"reason":"BadRequest"' in text
        assert "without impersonating a user name" in text
