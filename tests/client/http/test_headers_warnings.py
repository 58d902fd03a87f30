"""The log of a server's warnings."""

from __future__ import annotations

import pytest
from aiohttp import web
from multidict import CIMultiDict

from aioinformer import Client
from tests.client.servers import http_server

STORED = {"metadata": {"name": "a", "namespace": "web", "uid": "u", "resourceVersion": "7"}}
MAX_REMEMBERED = 500
"""The number of logged warnings that are not logged again."""


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


async def receive(*responses: list[str], token: str | None = None) -> None:
    """Send a request for each response, which has these warnings."""
    sent = iter(responses)

    async def answer(request: web.Request) -> web.Response:
        return web.Response(headers=CIMultiDict([("Warning", each) for each in next(sent)]))

    async with http_server(answer) as server, Client(server, token=token) as client:
        for _ in responses:
            await client.get_raw("/")


async def test_warnings_are_logged_once_each(caplog: pytest.LogCaptureFixture) -> None:
    await receive(*[['299 - "unknown field \\"spec.x\\""', '299 - "old"']] * 3)

    assert messages(caplog) == [
        'the server warns: unknown field "spec.x"',
        "the server warns: old",
    ]


async def test_several_warnings_may_share_a_header_and_other_codes_are_ignored(
    caplog: pytest.LogCaptureFixture,
) -> None:
    await receive(['299 - "a, b", 299 x "c"', '110 - "stale"', "299"])

    assert messages(caplog) == ["the server warns: a, b", "the server warns: c"]


async def test_a_logged_warning_contains_no_secret_and_no_control_character(
    caplog: pytest.LogCaptureFixture,
) -> None:
    await receive(['299 - "you sent hunter2hunter2 \x85[31m"'], token="hunter2hunter2")

    (line,) = messages(caplog)
    assert "hunter2" not in line
    assert line.isprintable()


async def test_the_number_of_remembered_warnings_has_a_limit(
    caplog: pytest.LogCaptureFixture,
) -> None:
    every = [", ".join(f'299 - "{n}"' for n in range(MAX_REMEMBERED + 1))]

    await receive(every, ['299 - "1"', '299 - "0"'])

    assert len(caplog.records) == MAX_REMEMBERED + 2


async def test_a_field_that_a_server_drops_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.json_response(STORED, headers={"Warning": '299 - "unknown field"'})

    async with http_server(answer) as server, Client(server) as client:
        pods = client.api("pods", namespace="web")
        for _ in range(2):
            await pods.create({"metadata": {"name": "a"}})
    assert messages(caplog) == ["the server warns: unknown field"]
