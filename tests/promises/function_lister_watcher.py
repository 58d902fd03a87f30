"""A ``ListerWatcher`` whose responses a function computes, and a recording of its requests.

``tests/runtime/scripted_source`` returns scripted responses. This module adds times, on a simulated
loop. ``InformerHarness`` adds an informer and a list of the reported problems.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from aioinformer import ListerWatcher, ListRequest, Resource, SharedInformer, WatchRequest
from aioinformer._core.cache.store import IndexFunction
from aioinformer._core.listwatch.liveness import LivenessPolicy
from aioinformer._core.listwatch.reflector_requests import Request
from aioinformer._runtime.reporting.problem import Problem
from aioinformer.errors import FetchError
from aioinformer.testing.simulation import run
from tests.runtime.informers import running_in_background
from tests.runtime.scripted_source import PODS, ErrorResponse

T = TypeVar("T")


# -- answers -----------------------------------------------------------------------------------

ENDLESS_PAUSE = float("inf")
"""A pause without an end."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A 200 response: bytes, and pauses in seconds between them."""

    parts: tuple[bytes | float, ...] = ()
    error: FetchError | None = None
    """The error with which the response breaks off; ``None`` for a proper end."""


Answer: TypeAlias = Reply | ErrorResponse


def reply(*parts: bytes | float, error: FetchError | None = None) -> Reply:
    return Reply(parts, error)


def initial_events_end(version: int) -> bytes:
    """Return the bookmark at the end of the initial list of a WatchList."""
    annotations = '{"k8s.io/initial-events-end":"true"}'
    metadata = f'{{"resourceVersion":"{version}","annotations":{annotations}}}'
    return f'{{"type":"BOOKMARK","object":{{"metadata":{metadata}}}}}\n'.encode()


def in_sequence(*answers: Answer) -> Callable[[Request], Answer]:
    """Return the responses one after the other, then a response without data."""
    left = iter(answers)
    return lambda _: next(left, reply(ENDLESS_PAUSE))


# -- the network -------------------------------------------------------------------------------


def summarize(request: Request) -> str:
    """Return ``list 0``, ``whole 10`` (no pages), ``page t``, ``probe``, ``stream`` or ``watch``.

    The number is the resourceVersion, the letter the continue token.
    """
    version = request.resource_version or "newest"
    if isinstance(request, WatchRequest):
        return f"{'stream' if request.initial else 'watch'} {version}"
    if request.freshness_check:
        return "probe"
    if request.continue_token:
        return f"page {request.continue_token}"
    return f"{'list' if request.limit else 'whole'} {version}"


@dataclass(slots=True, eq=False)
class FunctionListerWatcher:
    """A ``ListerWatcher`` with a function that returns the response to each request."""

    respond: Callable[[Request], Answer]
    resource: Resource = PODS
    watch_lists: bool = True

    @asynccontextmanager
    async def list(self, request: ListRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        async with self._open_response(request) as chunks:
            yield chunks

    @asynccontextmanager
    async def watch(self, request: WatchRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        async with self._open_response(request) as chunks:
            yield chunks

    @asynccontextmanager
    async def _open_response(self, request: Request) -> AsyncGenerator[AsyncIterator[bytes]]:
        answer = self.respond(request)
        await asyncio.sleep(0)  # a network never answers at once
        if isinstance(answer, ErrorResponse):
            raise answer.error
        async with aclosing(_send_parts(answer)) as chunks:
            yield chunks


async def _send_parts(answer: Reply) -> AsyncGenerator[bytes]:
    for part in answer.parts:
        if isinstance(part, bytes):
            yield part
        elif part == ENDLESS_PAUSE:
            await asyncio.get_running_loop().create_future()
        else:
            await asyncio.sleep(part)
    if answer.error is not None:
        raise answer.error


@dataclass(slots=True, eq=False)
class RecordingListerWatcher:
    """A ``ListerWatcher`` that records its requests."""

    source: ListerWatcher
    requests: list[tuple[float, Request]] = field(default_factory=list[tuple[float, Request]])
    """The requests with their times."""

    @property
    def resource(self) -> Resource:
        return self.source.resource

    @property
    def watch_lists(self) -> bool:
        return self.source.watch_lists

    @asynccontextmanager
    async def list(self, request: ListRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        self.requests.append((loop_time(), request))
        async with self.source.list(request) as chunks:
            yield chunks

    @asynccontextmanager
    async def watch(self, request: WatchRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        self.requests.append((loop_time(), request))
        async with self.source.watch(request) as chunks:
            yield chunks


# -- an informer -------------------------------------------------------------------------------


class InformerHarness:
    """An informer of pods, and the problems that it has reported."""

    def __init__(
        self,
        source: ListerWatcher,
        *,
        indexers: dict[str, IndexFunction] | None = None,
        liveness: LivenessPolicy | None = None,
        fail_fast: tuple[type[FetchError], ...] = (),
        watch_list: bool = True,
    ) -> None:
        self.recorder = RecordingListerWatcher(source)
        self.problems: list[tuple[float, Problem]] = []
        self.informer = SharedInformer(
            self.recorder,
            indexers=indexers,
            liveness=liveness,
            fail_fast=fail_fast,
            watch_list=watch_list,
            on_error=lambda problem: self.problems.append((loop_time(), problem)),
        )

    @property
    def request_summaries(self) -> list[str]:
        """The requests so far, in a short form."""
        return [summarize(request) for _, request in self.recorder.requests]

    @property
    def cached_versions(self) -> dict[str, str]:
        """The resourceVersions of the cached pods, by name."""
        return {pod.name: pod.resource_version for pod in self.informer.lister.unsynced.list()}

    async def wait_for_problem(self, number: int) -> Problem:
        """Wait for the problem of this number, counted from 1."""
        await wait_until(lambda: len(self.problems) >= number)
        return self.problems[number - 1][1]

    async def wait_for_request(self, number: int) -> float:
        """Wait for the request of this number, counted from 1, and return its time."""
        await wait_until(lambda: len(self.recorder.requests) >= number)
        return self.recorder.requests[number - 1][0]

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Run the informer."""
        async with running_in_background(self.informer.run()):
            yield


def loop_time() -> float:
    return asyncio.get_running_loop().time()


async def wait_until(
    condition: Callable[[], bool], *, timeout: float = 1_000.0, every: float = 0.05
) -> None:
    """Advance simulated time until a condition is true, with a check every ``every`` seconds."""
    async with asyncio.timeout(timeout):
        while not condition():  # noqa: ASYNC110 - the condition may depend on anything
            await asyncio.sleep(every)


def run_simulated(scenario: Callable[[], Coroutine[Any, Any, T]], *, seed: int = 5) -> T:
    return run(scenario(), seed=seed, horizon=100_000)
