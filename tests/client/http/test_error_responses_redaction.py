"""Redaction of the values that are written to a Secret."""

from __future__ import annotations

import base64
import json
import logging
import traceback
from typing import Any

import pytest
from aiohttp import web

from aioinformer import Client
from aioinformer._client.auth.redaction import Redactor
from aioinformer._client.http.error_responses import redact_secret_values, secret_values
from aioinformer._client.http.request import ApiRequest
from aioinformer._core.objects.resources import find_built_in
from aioinformer.errors import ServerError, Status
from tests.client.servers import http_server

POD = "/api/v1/namespaces/web/pods/web-0"
SECRET = "/api/v1/namespaces/web/secrets/token"
LONG = "hunter2 and more\nof it on a second line"
"""With what JSON, HTML and URLs each spell in a way of their own."""


def sent(body: object, path: str = SECRET) -> ApiRequest:
    return ApiRequest("write", path, method="PUT", body=json.dumps(body).encode())


def test_an_error_of_a_secret_shows_only_its_fields() -> None:
    causes = [{"field": "patch", "reason": "FieldValueInvalid", "message": '"hunter2" is bad'}]
    status = Status(422, "Invalid", 'Invalid value: "hunter2"', {"causes": causes, "name": "x"})
    masked = redact_secret_values(status, SECRET)
    assert "hunter2" not in repr(masked)
    assert masked.message.endswith("is not shown: it is about patch")
    assert redact_secret_values(status, POD) is status
    assert redact_secret_values(status, "/apis/example.com/v1/namespaces/web/secrets/a") is status
    conflict = Status(409, "Conflict", "modified")
    assert redact_secret_values(conflict, SECRET) is conflict


@pytest.mark.parametrize(
    "sentence",
    [
        'admission webhook "no.example.com" denied the request',
        "ValidatingAdmissionPolicy 'no' with binding 'x' denied request",
    ],
)
@pytest.mark.parametrize("code", [403, 409, 500])
def test_the_name_of_a_webhook_that_denied_a_secret_is_shown_and_its_reason_is_not(
    code: int, sentence: str
) -> None:
    status = Status(code, "Forbidden", f"{sentence}: hunter2\nis weak", {"causes": ["hunter2"]})
    masked = redact_secret_values(status, SECRET)
    assert masked.message == f"{sentence}; the reason may quote the Secret and is not shown"
    assert "hunter2" not in repr(masked)
    assert redact_secret_values(status, POD) is status


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "Secret", "stringData": {"p": LONG}},
        {"data": {"p": base64.b64encode(LONG.encode()).decode()}},
        [{"op": "add", "path": "/stringData/p", "value": LONG}],
        [{"op": "add", "path": "/stringData", "value": {"p": [LONG]}}],
    ],
    ids=["stringData", "data", "operation", "operation-on-all"],
)
def test_values_are_hidden_in_every_form_in_which_a_server_may_repeat_them(body: object) -> None:
    redactor = Redactor(secret_values(sent(body)))
    for value in (LONG, base64.b64encode(LONG.encode()).decode(), json.dumps(LONG)):
        assert "hunter2" not in redactor.redact_complete(f"it is weak: {value}")
        assert base64.b64encode(b"hunter2 and").decode()[:12] not in redactor.redact_complete(value)


def test_values_outside_a_secret_are_not_hidden() -> None:
    body = {"kind": "Secret", "type": "Opaque", "metadata": {"name": "token"}, "immutable": True}
    assert not list(secret_values(sent(body)))
    assert not list(secret_values(sent({"data": {"p": LONG}}, POD)))
    assert not list(secret_values(ApiRequest("write", SECRET, method="DELETE")))


@pytest.mark.parametrize("code", [401, 403, 404, 409, 413, 429, 500])
async def test_an_error_that_repeats_a_secret_does_not_show_it(
    code: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    async def echo(request: web.Request) -> web.Response:
        body: dict[str, Any] = {"kind": "Status", "code": code, "message": await request.text()}
        body["details"] = {"name": "token", "causes": [{"message": LONG, "field": "x"}]}
        warning = {"Warning": '299 - "hunter2 and more of it is weak: hunter2-pass"'}
        return web.json_response(body, status=code, headers=warning)

    async with http_server(echo) as server, Client(server) as client:
        secrets = client.api(find_built_in("secrets"), namespace="web")
        values = {"p": LONG, "q": "hunter2-pass", "r": "hunter2 and more of it"}
        with pytest.raises(ServerError) as caught:
            await secrets.create({"metadata": {"name": "token"}, "stringData": values})
    shown = "".join(traceback.format_exception(caught.value))
    assert "hunter2" not in f"{shown}{caught.value.status!r}{caplog.text}"
