"""The order of waiting requests and the effect of cancellations, in simulated time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import TypeVar

import pytest

from aioinformer._client.api.request_scheduler import (
    PAGE_SLOT_SECONDS,
    ReflectorLane,
    RequestScheduler,
)
from aioinformer._client.client import Client
from aioinformer._core.listwatch.rate_limit import Limits
from aioinformer._core.listwatch.reflector_requests import (
    AnyRequest,
    DiscoveryRequest,
    ListRequest,
    WatchRequest,
)
from aioinformer._core.objects.resources import find_built_in
from aioinformer.errors import ConnectionLost, FetchError, Forbidden, Status, server_error
from aioinformer.testing import ApiServer
from aioinformer.testing.simulation import run

T = TypeVar("T")

PODS = find_built_in("pods")
FIRST = ListRequest()
PAGE = ListRequest("", 500, "token")
WATCH = WatchRequest("7", 300)
WATCH_LIST = WatchRequest("", 300, initial=True)
RELIST = ListRequest("7", restart=True)
REWATCH = WatchRequest("7", 300, restart=True)
PROBE = ListRequest("", 1, freshness_check=True)
LOOKUP = DiscoveryRequest()


def simulated(scenario: Callable[[], Coroutine[object, object, T]]) -> T:
    return run(scenario(), seed=7, horizon=10_000)


def now() -> float:
    return asyncio.get_running_loop().time()


async def send(lane: ReflectorLane, request: AnyRequest, *, lasting: float = 0.0) -> float:
    """Send a request that succeeds and return the time of sending."""
    async with lane.acquire(request):
        sent = now()
        lane.record_response()
        await asyncio.sleep(lasting)
    return sent


async def fail(
    scheduler: RequestScheduler, error: FetchError, request: AnyRequest = FIRST
) -> float:
    """Send a request that fails with this error and return the time of sending."""
    sent: list[float] = []

    async def attempt() -> None:
        async with scheduler.create_lane().acquire(request):
            sent.append(now())
            raise error

    with pytest.raises(type(error)) as raised:
        await attempt()
    assert raised.value is error
    return sent[0]


async def at_once(sendings: list[Awaitable[float]]) -> list[float]:
    return await asyncio.gather(*sendings)


LOST = ConnectionLost("reset")


def busy(seconds: float) -> FetchError:
    return server_error(Status(429, retry_after=seconds))


# -- slots ------------------------------------------------------------------------------------


@pytest.mark.parametrize("request_", [FIRST, WATCH_LIST], ids=["list", "watchlist"])
def test_eight_initial_lists_are_read_at_once(request_: AnyRequest) -> None:
    async def scenario() -> list[float]:
        scheduler = RequestScheduler()
        return await at_once(
            [send(scheduler.create_lane(), request_, lasting=5.0) for _ in range(20)]
        )

    sent = simulated(scenario)
    # A list keeps its slot for a moment more, for its next page.
    step = 5.0 + (PAGE_SLOT_SECONDS if request_ is FIRST else 0.0)
    assert sorted(sent) == pytest.approx([0.0] * 8 + [step] * 8 + [2 * step] * 4)


@pytest.mark.parametrize("request_", [WATCH, PROBE], ids=["watch", "probe"])
def test_a_request_without_an_initial_list_needs_no_slot(request_: AnyRequest) -> None:
    async def scenario() -> list[float]:
        scheduler = RequestScheduler(Limits(lists=1))
        return await at_once(
            [send(scheduler.create_lane(), request_, lasting=5.0) for _ in range(20)]
        )

    assert simulated(scenario) == [0.0] * 20


def test_a_resource_lookup_needs_no_slot_and_frees_the_kept_one() -> None:
    async def scenario() -> list[object]:
        scheduler = RequestScheduler(Limits(lists=1))
        lane = scheduler.create_lane()
        await send(lane, FIRST)  # keeps its slot for a next page
        held = scheduler.initial_lists
        await send(lane, LOOKUP)
        return [held, scheduler.initial_lists, await send(scheduler.create_lane(), FIRST)]

    assert simulated(scenario) == [1, 0, 0.0]


def test_slots_are_assigned_in_the_order_of_the_requests() -> None:
    async def scenario() -> list[int]:
        scheduler, order = RequestScheduler(Limits(lists=2)), list[int]()

        async def one(number: int) -> None:
            async with scheduler.create_lane().acquire(WATCH_LIST):
                order.append(number)
                await asyncio.sleep(1.0)

        tasks: list[asyncio.Task[None]] = []
        for number in range(12):
            tasks.append(asyncio.create_task(one(number)))
            await asyncio.sleep(0.001)
        await asyncio.gather(*tasks)
        return order

    assert simulated(scenario) == list(range(12))


def test_a_watch_list_frees_its_slot_once_when_its_initial_list_is_complete() -> None:
    async def scenario() -> tuple[float, int]:
        scheduler = RequestScheduler(Limits(lists=1))

        async def stream() -> None:
            lane = scheduler.create_lane()
            async with lane.acquire(WATCH_LIST):
                await asyncio.sleep(2.0)
                lane.release_list_slot()
                lane.release_list_slot()  # a second call frees no second slot
                await asyncio.sleep(100.0)

        streaming = asyncio.create_task(stream())
        await asyncio.sleep(0)
        sent = await send(scheduler.create_lane(), WATCH_LIST)
        streaming.cancel()
        await asyncio.wait([streaming])
        return sent, scheduler.initial_lists

    assert simulated(scenario) == (2.0, 0)


def test_a_list_keeps_its_slot_for_its_pages() -> None:
    """Otherwise every page of one list would let another begin."""

    async def scenario() -> tuple[list[float], float]:
        scheduler = RequestScheduler(Limits(lists=1))

        async def pages() -> list[float]:
            lane = scheduler.create_lane()
            sent = [await send(lane, FIRST, lasting=1.0)]
            for _ in range(3):
                await asyncio.sleep(PAGE_SLOT_SECONDS / 2)
                sent.append(await send(lane, PAGE, lasting=1.0))
            sent.append(await send(lane, WATCH, lasting=100.0))
            return sent

        paging = asyncio.create_task(pages())
        await asyncio.sleep(0.1)
        other = await send(scheduler.create_lane(), FIRST)
        return await paging, other

    pages, other = simulated(scenario)
    assert pages == pytest.approx([0.0, 1.5, 3.0, 4.5, 5.5])
    assert other == pytest.approx(5.5)  # the watch after the last page gave the slot back


def test_the_watch_after_a_list_frees_the_slot_of_the_list() -> None:
    async def scenario() -> float:
        scheduler = RequestScheduler(Limits(lists=1))
        lane = scheduler.create_lane()
        await send(lane, FIRST)
        async with lane.acquire(WATCH):
            return await send(scheduler.create_lane(), FIRST)

    assert simulated(scenario) == 0.0


def test_the_end_of_a_watch_list_frees_no_slot_of_a_list_on_the_same_lane() -> None:
    """A verification lists while the reflector watches."""

    async def scenario() -> int:
        scheduler = RequestScheduler(Limits(lists=2))
        lane = scheduler.create_lane()
        async with lane.acquire(WATCH_LIST), lane.acquire(FIRST):
            lane.release_list_slot()
            return scheduler.initial_lists

    assert simulated(scenario) == 1


def test_a_slot_that_is_kept_for_a_next_page_is_free_after_a_second() -> None:
    async def scenario() -> list[float]:
        scheduler = RequestScheduler(Limits(lists=1))
        return [
            await send(scheduler.create_lane(), FIRST),
            await send(scheduler.create_lane(), FIRST),
        ]

    assert simulated(scenario) == [0.0, PAGE_SLOT_SECONDS]


def test_a_list_without_an_end_frees_its_slot_after_a_minute() -> None:
    async def scenario() -> tuple[float, int]:
        scheduler = RequestScheduler(Limits(lists=1))
        dripping = asyncio.create_task(send(scheduler.create_lane(), FIRST, lasting=1000.0))
        await asyncio.sleep(0)
        sent = await send(scheduler.create_lane(), WATCH_LIST)
        await dripping
        return sent, scheduler.initial_lists

    assert simulated(scenario) == (60.0, 0)


@pytest.mark.parametrize("error", [LOST, RuntimeError("a bug"), asyncio.CancelledError()])
def test_a_failed_request_frees_its_slot(error: BaseException) -> None:
    async def scenario() -> int:
        scheduler = RequestScheduler(Limits(lists=1))
        with pytest.raises(type(error)):
            async with scheduler.create_lane().acquire(FIRST):
                raise error
        return scheduler.initial_lists

    assert simulated(scenario) == 0


# -- restarts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("request_", [REWATCH, RELIST, LOOKUP], ids=["watch", "list", "lookup"])
def test_twenty_restarts_a_second_are_sent_after_a_burst_of_five(request_: AnyRequest) -> None:
    async def scenario() -> list[float]:
        scheduler = RequestScheduler(Limits(lists=1000))
        return await at_once([send(scheduler.create_lane(), request_) for _ in range(45)])

    sent = sorted(simulated(scenario))
    assert sent == pytest.approx([0.0] * 5 + [0.05 * n for n in range(1, 41)])


def test_tokens_are_assigned_in_the_order_of_the_requests() -> None:
    async def scenario() -> list[float]:
        scheduler, line = RequestScheduler(Limits(lists=1000)), list[asyncio.Task[float]]()
        for number in range(30):
            request: AnyRequest = RELIST if number % 3 == 0 else REWATCH
            line.append(asyncio.create_task(send(scheduler.create_lane(), request)))
            await asyncio.sleep(0.001)
        return [await each for each in line]

    sent = simulated(scenario)
    assert sent == sorted(sent)
    assert sent[-1] > 1.0


def test_a_request_that_follows_a_success_takes_no_token() -> None:
    async def scenario() -> list[float]:
        scheduler = RequestScheduler()
        await at_once([send(scheduler.create_lane(), REWATCH) for _ in range(5)])
        requests: list[AnyRequest] = [FIRST, PAGE, WATCH] * 10
        return await at_once([send(scheduler.create_lane(), each) for each in requests])

    assert simulated(scenario)[:3] == [0.0, 0.0, 0.0]


def test_first_requests_to_a_failing_server_take_tokens() -> None:
    async def scenario() -> list[float]:
        scheduler = RequestScheduler(Limits(lists=1000))
        await fail(scheduler, LOST)
        return await at_once([fail(scheduler, LOST) for _ in range(24)])

    sent = sorted(simulated(scenario))
    assert sent[:4] == [0.0] * 4  # the first one was let through before anybody knew
    assert sent == pytest.approx([0.0] * 5 + [0.05 * n for n in range(1, 20)])


def test_first_requests_take_no_token_after_the_server_has_answered() -> None:
    async def scenario() -> list[float]:
        scheduler = RequestScheduler(Limits(lists=1000))
        await fail(scheduler, LOST)
        await send(scheduler.create_lane(), REWATCH)
        return await at_once([send(scheduler.create_lane(), FIRST) for _ in range(25)])

    assert simulated(scenario) == [0.0] * 25


def test_the_pages_of_a_list_take_no_token_from_a_failing_server() -> None:
    """A long list would come to no end if each of its pages went behind five hundred restarts."""

    async def scenario() -> list[float]:
        scheduler = RequestScheduler()
        await fail(scheduler, LOST)
        requests: list[AnyRequest] = [WATCH, PAGE] * 4
        return await at_once([send(scheduler.create_lane(), each) for each in requests])

    assert simulated(scenario) == [0.0] * 8


def test_requests_that_waited_during_an_outage_take_tokens_after_it() -> None:
    async def scenario() -> list[float]:
        scheduler = RequestScheduler(Limits(lists=1))

        async def hold() -> None:
            async with scheduler.create_lane().acquire(WATCH_LIST):
                await asyncio.sleep(1.0)

        holding = asyncio.create_task(hold())
        await asyncio.sleep(0)
        line = [asyncio.create_task(send(scheduler.create_lane(), WATCH_LIST)) for _ in range(25)]
        await asyncio.sleep(0)
        await fail(scheduler, LOST, WATCH)
        await send(scheduler.create_lane(), WATCH)
        assert not scheduler.limiter.failing
        await holding
        return [await each for each in line]

    sent = sorted(simulated(scenario))
    assert sent[:5] == pytest.approx([1.0] * 5)
    assert sent[-1] == pytest.approx(2.0)


def test_an_error_after_the_response_has_started_counts_as_a_failure() -> None:
    async def scenario() -> bool:
        scheduler = RequestScheduler()

        async def broken() -> None:
            lane = scheduler.create_lane()
            async with lane.acquire(WATCH):
                lane.record_response()
                raise LOST

        with pytest.raises(ConnectionLost):
            await broken()
        return scheduler.limiter.failing

    assert simulated(scenario)


# -- the gate ----------------------------------------------------------------------------------


def test_after_a_retry_after_all_requests_wait_and_the_bucket_spreads_them() -> None:
    async def scenario() -> dict[str, list[float]]:
        scheduler = RequestScheduler(Limits(lists=1000))
        await fail(scheduler, busy(3.0))
        requests: dict[str, AnyRequest] = {
            "first": FIRST,
            "page": PAGE,
            "watch": WATCH,
            "again": REWATCH,
        }
        line = {
            name: [asyncio.create_task(send(scheduler.create_lane(), each)) for _ in range(10)]
            for name, each in requests.items()
        }
        return {name: sorted([await each for each in tasks]) for name, tasks in line.items()}

    sent = simulated(scenario)
    assert min(map(min, sent.values())) == 3.0
    assert sent["page"] == sent["watch"] == [3.0] * 10
    tokens = sorted(sent["first"] + sent["again"])
    assert tokens == pytest.approx([3.0] * 5 + [3.0 + 0.05 * n for n in range(1, 16)])


def test_a_longer_retry_after_extends_the_wait_of_waiting_requests() -> None:
    async def scenario() -> list[float]:
        scheduler = RequestScheduler()
        await fail(scheduler, busy(3.0))
        requests: list[AnyRequest] = [WATCH, REWATCH]
        line = [asyncio.create_task(send(scheduler.create_lane(), each)) for each in requests]
        await asyncio.sleep(2.0)
        scheduler.record_failure(busy(10.0))
        return [await each for each in line]

    assert simulated(scenario) == [12.0, 12.0]


def test_a_retry_after_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        scheduler = RequestScheduler()
        for seconds in (3.0, 5.0):
            scheduler.record_failure(busy(seconds))

    with caplog.at_level("INFO", logger="aioinformer.traffic"):
        simulated(scenario)
    assert caplog.messages == [
        "the server asks for a pause (Retry-After): no list or watch for 3.0 s"
    ]


# -- cancelled ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_cancelled_requests_do_not_delay_the_others(seed: int) -> None:
    """Each second one goes, at every kind of wait; the others are sent as if it had never been."""

    async def scenario(leaving: bool) -> list[float]:
        scheduler = RequestScheduler(Limits(lists=4))
        kinds: list[AnyRequest] = [RELIST, REWATCH, FIRST]
        await fail(scheduler, busy(2.0))
        staying = [
            asyncio.create_task(send(scheduler.create_lane(), kinds[n % 3], lasting=0.1))
            for n in range(60)
        ]
        others = [
            asyncio.create_task(send(scheduler.create_lane(), kinds[n % 3]))
            for n in range(60 * leaving)
        ]
        for number, task in enumerate(others):
            if number % 7 == seed % 7:
                await asyncio.sleep(0.03)
            task.cancel()
        await asyncio.wait(others) if others else None
        sent = sorted([await each for each in staying])
        await asyncio.sleep(PAGE_SLOT_SECONDS)
        assert (scheduler.waiting, scheduler.initial_lists) == (0, 0)
        return sent

    alone = run(scenario(leaving=False), seed=seed, horizon=10_000)
    shared = run(scenario(leaving=True), seed=seed, horizon=10_000)
    assert shared[-1] <= alone[-1] + 0.5


def test_the_first_waiting_request_may_be_cancelled() -> None:
    async def scenario() -> tuple[list[float], int]:
        scheduler = RequestScheduler(Limits(restarts=1.0, burst=1))
        line = [asyncio.create_task(send(scheduler.create_lane(), REWATCH)) for _ in range(5)]
        await asyncio.sleep(0.5)
        line[1].cancel()  # it sleeps until its token is there
        line[3].cancel()  # it stands behind it
        await asyncio.wait(line)
        return [each.result() for each in line if not each.cancelled()], scheduler.waiting

    sent, waiting = run(scenario(), seed=1, order="fifo", horizon=100)
    assert sent == pytest.approx([0.0, 1.0, 2.0])
    assert waiting == 0


# -- what it shows -----------------------------------------------------------------------------


def test_the_state_shows_in_the_repr() -> None:
    async def scenario() -> list[str]:
        scheduler = RequestScheduler(Limits(lists=1))
        lane, shown = scheduler.create_lane(), [repr(scheduler)]
        async with lane.acquire(FIRST):
            waiting = asyncio.create_task(send(scheduler.create_lane(), FIRST))
            await asyncio.sleep(0)
            scheduler.record_failure(LOST)
            shown.append(repr(scheduler))
            lane.record_response()
        shown.append(repr(lane))
        await send(lane, WATCH)
        await waiting
        return shown

    assert simulated(scenario) == [
        "<RequestScheduler 0 of 1 initial lists, 0 waiting>",
        "<RequestScheduler 1 of 1 initial lists, 1 waiting, server in trouble>",
        "<ReflectorLane with a slot of <RequestScheduler 1 of 1 initial lists, 1 waiting>>",
    ]


# -- a client ----------------------------------------------------------------------------------


async def read(chunks: AsyncIterator[bytes]) -> bytes:
    return b"".join([chunk async for chunk in chunks])


async def test_the_readers_of_a_client_share_its_limits() -> None:
    async with (
        ApiServer() as server,
        Client(server.url, limits=Limits(lists=1)) as client,
    ):
        one, other = client.lister_watcher(PODS), client.lister_watcher(PODS)
        async with one.watch(WATCH_LIST):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.02), other.list(FIRST):
                    raise AssertionError("two at once")
            assert b"PodList" in await client.get_raw("/api/v1/pods")
            one.release_list_slot()
            async with other.list(FIRST) as chunks:
                assert b"PodList" in await read(chunks)


async def test_a_retry_after_blocks_only_the_requests_of_its_client() -> None:
    async with (
        ApiServer() as server,
        Client(server.url) as client,
        Client(server.url) as other,
    ):
        server.faults.status(429, retry_after=5, times=1)
        with pytest.raises(FetchError):
            async with client.lister_watcher(PODS).list(FIRST):
                pass
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02), client.lister_watcher(PODS).watch(WATCH):
                raise AssertionError("sent")
        await client.get_raw("/api/v1/pods")
        assert (await client.resource("po")).plural == "pods"
        async with other.lister_watcher(PODS).list(FIRST) as chunks:
            await read(chunks)


async def test_a_forbidden_error_is_raised_to_the_caller_unchanged() -> None:
    async with ApiServer() as server, Client(server.url) as client:
        server.faults.forbid()
        with pytest.raises(Forbidden, match="cannot list resource"):
            async with client.lister_watcher(PODS).list(FIRST):
                pass
