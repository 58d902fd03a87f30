"""The reaction to several failures in a row and to idle connections, in simulated time.

``test_error_table`` tests each failure alone. The clusters in memory send bookmarks like real ones.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from itertools import pairwise

import pytest

from aioinformer import KubeObject, SharedInformer, SharedInformerFactory
from aioinformer._core.listwatch.idle_timeout import LivenessPolicy
from aioinformer._core.listwatch.requests import Request, WatchRequest
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
from tests.runtime.informers import cluster_with_pods, label_pod
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


def is_initial(request: Request) -> bool:
    return isinstance(request, WatchRequest) and request.initial


def lists_only(then: Answer) -> Callable[[Request], Answer]:
    """Return a server without WatchLists whose watches all get the same response."""

    def answer(request: Request) -> Answer:
        if is_initial(request):
            return UNSERVED
        return then if isinstance(request, WatchRequest) else STATE

    return answer


async def waits(scene: InformerHarness, count: int) -> list[float]:
    """Return the waits after so many failures."""
    await scene.wait_for_problem(count)
    return [problem.retry_in or 0.0 for _, problem in scene.problems[:count]]


# -- waits -------------------------------------------------------------------------------------


@pytest.mark.client_go(13)
@pytest.mark.parametrize("watch_lists", [True, False], ids=["WatchList", "LIST"])
def test_waits_double_up_to_half_a_minute_and_their_jitter(watch_lists: bool) -> None:
    async def story() -> list[float]:
        refusal = ErrorResponse(ConnectionFailed("refused"))
        scene = InformerHarness(FunctionListerWatcher(lambda _: refusal, watch_lists=watch_lists))
        async with scene.running():
            return await waits(scene, 12)

    for number, waited in enumerate(run_simulated(story)):
        bare = min(0.8 * 2**number, 30.0)
        assert bare <= waited <= 2 * bare


def test_failures_of_different_kinds_increase_one_common_backoff() -> None:
    async def story() -> list[float]:
        kinds = in_sequence(
            error_response(403, "Forbidden"),
            error_response(500, "InternalError"),
            reply(b"<html>"),
            STATE,
            reply(error=LOST),
            reply(error_event(500, "InternalError")),
        )
        scene = InformerHarness(FunctionListerWatcher(kinds, watch_lists=False))
        async with scene.running():
            return await waits(scene, 5)

    waited = run_simulated(story)
    assert [0.8 * 2**n <= each <= 1.6 * 2**n for n, each in enumerate(waited)] == [True] * 5


def test_a_watch_that_lasts_for_twenty_seconds_ends_an_outage() -> None:
    async def story() -> list[float]:
        scene = InformerHarness(
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
        async with scene.running():
            return await waits(scene, 3)

    first, second, third = run_simulated(story)
    assert first <= 1.6 <= second
    assert third <= 1.6


def test_an_immediate_second_attempt_is_made_once_in_an_outage() -> None:
    """Here an endless 410, which client-go answers with an endless loop."""

    async def story() -> list[float]:
        scene = InformerHarness(FunctionListerWatcher(lambda _: error_response(410, "Expired")))
        async with scene.running():
            return await waits(scene, 4)

    first, *others = run_simulated(story)
    assert first == 0.0
    assert others == sorted(others)
    assert others[0] >= 1.6


# -- another way -------------------------------------------------------------------------------


def test_a_server_without_watch_lists_receives_a_request_for_one_every_half_hour_at_most() -> None:
    async def story() -> list[str]:
        scene = InformerHarness(
            FunctionListerWatcher(lists_only(reply(300.0, error_event(410, "Expired"))))
        )
        async with scene.running():
            await asyncio.sleep(3_700.0)
        return scene.request_summaries

    sent = run_simulated(story)
    assert sent[:5] == ["stream newest", "list 0", "watch 10", "whole 10", "watch 10"]
    assert sum(request.startswith("stream") for request in sent) == 3


def test_a_kind_of_request_that_fails_three_times_in_a_row_is_replaced_by_another() -> None:
    async def story() -> tuple[list[str], list[str]]:
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

    streams, watches = run_simulated(story)
    assert streams == ["stream newest"] * 3 + ["list 0"]
    assert watches == ["list 0", "watch 10", "watch 10", "watch 10", "whole 10"]


@pytest.mark.parametrize("code", [401, 429, 503])
def test_an_error_that_a_list_would_get_too_is_never_answered_with_a_list(code: int) -> None:
    async def story() -> list[str]:
        scene = InformerHarness(FunctionListerWatcher(lambda _: error_response(code, "")))
        async with scene.running():
            await asyncio.sleep(600.0)
        return scene.request_summaries

    assert set(run_simulated(story)) == {"stream newest"}


def test_a_consistent_read_is_repeated_until_a_state_is_read() -> None:
    """410, then refused: still by consistent read."""

    async def story() -> list[str]:
        scene = InformerHarness(
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
        async with scene.running():
            await scene.wait_for_request(6)
        return scene.request_summaries

    assert run_simulated(story) == ["list 0", "watch 10", *["list newest"] * 3, "watch 30"]


# -- watches that end --------------------------------------------------------------------------


def test_a_watch_that_ends_at_its_timeout_is_resumed_at_once_and_is_no_failure() -> None:
    async def story() -> InformerHarness:
        scene = InformerHarness(
            FunctionListerWatcher(
                in_sequence(
                    reply(added("a", 3), initial_events_end(10), *(60.0, bookmark(10)) * 5),
                    reply(modified("a", 20), *(60.0, bookmark(20)) * 5),
                )
            )
        )
        async with scene.running():
            await scene.wait_for_request(3)
        return scene

    scene = run_simulated(story)
    assert scene.request_summaries == ["stream newest", "watch 10", "watch 20"]
    assert scene.problems == []
    assert [at for at, _ in scene.recorder.requests] == pytest.approx([0.0, 300.0, 600.0], abs=0.1)


def test_watches_that_are_cut_every_few_seconds_begin_twenty_seconds_apart() -> None:
    """Some proxies do it. client-go asks again without a pause."""

    async def story() -> InformerHarness:
        scene = InformerHarness(FunctionListerWatcher(lists_only(reply(3.0)), watch_lists=False))
        async with scene.running():
            await asyncio.sleep(300.0)
        return scene

    scene = run_simulated(story)
    assert set(scene.request_summaries[1:]) == {"watch 10"}
    begun = [at for at, _ in scene.recorder.requests][2:]
    gaps = [later - at for at, later in pairwise(begun)]
    assert gaps == pytest.approx([20.0] * len(gaps), abs=0.1)


def test_an_event_without_a_version_does_not_change_the_version_of_the_watch() -> None:
    """client-go would list from 0 after it."""

    async def story() -> list[str]:
        nameless = event_line("ADDED", body("b", 0).replace('"0"', '""'))
        scene = InformerHarness(
            FunctionListerWatcher(
                in_sequence(STATE, reply(bookmark(20), nameless, 20.0, error=LOST)),
                watch_lists=False,
            )
        )
        async with scene.running():
            await scene.wait_for_request(3)
        return scene.request_summaries

    assert run_simulated(story)[-1] == "watch 20"


def test_an_object_that_an_index_function_rejects_does_not_end_the_watch() -> None:
    def colour(pod: KubeObject) -> str:
        if pod.name == "b":
            raise ValueError("no colour")
        return "red"

    async def story() -> InformerHarness:
        watched = reply(added("b", 11), modified("a", 12), ENDLESS_PAUSE)
        scene = InformerHarness(
            FunctionListerWatcher(in_sequence(STATE, watched), watch_lists=False),
            indexers={"colour": colour},
        )
        async with scene.running():
            await wait_until(lambda: scene.cached_versions == {"a": "12"})
            assert scene.informer.health.rejected == ("web/b",)
            assert scene.informer.health.resource_version == "12"
            assert scene.informer.health.state == "watching"
        return scene

    assert run_simulated(story).request_summaries == ["list 0", "watch 10"]


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
    scene = InformerHarness(source.lister_watcher(PODS), liveness=liveness, watch_list=watch_list)
    async with scene.running():
        await scene.informer.wait_synced(30)
        yield scene


async def lived(cluster: Cluster, minutes: int) -> None:
    """Something changes now and then, so that there are bookmarks."""
    for number in range(2 * minutes):
        await asyncio.sleep(30.0)
        label_pod(cluster, "a", f"{number}")


@pytest.mark.parametrize("lived_for", [2, 7, 13])
def test_9_a_watch_whose_server_stops_sending_is_replaced_within_80_seconds(lived_for: int) -> None:
    async def story() -> None:
        cluster, faults = cluster_with_pods("a"), Faults()
        async with of_cluster(cluster, faults) as scene:
            await lived(cluster, lived_for)
            before = len(scene.request_summaries)
            fault = faults.stall(after=0, verb="watch", times=1)
            went = loop_time()
            await asyncio.sleep(0.1)
            label_pod(cluster, "a", "unheard")
            await wait_until(lambda: fault.hits == 1)
            assert isinstance((await scene.wait_for_problem(1)).error, RequestTimedOut)
            assert scene.problems[0][1].cause == "idle_timeout"
            assert loop_time() - went <= 80.0
            await wait_until(lambda: scene.cached_versions["a"] == str(cluster.resource_version))
            assert loop_time() - went <= 80.0
            first, second = scene.request_summaries[before : before + 2]
            assert (first, second.split()[0]) == ("probe", "watch")
            assert scene.informer.health.error is None

    run_simulated(story)


def test_9_a_watch_that_stalls_right_after_the_end_mark_is_replaced_within_80_seconds() -> None:
    """The first periodic bookmark comes after a minute, and the connection may die before."""

    async def story() -> None:
        cluster, faults = cluster_with_pods("a"), Faults()
        async with of_cluster(cluster, faults) as scene:
            await asyncio.sleep(5.0)
            fault = faults.stall(after=0, verb="watch", times=1)
            went = loop_time()
            label_pod(cluster, "a", "unheard")
            await wait_until(lambda: fault.hits == 1)
            await wait_until(lambda: scene.cached_versions["a"] == str(cluster.resource_version))
            assert loop_time() - went <= 80.0
            assert [each.cause for _, each in scene.problems] == ["idle_timeout"]

    run_simulated(story)


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

    async def story() -> None:
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

    run_simulated(story)


def test_9_watches_that_all_stall_are_replaced_every_80_seconds_and_reported() -> None:
    async def story() -> list[float]:
        cluster, faults = cluster_with_pods("a"), Faults()
        async with of_cluster(cluster, faults) as scene, other_writes(cluster):
            await asyncio.sleep(200.0)
            faults.stall(verb="watch", after=0)
            await asyncio.sleep(600.0)
            assert {each.cause for _, each in scene.problems} == {"idle_timeout"}
            return [at for at, _ in scene.problems]

    problems = run_simulated(story)
    assert len(problems) >= 7
    assert all(later - earlier <= 80.0 for earlier, later in pairwise(problems))


def test_10_a_watch_that_misses_bookmarks_is_reported_however_long_its_idle_timeout_is() -> None:
    """After many silent watches the server may have stopped to send bookmarks."""

    async def story() -> list[float]:
        cluster, faults = cluster_with_pods("a"), Faults()
        async with of_cluster(cluster, faults) as scene, other_writes(cluster):
            await asyncio.sleep(200.0)
            faults.stall(verb="watch", after=0)
            await asyncio.sleep(3_600.0)
            return [at for at, _ in scene.problems]

    problems = run_simulated(story)
    assert 15 <= len(problems) <= 25
    assert all(later - earlier <= 300.0 for earlier, later in pairwise(problems))


def test_a_watch_without_bookmarks_has_no_idle_timeout() -> None:
    async def story() -> None:
        cluster, faults = cluster_with_pods("a"), Faults()
        faults.drop_bookmarks()
        async with of_cluster(cluster, faults, watch_list=False) as scene:
            await lived(cluster, 4)
            await asyncio.sleep(1_200.0)
            assert scene.problems == []
            requests = [request.split()[0] for request in scene.request_summaries[1:]]
            assert set(requests) == {"watch", "probe"}
            assert ("probe", "probe") not in pairwise(requests)
            assert requests.count("probe") <= 4, "one after each watch that has shown nothing"

    run_simulated(story)


def test_the_idle_timeout_increases_if_a_replaced_watch_receives_no_bookmark_either() -> None:
    """A server has no bookmark to send if nothing at all was written: that is no outage."""

    async def story() -> tuple[int, set[str]]:
        cluster, faults = cluster_with_pods("a"), Faults()
        async with of_cluster(cluster, faults) as scene:
            await lived(cluster, 5)
            before = len(scene.problems)
            await asyncio.sleep(3_600.0)
            return len(scene.problems) - before, {each.cause for _, each in scene.problems}

    problems, causes = run_simulated(story)
    assert causes <= {"idle_timeout"}
    assert problems <= 4


def test_a_slow_listener_does_not_cause_an_idle_timeout() -> None:
    async def story() -> None:
        cluster, faults = cluster_with_pods("a"), Faults()
        async with of_cluster(cluster, faults) as scene:
            released = asyncio.Event()

            async def stuck(_: object) -> None:
                await released.wait()

            await lived(cluster, 3)
            scene.informer.add_handler(stuck, limit=1, overflow="block")
            for number in range(12_000):
                label_pod(cluster, "a", f"x{number}")
            await asyncio.sleep(200.0)
            blocked = scene.informer.health.blocked_by
            released.set()
            await wait_until(lambda: scene.cached_versions["a"] == str(cluster.resource_version))
            assert blocked
            assert [each.cause for _, each in scene.problems] == []

    run_simulated(story)


# -- a server that went back in time -----------------------------------------------------------


def test_1_a_restored_backup_is_reported_and_compared_by_content() -> None:
    """The pod "a" has the same uid and version in both lives of the server, and another label."""

    async def story() -> None:
        cluster, faults = cluster_with_pods("a", "b", "c"), Faults()
        past = cluster.snapshot()
        async with of_cluster(cluster, faults) as scene:
            await lived(cluster, 3)
            label_pod(cluster, "a", "first-life")
            twice = cluster.resource_version
            cluster.delete("pods", "b")
            for number in range(20):
                label_pod(cluster, "c", f"first-life-{number}")
            await wait_until(lambda: "b" not in scene.cached_versions)
            cluster.restore(past)
            while cluster.resource_version < twice - 1:
                label_pod(cluster, "c", f"second-life-{cluster.resource_version}")
            label_pod(cluster, "a", "second-life")
            restored = loop_time()
            await wait_until(lambda: scene.informer.health.rewinds == 1)
            assert loop_time() - restored <= 80.0
            await wait_until(lambda: "b" in scene.cached_versions)
            (pod,) = (pod for pod in scene.informer.lister.list() if pod.name == "a")
            assert (pod.resource_version, pod.labels["value"]) == (str(twice), "second-life")
            truth = json.loads(cluster.list("pods"))["items"]
            metadata = {item["metadata"]["name"]: item["metadata"] for item in truth}
            assert scene.cached_versions == {
                name: metadata[name]["resourceVersion"] for name in metadata
            }
            rewinds = [each for _, each in scene.problems if each.phase == "rewind"]
            assert [type(each.error) for each in rewinds] == [ServerRewound]

    run_simulated(story)


@pytest.mark.parametrize("bookmarks", [True, False])
def test_1_a_restored_backup_is_noticed_though_no_bookmark_was_ever_received(
    bookmarks: bool,
) -> None:
    """The restored server accepts watches from the newer version, and is silent for ever."""

    async def story() -> None:
        cluster, faults = cluster_with_pods("a", "b"), Faults()
        past = cluster.snapshot()
        if not bookmarks:
            faults.drop_bookmarks()
        async with of_cluster(cluster, faults, watch_list=False) as scene:
            for number in range(9):
                label_pod(cluster, "a", f"lost-{number}")
            cluster.delete("pods", "b")
            await wait_until(lambda: "b" not in scene.cached_versions)
            cluster.restore(past)
            await asyncio.sleep(620.0)
            assert "b" in scene.cached_versions
            assert [each.phase for _, each in scene.problems] == ["rewind"]

    run_simulated(story)


# -- what a program is told --------------------------------------------------------------------


def test_the_error_for_a_slow_sync_contains_the_message_of_the_server() -> None:
    async def story() -> str:
        scene = InformerHarness(
            FunctionListerWatcher(
                lambda _: error_response(403, "Forbidden", "pods is forbidden: User x")
            )
        )
        async with scene.running():
            with pytest.raises(SyncTimeout) as caught:
                await scene.informer.wait_synced(20.0)
            return str(caught.value)

    text = run_simulated(story)
    assert "pods is forbidden: User x" in text
    assert "next attempt in" in text


def test_a_chosen_error_is_fatal_and_any_other_is_not() -> None:
    async def story() -> tuple[list[str], SharedInformer]:
        scene = InformerHarness(
            FunctionListerWatcher(
                in_sequence(error_response(403, "Forbidden"), error_response(401, "Unauthorized"))
            ),
            fail_fast=(Unauthorized,),
        )
        with pytest.raises(Unauthorized):
            await scene.informer.run()
        assert [type(each.error) for _, each in scene.problems] == [Forbidden, Unauthorized]
        return scene.request_summaries, scene.informer

    sent, informer = run_simulated(story)
    assert sent == ["stream newest", "list 0"]
    assert informer.health.state == "failed"
    assert isinstance(informer.health.error, Unauthorized)
