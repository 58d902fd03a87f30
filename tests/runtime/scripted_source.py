"""A network that follows a script: what each list and watch is answered, in order.

``Script`` is a ``ListerWatcher``. When its answers are used up it stays silent, as a server does
that has nothing to say. ``ListeningSocket`` gives the same to a factory. The bytes are those of a server;
a whole server is ``aioinformer.testing``'s.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field

from aioinformer import BUILT_IN, KubeObject, ListRequest, ObjectKey, Resource, WatchRequest
from aioinformer._core.objects.resources import find_built_in
from aioinformer.errors import FetchError, Status, server_error

PODS = find_built_in("pods")
NODES = find_built_in("nodes")

WAIT_TIMEOUT = 5.0
"""Seconds after which something that a test waits for is taken not to happen."""


# -- bytes ------------------------------------------------------------------------------------


def body(name: str, version: int, *, uid: str = "", namespace: str = "web", size: int = 0) -> str:
    """An object's JSON."""
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-{name}",
        "resourceVersion": str(version),
    }
    return json.dumps({"metadata": metadata, "data": "x" * size}, separators=(",", ":"))


def event_line(kind: str, text: str) -> bytes:
    """A line of a watch."""
    return f'{{"type":"{kind}","object":{text}}}\n'.encode()


def added(name: str, version: int, *, uid: str = "", size: int = 0) -> bytes:
    return event_line("ADDED", body(name, version, uid=uid, size=size))


def modified(name: str, version: int) -> bytes:
    return event_line("MODIFIED", body(name, version))


def deleted(name: str, version: int) -> bytes:
    return event_line("DELETED", body(name, version))


def bookmark(version: int) -> bytes:
    return event_line("BOOKMARK", f'{{"metadata":{{"resourceVersion":"{version}"}}}}')


def initial_events_end(version: int) -> bytes:
    """The mark behind the initial state of a WatchList."""
    annotations = '{"k8s.io/initial-events-end":"true"}'
    return event_line(
        "BOOKMARK",
        f'{{"metadata":{{"resourceVersion":"{version}","annotations":{annotations}}}}}',
    )


def error_event(code: int, reason: str, message: str = "no") -> bytes:
    status = {"kind": "Status", "code": code, "reason": reason, "message": message}
    return event_line("ERROR", json.dumps(status))


def pod(name: str, version: int, *, uid: str = "") -> KubeObject:
    """The object that ``body`` describes, as the wire would build it."""
    raw = body(name, version, uid=uid).encode()
    return KubeObject(ObjectKey("web", name), uid or f"uid-{name}", str(version), raw, PODS)


def error_response(
    code: int, reason: str, message: str = "no", *, retry: float | None = None
) -> ErrorResponse:
    """The server says no, with a Status."""
    return ErrorResponse(server_error(Status(code, reason, message, retry_after=retry)))


# -- answers ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ListResponse:
    """A 200 to a list."""

    chunks: tuple[bytes, ...]
    error: FetchError | None = None
    """With what it breaks off; ``None`` for a proper end."""
    never_ends: bool = False
    """Whether it never ends."""


@dataclass(frozen=True, slots=True)
class WatchResponse:
    """A 200 to a watch."""

    chunks: tuple[bytes, ...]
    error: FetchError | None = None
    never_ends: bool = False


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """No 200, to whatever was asked. Not only a ``FetchError``: sources may have bugs."""

    error: BaseException


ScriptedResponse = ListResponse | WatchResponse | ErrorResponse


def list_response(
    *objects: str, version: str = "10", token: str = "", error: FetchError | None = None
) -> ListResponse:
    """A list of objects, or a page of one."""
    head = f'{{"metadata":{{"resourceVersion":"{version}","continue":"{token}"}},"items":['
    text = f"{head}{','.join(objects)}]}}".encode()
    half = len(text) // 2
    return ListResponse((text[:half],) if error else (text[:half], text[half:]), error)


def watch_response(
    *chunks: bytes, error: FetchError | None = None, never_ends: bool = False
) -> WatchResponse:
    """A watch that brings these bytes and ends."""
    return WatchResponse(chunks, error, never_ends)


@dataclass(slots=True, eq=False)
class ScriptedListerWatcher:
    """Lists and watches by rote."""

    responses: deque[ScriptedResponse]
    resource: Resource = PODS
    requests: list[ListRequest | WatchRequest] = field(
        default_factory=list[ListRequest | WatchRequest]
    )
    """What was asked."""
    open_responses: int = 0
    """Answers that somebody is reading, or waiting for."""
    chunks_read: int = 0
    """Chunks after which the reader came back for more."""
    watch_lists: bool = False
    """Whether it knows WatchLists; most scripts are about lists and watches."""

    @asynccontextmanager
    async def list(self, request: ListRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        async with self._open_response(request) as answer:
            assert isinstance(answer, ListResponse), (
                f"the script has {answer}, but was asked {request}"
            )
            async with aclosing(self._read_chunks(answer)) as chunks:
                yield chunks

    @asynccontextmanager
    async def watch(self, request: WatchRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        async with self._open_response(request) as answer:
            assert isinstance(answer, WatchResponse), (
                f"the script has {answer}, but was asked {request}"
            )
            async with aclosing(self._read_chunks(answer)) as chunks:
                yield chunks

    @asynccontextmanager
    async def _open_response(
        self, request: ListRequest | WatchRequest
    ) -> AsyncGenerator[ScriptedResponse]:
        self.requests.append(request)
        self.open_responses += 1
        try:
            await asyncio.sleep(0)  # no network answers at once
            if not self.responses:
                await _wait_forever()
            answer = self.responses.popleft()
            if isinstance(answer, ErrorResponse):
                raise answer.error
            yield answer
        finally:
            self.open_responses -= 1

    async def _read_chunks(self, response: ListResponse | WatchResponse) -> AsyncGenerator[bytes]:
        for chunk in response.chunks:
            yield chunk
            self.chunks_read += 1
        if response.never_ends:
            await _wait_forever()
        if response.error is not None:
            raise response.error

    async def wait_for_request(self, times: int) -> ListRequest | WatchRequest:
        """Wait until so many requests have been made; the last of them."""
        await wait_until(lambda: len(self.requests) >= times)
        return self.requests[times - 1]


def scripted_lister_watcher(
    *responses: ScriptedResponse, resource: Resource = PODS, watch_lists: bool = False
) -> ScriptedListerWatcher:
    """A network that answers so, and then is silent."""
    return ScriptedListerWatcher(deque(responses), resource, watch_lists=watch_lists)


@dataclass(slots=True, eq=False)
class ScriptedSource:
    """A ``Source`` for a factory: a script for each resource, by plural; silence for others."""

    scripts: dict[str, ScriptedListerWatcher] = field(
        default_factory=dict[str, ScriptedListerWatcher]
    )
    lister_watcher_calls: list[tuple[str, str | None, str, str]] = field(
        default_factory=list[tuple[str, str | None, str, str]]
    )
    """Resource, namespace, labels and fields of each informer that was made."""

    def lister_watcher(
        self, resource: Resource, *, namespace: str | None, labels: str, fields: str
    ) -> ScriptedListerWatcher:
        self.lister_watcher_calls.append((resource.plural, namespace, labels, fields))
        return self.scripts.get(resource.plural) or scripted_lister_watcher(resource=resource)


def scripted_source(**responses: Sequence[ScriptedResponse]) -> ScriptedSource:
    """A source whose resources answer so: ``door(pods=[page(), refused(403, "Forbidden")])``."""
    known = {each.plural: each for each in BUILT_IN}
    return ScriptedSource(
        {
            name: scripted_lister_watcher(*given, resource=known[name])
            for name, given in responses.items()
        }
    )


# -- waiting ----------------------------------------------------------------------------------


async def wait_until(condition: Callable[[], bool]) -> None:
    """Let the loop turn until ``condition`` holds."""
    async with asyncio.timeout(WAIT_TIMEOUT):
        while not condition():  # noqa: ASYNC110 - any event of any part may be what it waits for
            await asyncio.sleep(0)


async def yield_to_loop(turns: int = 20) -> None:
    """Let everything that can go on go on."""
    for _ in range(turns):
        await asyncio.sleep(0)


async def _wait_forever() -> None:
    await asyncio.get_running_loop().create_future()
