"""A network that follows a script: what each list and watch is answered, in order.

``Script`` is a ``ListerWatcher``. When its answers are used up it stays silent, as a server does
that has nothing to say. ``Door`` gives the same to a factory. The bytes are those of a server;
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

PATIENCE = 5.0
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


def line(kind: str, text: str) -> bytes:
    """A line of a watch."""
    return f'{{"type":"{kind}","object":{text}}}\n'.encode()


def added(name: str, version: int, *, uid: str = "", size: int = 0) -> bytes:
    return line("ADDED", body(name, version, uid=uid, size=size))


def modified(name: str, version: int) -> bytes:
    return line("MODIFIED", body(name, version))


def deleted(name: str, version: int) -> bytes:
    return line("DELETED", body(name, version))


def bookmark(version: int) -> bytes:
    return line("BOOKMARK", f'{{"metadata":{{"resourceVersion":"{version}"}}}}')


def end_mark(version: int) -> bytes:
    """The mark behind the initial state of a WatchList."""
    annotations = '{"k8s.io/initial-events-end":"true"}'
    return line(
        "BOOKMARK",
        f'{{"metadata":{{"resourceVersion":"{version}","annotations":{annotations}}}}}',
    )


def error_event(code: int, reason: str, message: str = "no") -> bytes:
    status = {"kind": "Status", "code": code, "reason": reason, "message": message}
    return line("ERROR", json.dumps(status))


def pod(name: str, version: int, *, uid: str = "") -> KubeObject:
    """The object that ``body`` describes, as the wire would build it."""
    raw = body(name, version, uid=uid).encode()
    return KubeObject(ObjectKey("web", name), uid or f"uid-{name}", str(version), raw, PODS)


def refused(code: int, reason: str, message: str = "no", *, retry: float | None = None) -> Refusal:
    """The server says no, with a Status."""
    return Refusal(server_error(Status(code, reason, message, retry_after=retry)))


# -- answers ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Page:
    """A 200 to a list."""

    chunks: tuple[bytes, ...]
    then: FetchError | None = None
    """With what it breaks off; ``None`` for a proper end."""
    hangs: bool = False
    """Whether it never ends."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A 200 to a watch."""

    chunks: tuple[bytes, ...]
    then: FetchError | None = None
    hangs: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """No 200, to whatever was asked. Not only a ``FetchError``: sources may have bugs."""

    error: BaseException


Answer = Page | Stream | Refusal


def page(
    *objects: str, version: str = "10", token: str = "", then: FetchError | None = None
) -> Page:
    """A list of objects, or a page of one."""
    head = f'{{"metadata":{{"resourceVersion":"{version}","continue":"{token}"}},"items":['
    text = f"{head}{','.join(objects)}]}}".encode()
    half = len(text) // 2
    return Page((text[:half],) if then else (text[:half], text[half:]), then)


def stream(*chunks: bytes, then: FetchError | None = None, hangs: bool = False) -> Stream:
    """A watch that brings these bytes and ends."""
    return Stream(chunks, then, hangs)


@dataclass(slots=True, eq=False)
class Script:
    """Lists and watches by rote."""

    answers: deque[Answer]
    resource: Resource = PODS
    requests: list[ListRequest | WatchRequest] = field(
        default_factory=list[ListRequest | WatchRequest]
    )
    """What was asked."""
    open: int = 0
    """Answers that somebody is reading, or waiting for."""
    chunks_read: int = 0
    """Chunks after which the reader came back for more."""
    watch_lists: bool = False
    """Whether it knows WatchLists; most scripts are about lists and watches."""

    @asynccontextmanager
    async def list(self, request: ListRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        async with self._answer(request) as answer:
            assert isinstance(answer, Page), f"the script has {answer}, but was asked {request}"
            async with aclosing(self._read(answer)) as chunks:
                yield chunks

    @asynccontextmanager
    async def watch(self, request: WatchRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        async with self._answer(request) as answer:
            assert isinstance(answer, Stream), f"the script has {answer}, but was asked {request}"
            async with aclosing(self._read(answer)) as chunks:
                yield chunks

    @asynccontextmanager
    async def _answer(self, request: ListRequest | WatchRequest) -> AsyncGenerator[Answer]:
        self.requests.append(request)
        self.open += 1
        try:
            await asyncio.sleep(0)  # no network answers at once
            if not self.answers:
                await _for_ever()
            answer = self.answers.popleft()
            if isinstance(answer, Refusal):
                raise answer.error
            yield answer
        finally:
            self.open -= 1

    async def _read(self, answer: Page | Stream) -> AsyncGenerator[bytes]:
        for chunk in answer.chunks:
            yield chunk
            self.chunks_read += 1
        if answer.hangs:
            await _for_ever()
        if answer.then is not None:
            raise answer.then

    async def asked(self, times: int) -> ListRequest | WatchRequest:
        """Wait until so many requests have been made; the last of them."""
        await until(lambda: len(self.requests) >= times)
        return self.requests[times - 1]


def script(*answers: Answer, resource: Resource = PODS, watch_lists: bool = False) -> Script:
    """A network that answers so, and then is silent."""
    return Script(deque(answers), resource, watch_lists=watch_lists)


@dataclass(slots=True, eq=False)
class Door:
    """A ``Source`` for a factory: a script for each resource, by plural; silence for others."""

    scripts: dict[str, Script] = field(default_factory=dict[str, Script])
    asked_for: list[tuple[str, str | None, str, str]] = field(
        default_factory=list[tuple[str, str | None, str, str]]
    )
    """Resource, namespace, labels and fields of each informer that was made."""

    def lister_watcher(
        self, resource: Resource, *, namespace: str | None, labels: str, fields: str
    ) -> Script:
        self.asked_for.append((resource.plural, namespace, labels, fields))
        return self.scripts.get(resource.plural) or script(resource=resource)


def door(**answers: Sequence[Answer]) -> Door:
    """A source whose resources answer so: ``door(pods=[page(), refused(403, "Forbidden")])``."""
    known = {each.plural: each for each in BUILT_IN}
    return Door({name: script(*given, resource=known[name]) for name, given in answers.items()})


# -- waiting ----------------------------------------------------------------------------------


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop turn until ``condition`` holds."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - any event of any part may be what it waits for
            await asyncio.sleep(0)


async def settle(turns: int = 20) -> None:
    """Let everything that can go on go on."""
    for _ in range(turns):
        await asyncio.sleep(0)


async def _for_ever() -> None:
    await asyncio.get_running_loop().create_future()
