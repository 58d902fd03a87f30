"""Errors of requests for Secrets: what they show of the server's words, and what they hide."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import threading
import traceback
from contextlib import suppress
from typing import Any

import pytest
from aiohttp import web

from aioinformer import Client
from aioinformer.errors import FetchError, ServerError, Status
from tests.client.servers import http_server, tcp_server
from tests.client.transports import rejected, rejected_with, wait_closed
from tests.cpu_time import short_turns
from tests.runtime.scripted_source import wait_until

POD = "/api/v1/namespaces/web/pods/web-0"
SECRET = "/api/v1/namespaces/web/secrets/token"
LONG = "hunter2 and more\nof it on a second line"
"""With what JSON, HTML and URLs each spell in a way of their own."""


async def redacted(status: Status, path: str) -> Status:
    """Return the status of an error of a request for this path."""
    return (await rejected_with(status, path)).status


async def test_an_error_of_a_secret_shows_only_its_fields() -> None:
    causes = [{"field": "patch", "reason": "FieldValueInvalid", "message": '"hunter2" is bad'}]
    status = Status(422, "Invalid", 'Invalid value: "hunter2"', {"causes": causes, "name": "x"})
    masked = await redacted(status, SECRET)
    assert "hunter2" not in repr(masked)
    assert masked.message.endswith("is not shown: it is about patch")
    assert await redacted(status, POD) == status
    assert await redacted(status, "/apis/example.com/v1/namespaces/web/secrets/a") == status
    conflict = Status(
        409,
        "Conflict",
        'Operation cannot be fulfilled on secrets "token": the object has been modified; please '
        "apply your changes to the latest version and try again",
        {"name": "token", "kind": "secrets"},
    )
    assert await redacted(conflict, SECRET) == conflict


@pytest.mark.parametrize(
    "sentence",
    [
        "Unauthorized",
        'secrets is forbidden: User "ada" cannot list resource "secrets" in API group "" at the '
        "cluster scope",
        'secrets "token" is forbidden: User "ada" cannot get resource "secrets" in API group "" in '
        'the namespace "web": RBAC: role.rbac.authorization.k8s.io "reader" not found',
        'secrets is forbidden: User "ada" cannot impersonate-on:user-info:list resource "secrets" '
        'in API group "" at the cluster scope',
        'secrets "token" is forbidden:',
        'users "bob" is forbidden: User "ada" cannot impersonate resource "users" in API group "" '
        "at the cluster scope",
        'secrets "token" is forbidden: cannot set an ownerRef on a resource you can\'t delete: , '
        "<nil>",
        'secrets "token" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers '
        "to a resource you can't set finalizers on: , <nil>",
        'secrets "token" is forbidden: exceeded quota: few, requested: secrets=1, used: secrets=9, '
        "limited: secrets=9",
        'secrets "token" is forbidden: unable to create new content in namespace web because it is '
        "being terminated",
        'secrets "token" not found',
        'namespaces "web" not found',
        "the server could not find the requested resource",
        'secrets "token" already exists',
        'Operation cannot be fulfilled on secrets "token": StorageError: invalid object, Code: 4, '
        "Key: /registry/secrets/web/token, ResourceVersion: 0, AdditionalErrorMsg: Precondition "
        "failed: UID in precondition: 6f7e-1, UID in object meta: ",
        'Operation cannot be fulfilled on Secret "token": the UID in the precondition (a-1) does '
        "not match the UID in record (b-2). The object might have been deleted and then recreated",
        'Apply failed with 1 conflict: conflict with "kubectl" using v1: .data.password',
        "too old resource version: 7 (120)",
        "The resourceVersion for the provided watch is too old.",
        "Timeout: Too large resource version: 99, current: 5",
        "Timeout: request did not complete within requested timeout - context deadline exceeded",
        "Too many requests, please try again later.",
        "storage is (re)initializing",
        "etcdserver: request timed out",
        "etcdserver: leader changed",
        "Request entity too large: limit is 3145728",
        "the server does not allow this method on the requested resource",
        'Internal error occurred: failed calling webhook "w.example.com": failed to call webhook: '
        'Post "https://w.shop.svc:443/?timeout=10s": dial tcp 10.0.0.9:443: connect: connection '
        "refused",
        "field label not supported: spec.nope",
        "unable to parse requirement: found '=', expected: identifier",
    ],
)
async def test_a_sentence_of_an_api_server_that_quotes_nothing_is_kept(sentence: str) -> None:
    status = Status(500, "InternalError", sentence)
    shown = Status(500, "InternalError", sentence.strip())
    assert await redacted(status, SECRET) == shown
    assert await redacted(status, "/api/v1/secrets") == shown


@pytest.mark.parametrize(
    "sentence",
    [
        'etcdserver: stored {"data":{"p":"aHVudGVyMg=="}}',
        'secrets "token" not found: {"data":{"p":"aHVudGVyMg=="}}',
        'Operation cannot be fulfilled on secrets "token": p is aHVudGVyMg==',
        'Internal error occurred: failed calling webhook "w": got {"p":"aHVudGVyMg=="}',
        'Internal error occurred: unable to transform key "/registry/secrets/a": aHVudGVyMg==',
        'secrets "token" is forbidden: p is aHVudGVyMg==',
        "aHVudGVyMg==",
    ],
)
@pytest.mark.parametrize(
    "path",
    [
        SECRET,
        "/api/v1/secrets",
        "/k8s/clusters/c-1/api/v1/namespaces/web/secrets",
        "/api/v1/watch/namespaces/web/secrets/token",
    ],
)
async def test_a_sentence_that_may_quote_a_stored_secret_is_hidden(
    sentence: str, path: str
) -> None:
    details = {"name": "aHVudGVyMg==", "p": "aHVudGVyMg==", "causes": [{"message": sentence}]}
    masked = await redacted(Status(500, "aHVudGVyMg", sentence, details), path)
    assert "aHVudGVyMg" not in repr(masked)
    assert masked.message.endswith("may quote the Secret and is not shown")
    assert await redacted(masked, path) == masked


async def test_the_parts_of_a_status_on_which_the_next_request_depends_are_kept() -> None:
    details = {
        "name": "token",
        "kind": "secrets",
        "retryAfterSeconds": 1,
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
    }
    body = {"kind": "Status", "code": 504, "reason": "Timeout", "message": "new words"}
    body |= {"details": details, "metadata": {"continue": "t"}}
    error = await rejected("/api/v1/secrets", status=504, body=json.dumps(body).encode())
    masked = error.status
    assert "new words" not in masked.message
    assert (masked.code, masked.reason, masked.details) == (504, "Timeout", details)
    assert (masked.retry_after, masked.continue_token) == (1.0, "t")


@pytest.mark.parametrize(
    "sentence",
    [
        'admission webhook "no.example.com" denied the request',
        "ValidatingAdmissionPolicy 'no' with binding 'x' denied request",
    ],
)
@pytest.mark.parametrize("code", [403, 409, 500])
async def test_the_name_of_a_webhook_that_denied_a_secret_is_shown_and_its_reason_is_not(
    code: int, sentence: str
) -> None:
    status = Status(code, "Forbidden", f"{sentence}: hunter2\nis weak", {"causes": ["hunter2"]})
    masked = await redacted(status, SECRET)
    assert masked.message == f"{sentence}; the reason may quote the Secret and is not shown"
    assert "hunter2" not in repr(masked)
    assert "hunter2" in (await redacted(status, POD)).message


async def test_a_warning_about_a_stored_secret_is_not_logged_with_its_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def warn(request: web.Request) -> web.Response:
        stored = {"metadata": {"name": "token", "namespace": "web", "resourceVersion": "7"}}
        warning = '299 - "p was aHVudGVyMg==", 299 - "unknown field \\"data2\\""'
        return web.json_response(stored, headers={"Warning": warning})

    async with http_server(warn) as server, Client(server) as client:
        await client.api("secrets", namespace="web").patch("token", {"metadata": {}})
    assert [record.getMessage() for record in caplog.records] == [
        "the server warns: the server's sentence may quote the Secret and is not shown",
        'the server warns: unknown field "data2"',
    ]


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
        secrets = client.api("secrets", namespace="web")
        values = {"p": LONG, "q": "hunter2-pass", "r": "hunter2 and more of it"}
        with pytest.raises(ServerError) as caught:
            await secrets.create({"metadata": {"name": "token"}, "stringData": values})
    shown = "".join(traceback.format_exception(caught.value))
    assert "hunter2" not in f"{shown}{caught.value.status!r}{caplog.text}"


VALUE = 'one "value" <with>\n{:024}'
"""More than 30 bytes, some of which JSON and HTML spell in ways of their own."""

LARGE_SECRETS: dict[str, dict[str, Any]] = {
    "one value": {"stringData": {"a": VALUE.format(0) + "x" * 1_000_000}},
    "one value of words": {"stringData": {"a": VALUE.format(0) + " ab" * 330_000}},
    "plain values": {"stringData": {f"k{n}": f"value-{n:024}" for n in range(20_000)}},
    "values with escapes": {"stringData": {f"k{n}": VALUE.format(n) for n in range(18_000)}},
    "base64": {
        "data": {
            f"k{n}": base64.b64encode(VALUE.format(n).encode()).decode() for n in range(14_000)
        }
    },
    "short values": {"stringData": {f"k{n}": f"{n:04}" for n in range(2000)}},
    "letters of no escape": {
        "stringData": {f"k{n}": "é中" * 4 + chr(n + 256) for n in range(20_000)}
    },
}


def echo_of(body: dict[str, Any]) -> str:
    """Return text that repeats the first values of a Secret as JSON does, cut within one."""
    return json.dumps(body["stringData" if "stringData" in body else "data"])[:900]


async def answer_status(code: int, body: dict[str, Any]) -> web.Response:
    echo = echo_of(body)
    message = f'admission webhook "check.example.com" denied the request: {echo}{"x" * 999}'
    causes = [{"reason": "FieldValueInvalid", "field": "data[a]", "message": echo}] * 30
    status = {"kind": "Status", "code": code, "message": message, "details": {"causes": causes}}
    return web.json_response(status, status=code)


async def answer_warning(code: int, body: dict[str, Any]) -> web.Response:
    stored = {"metadata": {"name": "token", "namespace": "web", "resourceVersion": "7"}}
    return web.json_response(stored, headers={"Warning": f"299 - {json.dumps(echo_of(body))}"})


@pytest.mark.parametrize(
    ("code", "contents"),
    [
        *((422, each) for each in LARGE_SECRETS),
        *((code, "base64") for code in (200, 409, 500, 0, -1)),
    ],
)
async def test_an_error_of_a_large_secret_leaves_the_loop_to_other_tasks(
    code: int, contents: str, caplog: pytest.LogCaptureFixture
) -> None:
    """200 is a success with a warning, 0 a response that breaks off, -1 no response."""
    secret = LARGE_SECRETS[contents]

    async def answer(request: web.Request) -> web.StreamResponse:
        while await request.content.readany():
            pass
        if code > 0:
            return await (answer_warning if code == 200 else answer_status)(code, secret)
        response = web.StreamResponse(headers={"Content-Length": "99"})
        if code == 0:
            await response.prepare(request)
        assert request.transport is not None
        request.transport.abort()
        return response

    async with http_server(answer) as server, Client(server) as client:
        secrets = client.api("secrets", namespace="web")
        with suppress(FetchError):
            await secrets.create({"metadata": {"name": "small"}})
        async with short_turns(0.02):
            try:
                await secrets.create({"metadata": {"name": "token"}, **secret})
            except FetchError as error:
                shown = "".join(traceback.format_exception(error))
            else:
                shown = caplog.text
            await asyncio.sleep(0)  # the turn ends here that has received the error
    assert shown
    assert VALUE[:12] not in shown
    assert "value-00" not in shown


async def test_a_request_that_is_cancelled_in_the_redaction_closes_its_connection() -> None:
    answered, closed = asyncio.Event(), asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split()[0]))
        writer.write(b'HTTP/1.1 201 Created\r\nContent-Length: 99\r\nWarning: 299 - "x"\r\n\r\n')
        answered.set()
        await wait_closed(reader)
        closed.set()

    async with tcp_server(talk) as address, Client(f"http://{address}") as client:
        secrets, large = (
            client.api("secrets", namespace="web"),
            LARGE_SECRETS["values with escapes"],
        )
        task = asyncio.create_task(secrets.create({"metadata": {"name": "token"}, **large}))
        await answered.wait()
        await wait_until(lambda: any("off the loop" in e.name for e in threading.enumerate()))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(5):
            await closed.wait()
