"""The reaction to several failures in a row and to idle connections, in simulated time.

``test_error_table`` tests each failure alone. The clusters in memory send bookmarks like real ones.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from itertools import pairwise

import pytest

from aioinformer import KubeObject, SharedInformer, SharedInformerFactory
from aioinformer._core.listwatch.liveness import LivenessPolicy
from aioinformer._core.listwatch.reflector_requests import Request, WatchRequest
from aioinformer.errors import (
    ConnectionFailed,
    ConnectionLost,
    Forbidden,
    RequestTimedOut,
    ServerRewound,
    SyncTimeout,
    Unauthorized,
)
from aioinformer.testing import Cluster, ClusterSource, Faults
from tests.promises.function_lister_watcher import (
    ENDLESS_PAUSE,
    Answer,
    FunctionListerWatcher,
    InformerHarness,
    Reply,
    in_sequence,
    initial_events_end,
    loop_time,
    reply,
    run_simulated,
    wait_until,
)
from tests.runtime.informers import cluster_with_pods, label_pod, running_in_background
from tests.runtime.scripted_source import (
    PODS,
    ErrorResponse,
    added,
    body,
    bookmark,
    error_event,
    error_response,
    event_line,
    list_response,
    modified,
)

LOST = ConnectionLost("reset by peer")
UNSERVED = error_response(422, "Invalid", "sendInitialEvents: Forbidden")
STATE = Reply(list_response(body("a", 3), version="10").chunks)
STATE_AT_20 = Reply(list_response(body("a", 3), version="20").chunks)


def is_initial(request: Request) -> bool:
    return isinstance(request, WatchRequest) and request.initial


def lists_only(then: Answer) -> Callable[[Request], Answer]:
    """Return a server without WatchLists whose watches all get the same response."""

    def answer(request: Request) -> Answer:
        if is_initial(request):
            return UNSERVED
        return then if isinstance(request, WatchRequest) else STATE

    return answer


async def waits(harness: InformerHarness, count: int) -> list[float]:
    """Return the waits after so many failures."""
    await harness.wait_for_problem(count)
    return [problem.retry_in or 0.0 for _, problem in harness.problems[:count]]


# -- waits -------------------------------------------------------------------------------------


@pytest.mark.client_go(13)
@pytest.mark.parametrize("watch_lists", [True, False], ids=["WatchList", "LIST"])
def test_waits_grow_by_half_up_to_twenty_seconds_and_their_jitter(watch_lists: bool) -> None:
    async def scenario() -> list[float]:
        refusal = ErrorResponse(ConnectionFailed("refused"))
        harness = InformerHarness(FunctionListerWatcher(lambda _: refusal, watch_lists=watch_lists))
        async with harness.running():
            return await waits(harness, 12)

    for number, waited in enumerate(run_simulated(scenario)):
        bare = min(0.8 * 1.5**number, 20.0)
        assert bare <= waited <= 2 * bare


def test_failures_of_different_kinds_increase_one_common_backoff() -> None:
    async def scenario() -> list[float]:
        kinds = in_sequence(
            error_response(403, "Forbidden"),
            error_response(500, "InternalError"),
            reply(b"<html>"),
            STATE,
            reply(error=LOST),
            STATE,
            reply(error_event(500, "InternalError")),
        )
        harness = InformerHarness(FunctionListerWatcher(kinds, watch_lists=False))
        async with harness.running():
            return await waits(harness, 5)

    waited = run_simulated(scenario)
    for number, each in enumerate(waited):
        assert 0.8 * 1.5**number <= each <= 1.6 * 1.5**number


def test_a_watch_that_lasts_for_twenty_seconds_ends_an_outage() -> None:
    async def scenario() -> list[float]:
        harness = InformerHarness(
            FunctionListerWatcher(
                in_sequence(
                    STATE,
                    reply(error=LOST),
                    reply(modified("a", 11), 19.0, error=LOST),
                    reply(modified("a", 12), 21.0, error=LOST),
                ),
                watch_lists=False,
            )
        )
        async with harness.running():
            return await waits(harness, 3)

    first, second, third = run_simulated(scenario)
    assert first <= 1.6 <= second
    assert third <= 1.6


def test_an_immediate_second_attempt_is_made_once_in_an_outage() -> None:
    """Here an endless 410, which client-go answers with an endless loop."""

    async def scenario() -> list[float]:
        harness = InformerHarness(FunctionListerWatcher(lambda _: error_response(410, "Expired")))
        async with harness.running():
            return await waits(harness, 4)

    first, *others = run_simulated(scenario)
    assert first == 0.0
    assert others == sorted(others)
    assert others[0] >= 1.6


# -- another way -------------------------------------------------------------------------------


def test_a_server_without_watch_lists_receives_a_request_for_one_every_half_hour_at_most() -> None:
    async def scenario() -> list[str]:
        harness = InformerHarness(
            FunctionListerWatcher(lists_only(reply(300.0, error_event(410, "Expired"))))
        )
        async with harness.running():
            await asyncio.sleep(3_700.0)
        return harness.request_summaries

    sent = run_simulated(scenario)
    assert sent[:5] == ["stream newest", "list 0", "watch 10", "whole 10", "watch 10"]
    assert sum(request.startswith("stream") for request in sent) == 3


def test_a_kind_of_request_that_fails_three_times_in_a_row_is_replaced_by_another() -> None:
    async def scenario() -> tuple[list[str], list[str]]:
        streams = InformerHarness(
            FunctionListerWatcher(in_sequence(*[reply(added("b", 4), error=LOST)] * 3))
        )
        watches = InformerHarness(
            FunctionListerWatcher(in_sequence(STATE, reply(), reply(), reply()), watch_lists=False)
        )
        async with streams.running(), watches.running():
            await streams.wait_for_request(4)
            await watches.wait_for_request(5)
        return streams.request_summaries, watches.request_summaries

    streams, watches = run_simulated(scenario)
    assert streams == ["stream newest"] * 3 + ["list 0"]
    assert watches == ["list 0", "watch 10", "watch 10", "watch 10", "whole 10"]


@pytest.mark.parametrize("code", [401, 429])
def test_an_error_that_a_list_would_get_too_is_never_answered_with_a_list(code: int) -> None:
    async def scenario() -> list[str]:
        harness = InformerHarness(FunctionListerWatcher(lambda _: error_response(code, "")))
        async with harness.running():
            await asyncio.sleep(600.0)
        return harness.request_summaries

    assert set(run_simulated(scenario)) == {"stream newest"}


ENDLESS_REFUSALS: dict[str, Answer] = {
    "504": error_response(504, "Timeout", "Too large resource version: 10, current: 4"),
    "410": error_response(410, "Expired"),
    "504 as an event": reply(error_event(504, "Timeout", "Too large resource version: 10")),
    "410 as an event": reply(added("a", 3), error_event(410, "Expired")),
    "503": error_response(503, "ServiceUnavailable"),
    "503 with Retry-After": error_response(503, "ServiceUnavailable", retry=1.0),
    "closed without an answer": ErrorResponse(LOST),
    "nothing for a long time": ErrorResponse(RequestTimedOut("no answer in 30 s")),
}


@pytest.mark.client_go(38)
@pytest.mark.parametrize("refusal", ENDLESS_REFUSALS.values(), ids=ENDLESS_REFUSALS)
def test_watch_lists_that_are_refused_for_ever_are_replaced_by_a_list(refusal: Answer) -> None:
    """Milo, Steve and aggregated APIs serve LIST and WATCH, and refuse each WatchList."""

    def answer(request: Request) -> Answer:
        if is_initial(request):
            return refusal
        return reply(ENDLESS_PAUSE) if isinstance(request, WatchRequest) else STATE

    async def scenario() -> list[str]:
        harness = InformerHarness(FunctionListerWatcher(answer))
        async with harness.running():
            await harness.informer.wait_synced(20.0)
            await asyncio.sleep(1.0)
        return harness.request_summaries

    requests = run_simulated(scenario)
    assert requests[:3] == ["stream newest"] * 3
    assert [each.split()[0] for each in requests[3:]] == ["list", "watch"]


def test_an_outage_during_the_first_read_does_not_switch_informers_to_lists() -> None:
    async def scenario() -> int:
        cluster, faults = cluster_with_pods("a"), Faults()
        async with SharedInformerFactory(ClusterSource(cluster, faults)) as factory:
            for number in range(10):
                factory.informer("pods", labels=f"n!={number}")
            with faults.refuse():
                await asyncio.sleep(30.0)
            lists = faults.latency(0.001, verb="list")
            await factory.wait_synced(timeout=60)
            return lists.hits

    assert run_simulated(scenario) == 0


class AnsweringListerWatcher(FunctionListerWatcher):
    """The server answers another informer about once a second."""

    @property
    def answers(self) -> int:
        return int(loop_time()) + 1

    async def wait_for_answer(self, timeout: float, *, success: bool = False) -> bool:
        await asyncio.sleep(timeout)
        return False


@pytest.mark.parametrize("other_answers", [True, False])
def test_refused_connections_count_only_where_the_server_answers_another_informer(
    other_answers: bool,
) -> None:
    def answer(request: Request) -> Answer:
        return ErrorResponse(ConnectionFailed("refused")) if is_initial(request) else STATE

    async def scenario() -> bool:
        kind = AnsweringListerWatcher if other_answers else FunctionListerWatcher
        informer = SharedInformer(kind(answer))
        async with running_in_background(informer.run()):
            await asyncio.sleep(60.0)
            return informer.synced

    assert run_simulated(scenario) is other_answers


def test_a_consistent_read_is_repeated_until_a_state_is_read() -> None:
    """410, then refused: still by consistent read."""

    async def scenario() -> list[str]:
        harness = InformerHarness(
            FunctionListerWatcher(
                in_sequence(
                    STATE,
                    error_response(504, "Timeout", "Too large resource version: 10"),
                    ErrorResponse(ConnectionFailed("refused")),
                    error_response(503, "ServiceUnavailable"),
                    Reply(list_response(body("a", 3), version="30").chunks),
                ),
                watch_lists=False,
            )
        )
        async with harness.running():
            await harness.wait_for_request(6)
        return harness.request_summaries

    assert run_simulated(scenario) == ["list 0", "watch 10", *["list newest"] * 3, "watch 30"]


# -- watches that end --------------------------------------------------------------------------


def test_a_watch_that_ends_at_its_timeout_is_resumed_at_once_and_is_no_failure() -> None:
    async def scenario() -> InformerHarness:
        harness = InformerHarness(
            FunctionListerWatcher(
                in_sequence(
                    reply(added("a", 3), initial_events_end(10), *(60.0, bookmark(10)) * 5),
                    reply(modified("a", 20), *(60.0, bookmark(20)) * 5),
                )
            )
        )
        async with harness.running():
            await harness.wait_for_request(3)
        return harness

    harness = run_simulated(scenario)
    assert harness.request_summaries == ["stream newest", "watch 10", "watch 20"]
    assert harness.problems == []
    assert [at for at, _ in harness.recorder.requests] == pytest.approx(
        [0.0, 300.0, 600.0], abs=0.1
    )


PROXY_CUTS: dict[str, Reply] = {
    "3 s, ended": reply(3.0),
    "3 s, broken": reply(3.0, error=LOST),
    "at once, after a bookmark": reply(bookmark(10), error=LOST),
    "at once, after an event": reply(modified("a", 10), error=LOST),
    "15 s, broken": reply(15.0, error=LOST),
    "15 s, broken after an event": reply(modified("a", 10), 15.0, error=LOST),
    "19 s, broken": reply(19.0, error=LOST),
}


@pytest.mark.parametrize("cut", PROXY_CUTS.values(), ids=PROXY_CUTS)
def test_watches_that_are_always_cut_begin_three_and_after_two_minutes_twenty_seconds_apart(
    cut: Reply,
) -> None:
    """Some proxies do it: Envoy after 15 s, by default. client-go asks again without a pause."""

    async def scenario() -> InformerHarness:
        harness = InformerHarness(FunctionListerWatcher(lists_only(cut), watch_lists=False))
        async with harness.running():
            await asyncio.sleep(600.0)
        return harness

    lasts = sum(part for part in cut.parts if isinstance(part, float))
    harness = run_simulated(scenario)
    begun = [at for at, request in harness.recorder.requests if isinstance(request, WatchRequest)]
    gaps = [(at, later - at) for at, later in pairwise(begun)][1:]
    early = [gap for at, gap in gaps if at < 115.0]
    late = [gap for at, gap in gaps if at > 150.0]
    assert early == pytest.approx([max(3.0, lasts)] * len(early), abs=0.2)
    assert late == pytest.approx([20.5] * len(late), abs=0.51)


def is_current(harness: InformerHarness, cluster: Cluster) -> bool:
    return harness.cached_versions["a"] == str(cluster.resource_version)


def test_a_cache_behind_a_proxy_that_cuts_watches_after_15_seconds_is_at_most_6_seconds_old() -> (
    None
):
    """Measured before: 28 s, and 42 s where nothing changed meanwhile. client-go: at once."""

    async def scenario() -> list[float]:
        cluster, faults, late = cluster_with_pods("a"), Faults(), list[float]()

        async def cut() -> None:
            while True:
                await asyncio.sleep(0.25)
                opened = harness.informer.health
                if opened.state == "watching" and opened.since >= 15.0:
                    faults.reset(verb="watch", after=0).retire()

        async with of_cluster(cluster, faults) as harness:
            cutting = asyncio.create_task(cut())
            for number in range(200):
                await asyncio.sleep(3.0 if number % 40 else 60.0)
                changed = loop_time()
                label_pod(cluster, "a", f"{number}")
                await wait_until(lambda: is_current(harness, cluster))
                late.append(loop_time() - changed)
            cutting.cancel()
        return late

    late = run_simulated(scenario)
    assert max(late) <= 6.5
    assert sum(each > 0.1 for each in late) < len(late) / 2


@pytest.mark.parametrize("scoped", [False, True])
def test_health_and_log_name_a_proxy_that_cuts_watches(
    scoped: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> tuple[float | None, str, float | None]:
        cluster, faults = cluster_with_pods("a"), Faults()
        source = ClusterSource(cluster, faults)
        async with SharedInformerFactory(source) as factory:
            pods = factory.informer("pods", namespaces=["web", "other"] if scoped else None)
            await pods.wait_synced(30)
            for _ in range(4):
                await asyncio.sleep(15.0)
                faults.reset(verb="watch", after=0).retire()
            await asyncio.sleep(1.0)
            found = pods.health
            await asyncio.sleep(1_300.0)
            return found.watches_cut_after, str(found), pods.health.watches_cut_after

    seconds, text, later = run_simulated(scenario)
    assert seconds == pytest.approx(15.0, abs=1.0)
    advice = "a proxy cuts watches after 15 s: raise its timeout, or set watch_seconds below it"
    assert advice in text
    assert any(advice in message for message in caplog.messages)
    assert later is None, "the watches last as long as they were requested"


def test_an_event_without_a_version_does_not_change_the_version_of_the_watch() -> None:
    """client-go would list from 0 after it."""

    async def scenario() -> list[str]:
        nameless = event_line("ADDED", body("b", 0).replace('"0"', '""'))
        harness = InformerHarness(
            FunctionListerWatcher(
                in_sequence(STATE, reply(bookmark(20), nameless, 20.0, error=LOST), STATE_AT_20),
                watch_lists=False,
            )
        )
        async with harness.running():
            await harness.wait_for_request(4)
        return harness.request_summaries

    assert "watch 20" in run_simulated(scenario)


def test_an_object_that_an_index_function_rejects_does_not_end_the_watch() -> None:
    def colour(pod: KubeObject) -> str:
        if pod.name == "b":
            raise ValueError("no colour")
        return "red"

    async def scenario() -> InformerHarness:
        watched = reply(added("b", 11), modified("a", 12), ENDLESS_PAUSE)
        harness = InformerHarness(
            FunctionListerWatcher(in_sequence(STATE, watched), watch_lists=False),
            indexers={"colour": colour},
        )
        async with harness.running():
            await wait_until(lambda: harness.cached_versions == {"a": "12"})
            assert harness.informer.health.rejected == ("web/b",)
            assert harness.informer.health.resource_version == "12"
            assert harness.informer.health.state == "watching"
        return harness

    assert run_simulated(scenario).request_summaries == ["list 0", "watch 10"]


# -- silence -----------------------------------------------------------------------------------


@asynccontextmanager
async def of_cluster(
    cluster: Cluster,
    faults: Faults,
    *,
    liveness: LivenessPolicy | None = None,
    watch_list: bool = True,
) -> AsyncGenerator[InformerHarness]:
    """Run an informer of a cluster until it is synced."""
    source = ClusterSource(cluster, faults)
    harness = InformerHarness(source.lister_watcher(PODS), liveness=liveness, watch_list=watch_list)
    async with harness.running():
        await harness.informer.wait_synced(30)
        yield harness


async def lived(cluster: Cluster, minutes: int) -> None:
    """Something changes now and then, so that there are bookmarks."""
    for number in range(2 * minutes):
        await asyncio.sleep(30.0)
        label_pod(cluster, "a", f"{number}")


@pytest.mark.parametrize("lived_for", [2, 7, 13])
def test_9_a_watch_whose_server_stops_sending_is_replaced_within_80_seconds(lived_for: int) -> None:
    async def scenario() -> None:
        cluster, faults = cluster_with_pods("a"), Faults()
        async with of_cluster(cluster, faults) as harness:
            await lived(cluster, lived_for)
            before = len(harness.request_summaries)
            fault = faults.stall(after=0, verb="watch", times=1)
            went = loop_time()
            await asyncio.sleep(0.1)
            label_pod(cluster, "a", "unheard")
            await wait_until(lambda: fault.hits == 1)
            assert isinstance((await harness.wait_for_problem(1)).error, RequestTimedOut)
            assert harness.problems[0][1].cause == "idle_timeout"
            assert loop_time() - went <= 80.0
            await wait_until(lambda: harness.cached_versions["a"] == str(cluster.resource_version))
            assert loop_time() - went <= 80.0
            first, second = harness.request_summaries[before : before + 2]
            assert (first, second.split()[0]) == ("probe", "watch")
            assert harness.informer.health.error is None

    run_simulated(scenario)


def test_9_a_watch_that_stalls_right_after_the_end_mark_is_replaced_within_80_seconds() -> None:
    """The first periodic bookmark comes after a minute, and the connection may die before."""

    async def scenario() -> None:
        cluster, faults = cluster_with_pods("a"), Faults()
        async with of_cluster(cluster, faults) as harness:
            await asyncio.sleep(5.0)
            fault = faults.stall(after=0, verb="watch", times=1)
            went = loop_time()
            label_pod(cluster, "a", "unheard")
            await wait_until(lambda: fault.hits == 1)
            await wait_until(lambda: harness.cached_versions["a"] == str(cluster.resource_version))
            assert loop_time() - went <= 80.0
            assert [each.cause for _, each in harness.problems] == ["idle_timeout"]

    run_simulated(scenario)


@asynccontextmanager
async def other_writes(cluster: Cluster) -> AsyncGenerator[None]:
    """Write another resource all the time, so that there are bookmarks and no changes of pods."""

    async def write() -> None:
        for number in range(10**6):
            cluster.create("configmaps", {"metadata": {"name": f"other-{number}"}})
            await asyncio.sleep(5.0)

    writer = asyncio.create_task(write())
    try:
        yield
    finally:
        writer.cancel()


def are_labelled(pods: SharedInformer, labels: str, count: int) -> bool:
    return len(pods.lister.list(labels=labels)) == count


@pytest.mark.parametrize("lived_for", [5.0, 65.0, 200.0])
@pytest.mark.parametrize("apart", [5.0, 65.0, 200.0])
@pytest.mark.parametrize("namespaces", [1, 2, 5])
def test_9_each_of_several_dead_connections_is_replaced_within_80_seconds(
    lived_for: float, apart: float, namespaces: int
) -> None:
    """The watches of all namespaces die together, and no pod changes before they are replaced."""

    async def scenario() -> None:
        cluster, faults = Cluster(), Faults()
        names = [f"ns-{number}" for number in range(namespaces)]
        for name in names:
            cluster.create("pods", {"metadata": {"name": "a"}}, namespace=name)
        source = ClusterSource(cluster, faults)
        async with other_writes(cluster), SharedInformerFactory(source) as informers:
            pods = informers.informer("pods", namespaces=names)
            await pods.wait_synced(30)
            await asyncio.sleep(lived_for)
            for death in range(3):
                faults.stall(verb="watch", after=0).retire()
                await asyncio.sleep(81.0 + apart)  # replaced, without a missed change
                faults.stall(verb="watch", after=0).retire()
                await asyncio.sleep(1.0)
                patch = {"metadata": {"labels": {"value": f"{death}"}}}
                for name in names:
                    cluster.merge_patch("pods", "a", patch, namespace=name)
                went = loop_time()
                await wait_until(partial(are_labelled, pods, f"value={death}", namespaces))
                assert loop_time() - went <= 80.0
                await asyncio.sleep(apart)

    run_simulated(scenario)


def test_9_watches_that_all_stall_are_replaced_every_80_seconds_and_reported() -> None:
    async def scenario() -> list[float]:
        cluster, faults = cluster_with_pods("a"), Faults()
        async with of_cluster(cluster, faults) as harness, other_writes(cluster):
            await asyncio.sleep(200.0)
            faults.stall(verb="watch", after=0)
            await asyncio.sleep(600.0)
            assert {each.cause for _, each in harness.problems} == {"idle_timeout"}
            return [at for at, _ in harness.problems]

    problems = run_simulated(scenario)
    assert len(problems) >= 7
    assert all(later - earlier <= 80.0 for earlier, later in pairwise(problems))


def test_10_a_watch_that_misses_bookmarks_is_reported_however_long_its_idle_timeout_is() -> None:
    """After many silent watches the server may have stopped to send bookmarks."""

    async def scenario() -> list[float]:
        cluster, faults = cluster_with_pods("a"), Faults()
        async with of_cluster(cluster, faults) as harness, other_writes(cluster):
            await asyncio.sleep(200.0)
            faults.stall(verb="watch", after=0)
            await asyncio.sleep(3_600.0)
            return [at for at, _ in harness.problems]

    problems = run_simulated(scenario)
    assert 15 <= len(problems) <= 25
    assert all(later - earlier <= 300.0 for earlier, later in pairwise(problems))


def test_a_watch_without_bookmarks_has_no_idle_timeout() -> None:
    async def scenario() -> None:
        cluster, faults = cluster_with_pods("a"), Faults()
        faults.drop_bookmarks()
        async with of_cluster(cluster, faults, watch_list=False) as harness:
            await lived(cluster, 4)
            await asyncio.sleep(1_200.0)
            assert harness.problems == []
            requests = [request.split()[0] for request in harness.request_summaries[1:]]
            assert set(requests) == {"watch", "probe"}
            assert ("probe", "probe") not in pairwise(requests)
            assert requests.count("probe") <= 4, "one after each watch that has shown nothing"

    run_simulated(scenario)


@pytest.mark.parametrize("others", [False, True], ids=["nothing changes", "others change"])
def test_a_quiet_server_that_was_restarted_causes_no_warning(
    others: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """It sends no bookmark before its cache sees a change. A check after 75 s finds it alive."""

    async def scenario() -> tuple[list[str], int]:
        cluster, faults = cluster_with_pods("a"), Faults()
        async with of_cluster(cluster, faults) as harness, AsyncExitStack() as stack:
            await lived(cluster, 4)
            with faults.refuse():
                with faults.reset():
                    await asyncio.sleep(0.01)
                await asyncio.sleep(5.0)
                faults.stall(verb="watch", after=0, times=1)
            await wait_until(lambda: harness.informer.health.state == "watching")
            if others:
                await stack.enter_async_context(other_writes(cluster))
            before = len(harness.problems)
            caplog.clear()
            await asyncio.sleep(100.0)
            assert "probe" in harness.request_summaries[-2:]
            assert harness.informer.health.error is None
            return [str(each) for _, each in harness.problems[before:]], len(caplog.records)

    caplog.set_level(logging.WARNING, logger="aioinformer")
    assert run_simulated(scenario) == ([], 0)


def test_the_idle_timeout_increases_if_a_replaced_watch_receives_no_bookmark_either() -> None:
    """A server has no bookmark to send if nothing at all was written: that is no outage."""

    async def scenario() -> tuple[int, set[str]]:
        cluster, faults = cluster_with_pods("a"), Faults()
        async with of_cluster(cluster, faults) as harness:
            await lived(cluster, 5)
            before = len(harness.problems)
            await asyncio.sleep(3_600.0)
            return len(harness.problems) - before, {each.cause for _, each in harness.problems}

    problems, causes = run_simulated(scenario)
    assert causes <= {"idle_timeout"}
    assert problems <= 4


def test_a_slow_listener_does_not_cause_an_idle_timeout() -> None:
    async def scenario() -> None:
        cluster, faults = cluster_with_pods("a"), Faults()
        async with of_cluster(cluster, faults) as harness:
            released = asyncio.Event()

            async def stuck(_: object) -> None:
                await released.wait()

            await lived(cluster, 3)
            harness.informer.add_handler(stuck, limit=1, overflow="block")
            for number in range(12_000):
                label_pod(cluster, "a", f"x{number}")
            await asyncio.sleep(200.0)
            blocked = harness.informer.health.blocked_by
            released.set()
            await wait_until(lambda: harness.cached_versions["a"] == str(cluster.resource_version))
            assert blocked
            assert [each.cause for _, each in harness.problems] == []

    run_simulated(scenario)


# -- a server that went back in time -----------------------------------------------------------


def test_1_a_restored_backup_is_reported_and_compared_by_content() -> None:
    """The pod "a" has the same uid and version in both lives of the server, and another label."""

    async def scenario() -> None:
        cluster, faults = cluster_with_pods("a", "b", "c"), Faults()
        past = cluster.snapshot()
        async with of_cluster(cluster, faults) as harness:
            await lived(cluster, 3)
            label_pod(cluster, "a", "first-life")
            twice = cluster.resource_version
            cluster.delete("pods", "b")
            for number in range(20):
                label_pod(cluster, "c", f"first-life-{number}")
            await wait_until(lambda: "b" not in harness.cached_versions)
            cluster.restore(past)
            while cluster.resource_version < twice - 1:
                label_pod(cluster, "c", f"second-life-{cluster.resource_version}")
            label_pod(cluster, "a", "second-life")
            restored = loop_time()
            await wait_until(lambda: harness.informer.health.rewinds == 1)
            assert loop_time() - restored <= 80.0
            await wait_until(lambda: "b" in harness.cached_versions)
            (pod,) = (pod for pod in harness.informer.lister.list() if pod.name == "a")
            assert (pod.resource_version, pod.labels["value"]) == (str(twice), "second-life")
            truth = json.loads(cluster.list("pods"))["items"]
            metadata = {item["metadata"]["name"]: item["metadata"] for item in truth}
            assert harness.cached_versions == {
                name: metadata[name]["resourceVersion"] for name in metadata
            }
            rewinds = [each for _, each in harness.problems if each.phase == "rewind"]
            assert [type(each.error) for each in rewinds] == [ServerRewound]

    run_simulated(scenario)


@pytest.mark.parametrize("bookmarks", [True, False])
def test_1_a_restored_backup_is_noticed_though_no_bookmark_was_ever_received(
    bookmarks: bool,
) -> None:
    """The restored server accepts watches from the newer version, and is silent for ever."""

    async def scenario() -> None:
        cluster, faults = cluster_with_pods("a", "b"), Faults()
        past = cluster.snapshot()
        if not bookmarks:
            faults.drop_bookmarks()
        async with of_cluster(cluster, faults, watch_list=False) as harness:
            for number in range(9):
                label_pod(cluster, "a", f"lost-{number}")
            cluster.delete("pods", "b")
            await wait_until(lambda: "b" not in harness.cached_versions)
            cluster.restore(past)
            await asyncio.sleep(620.0)
            assert "b" in harness.cached_versions
            assert [each.phase for _, each in harness.problems] == ["rewind"]

    run_simulated(scenario)


# -- what a program is told --------------------------------------------------------------------


def test_the_error_for_a_slow_sync_contains_the_message_of_the_server() -> None:
    async def scenario() -> str:
        harness = InformerHarness(
            FunctionListerWatcher(
                lambda _: error_response(403, "Forbidden", "pods is forbidden: User x")
            )
        )
        async with harness.running():
            with pytest.raises(SyncTimeout) as caught:
                await harness.informer.wait_synced(20.0)
            return str(caught.value)

    text = run_simulated(scenario)
    assert "pods is forbidden: User x" in text
    assert "next attempt in" in text


def test_a_chosen_error_is_fatal_and_any_other_is_not() -> None:
    async def scenario() -> tuple[list[str], SharedInformer]:
        harness = InformerHarness(
            FunctionListerWatcher(
                in_sequence(error_response(403, "Forbidden"), error_response(401, "Unauthorized"))
            ),
            fail_fast=(Unauthorized,),
        )
        with pytest.raises(Unauthorized):
            await harness.informer.run()
        assert [type(each.error) for _, each in harness.problems] == [Forbidden, Unauthorized]
        return harness.request_summaries, harness.informer

    sent, informer = run_simulated(scenario)
    assert sent == ["stream newest", "list 0"]
    assert informer.health.state == "failed"
    assert isinstance(informer.health.error, Unauthorized)
