"""The log of a server's warnings."""

from __future__ import annotations

import pytest
from aiohttp import web
from multidict import CIMultiDict, CIMultiDictProxy

from aioinformer import Client
from aioinformer._client.auth.redaction import Redactor
from aioinformer._client.http.headers import MAX_REMEMBERED, ServerWarnings, read_warnings
from aioinformer._core.objects.resources import find_built_in
from tests.client.servers import http_server

STORED = {"metadata": {"name": "a", "namespace": "web", "uid": "u", "resourceVersion": "7"}}


def headers(*warnings: str) -> CIMultiDictProxy[str]:
    return CIMultiDictProxy(CIMultiDict([("Warning", each) for each in warnings]))


def warnings(*sent: str, token: str = "") -> list[str]:
    return read_warnings(headers(*sent), lambda: Redactor([("Authorization", token)]))


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_warnings_are_logged_once_each(caplog: pytest.LogCaptureFixture) -> None:
    server_warnings = ServerWarnings()
    for _ in range(3):
        server_warnings.log(warnings('299 - "unknown field \\"spec.x\\""', '299 - "old"'))
    assert messages(caplog) == [
        'the server warns: unknown field "spec.x"',
        "the server warns: old",
    ]
    assert repr(server_warnings) == "<ServerWarnings, 2 logged>"


def test_several_warnings_may_share_a_header_and_other_codes_are_ignored(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ServerWarnings().log(warnings('299 - "a, b", 299 x "c"', '110 - "stale"', "299"))
    assert messages(caplog) == ["the server warns: a, b", "the server warns: c"]


def test_a_logged_warning_contains_no_secret_and_no_control_character(
    caplog: pytest.LogCaptureFixture,
) -> None:
    token = "Bearer hunter2hunter2"
    ServerWarnings().log(warnings('299 - "you sent hunter2hunter2 \x1b[31m"', token=token))
    (line,) = messages(caplog)
    assert "hunter2" not in line
    assert "\x1b" not in line


def test_the_number_of_remembered_warnings_has_a_limit(caplog: pytest.LogCaptureFixture) -> None:
    server_warnings = ServerWarnings()
    for n in range(MAX_REMEMBERED + 1):
        server_warnings.log(warnings(f'299 - "{n}"'))
    server_warnings.log(warnings('299 - "0"'))
    assert len(caplog.records) == MAX_REMEMBERED + 2
    assert repr(server_warnings) == f"<ServerWarnings, {MAX_REMEMBERED} logged>"


async def test_a_field_that_a_server_drops_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.json_response(STORED, headers={"Warning": '299 - "unknown field"'})

    async with http_server(answer) as server, Client(server) as client:
        pods = client.api(find_built_in("pods"), namespace="web")
        for _ in range(2):
            await pods.create({"metadata": {"name": "a"}})
    assert messages(caplog) == ["the server warns: unknown field"]
