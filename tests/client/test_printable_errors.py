"""Texts of servers, plugins and files that contain control characters, in errors and logs."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from aioinformer import Client
from aioinformer.errors import FetchError, InformerError
from tests.client.discovery_servers import DocumentServer, client_of
from tests.client.fake_exec_plugin import FakePlugin
from tests.client.kubeconfigs import connect, make_kubeconfig, write_kubeconfig
from tests.client.servers import http_server

ODD = "a\n2026-01-01 ERROR forged\r\x1b[31m\u2028\u202e\x85b"
LONG = ODD * 300


def check(*texts: object, limit: int = 5000) -> None:
    for text in map(str, texts):
        assert text.isprintable(), text
        assert len(text) <= limit


@pytest.mark.parametrize("change", ["context", "cluster", "user", "server", "exec", "current"])
async def test_the_names_in_a_kubeconfig_forge_no_line(tmp_path: Path, change: str) -> None:
    content = make_kubeconfig(name="main" if change in ("server", "exec") else ODD)
    match change:
        case "context":
            content["current-context"] = "other"
        case "cluster":
            content["clusters"] = []
        case "user":
            content["users"] = []
        case "server":
            content["clusters"][0]["cluster"]["server"] = ODD
        case "exec":
            content["users"][0]["user"] = {"exec": {"command": ODD, "apiVersion": ODD}}
        case _:
            content["contexts"] = []
    client = connect(write_kubeconfig(tmp_path, content))
    with pytest.raises(InformerError) as caught:
        await client.__aenter__()
    check(caught.value, repr(client))


async def test_the_name_of_a_context_forges_no_line_of_an_error(tmp_path: Path) -> None:
    path = write_kubeconfig(
        tmp_path, make_kubeconfig(name=ODD, cluster={"server": "http://[::1]:1"})
    )
    async with connect(path) as client:
        with pytest.raises(FetchError) as caught:
            await client.api("pods", namespace="web").get("a")
        check(caught.value, repr(client))


@pytest.mark.parametrize("odd", [ODD, LONG])
async def test_the_words_of_an_exec_plugin_forge_no_line(tmp_path: Path, odd: str) -> None:
    (tmp_path / "words").write_text(odd)
    fake = FakePlugin(tmp_path)
    fake.write_script(f"cat {tmp_path / 'words'} >&2; exit 1")
    client = connect(write_kubeconfig(tmp_path, make_kubeconfig(name=ODD, user=fake.user())))
    with pytest.raises(InformerError) as caught:
        await client.__aenter__()
    check(caught.value, repr(client))


@pytest.mark.parametrize("odd", [ODD, LONG])
async def test_the_names_in_a_discovery_document_forge_no_line(
    odd: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    resource = {
        "resource": "widgets",
        "responseKind": {"group": odd, "version": odd, "kind": odd},
        "scope": "Cluster",
        "singularResource": odd,
        "verbs": [odd],
        "shortNames": [odd],
    }
    versions: list[dict[str, Any]] = [
        {"version": "v1", "resources": [resource, {**resource, "resource": odd}]},
        {"version": odd, "resources": [resource]},
    ]
    document = {
        "kind": "APIGroupDiscoveryList",
        "items": [
            {"metadata": {"name": "example.com"}, "versions": versions},
            {"metadata": {"name": odd}, "versions": versions},
        ],
    }
    served = {"/api": msgspec.json.encode(document), "/apis": msgspec.json.encode(document)}
    for name in ("widgets", "nothing", "widget", odd):
        async with client_of(DocumentServer(served)) as client:
            with pytest.raises(InformerError) as caught:
                await client.resource(name)
        check(caught.value, limit=100_000)
    check(*(record.getMessage() for record in caplog.records), limit=100_000)


ANSWERS: dict[str, tuple[int, dict[str, str], bytes]] = {
    "text": (500, {"Content-Type": "text/plain"}, LONG.encode()),
    "page": (404, {"Content-Type": "text/html"}, LONG.encode()),
    "other": (503, {"Content-Type": "x/\x85y"}, LONG.encode()),
    "wait": (429, {"Retry-After": "\x85\u2028"}, b"no"),
    "moved": (302, {"Location": "http://a\u2028b/\u202ec"}, b"no"),
    "warning": (409, {"Warning": '299 - "a\u2028b\u202e"'}, b"no"),
    "status": (
        422,
        {},
        msgspec.json.encode(
            {
                "kind": "Status",
                "reason": LONG,
                "message": LONG,
                "details": {"causes": [{"field": ODD, "message": ODD * 50}] * 9},
            }
        ),
    ),
}


@pytest.mark.parametrize(("code", "headers", "body"), ANSWERS.values(), ids=ANSWERS)
async def test_the_words_of_a_server_forge_no_line(
    code: int, headers: dict[str, str], body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "aioinformer")

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=code, headers=headers, body=body)

    async with http_server(answer) as server, Client(server) as client:
        pods = client.api("pods", namespace="web")
        for request in (pods.get("a"), pods.create({"metadata": {"name": "a"}})):
            with pytest.raises(FetchError) as caught:
                await request
            check(caught.value)
    check(*(record.getMessage() for record in caplog.records))
