"""Roles on a real API server: namespaced ones, lists without watches, single objects, no user.

The server decides by Kubernetes' own rules, which `roles.go` reads from a file.
"""

from __future__ import annotations

import json
import shutil
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from aioinformer import (
    BackoffPolicy,
    Client,
    Resource,
    Scope,
    SharedInformer,
    SharedInformerFactory,
)
from aioinformer.errors import Forbidden, SyncTimeout, Unauthorized
from tests.apiserver.server.server_process import AdminClient, ApiServerProcess
from tests.promises.conftest import wait_until

pytestmark = pytest.mark.apiserver

WIDGETS = Resource("example.com", "v1", "widgets", "Widget", short_names=("wd",))
BACKOFF = BackoffPolicy(initial=0.05, maximum=0.5)
READ = ("list", "watch")


@dataclass
class Roles:
    """The rights of one user, in the file that the server reads for each request."""

    file: Path
    rules: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def grant(self, *verbs: str, namespace: str = "", names: tuple[str, ...] = ()) -> None:
        """Permit verbs on widgets, in one namespace or in all."""
        rule: dict[str, Any] = {"apiGroups": ["example.com"], "resources": ["widgets"]}
        rule |= {"verbs": verbs, "resourceNames": names}
        self.rules.append({"namespace": namespace, "rules": [rule]})
        self.write()

    def write(self) -> None:
        account = {"token": "the-token", "user": "reader", "roles": self.rules}
        temporary = self.file.with_suffix(".new")
        temporary.write_text(json.dumps([account]))
        temporary.replace(self.file)


@dataclass
class Server:
    process: ApiServerProcess
    roles: Roles

    def client(self, token: str = "the-token") -> Client:  # noqa: S107 - of this test's server
        context = ssl.create_default_context(cafile=self.process.ca_file)
        return Client(self.process.url, token=token, ssl=context)


@pytest.fixture
async def server(
    apiserver_binary: Path, data_with_widgets: Path, tmp_path: Path
) -> AsyncGenerator[Server]:
    """Run a server with a user without rights."""
    data = tmp_path / "apiserver"
    shutil.copytree(data_with_widgets, data, ignore=shutil.ignore_patterns("*.log"))
    roles = Roles(tmp_path / "roles.json")
    roles.write()
    process = ApiServerProcess(apiserver_binary, data, "--roles", str(roles.file))
    await process.start()
    try:
        yield Server(process, roles)
    finally:
        await process.kill()
        shutil.rmtree(data / "etcd")


@asynccontextmanager
async def writing(server: Server, *keys: str) -> AsyncGenerator[AdminClient]:
    """Create widgets by their keys, with all rights, and yield the client."""
    async with AdminClient(server.process) as admin:
        for key in keys:
            await create(admin, key)
        yield admin


async def create(admin: AdminClient, key: str) -> None:
    namespace, _, name = key.partition("/")
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}}
    await admin.create(body, namespace=namespace)


def keys(widgets: SharedInformer) -> list[str]:
    return sorted(map(str, widgets.lister.unsynced.keys()))


async def test_a_forbidden_namespace_is_named_and_does_not_stop_the_others(server: Server) -> None:
    server.roles.grant(*READ, namespace="a")
    async with (
        writing(server, "a/x", "b/x") as admin,
        server.client() as client,
        SharedInformerFactory(client, backoff=BACKOFF) as informers,
    ):
        widgets = informers.informer(WIDGETS, namespaces=["a", "b"])
        with pytest.raises(SyncTimeout, match="namespace b") as caught:
            await informers.wait_synced(2)
        assert 'User "reader" cannot' in str(caught.value)
        await create(admin, "a/y")
        await wait_until(lambda: keys(widgets) == ["a/x", "a/y"])
        refused = {each.namespace: each.error for each in widgets.health.scopes}
        assert refused["a"] is None
        assert isinstance(refused["b"], Forbidden)

        server.roles.grant(*READ, namespace="b")
        await informers.wait_synced(20)
        assert keys(widgets) == ["a/x", "a/y", "b/x"]


async def test_an_optional_namespace_delays_nothing(server: Server) -> None:
    server.roles.grant(*READ, namespace="a")
    async with (
        writing(server, "a/x", "b/x"),
        server.client() as client,
        SharedInformerFactory(client, backoff=BACKOFF) as informers,
    ):
        scopes = {"a": Scope(), "b": Scope(optional=True)}
        widgets = informers.informer(WIDGETS, namespaces=scopes)
        await informers.wait_synced(20)
        assert keys(widgets) == ["a/x"]


async def test_a_role_that_may_list_and_not_watch_is_polled(server: Server) -> None:
    server.roles.grant("list")
    async with (
        writing(server, "a/x") as admin,
        server.client() as client,
        SharedInformerFactory(client, backoff=BACKOFF, poll_interval=5) as informers,
    ):
        widgets = informers.informer(WIDGETS)
        await informers.wait_synced(20)
        await wait_until(lambda: widgets.health.state == "polling")
        assert isinstance(widgets.health.error, Forbidden)
        await create(admin, "a/y")
        await widgets.wait_until("a/y", lambda found: found is not None, timeout=20)


async def test_a_role_for_one_object_suffices_for_an_informer_of_that_object(
    server: Server,
) -> None:
    server.roles.grant(*READ, namespace="a", names=("x",))
    async with (
        writing(server, "a/x", "a/y") as admin,
        server.client() as client,
        SharedInformerFactory(client, namespace="a", backoff=BACKOFF) as informers,
    ):
        widgets = informers.informer(WIDGETS, fields="metadata.name=x")
        await informers.wait_synced(20)
        assert keys(widgets) == ["a/x"]
        await admin.delete("x", namespace="a")
        await widgets.wait_until("a/x", lambda found: found is None, timeout=10)


async def test_the_sync_timeout_of_an_unknown_token_names_the_401(server: Server) -> None:
    async with (
        server.client("another") as client,
        SharedInformerFactory(client, backoff=BACKOFF) as informers,
    ):
        widgets = informers.informer(WIDGETS)
        with pytest.raises(SyncTimeout, match="401 Unauthorized"):
            await informers.wait_synced(2)
        assert isinstance(widgets.health.error, Unauthorized)
