"""The length of a watch, and further list options."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web

from aioinformer import Client, SharedInformerFactory
from aioinformer._runtime.reflector.options import ReflectorOptions
from tests.client.servers import http_server
from tests.runtime.scripted_source import wait_until


async def test_each_list_and_watch_has_the_options_of_the_program() -> None:
    queries: list[dict[str, str]] = []

    async def answer(request: web.Request) -> web.Response:
        queries.append(dict(request.query))
        if "watch" in request.query:
            return web.Response()
        empty: dict[str, Any] = {"kind": "PodList", "apiVersion": "v1", "items": []}
        return web.json_response(empty | {"metadata": {"resourceVersion": "1"}})

    async with (
        http_server(answer) as url,
        Client(url) as client,
        SharedInformerFactory(
            client,
            list_options={"tenant": "shop"},
            watch_list=False,
            watch_seconds=(60, 60),
        ) as informers,
    ):
        informers.informer("pods", labels="app=shop")
        await wait_until(lambda: len(queries) == 2)

    own = {"tenant": "shop", "labelSelector": "app=shop"}
    listed, watched = queries
    assert listed == own | {"limit": "500", "resourceVersion": "0"}
    assert watched.items() >= (own | {"watch": "true", "timeoutSeconds": "60"}).items()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"watch_seconds": (30, 60)}, "the least of watch_seconds must be at least 60, not 30"),
        ({"watch_seconds": (300, 200)}, "the greatest of watch_seconds must be at least 300"),
        ({"watch_seconds": (300,)}, "watch_seconds must be a pair"),
        ({"watch_seconds": 300}, "watch_seconds must be a pair"),
        ({"list_options": {"limit": "5"}}, "can't contain limit: pass page_size="),
        ({"list_options": {"labelSelector": "a"}}, "can't contain labelSelector: pass labels="),
        ({"list_options": {"resourceVersion": "5"}}, "the reflector chooses it"),
        ({"list_options": {"tenant": 5}}, "list_options must contain texts"),
        ({"list_options": "tenant=5"}, "list_options must be a mapping"),
    ],
)
def test_options_that_no_reflector_can_use_are_rejected(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        ReflectorOptions().merge(options)
