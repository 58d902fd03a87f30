"""The requests of hundreds of informers of one client to a server that comes back.

The time is simulated. The cluster in memory uses the same ``RequestScheduler`` as a client.
``pytest -s`` prints the worst seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import pytest

from aioinformer import Limits, SharedInformer, SharedInformerFactory
from aioinformer._client.api.request_scheduler import RequestScheduler
from aioinformer._core.objects.resources import Resource
from aioinformer.testing import Cluster, ClusterSource, Fault, Faults
from aioinformer.testing.simulation import run

T = TypeVar("T")

INFORMERS = 250
MANY_INFORMERS = 500
"""The work of the cluster in memory grows with the square of this number."""
OUTAGE = 60.0
"""Seconds."""
MOST = 50
"""Requests in any second."""
LOOK = 0.02
"""Seconds between two looks at the server: what is counted as one second lasts 1.02 s."""


@dataclass(slots=True)
class Counter:
    """A count of the requests to a server, including rejected connections, over time."""

    fault: Fault
    """Concerns every request, and delays it as a network would."""
    seen: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])

    async def run(self) -> None:
        """Look, until cancelled."""
        while True:
            self.seen.append((_now(), self.fault.hits))
            await asyncio.sleep(LOOK)

    def windows(self, since: float) -> Iterator[tuple[float, int]]:
        """Each second after some moment, starting at every look: when, and how many requests."""
        seen = [each for each in self.seen if each[0] >= since]
        first = 0
        for at, total in seen:
            while seen[first][0] < at - 1.0 - LOOK / 2:
                first += 1
            yield seen[first][0], total - seen[first][1]

    def worst(self, since: float) -> int:
        """Return the maximum number of requests in any second after a time."""
        return max(count for _, count in self.windows(since))

    def between(self, start: float, end: float) -> int:
        """Return the number of requests in an interval."""
        totals = [total for at, total in self.seen if start <= at <= end]
        return totals[-1] - totals[0]

    def next_request(self, since: float) -> float:
        """Return the time of the first request after a time."""
        later = [each for each in self.seen if each[0] >= since]
        return next(at for at, total in later if total > later[0][1])


class Harness:
    """A cluster with a pod in each of many namespaces, and an informer of each."""

    resource: str | Resource = "pods"

    def __init__(
        self, limits: Limits | None = None, *, latency: float = 0.01, informers: int = INFORMERS
    ) -> None:
        self.namespaces = [f"n{number}" for number in range(informers)]
        self.cluster, self.faults = Cluster(), Faults()
        self.counter = Counter(self.faults.latency(latency))
        self.traffic = RequestScheduler(limits)
        self.informers: list[SharedInformer] = []
        self.change("first")

    def change(self, name: str) -> None:
        """One more pod in each namespace."""
        for namespace in self.namespaces:
            pod = {"metadata": {"name": name, "namespace": namespace}}
            self.cluster.create("pods", pod, namespace=namespace)

    async def hang_up(self) -> None:
        """Break all open connections."""
        with self.faults.reset():
            await asyncio.sleep(LOOK)

    async def fail(self, lasting: float) -> None:
        """Break all open connections, and reject new ones for some seconds."""
        with self.faults.refuse():
            await self.hang_up()
            await asyncio.sleep(lasting)

    @asynccontextmanager
    async def started(self) -> AsyncGenerator[None]:
        """Run the informers."""
        source = ClusterSource(self.cluster, self.faults, traffic=self.traffic)
        counting = asyncio.create_task(self.counter.run())
        try:
            async with SharedInformerFactory(source) as factory:
                self.informers = [
                    factory.informer(self.resource, namespace=name) for name in self.namespaces
                ]
                yield
        finally:
            counting.cancel()
            await asyncio.wait([counting])

    async def converge(self, *names: str) -> float:
        """Wait until every cache has just these pods; when that was."""
        wanted = set(names)
        for informer in self.informers:
            while _names(informer) != wanted:  # noqa: ASYNC110 - the cache says nothing by itself
                await asyncio.sleep(0.1)
        return _now()


def _names(informer: SharedInformer) -> set[str]:
    return {pod.name for pod in informer.lister.list()} if informer.synced else set()


def _now() -> float:
    return asyncio.get_running_loop().time()


def simulated(scenario: Callable[[], Coroutine[object, object, T]], *, seed: int = 7) -> T:
    return run(scenario(), seed=seed, horizon=2_000)


def tell(title: str, counter: Counter, moments: dict[str, tuple[float, float]]) -> None:
    lines = [title, f"  {'':28}{'from':>8}{'to':>9}{'requests':>10}{'worst second':>14}"]
    for name, (start, end) in moments.items():
        worst = max(count for at, count in counter.windows(start) if at <= end)
        total = counter.between(start, end)
        lines.append(f"  {name:28}{start:7.1f} s{end:7.1f} s{total:10}{worst:14}")
    print("", *lines, sep="\n")  # noqa: T201 - to be read with -s


# -- down --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("compacted", "informers"),
    [
        pytest.param(False, INFORMERS, id="resumed", marks=pytest.mark.simulation),
        pytest.param(False, MANY_INFORMERS, id="many resumed", marks=pytest.mark.simulation),
        pytest.param(True, INFORMERS, id="relisted"),
    ],
)
def test_11_informers_send_at_most_fifty_requests_a_second_after_an_outage(
    compacted: bool, informers: int
) -> None:
    async def scenario() -> tuple[Harness, dict[str, tuple[float, float]]]:
        harness = Harness(informers=informers)
        async with harness.started():
            synced = await harness.converge("first")
            await asyncio.sleep(30.0)
            down = _now()
            failing = asyncio.create_task(harness.fail(OUTAGE))
            await asyncio.sleep(1.0)
            harness.change("second")
            if compacted:
                harness.cluster.compact()
            await failing
            up = _now()
            converged = await harness.converge("first", "second")
            await asyncio.sleep(60.0)
        return harness, {
            "start": (0.0, synced + 1.0),
            "down": (down, up),
            "until all have converged": (up, converged + 1.0),
            "and a minute more": (converged + 1.0, converged + 60.0),
        }

    harness, moments = simulated(scenario)
    title = f"{informers} informers, down for 60 s in the middle"
    tell(f"{title}, history {'gone' if compacted else 'kept'}", harness.counter, moments)
    down, up = moments["down"]
    assert harness.counter.worst(down) <= MOST
    assert harness.counter.between(down, up) >= informers  # they did try
    assert moments["until all have converged"][1] - up <= 90.0


@pytest.mark.parametrize(
    "outage",
    [
        pytest.param(OUTAGE, id="60 s", marks=pytest.mark.simulation),
        pytest.param(3.0, id="3 s"),
    ],
)
def test_11_informers_send_at_most_fifty_requests_a_second_after_an_outage_at_the_start(
    outage: float,
) -> None:
    """Three seconds are too short for all to have asked: the rest is still in line afterwards."""

    async def scenario() -> tuple[Harness, dict[str, tuple[float, float]]]:
        harness = Harness()
        refusing = harness.faults.refuse()
        async with harness.started():
            await asyncio.sleep(outage)
            refusing.end()
            converged = await harness.converge("first")
        return harness, {"down": (0.0, outage), "until all have synced": (outage, converged)}

    harness, moments = simulated(scenario)
    tell(f"{INFORMERS} informers, down from the start for {outage:g} s", harness.counter, moments)
    assert harness.counter.worst(0.0) <= MOST
    assert moments["until all have synced"][1] - outage <= 90.0


# -- a resource that isn't served --------------------------------------------------------------


WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
READERS = 200


class Absent(Harness):
    """A cluster that may have widgets or not, and an informer of them in each namespace."""

    resource = WIDGETS

    def __init__(self, *, served: bool) -> None:
        super().__init__(informers=READERS)
        if served:
            self.install()

    def install(self) -> None:
        """Add the resource with one object in each namespace."""
        self.cluster.add_resource(WIDGETS)
        for namespace in self.namespaces:
            widget = {"metadata": {"name": "first", "namespace": namespace}}
            self.cluster.create(WIDGETS, widget, namespace=namespace)


@pytest.mark.parametrize(
    "served",
    [
        pytest.param(False, id="never there", marks=pytest.mark.simulation),
        pytest.param(True, id="removed"),
    ],
)
def test_informers_send_at_most_fifty_requests_a_second_for_a_resource_that_is_not_served(
    served: bool,
) -> None:
    """Each informer lists, is answered 404, and looks whether the resource is served at all."""

    async def scenario() -> tuple[Absent, dict[str, tuple[float, float]]]:
        harness = Absent(served=served)
        async with harness.started():
            await asyncio.sleep(30.0)
            gone = 30.0 if served else 1.0  # the first list of each is a start, not a restart
            if served:
                harness.cluster.remove_resource(WIDGETS)
            await asyncio.sleep(120.0)
            back = _now()
            harness.install()
            converged = await harness.converge("first")
        return harness, {"gone": (gone, back), "until all have converged": (back, converged)}

    harness, moments = simulated(scenario)
    tell(f"{READERS} informers of a resource that is not served", harness.counter, moments)
    gone, back = moments["gone"]
    assert harness.counter.worst(gone) <= MOST
    assert harness.counter.between(gone, back) >= READERS  # they did look
    assert moments["until all have converged"][1] - back <= 120.0


# -- Retry-After -------------------------------------------------------------------------------


def test_one_retry_after_holds_all_informers_back() -> None:
    async def scenario() -> tuple[Harness, float]:
        harness = Harness()
        async with harness.started():
            await harness.converge("first")
            await asyncio.sleep(5.0)
            harness.faults.status(429, retry_after=10, times=1)
            down = _now()
            await asyncio.sleep(2 * LOOK)
            await harness.hang_up()  # all want to watch again, and the first to ask is told
            harness.change("second")
            await harness.converge("first", "second")
        return harness, down

    harness, down = simulated(scenario)
    tell(
        f"{INFORMERS} informers, one 429 with Retry-After: 10",
        harness.counter,
        {"all watches broke": (down, down + 40.0)},
    )
    first_request = harness.counter.next_request(down)
    # What was on its way when the answer came may still arrive.
    assert 1 <= harness.counter.between(down, first_request + 0.1) <= Limits().burst
    assert harness.counter.between(first_request + 0.1, first_request + 9.9) == 0
    assert harness.counter.worst(first_request) <= MOST


# -- lists -------------------------------------------------------------------------------------


def test_at_most_eight_initial_lists_are_read_at_a_time() -> None:
    async def scenario() -> tuple[list[int], float]:
        harness, held = Harness(latency=0.1), list[int]()

        async def watch() -> None:
            while True:
                held.append(harness.traffic.initial_lists)
                await asyncio.sleep(LOOK)

        async with harness.started():
            watching = asyncio.create_task(watch())
            synced = await harness.converge("first")
            watching.cancel()
            await asyncio.wait([watching])
        return held, synced

    held, synced = simulated(scenario)
    assert max(held) == Limits().lists
    # Each takes 0.1 s: as fast as eight at a time can be, and no faster.
    assert 0.1 * INFORMERS / Limits().lists <= synced <= 0.15 * INFORMERS / Limits().lists


@pytest.mark.simulation
def test_without_the_limits_informers_send_more_than_four_times_as_many_requests() -> None:
    """The other tests compare with this case: each informer has only its own backoff."""

    async def scenario() -> tuple[Harness, float]:
        harness = Harness(Limits(lists=INFORMERS, restarts=1e6, burst=INFORMERS))
        async with harness.started():
            await harness.converge("first")
            down = _now()
            await harness.fail(10.0)
            await harness.converge("first")
        return harness, down

    harness, down = simulated(scenario)
    title = f"{INFORMERS} informers without limits"
    tell(title, harness.counter, {"down for 10 s": (down, down + 40.0)})
    assert harness.counter.worst(down) > 4 * MOST
