"""The requests of one informer to a server that fails for ten minutes, for each kind of failure.

The informer may send at most five requests after a failure in the first ten seconds, and three in
any minute after the first two. ``pytest -s`` prints the table. The time is simulated;
``test_politeness`` tests the requests of many informers together.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from itertools import cycle, pairwise

import pytest
from msgspec import structs

from aioinformer import ListRequest, Resource, SharedInformer
from aioinformer._core.listwatch.reflector_requests import Request, WatchRequest
from aioinformer.errors import (
    ConnectionFailed,
    ConnectionLost,
    FetchError,
    Status,
    server_error,
)
from tests.promises.function_lister_watcher import (
    ENDLESS_PAUSE,
    Answer,
    FunctionListerWatcher,
    InformerHarness,
    RecordingListerWatcher,
    Reply,
    initial_events_end,
    loop_time,
    reply,
    run_simulated,
)
from tests.runtime.informers import running_in_background
from tests.runtime.scripted_source import (
    PODS,
    ErrorResponse,
    added,
    body,
    bookmark,
    error_event,
    error_response,
    list_response,
)
from tests.simulation.checks import limits

FIRST, LATER = limits.BUDGET[1], limits.LATER[1]
"""Requests in the first ten seconds, and in a minute later."""
OUTAGE = 600.0
QUIET = 250.0
"""Seconds of a watch before it all begins."""

LOST = ConnectionLost("reset by peer")
LISTED = Reply(list_response(body("a", 3), version="10").chunks)

Answers = Callable[[Request], Answer]


def always(answer: Answer) -> Answers:
    return lambda _: answer


def streams(answer: Answer) -> Answers:
    """Return a server that answers watches and WatchLists with ``answer``, and serves lists."""
    return lambda request: answer if isinstance(request, WatchRequest) else LISTED


def watches(answer: Answer) -> Answers:
    """Return a server that answers watches with ``answer``, and serves WatchLists and lists."""

    def answers(request: Request) -> Answer:
        if not isinstance(request, WatchRequest):
            return LISTED
        if not request.initial:
            return answer
        live = answer.parts if isinstance(answer, Reply) else ()
        then = answer.error if isinstance(answer, Reply) else LOST
        return Reply((added("a", 3), initial_events_end(10), *live), then)

    return answers


def unmarked(request: Request) -> Answer:
    """Answer as a server that treats a WatchList like a plain watch, and then rejects lists."""
    if isinstance(request, WatchRequest) and request.initial:
        return reply(added("a", 3), ENDLESS_PAUSE)
    return error_response(500, "InternalError")


def unserved(request: Request) -> Answer:
    """Answer as a server without WatchLists whose lists fail."""
    if isinstance(request, WatchRequest):
        return error_response(422, "Invalid")
    return error_response(503, "ServiceUnavailable")


def expiring(request: Request) -> Answer:
    """Answer as a server that lists, and whose listed version expires at once."""
    if isinstance(request, WatchRequest):
        return reply(error_event(410, "Expired"))
    return LISTED


def between_pages(request: Request) -> Answer:
    """Answer as a server whose continue tokens never work."""
    if isinstance(request, WatchRequest):
        return error_response(422, "Invalid")
    if request.continue_token:
        return error_response(410, "Expired")
    return (
        Reply(list_response(body("a", 3), token="t").chunks)
        if request.limit
        else error_response(500, "")
    )


REFUSED = ErrorResponse(ConnectionFailed("refused"))

MANNERS: dict[str, Answers] = {
    "401": always(error_response(401, "Unauthorized")),
    "403": always(error_response(403, "Forbidden")),
    "404": always(error_response(404, "NotFound")),
    "429": always(error_response(429, "TooManyRequests")),
    "429, Retry-After 1": always(error_response(429, "TooManyRequests", retry=1.0)),
    "500": always(error_response(500, "InternalError")),
    "503, Retry-After 5": always(error_response(503, "ServiceUnavailable", retry=5.0)),
    "a redirect": always(error_response(302, "Found")),
    "endless 410": always(error_response(410, "Expired")),
    "endless 410, as events": expiring,
    "endless 410, of watches": watches(error_response(410, "Expired")),
    "endless 410, of pages": between_pages,
    "endless too large": always(error_response(504, "Timeout", "Too large resource version: 9")),
    "refused": always(REFUSED),
    "reset at once": always(ErrorResponse(LOST)),
    "reset, lists in the middle": always(Reply(LISTED.parts[:1], LOST)),
    "reset, streams in the middle": streams(reply(added("b", 4), error=LOST)),
    "reset, watches behind a bookmark": watches(reply(bookmark(11), error=LOST)),
    "instant close": always(reply()),
    "instant close, of streams": streams(reply()),
    "instant close, of watches": watches(reply()),
    "instant close, behind a bookmark": watches(reply(bookmark(11))),
    "instant close, behind an old event": watches(reply(added("a", 3))),
    "cut after 2 s, watches": watches(reply(2.0)),
    "cut after 2 s, streams": streams(reply(added("b", 4), 2.0)),
    "garbage": always(reply(b"<html>\n")),
    "garbage, in streams": streams(reply(b"<html>\n")),
    "garbage, in watches": watches(reply(b"<html>\n")),
    "an error event 500, in watches": watches(reply(error_event(500, "InternalError"))),
    "403, of watches": watches(error_response(403, "Forbidden")),
    "500, of watches": watches(error_response(500, "InternalError")),
    "404, of watches": watches(error_response(404, "NotFound")),
    "405, of watches": watches(error_response(405, "MethodNotAllowed")),
    "silence": always(reply(ENDLESS_PAUSE)),
    "a WatchList without a mark": unmarked,
    "a WatchList unserved, lists fail": unserved,
}


POLLED = {"403, of watches", "404, of watches", "405, of watches"}
"""The failures after which lists refresh the cache."""


@dataclass(frozen=True, slots=True)
class Spent:
    """The requests after a failure."""

    total: int
    """Requests, all in all."""
    retries: tuple[float, ...]
    """Seconds since the first failure, of each request that followed one."""

    def __str__(self) -> str:
        return f"{self.first:>8}{self.later:>10}{len(self.retries):>9}{self.total:>8}"

    @property
    def first(self) -> int:
        """In the first ten seconds."""
        return sum(at <= 10.0 for at in self.retries)

    @property
    def later(self) -> int:
        """In the worst minute that begins two minutes later or after that."""
        late = [at for at in self.retries if at >= 120.0]
        return max((sum(at <= other < at + 60.0 for other in late) for at in late), default=0)


class Table:
    """All of it, for people."""

    def __init__(self) -> None:
        self.rows: dict[str, Spent] = {}

    def __str__(self) -> str:
        head = f"\n{'':44}{'10 s':>8}{'a minute':>10}{'retries':>9}{'total':>8}\n"
        return head + "\n".join(f"{name:44}{spent}" for name, spent in self.rows.items())


@pytest.fixture(scope="module")
def table() -> Iterator[Table]:
    table = Table()
    yield table
    print(table)  # noqa: T201 - to be read with -s


def spent(harness: InformerHarness, since: float) -> Spent:
    """Each request behind a failure follows it: nothing else happens in between."""
    failures = [(at, 0) for at, problem in harness.problems if problem.phase != "rewind"]
    requests = [(at, 1) for at, _ in harness.recorder.requests]
    line = sorted([*failures, *requests])
    begun = min((at for at, _ in failures), default=since)
    retries = [at - begun for (_, before), (at, what) in pairwise(line) if what and not before]
    return Spent(sum(at >= since for at, _ in requests), tuple(retries))


def from_the_start(answers: Answers) -> InformerHarness:
    return InformerHarness(FunctionListerWatcher(answers))


def later(answers: Answers) -> InformerHarness:
    """Return an informer of a server whose first watch works for a while and is then cut."""
    minutes = (60.0, bookmark(10)) * int(QUIET / 60.0)
    sound = iter([reply(added("a", 3), initial_events_end(10), *minutes, 10.0, error=LOST)])
    return InformerHarness(
        FunctionListerWatcher(lambda request: next(sound, None) or answers(request))
    )


@pytest.mark.parametrize("begun", [from_the_start, later], ids=["from the start", "later"])
@pytest.mark.parametrize("manner", MANNERS)
def test_11_an_informer_keeps_to_the_budget_of_requests(
    manner: str, begun: Callable[[Answers], InformerHarness], table: Table
) -> None:
    async def scenario() -> Spent:
        harness = begun(MANNERS[manner])
        async with harness.running():
            await asyncio.sleep(QUIET + OUTAGE)
            assert loop_time() >= OUTAGE
        return spent(harness, 0.0)

    counted = run_simulated(scenario)
    table.rows[f"{manner}{', later' if begun is later else ''}"] = counted
    assert counted.first <= FIRST
    assert counted.later <= LATER
    if manner in POLLED:
        # A list a minute, and now and then a watch: neither follows a failure of its own.
        assert counted.total <= 3 + 2 * (QUIET + OUTAGE) / 60.0
        return
    if manner != "silence":
        assert len(counted.retries) >= 5
    assert counted.total <= 2 * len(counted.retries) + 5


# -- a resource that isn't there ---------------------------------------------------------------

PODS_V2 = structs.replace(PODS, version="v2")

DISCOVERY: dict[str, tuple[Resource | FetchError | None, ...]] = {
    "says that it is absent": (None,),
    "says that it is served": (PODS,),
    "is forbidden": (server_error(Status(403, "Forbidden")),),
    "is unreachable": (ConnectionFailed("refused"),),
    "says now this, now that": (None, PODS),
    "names another version each time": (PODS_V2, PODS),
}
"""The results of discovery, in turn, for a resource whose lists and watches all get a 404."""


@dataclass(slots=True, eq=False)
class Located:
    """A ``ListerWatcher`` that can check if its resource is served (``SupportsDiscovery``)."""

    says: Iterator[Resource | FetchError | None]
    noted: RecordingListerWatcher
    looks: list[float]

    @property
    def resource(self) -> Resource:
        return self.noted.resource

    @property
    def watch_lists(self) -> bool:
        return True

    def list(self, request: ListRequest) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self.noted.list(request)

    def watch(self, request: WatchRequest) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self.noted.watch(request)

    async def discover(self) -> Resource | None:
        self.looks.append(loop_time())
        found = next(self.says)
        if isinstance(found, FetchError):
            raise found
        return found

    def with_resource(self, resource: Resource) -> Located:
        line = FunctionListerWatcher(always(error_response(404, "NotFound")), resource=resource)
        return Located(self.says, RecordingListerWatcher(line, self.noted.requests), self.looks)


@pytest.mark.parametrize("discovery", DISCOVERY)
def test_11_requests_for_discovery_are_within_the_budget(discovery: str, table: Table) -> None:
    """What is new is asked for at once: one more request, behind an answer."""

    async def scenario() -> Spent:
        line = FunctionListerWatcher(always(error_response(404, "NotFound")))
        source = Located(cycle(DISCOVERY[discovery]), RecordingListerWatcher(line), [])
        async with running_in_background(SharedInformer(source).run()):
            await asyncio.sleep(OUTAGE)
        first, *others = sorted([at for at, _ in source.noted.requests] + source.looks)
        return Spent(len(others) + 1, tuple(at - first for at in others))

    counted = run_simulated(scenario)
    table.rows[f"404, discovery {discovery}"] = counted
    assert counted.first <= FIRST
    assert counted.later <= LATER + ("another" in discovery or "now that" in discovery)
    assert counted.total >= 5
