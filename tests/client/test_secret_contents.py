"""The contents of Secrets in responses that make no sense: no path leads from there to a report."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import traceback
from collections.abc import Callable, Iterator

import pytest

from aioinformer import BackoffPolicy, Client, Problem, Resource, SharedInformer
from aioinformer.errors import FetchError
from tests.client.servers import ConnectionHandler, tcp_server
from tests.runtime.informers import running_in_background
from tests.runtime.scripted_source import wait_until

CANARY = "sEcReTc4nary7q"
SECRETS = Resource("", "v1", "secrets", "Secret")
SLOW_BACKOFF = BackoffPolicy(initial=60, maximum=60, jitter=0)

SECRET = json.dumps(
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "a", "namespace": "web", "uid": "u", "resourceVersion": "5"},
        "data": {"password": CANARY, CANARY: "x"},
    }
).encode()
STATUS = json.dumps(
    {
        "kind": "Status",
        "message": f"etcd: can't decode {SECRET.decode()}",
        "reason": f"Stored{CANARY}",
        "details": {
            "name": "a",
            "value": CANARY,
            "causes": [{"reason": CANARY, "field": f"data={CANARY}", "message": CANARY}],
        },
    }
).encode()
"""An error of a server that quotes what it has stored."""

EMPTY_LIST = b'{"kind":"SecretList","metadata":{"resourceVersion":"10"},"items":[]}'


def http(body: bytes, head: str = "200 OK", media: str = "application/json") -> bytes:
    length = f"Content-Type: {media}\r\nContent-Length: {len(body)}"
    return f"HTTP/1.1 {head}\r\n{length}\r\n\r\n".encode() + body


def chunked(body: bytes, head: str = "Transfer-Encoding: chunked") -> bytes:
    return f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode() + body


# -- the paths ---------------------------------------------------------------------------------

BODIES: dict[str, tuple[bytes, str]] = {
    "object": (SECRET, "application/json"),
    "list": (b'{"kind":"SecretList","items":[' + SECRET + b"]}", "application/json"),
    "broken off": (SECRET[:-9], "application/json"),
    "text": (b"the request was: " + SECRET, "text/plain"),
    "page": (b"<html><pre>" + SECRET + b"</pre>", "text/html"),
    "no UTF-8": (b"\xff" + SECRET, "application/octet-stream"),
    "almost a Status": (
        json.dumps({"kind": "Status", "code": CANARY, "message": CANARY}).encode(),
        "application/json",
    ),
    "odd type": (SECRET, CANARY),
    "Status": (STATUS, "application/json"),
}
CODES = (201, 206, 302, 400, 401, 403, 404, 409, 410, 422, 429, 500, 503, 599)

SOUND_HEAD = '{"kind":"SecretList","metadata":{"resourceVersion":"10"},"items":['
NAMED = '"metadata":{"name":"a","namespace":"web","uid":"u","resourceVersion":"5"}'


def line(kind: str, obj: str) -> bytes:
    return f'{{"type":"{kind}","object":{obj}}}\n'.encode()


MALFORMED: dict[str, bytes] = {
    "no JSON": f"{CANARY}\n".encode(),
    "no UTF-8 in the name": SECRET.replace(b'"name": "a"', b'"name": "\xff%s"' % CANARY.encode()),
    "no name": SECRET.replace(b'"name": "a", ', b""),
    "a version that is no text": SECRET.replace(b'"5"', b'{"x":"%s"}' % CANARY.encode()),
    "a long version": SECRET.replace(b'"5"', b'"%s"' % (CANARY.encode() * 30)),
    "a broken end": SECRET[:-1] + b"]",
    "nested too deeply": b'{"metadata":{"name":' + b"[" * 5000 + CANARY.encode(),
}

LISTS: dict[str, bytes] = {
    f"an item with {what}": http(SOUND_HEAD.encode() + item + b"]}")
    for what, item in MALFORMED.items()
} | {
    "another kind": http(json.dumps({"kind": CANARY, "metadata": {}, "items": []}).encode()),
    "no list": http(SECRET),
    "items twice": http(SOUND_HEAD.encode() + SECRET + b'],"items":[]}'),
    "a tail that is no JSON": http(SOUND_HEAD.encode() + SECRET + b"]," + CANARY.encode()),
    "broken off": http(SOUND_HEAD.encode() + SECRET)[:-30],
}
WATCHES: dict[str, bytes] = {
    f"an event with {what}": http(line("ADDED", "%").replace(b"%", item))
    for what, item in MALFORMED.items()
} | {
    "another type": http(line(CANARY, "{}")),
    "another kind": http(line("ADDED", f'{{"kind":"{CANARY} x",{NAMED}}}')),
    "an error that is no Status": http(line("ERROR", SECRET.decode())),
    "an error that quotes": http(line("ERROR", STATUS.decode())),
    "an error that quotes, with a code": http(
        line("ERROR", STATUS.replace(b'"details"', b'"code": 422, "details"').decode())
    ),
    "an error of another kind": http(line("ERROR", f'{{"kind":"{CANARY}"}}')),
    "a further member": http(f'{{"type":"ADDED","object":{{}},"{CANARY}":1}}\n'.encode()),
    "a bookmark that is none": http(line("BOOKMARK", f'{{"metadata":"{CANARY}"}}')),
}
TRANSPORTS: dict[str, bytes] = {
    "a bad chunk": chunked(SECRET + b"\r\n"),
    "a bad chunk after a good one": chunked(b"1\r\n{\r\n" + SECRET + b"\r\n"),
    "a bad header": f"HTTP/1.1 200 OK\r\n{CANARY}\x00: x\r\n\r\n".encode(),
    "a bad status line": f"HTTP/9 {CANARY}\r\n\r\n".encode(),
    "no HTTP": SECRET + b"\r\n\r\n",
    "a long head": b"HTTP/1.1 200 OK\r\nX: " + CANARY.encode() * 200_000 + b"\r\n\r\n",
    "bad gzip": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: "
    + f"{len(SECRET)}\r\n\r\n".encode()
    + SECRET,
    "a cut body": http(SECRET)[:-5],
    "a bad length": f"HTTP/1.1 200 OK\r\nContent-Length: {CANARY}\r\n\r\n".encode() + SECRET,
}
ERRORS: dict[str, bytes] = {
    f"{code} with {what}": http(body, f"{code} Phrase", media)
    for code in CODES
    for what, (body, media) in BODIES.items()
}


SOME_ERRORS: dict[str, bytes] = dict(
    list(ERRORS.items())[at] for at in range(0, len(ERRORS), len(BODIES) + 1)
) | {what: response for what, response in ERRORS.items() if what.startswith(("401", "500"))}
"""Each status, each body. All requests read an error in the same way, so that one of them meets
every combination and the others these."""


def paths() -> Iterator[tuple[str, str, bytes]]:
    """Yield the place of the response, its description, and its bytes."""
    for place, own in (
        ("list", LISTS | SOME_ERRORS),
        ("watch", WATCHES | SOME_ERRORS),
        ("get", ERRORS),
    ):
        for what, response in (own | TRANSPORTS).items():
            success = place == "get" and what.startswith("201")
            if not success:
                yield place, what, response
    for what, item in MALFORMED.items():
        for place in ("get", "patch", "delete"):
            yield place, what, http(item)


PATHS = list(paths())


# -- what can be read of a report --------------------------------------------------------------


def related(error: BaseException) -> Iterator[BaseException]:
    yield error
    for each in (error.__cause__, error.__context__):
        if each is not None:
            yield from related(each)


def everything_in(error: BaseException) -> Iterator[str]:
    """Yield all texts of an error and of those related to it, as tools for error reports do."""
    for each in related(error):
        yield from (str(each), repr(each), repr(each.args), repr(vars(each)))
        if isinstance(each, UnicodeDecodeError):
            yield repr(each.object)
        frames = [
            (frame, number)
            for frame, number in traceback.walk_tb(each.__traceback__)
            if "/tests/" not in frame.f_code.co_filename
        ]
        for summary in traceback.StackSummary.extract(iter(frames), capture_locals=True):
            yield f"{summary.name}: {summary.locals}"
        yield "".join(traceback.format_exception(each))


def answering(place: str, response: bytes) -> ConnectionHandler:
    """Return a handler that sends ``response`` to the requests of ``place``."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        single = head.partition(b" ")[0].decode().lower()
        asked = "watch" if b"watch=true" in head else single if b"/secrets/" in head else "list"
        writer.write(response if asked == place else http(EMPTY_LIST))
        await writer.drain()

    return talk


async def report_of(place: str, client: Client) -> list[str]:
    """Return everything that is reported of the first failed request."""
    if place not in ("list", "watch"):
        api = client.api(SECRETS)
        with pytest.raises(FetchError) as caught:
            await (api.patch("web/a", {}) if place == "patch" else getattr(api, place)("web/a"))
        return list(everything_in(caught.value))
    problems: list[Problem] = []
    informer = SharedInformer(
        client.lister_watcher(SECRETS),
        backoff=SLOW_BACKOFF,
        watch_list=False,
        on_error=problems.append,
    )
    async with running_in_background(informer.run()):
        # The error that ends a watch follows the problem of an event that was ignored.
        await wait_until(lambda: bool(problems) and informer.health.error is not None)
        health = informer.health
        assert health.error is not None
        texts = [str(health), repr(health), repr(problems), repr(informer)]
        return [
            *texts,
            *everything_in(health.error),
            *(text for problem in problems for text in everything_in(problem.error)),
        ]


SPELLINGS: tuple[Callable[[str], str], ...] = (
    lambda text: text,
    lambda text: base64.b64encode(text.encode()).decode(),
)


@pytest.mark.parametrize("first", range(0, len(PATHS), 24))
async def test_no_error_or_log_contains_the_contents_of_a_secret(
    first: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    leaks: list[str] = []
    for place, what, response in PATHS[first : first + 24]:
        caplog.clear()
        async with (
            tcp_server(answering(place, response)) as address,
            Client(f"http://{address}") as client,
        ):
            texts = await report_of(place, client)
        texts += [f"{record.getMessage()} {vars(record)}" for record in caplog.records]
        texts.append(caplog.text)
        found = [text for text in texts if any(each(CANARY) in text for each in SPELLINGS)]
        leaks += [f"{place}: {what}: {found[0]}"] if found else []

    assert not leaks, "\n".join(leaks)
