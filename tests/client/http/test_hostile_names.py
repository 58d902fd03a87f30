"""Names, namespaces, selectors and headers that a program takes from others.

A name may come from a user of a web service. Whatever it contains, a request reaches the one object
of that name, or is refused before it is sent: no other path, query or header.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import parse_qsl, unquote

import pytest
from aiohttp import web

from aioinformer import Client, ObjectKey, Resource
from aioinformer.api import ResourceApi
from aioinformer.errors import InformerError
from tests.client.servers import http_server

HOSTILE = {
    "parent": "..",
    "here": ".",
    "way up": "../../secrets/token",
    "slash": "a/b",
    "escaped slash": "a%2Fb",
    "escaped parent": "%2e%2e",
    "escaped twice": "a%252Fb",
    "backslash": "..\\secrets",
    "query": "a?watch=true",
    "fragment": "a#b",
    "parameters": "a&labelSelector=x",
    "semicolon": "a;b=c",
    "line break": "a\r\nX-Evil: 1",
    "line feed": "a\nX-Evil: 1",
    "request": "a HTTP/1.1\r\nHost: evil.example\r\n\r\nGET /api",
    "null": "a\0b",
    "space": "a b",
    "line separator": "a\u2028b",
    "letters of others": "ä-名",
    "surrogate": "a\ud800",
    "absolute": "//evil.example/a",
    "address": "http://evil.example/",
}

PODS = "/api/v1/namespaces/web/pods"
Send = Callable[[Client, str], Awaitable[object]]


def pods(client: Client) -> ResourceApi:
    return client.api("pods", namespace="web")


def key(name: str) -> ObjectKey:
    return ObjectKey("web", name)


def custom(client: Client, group: str, plural: str) -> ResourceApi:
    return client.api(Resource(group, "v1", plural, "Kind"), namespace="web")


async def watch(client: Client, **options: Any) -> None:
    async with pods(client).watch(**options) as events:
        await anext(aiter(events))


async def read_log(client: Client, name: str, **options: Any) -> None:
    async with pods(client).log(key(name), **options):
        pass


PATHS: dict[str, tuple[str, str, Send]] = {
    "get": (f"{PODS}/", "", lambda client, text: pods(client).get(key(text))),
    "delete": (f"{PODS}/", "", lambda client, text: pods(client).delete(key(text))),
    "patch": (f"{PODS}/", "", lambda client, text: pods(client).patch(key(text), {})),
    "update": (
        f"{PODS}/",
        "",
        lambda client, text: pods(client).update({"metadata": {"name": text}}),
    ),
    "apply": (
        f"{PODS}/",
        "",
        lambda client, text: pods(client).apply({"metadata": {"name": text}}),
    ),
    "log": (f"{PODS}/", "/log", read_log),
    "evict": (f"{PODS}/", "/eviction", lambda client, text: pods(client).evict(key(text))),
    "subresource": (
        f"{PODS}/a/",
        "",
        lambda client, text: pods(client).patch("a", {}, subresource=text),
    ),
    "namespace": (
        "/api/v1/namespaces/",
        "/pods/a",
        lambda client, text: client.api("pods", namespace=text).get("a"),
    ),
    "namespace of a key": (
        "/api/v1/namespaces/",
        "/pods/a",
        lambda client, text: client.api("pods").get(ObjectKey(text, "a")),
    ),
    "namespace of a list": (
        "/api/v1/namespaces/",
        "/pods",
        lambda client, text: client.api("pods", namespace=text).list(),
    ),
    "resource": (
        "/api/v1/namespaces/web/",
        "/a",
        lambda client, text: custom(client, "", text).get("a"),
    ),
    "group": (
        "/apis/",
        "/v1/namespaces/web/pods/a",
        lambda client, text: custom(client, text, "pods").get("a"),
    ),
}
"""The path before the name, the path behind it, and the request."""

QUERIES: dict[str, tuple[str, Send]] = {
    "field manager": (
        "fieldManager",
        lambda client, text: pods(client).apply({"metadata": {"name": "a"}}, field_manager=text),
    ),
    "labels": ("labelSelector", lambda client, text: pods(client).list(labels=f"app={text}")),
    "labels of a watch": ("labelSelector", lambda client, text: watch(client, labels={"a": text})),
    "fields": ("fieldSelector", lambda client, text: pods(client).list(fields={"spec.x": text})),
    "fields of a watch": (
        "fieldSelector",
        lambda client, text: watch(client, fields={"metadata.name": text}),
    ),
    "container of a log": ("container", lambda client, text: read_log(client, "a", container=text)),
}
"""The parameter, and the request."""

HEADERS: dict[str, Callable[[str], dict[str, Any]]] = {
    "user agent": lambda text: {"user_agent": text},
    "value of a header": lambda text: {"headers": {"X-Team": text}},
    "name of a header": lambda text: {"headers": {text: "shop"}},
    "token": lambda text: {"token": text},
}


@asynccontextmanager
async def requests_to(server: list[web.Request]) -> AsyncGenerator[str]:
    async def answer(request: web.Request) -> web.Response:
        server.append(request)
        return web.json_response({"kind": "Status", "code": 404, "reason": "NotFound"}, status=404)

    async with http_server(answer) as url:
        yield url


async def requests_of(send: Send, text: str) -> list[web.Request]:
    """Return the requests that ``send`` makes; none if it refuses ``text``."""
    received: list[web.Request] = []
    async with requests_to(received) as url, Client(url) as client:
        with pytest.raises((InformerError, ValueError)):
            await send(client, text)
        assert all(f"http://{request.headers['Host']}" == url for request in received)
    assert not any("X-Evil" in request.headers for request in received)
    return received


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
async def test_a_name_is_one_segment_of_the_path_or_refused(text: str) -> None:
    for place, (before, behind, send) in PATHS.items():
        for request in await requests_of(send, text):
            path, _, query = request.raw_path.partition("?")
            assert path.startswith(before), place
            assert path.endswith(behind), place
            segment = path[len(before) : len(path) - len(behind)]
            assert "/" not in segment, place
            assert unquote(segment) == text, place
            assert not {"watch", "labelSelector"} & dict(parse_qsl(query)).keys(), place


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
async def test_a_parameter_has_one_value_or_is_refused(text: str) -> None:
    for place, (name, send) in QUERIES.items():
        for request in await requests_of(send, text):
            assert request.path.startswith(PODS), place
            query = parse_qsl(request.rel_url.raw_query_string, keep_blank_values=True)
            (value,) = [value for key, value in query if key == name]
            if name == "fieldSelector":
                value = re.sub(r"\\(.)", r"\1", value)  # selectors escape some characters
            assert value.endswith(text), place
            assert ("watch", "true") not in query or "watch" in place, place


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
async def test_a_header_is_one_line_or_refused(text: str) -> None:
    for place, options in HEADERS.items():
        received: list[web.Request] = []
        async with requests_to(received) as url:
            with suppress(InformerError, ValueError):
                async with Client(url, **options(text)) as client:
                    await client.get_raw("/version")
        assert [request.path for request in received] in ([], ["/version"]), place
        assert not any("X-Evil" in request.headers for request in received), place
