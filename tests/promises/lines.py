"""A network that answers by a function, and writes down what was asked, and when.

``tests/runtime/sources`` has scripts that say what is answered; here time counts too, in a
simulated loop. A ``Scene`` adds an informer and what a program is told of its troubles.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from aioinformer import ListerWatcher, ListRequest, Resource, SharedInformer, WatchRequest
from aioinformer._core.cache.store import IndexFunction
from aioinformer._core.listwatch.idle_timeout import LivenessPolicy
from aioinformer._core.listwatch.requests import Request
from aioinformer._runtime.reporting.reporter import Problem
from aioinformer.errors import FetchError
from aioinformer.testing.simulation import run
from tests.runtime.running import running
from tests.runtime.sources import PODS, Refusal

T = TypeVar("T")


# -- answers -----------------------------------------------------------------------------------

SILENCE = float("inf")
"""A pause that has no end."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A 200: bytes, and pauses in seconds between them."""

    parts: tuple[bytes | float, ...] = ()
    then: FetchError | None = None
    """With what it breaks off; ``None`` for a proper end."""


Answer: TypeAlias = Reply | Refusal


def reply(*parts: bytes | float, then: FetchError | None = None) -> Reply:
    return Reply(parts, then)


def end_mark(version: int) -> bytes:
    """The bookmark behind the initial state of a WatchList."""
    annotations = '{"k8s.io/initial-events-end":"true"}'
    metadata = f'{{"resourceVersion":"{version}","annotations":{annotations}}}'
    return f'{{"type":"BOOKMARK","object":{{"metadata":{metadata}}}}}\n'.encode()


def by_rote(*answers: Answer) -> Callable[[Request], Answer]:
    """One after the other; silence when they are used up."""
    left = iter(answers)
    return lambda _: next(left, reply(SILENCE))


# -- the network -------------------------------------------------------------------------------


def in_short(request: Request) -> str:
    """``list 0``, ``whole 10`` (no pages), ``page t``, ``probe``, ``stream 10``, ``watch 10``."""
    version = request.resource_version or "newest"
    if isinstance(request, WatchRequest):
        return f"{'stream' if request.initial else 'watch'} {version}"
    if request.probe:
        return "probe"
    if request.continue_token:
        return f"page {request.continue_token}"
    return f"{'list' if request.limit else 'whole'} {version}"


@dataclass(slots=True, eq=False)
class Line:
    """A ``ListerWatcher``: each answer is what a function makes of the request."""

    answer: Callable[[Request], Answer]
    resource: Resource = PODS
    watch_lists: bool = True

    @asynccontextmanager
    async def list(self, request: ListRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        async with self._answered(request) as chunks:
            yield chunks

    @asynccontextmanager
    async def watch(self, request: WatchRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        async with self._answered(request) as chunks:
            yield chunks

    @asynccontextmanager
    async def _answered(self, request: Request) -> AsyncGenerator[AsyncIterator[bytes]]:
        answer = self.answer(request)
        await asyncio.sleep(0)  # no network answers at once
        if isinstance(answer, Refusal):
            raise answer.error
        async with aclosing(_sent(answer)) as chunks:
            yield chunks


async def _sent(answer: Reply) -> AsyncGenerator[bytes]:
    for part in answer.parts:
        if isinstance(part, bytes):
            yield part
        elif part == SILENCE:
            await asyncio.get_running_loop().create_future()
        else:
            await asyncio.sleep(part)
    if answer.then is not None:
        raise answer.then


@dataclass(slots=True, eq=False)
class Noted:
    """A ``ListerWatcher``, and what it was asked."""

    source: ListerWatcher
    asked: list[tuple[float, Request]] = field(default_factory=list[tuple[float, Request]])
    """When, and what."""

    @property
    def resource(self) -> Resource:
        return self.source.resource

    @property
    def watch_lists(self) -> bool:
        return self.source.watch_lists

    @asynccontextmanager
    async def list(self, request: ListRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        self.asked.append((now(), request))
        async with self.source.list(request) as chunks:
            yield chunks

    @asynccontextmanager
    async def watch(self, request: WatchRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        self.asked.append((now(), request))
        async with self.source.watch(request) as chunks:
            yield chunks


# -- an informer at its end --------------------------------------------------------------------


class Scene:
    """An informer of pods, and all that a program is told of what goes wrong."""

    def __init__(
        self,
        source: ListerWatcher,
        *,
        indexers: dict[str, IndexFunction] | None = None,
        liveness: LivenessPolicy | None = None,
        fail_fast: tuple[type[FetchError], ...] = (),
    ) -> None:
        self.noted = Noted(source)
        self.problems: list[tuple[float, Problem]] = []
        self.informer = SharedInformer(
            self.noted,
            indexers=indexers,
            liveness=liveness,
            fail_fast=fail_fast,
            on_error=lambda problem: self.problems.append((now(), problem)),
        )

    @property
    def asked(self) -> list[str]:
        """What was asked so far, in short."""
        return [in_short(request) for _, request in self.noted.asked]

    @property
    def cached(self) -> dict[str, str]:
        """Names and versions."""
        return {pod.name: pod.resource_version for pod in self.informer.lister.unsynced.list()}

    async def problem(self, number: int) -> Problem:
        """Wait for a problem, the first one being 1."""
        await until(lambda: len(self.problems) >= number)
        return self.problems[number - 1][1]

    async def request(self, number: int) -> float:
        """Wait for a request, the first one being 1; when it came."""
        await until(lambda: len(self.noted.asked) >= number)
        return self.noted.asked[number - 1][0]

    @asynccontextmanager
    async def played(self) -> AsyncGenerator[None]:
        """The informer, at work."""
        async with running(self.informer.run()):
            yield


def now() -> float:
    return asyncio.get_running_loop().time()


async def until(true: Callable[[], bool], *, within: float = 1_000.0) -> None:
    """Let simulated time go on until something is so."""
    async with asyncio.timeout(within):
        while not true():  # noqa: ASYNC110 - it may come from anywhere
            await asyncio.sleep(0.05)


def simulated(story: Callable[[], Coroutine[Any, Any, T]], *, seed: int = 5) -> T:
    return run(story(), seed=seed, horizon=100_000)
