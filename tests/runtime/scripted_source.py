"""Lister-watchers that follow a script: the responses to each list and watch, in order.

``ScriptedListerWatcher`` is a ``ListerWatcher``. After its last response it stays silent, like a
server without changes. ``ScriptedSource`` gives a factory one such script for each resource. The
bytes have the form of a server's.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field

import msgspec

from aioinformer import BUILT_IN, KubeObject, ListRequest, ObjectKey, Resource, WatchRequest
from aioinformer.errors import FetchError, Status, server_error

RESOURCES = {each.plural: each for each in BUILT_IN}
PODS, NODES = RESOURCES["pods"], RESOURCES["nodes"]

WAIT_TIMEOUT = 30.0
"""Seconds after which a wait fails the test."""


# -- bytes ------------------------------------------------------------------------------------


def body(name: str, version: int, *, uid: str = "", namespace: str = "web", size: int = 0) -> str:
    """Return the JSON of an object."""
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-{name}",
        "resourceVersion": str(version),
    }
    return msgspec.json.encode({"metadata": metadata, "data": "x" * size}).decode()


def event_line(kind: str, text: str) -> bytes:
    """Return one line of a watch."""
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
    """Return the bookmark that ends the initial events of a WatchList."""
    annotations = '{"k8s.io/initial-events-end":"true"}'
    return event_line(
        "BOOKMARK",
        f'{{"metadata":{{"resourceVersion":"{version}","annotations":{annotations}}}}}',
    )


def error_event(code: int, reason: str, message: str = "no") -> bytes:
    status = {"kind": "Status", "code": code, "reason": reason, "message": message}
    return event_line("ERROR", json.dumps(status))


def pod(name: str, version: int, *, uid: str = "") -> KubeObject:
    """Return the object with the JSON of ``body``, as a decoder makes it."""
    raw = body(name, version, uid=uid).encode()
    return KubeObject(ObjectKey("web", name), uid or f"uid-{name}", str(version), raw, PODS)


def error_response(
    code: int, reason: str, message: str = "no", *, retry: float | None = None
) -> ErrorResponse:
    """Return a response with an error Status."""
    return ErrorResponse(server_error(Status(code, reason, message, retry_after=retry)))


# -- responses --------------------------------------------------------------------------------

CHUNK_BYTES = 65_536
"""The length of a long chunk."""


@dataclass(frozen=True, slots=True)
class ListResponse:
    """A 200 to a list."""

    chunks: tuple[bytes, ...]
    error: FetchError | None = None
    """The error with which the body breaks off; ``None`` for a complete body."""
    never_ends: bool = False
    """True if the body stays open after the last chunk."""


@dataclass(frozen=True, slots=True)
class WatchResponse:
    """A 200 to a watch."""

    chunks: tuple[bytes, ...]
    error: FetchError | None = None
    never_ends: bool = False


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """An error instead of a 200. It can be any exception, since sources can have bugs."""

    error: BaseException


ScriptedResponse = ListResponse | WatchResponse | ErrorResponse


def list_response(
    *objects: str, version: str = "10", token: str = "", error: FetchError | None = None
) -> ListResponse:
    """Return a response with a list of objects, or with one page.

    It has two chunks, or more where they would be longer than those of a network: a reader decodes
    each in one step.
    """
    head = f'{{"metadata":{{"resourceVersion":"{version}","continue":"{token}"}},"items":['
    text = f"{head}{','.join(objects)}]}}".encode()
    size = min(CHUNK_BYTES, (len(text) + 1) // 2)
    received = text[: len(text) // 2] if error else text
    return ListResponse(
        tuple(received[at : at + size] for at in range(0, len(received), size)), error
    )


def watch_response(
    *chunks: bytes, error: FetchError | None = None, never_ends: bool = False
) -> WatchResponse:
    """Return a response with a watch that sends these bytes and ends."""
    return WatchResponse(chunks, error, never_ends)


@dataclass(slots=True, eq=False)
class ScriptedListerWatcher:
    """A lister-watcher that gives scripted responses."""

    responses: deque[ScriptedResponse]
    resource: Resource = PODS
    requests: list[ListRequest | WatchRequest] = field(
        default_factory=list[ListRequest | WatchRequest]
    )
    """The requests so far."""
    open_responses: int = 0
    """The number of responses that are being read or waited for."""
    chunks_read: int = 0
    """The number of chunks after which the reader asked for another one."""
    watch_lists: bool = False
    """True if the reflector can ask for a WatchList. Most scripts have lists and watches."""

    @asynccontextmanager
    async def list(self, request: ListRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        async with self._open_response(request) as response:
            assert isinstance(response, ListResponse), (
                f"the script has {response}, but the request is {request}"
            )
            async with aclosing(self._read_chunks(response)) as chunks:
                yield chunks

    @asynccontextmanager
    async def watch(self, request: WatchRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        async with self._open_response(request) as response:
            assert isinstance(response, WatchResponse), (
                f"the script has {response}, but the request is {request}"
            )
            async with aclosing(self._read_chunks(response)) as chunks:
                yield chunks

    @asynccontextmanager
    async def _open_response(
        self, request: ListRequest | WatchRequest
    ) -> AsyncGenerator[ScriptedResponse]:
        self.requests.append(request)
        self.open_responses += 1
        try:
            await asyncio.sleep(0)  # a network never responds at once
            if not self.responses:
                await _wait_forever()
            response = self.responses.popleft()
            if isinstance(response, ErrorResponse):
                raise response.error
            yield response
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
        """Wait until ``times`` requests were made, and return the last of them."""
        await wait_until(lambda: len(self.requests) >= times)
        return self.requests[times - 1]


def scripted_lister_watcher(
    *responses: ScriptedResponse, resource: Resource = PODS, watch_lists: bool = False
) -> ScriptedListerWatcher:
    """Return a lister-watcher with these responses."""
    return ScriptedListerWatcher(deque(responses), resource, watch_lists=watch_lists)


@dataclass(slots=True, eq=False)
class ScriptedSource:
    """A ``Source`` for a factory, with a script for each resource by plural name.

    The requests for other resources get no response.
    """

    scripts: dict[str, ScriptedListerWatcher] = field(
        default_factory=dict[str, ScriptedListerWatcher]
    )
    lister_watcher_calls: list[tuple[str, str | None, str, str]] = field(
        default_factory=list[tuple[str, str | None, str, str]]
    )
    """The resource, namespace, labels and fields of each informer."""

    def lister_watcher(
        self, resource: Resource, *, namespace: str | None, labels: str, fields: str
    ) -> ScriptedListerWatcher:
        self.lister_watcher_calls.append((resource.plural, namespace, labels, fields))
        return self.scripts.get(resource.plural) or scripted_lister_watcher(resource=resource)


def scripted_source(**responses: Sequence[ScriptedResponse]) -> ScriptedSource:
    """Return a source with responses by resource.

    ::

        scripted_source(pods=[list_response(), error_response(403, "Forbidden")])
    """
    return ScriptedSource(
        {
            name: scripted_lister_watcher(*script, resource=RESOURCES[name])
            for name, script in responses.items()
        }
    )


# -- waiting ----------------------------------------------------------------------------------


async def wait_until(condition: Callable[[], bool]) -> None:
    """Yield to the loop until ``condition`` holds."""
    async with asyncio.timeout(WAIT_TIMEOUT):
        while not condition():  # noqa: ASYNC110 - no single event stands for every condition
            await asyncio.sleep(0)


async def yield_to_loop(turns: int = 20) -> None:
    """Yield to the loop so that all ready tasks run."""
    for _ in range(turns):
        await asyncio.sleep(0)


async def _wait_forever() -> None:
    await asyncio.get_running_loop().create_future()
